import assert from 'node:assert/strict';
import { nth, type Row } from './conformance.js';

/** Calls into the world, and the names that are ours. */

export const callRows: readonly Row[] = [
  {
    title: 'a call gives one text for one prompt, at once',
    javascript: [
      'print(llm_query("a"), await llm_query("b"), rlm_query("c"), await rlm_query("d"))',
    ],
    python: ['print(llm_query("a"), llm_query("b"), rlm_query("c"), rlm_query("d"))'],
    then(reports, subcalls) {
      assert.equal(nth(reports, 0).stdout, 'llm: a llm: b rlm: c rlm: d\n');
      assert.deepEqual(subcalls, [
        { kind: 'llm', ordinal: 1, prompts: ['a'] },
        { kind: 'llm', ordinal: 2, prompts: ['b'] },
        { kind: 'rlm', ordinal: 3, prompts: ['c'] },
        { kind: 'rlm', ordinal: 4, prompts: ['d'] },
      ]);
    },
  },
  {
    title: 'a batch is one call, and gives a list in the order of the prompts',
    javascript: [
      'const q = llm_query_batched(["a", "b", "c"]); print(q.length, q.join(), Array.isArray(q)); print(rlm_query_batched(["d"]).map(x => x + "!"))',
      'print(llm_query("again"))',
    ],
    python: [
      'q = llm_query_batched(["a", "b", "c"])\nprint(len(q), ",".join(q), str(isinstance(q, list)).lower())\nprint([x + "!" for x in rlm_query_batched(["d"])])',
      'print(llm_query("again"))',
    ],
    then(reports, subcalls) {
      assert.match(
        nth(reports, 0).stdout,
        /^3 llm: a,llm: b,llm: c true\n\[ ?["']rlm: d!["'] ?\]\n$/,
      );
      assert.deepEqual(subcalls, [
        { kind: 'llm', ordinal: 1, prompts: ['a', 'b', 'c'] },
        { kind: 'rlm', ordinal: 2, prompts: ['d'] },
        { kind: 'llm', ordinal: 1, prompts: ['again'] },
      ]);
    },
  },
  {
    title: 'Promise.all over calls is one batch, so that they run side by side',
    javascript: ['print(await Promise.all(["a", "b", "c"].map((one) => llm_query(one + "!"))))'],
    then(reports, subcalls) {
      assert.match(nth(reports, 0).stdout, /llm: a!.*llm: b!.*llm: c!/, nth(reports, 0).stderr);
      assert.deepEqual(subcalls, [{ kind: 'llm', ordinal: 1, prompts: ['a!', 'b!', 'c!'] }]);
    },
  },
  {
    title: 'a call may name its model, in every form',
    javascript: [
      'llm_query("a", "m"); llm_query_batched(["b"], "n"); rlm_query("c", null); rlm_query_batched(["d"], "o")',
    ],
    python: [
      'llm_query("a", "m")\nllm_query_batched(["b"], model="n")\nrlm_query("c", None)\nrlm_query_batched(["d"], "o")',
    ],
    then(reports, subcalls) {
      assert.equal(nth(reports, 0).status, 'ok', nth(reports, 0).stderr);
      assert.deepEqual(
        subcalls.map(({ model }) => model),
        ['m', 'n', undefined, 'o'],
      );
    },
  },
  {
    title: 'a batch of nothing is answered without a call',
    javascript: ['print(llm_query_batched([]).length, rlm_query_batched([]).length)'],
    python: ['print(len(llm_query_batched([])), len(rlm_query_batched([])))'],
    then(reports, subcalls) {
      assert.equal(nth(reports, 0).stdout, '0 0\n');
      assert.deepEqual(subcalls, []);
    },
  },
  {
    title:
      '#217 of five calls the third fails: five slots, the third an error as text, the order kept',
    javascript: ['const r = llm_query_batched(["1", "2", "3", "4", "5"]); print(r.join("|"))'],
    python: ['r = llm_query_batched(["1", "2", "3", "4", "5"])\nprint("|".join(r))'],
    answer: ({ prompts }) =>
      Promise.resolve(prompts.map((one) => (one === '3' ? 'Error: overloaded' : one))),
    then(reports) {
      assert.equal(nth(reports, 0).stdout, '1|2|Error: overloaded|4|5\n');
    },
  },
  {
    title: 'an answerer that breaks is an error as text in every slot, not an exception',
    javascript: ['print(llm_query_batched(["1", "2"]).join("|")); print(llm_query("3"))'],
    python: ['print("|".join(llm_query_batched(["1", "2"])))\nprint(llm_query("3"))'],
    answer: () => Promise.reject(new Error('the wire is cut')),
    then(reports) {
      assert.equal(nth(reports, 0).status, 'ok');
      const text = 'Error: the wire is cut';
      assert.equal(nth(reports, 0).stdout, `${text}|${text}\n${text}\n`);
    },
  },
  {
    title: 'an answerer that forgets slots leaves errors in them',
    javascript: ['print(llm_query_batched(["1", "2"]).join("|"))'],
    python: ['print("|".join(llm_query_batched(["1", "2"])))'],
    answer: () => Promise.resolve(['one']),
    then(reports) {
      assert.match(nth(reports, 0).stdout, /^one\|Error: /);
    },
  },
  {
    title:
      'prompts and answers come through whole: long, astral, with NUL, CRLF and quotes; half a character is replaced',
    javascript: [
      'const s = "\\u{1f600}\\0\\r\\n\\"\\\\" + "x".repeat(1000000); print(llm_query(s) === "llm: " + s); llm_query("[\\ud83d]")',
    ],
    python: [
      's = "\\U0001f600\\0\\r\\n\\"\\\\" + "x" * 1000000\nprint(str(llm_query(s) == "llm: " + s).lower())\nllm_query("[\\ud83d]")',
    ],
    then(reports, subcalls) {
      assert.equal(nth(reports, 0).stdout, 'true\n');
      assert.equal(subcalls[0]?.prompts[0], `\u{1f600}\0\r\n"\\${'x'.repeat(1_000_000)}`);
      assert.deepEqual(subcalls[1]?.prompts, ['[\ufffd]']);
    },
  },
  {
    title: 'a prompt that is no text is made one',
    javascript: ['llm_query(42); llm_query_batched([{ a: [1] }, true])'],
    python: ['llm_query(42)\nllm_query_batched([{"a": [1]}, True])'],
    then(_reports, subcalls) {
      assert.deepEqual(subcalls[0]?.prompts, ['42']);
      assert.match(subcalls[1]?.prompts[0] ?? '', /^\{["']a["']: ?\[1\]\}$/);
      assert.match(subcalls[1]?.prompts[1] ?? '', /^true$/i);
    },
  },
  {
    title: 'a call without a prompt, or a batch that is no list, is a failure of the code',
    javascript: ['llm_query()', 'llm_query_batched(5)', 'print(1)'],
    python: ['llm_query()', 'llm_query_batched(5)', 'print(1)'],
    then(reports, subcalls) {
      assert.match(nth(reports, 0).stderr, /TypeError/);
      assert.match(nth(reports, 1).stderr, /TypeError/);
      assert.equal(nth(reports, 2).status, 'ok');
      assert.deepEqual(subcalls, []);
    },
  },
  {
    title: '#214 names of ours that a cell overwrites are what they were in the next',
    javascript: [
      'let context = 1; const llm_query = 2; var rlm_query = 3; function llm_query_batched() {}\nclass rlm_query_batched {}\nshow_vars = SHOW_VARS = last_output = print = 4; let console = 5',
      'print(context.length, llm_query("a"), rlm_query_batched(["b"]).length, llm_query_batched(["c"]).length, rlm_query("d"), typeof show_vars(), typeof SHOW_VARS(), last_output === ""); console.log("logged")',
      'print(show_vars().includes("context"))',
    ],
    python: [
      'context = 1\nllm_query = 2\nrlm_query = 3\ndef llm_query_batched(): pass\nclass rlm_query_batched: pass\nshow_vars = SHOW_VARS = last_output = print = 4',
      'print(len(context), llm_query("a"), len(rlm_query_batched(["b"])), len(llm_query_batched(["c"])), rlm_query("d"), *("string" for x in (show_vars(), SHOW_VARS()) if isinstance(x, str)), str(last_output == "").lower())\nprint("logged")',
      'print(str("context" in show_vars()).lower())',
    ],
    then(reports) {
      assert.equal(nth(reports, 0).status, 'ok', nth(reports, 0).stderr);
      assert.equal(nth(reports, 1).stdout, '13 llm: a 1 1 rlm: d string string true\nlogged\n');
      assert.equal(nth(reports, 2).stdout, 'false\n');
    },
  },
  {
    title: 'names of ours that a cell deletes are back in the next',
    javascript: [
      'delete globalThis.context; delete globalThis.llm_query; delete globalThis.answer',
      'print(context.length, llm_query("a"), answer.ready)',
    ],
    python: [
      'del context, llm_query, answer',
      'print(len(context), llm_query("a"), str(answer["ready"]).lower())',
    ],
    then(reports) {
      assert.equal(nth(reports, 1).stdout, '13 llm: a false\n', nth(reports, 1).stderr);
    },
  },
];
