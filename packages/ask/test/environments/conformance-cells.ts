import assert from 'node:assert/strict';
import { nth, type Row } from './conformance.js';

/** Variables, output and failures of cells. */

const names = (row: {
  readonly variables: readonly { readonly name: string }[];
}): readonly string[] => row.variables.map(({ name }) => name);

export const cellRows: readonly Row[] = [
  {
    title: 'the next cell has the values, functions and classes of the one before',
    javascript: [
      'let a1 = 1; const a2 = "two"; var a3 = [3]; a4 = 4;\nfunction a5() { return a1 }\nclass A6 { seven = 7 }',
      'print(a1, a2, a3[0], a4, a5(), new A6().seven)',
    ],
    python: [
      'a1 = 1\na2 = "two"\na3 = [3]\na4 = 4\ndef a5():\n    return a1\nclass A6:\n    seven = 7',
      'print(a1, a2, a3[0], a4, a5(), A6().seven)',
    ],
    then(reports) {
      assert.equal(nth(reports, 0).status, 'ok');
      assert.equal(nth(reports, 1).stdout, '1 two 3 4 1 7\n');
      assert.equal(nth(reports, 1).stderr, '');
    },
  },
  {
    title: 'a later cell may declare a name again, as what it likes',
    javascript: [
      'let b1 = 1; const b2 = 2; class B3 {}; const { b4, b5: [b6] } = { b4: 4, b5: [6] }',
      'const b1 = "x"; let b2 = "y"; let B3 = "z"; class b4 {}\nlet b6',
      'print(b1, b2, B3, typeof b4, b6)',
    ],
    python: [
      'b1 = 1\nb2 = 2\nclass B3: pass\nb4, b6 = 4, 6',
      'b1 = "x"\nb2 = "y"\nB3 = "z"\ndef b4(): pass\nb6 = None',
      'print(b1, b2, B3, "function" if callable(b4) else b4, "undefined" if b6 is None else b6)',
    ],
    then(reports) {
      assert.deepEqual(
        reports.map(({ status }) => status),
        ['ok', 'ok', 'ok'],
      );
      assert.equal(nth(reports, 2).stdout, 'x y z function undefined\n');
    },
  },
  {
    title: 'variables and output from before an error stay',
    javascript: [
      'let c1 = 1\nprint("before")\nlet c2 = c1.no.such\nlet c3 = 3',
      'print(c1, typeof c3)',
    ],
    python: [
      'c1 = 1\nprint("before")\nc2 = c1.no.such\nc3 = 3',
      'print(c1, "undefined" if "c3" not in globals() else c3)',
    ],
    then(reports) {
      assert.equal(nth(reports, 0).status, 'raised');
      assert.equal(nth(reports, 0).stdout, 'before\n');
      assert.ok(names(nth(reports, 0)).includes('c1'));
      assert.equal(nth(reports, 0).variablesLost, 'no');
      assert.equal(nth(reports, 1).stdout, '1 undefined\n');
    },
  },
  {
    title: 'a failure says its type, its message and its line',
    javascript: ['let d1 = 1\n\nthrow new RangeError("too far")'],
    python: ['d1 = 1\n\nraise ValueError("too far")'],
    then(reports) {
      assert.match(nth(reports, 0).stderr, /(RangeError|ValueError): too far/);
      assert.match(nth(reports, 0).stderr, /\bline 3\b/);
    },
  },
  {
    title: 'a failure inside a function of an earlier cell names both places',
    javascript: ['function e1(x) {\n  return x.y.z\n}', '\n\n\n\ne1({})'],
    python: ['def e1(x):\n  return x["y"]["z"]', '\n\n\n\ne1({})'],
    then(reports) {
      assert.match(nth(reports, 1).stderr, /(TypeError|KeyError)/);
      assert.match(nth(reports, 1).stderr, /\be1\b/);
      assert.match(nth(reports, 1).stderr, /\bline 2\b/);
      assert.match(nth(reports, 1).stderr, /\bline 5\b/);
    },
  },
  {
    title: 'a syntax error says where it is, and nothing of the cell has run',
    javascript: ['f1 = 1\nlet f2 = ;', 'print(typeof f1)'],
    python: ['f1 = 1\nf2 = )', 'print("f1" in globals() or "undefined")'],
    then(reports) {
      assert.equal(nth(reports, 0).status, 'raised');
      assert.match(nth(reports, 0).stderr, /SyntaxError/);
      assert.match(nth(reports, 0).stderr, /\bline 2\b/);
      assert.equal(nth(reports, 1).stdout, 'undefined\n');
    },
  },
  {
    title: 'text that is no program is a failure like any other',
    javascript: ['\u0000\u0001}{ ☃ "', '`', 'print("next")'],
    python: ['\u0001}{ ☃ "', '"""', 'print("next")'],
    then(reports) {
      assert.deepEqual(
        reports.map(({ status }) => status),
        ['raised', 'raised', 'ok'],
      );
    },
  },
  {
    title: 'an empty cell is a cell',
    javascript: ['', '// nothing'],
    python: ['', '# nothing'],
    then(reports) {
      for (const { status, stdout, stderr } of reports) {
        assert.deepEqual({ status, stdout, stderr }, { status: 'ok', stdout: '', stderr: '' });
      }
    },
  },
  {
    title: 'only what is printed is output: the value of the last line is not',
    javascript: ['6 * 7', 'print(6 * 7); console.log("a", 1, true, null)'],
    python: ['6 * 7', 'print(6 * 7)\nprint("a", 1, "true", "null")'],
    then(reports) {
      assert.equal(nth(reports, 0).stdout, '');
      assert.equal(nth(reports, 1).stdout, '42\na 1 true null\n');
    },
  },
  {
    title: 'output to the error stream is in stderr',
    javascript: ['print("out"); console.error("careful")'],
    python: ['import sys\nprint("out")\nprint("careful", file=sys.stderr)'],
    then(reports) {
      const { status, stdout, stderr } = nth(reports, 0);
      assert.deepEqual(
        { status, stdout, stderr },
        { status: 'ok', stdout: 'out\n', stderr: 'careful\n' },
      );
    },
  },
  {
    title: 'values are printed so that one can read them, those that contain themselves too',
    javascript: [
      'const k = { list: [1, "two", { three: 3 }], map: new Map([["a", 1]]) }; k.self = k; print(k); print([undefined, null, 1n, () => 1])',
    ],
    python: ['k = {"list": [1, "two", {"three": 3}], "map": {"a": 1}}\nk["self"] = k\nprint(k)'],
    then(reports) {
      assert.equal(nth(reports, 0).status, 'ok');
      assert.match(nth(reports, 0).stdout, /list.*1, ["']two["'].*three.*3.*a.*1/s);
    },
  },
  {
    title:
      '#215 50,000 printed characters are cut to head and tail with a count; the next cell has them all',
    javascript: [
      'let m = "";\nfor (let i = 0; i < 5000; i++) m += String(i).padStart(9) + "\\n"\nprint(m.slice(0, -1))',
      'print(last_output.length, last_output === m)',
      'print(last_output)',
    ],
    python: [
      'm = "".join(f"{i:9d}\\n" for i in range(5000))\nprint(m[:-1])',
      'print(len(last_output), str(last_output == m).lower())',
      'print(last_output)',
    ],
    then(reports) {
      const { stdout } = nth(reports, 0);
      assert.ok(stdout.length > 19_000 && stdout.length < 21_000, `${stdout.length} characters`);
      assert.ok(stdout.startsWith('        0\n        1\n'), 'the head is there');
      assert.ok(stdout.endsWith('     4998\n     4999\n'), 'the tail is there');
      const [, count = ''] = /([\d,]+) characters left out/.exec(stdout) ?? [];
      const shown = stdout.replace(/\n… .* …\n/, '').length;
      assert.equal(Number(count.replaceAll(',', '')) + shown, 50_000);
      assert.match(stdout, /last_output/);
      assert.equal(nth(reports, 1).stdout, '50000 true\n');
      assert.equal(nth(reports, 2).stdout, '50000 true\n\n');
    },
  },
  {
    title: 'a cut never leaves half a character',
    javascript: ['print("\u{1f600}".repeat(20001))', 'print("x" + "\u{1f600}".repeat(20001))'],
    python: ['print("\u{1f600}" * 20001)', 'print("x" + "\u{1f600}" * 20001)'],
    then(reports) {
      for (const { stdout } of reports) assert.doesNotMatch(stdout, /\p{Surrogate}|\ufffd/u);
    },
  },
  {
    title: 'half a character that is printed becomes one that everybody can store',
    javascript: ['print("[\\ud83d]", "[\\0]", "[\\u{1f600}]", "[\\r\\n]")'],
    python: ['print("[\\ud83d]", "[\\0]", "[\\U0001f600]", "[\\r\\n]")'],
    then(reports) {
      assert.equal(nth(reports, 0).status, 'ok');
      assert.equal(nth(reports, 0).stdout, '[\ufffd] [\0] [\u{1f600}] [\r\n]\n');
    },
  },
  {
    title: 'the report lists what is bound, with type and size, and show_vars says the same',
    javascript: [
      'let n1 = "four"; let n2 = [1, 2, 3]; let n3 = 3; const n4 = () => 1; print(show_vars()); print(SHOW_VARS() === show_vars())',
    ],
    python: [
      'n1 = "four"\nn2 = [1, 2, 3]\nn3 = 3\nn4 = lambda: 1\nprint(show_vars())\nprint(str(SHOW_VARS() == show_vars()).lower())',
    ],
    then(reports) {
      const { variables, stdout } = nth(reports, 0);
      const named = new Map(variables.map((one) => [one.name, one]));
      assert.equal(named.get('n1')?.size, 4);
      assert.match(named.get('n1')?.type ?? '', /^str/);
      assert.equal(named.get('n2')?.size, 3);
      assert.match(named.get('n2')?.type ?? '', /^(Array|list)$/);
      assert.equal(named.get('n3')?.size, null);
      assert.equal(named.get('n4')?.type, 'function');
      for (const name of ['n1', 'n2', 'n3', 'n4'])
        assert.match(stdout, new RegExp(`\\b${name}\\b`));
      assert.match(stdout, /true\n$/);
      for (const reserved of [
        'context',
        'llm_query',
        'answer',
        'print',
        'show_vars',
        'last_output',
        'console',
      ]) {
        assert.equal(named.has(reserved), false, `${reserved} is ours`);
      }
    },
  },
  {
    title: 'values that cannot be stored or looked at do no harm to the list of variables',
    javascript: [
      `let o1 = { f() {} }; o1.self = o1; let o2 = Symbol("s"); let o3 = 10n;
       let o4 = { get bad() { throw new Error("no") }, toJSON() { throw new Error("no") } };
       let o5 = new Proxy({}, { getPrototypeOf() { throw new Error("no") }, ownKeys() { throw new Error("no") } });
       let o6 = new WeakMap(); let o7 = Promise.resolve(1); let o8 = Object.create(null);
       print(show_vars()); print(o4, o5, o6, o8)`,
      'print("next")',
    ],
    python: [
      `class Bad:
    def __len__(self): raise RuntimeError("no")
    def __repr__(self): raise RuntimeError("no")
    def __getattribute__(self, name): raise RuntimeError("no")
o1 = {}
o1["self"] = o1
o2 = object()
o3 = 10 ** 50
o4 = Bad()
o5 = (x for x in [])
o6 = {1, 2}
o7 = open
o8 = iter([])
print(show_vars())`,
      'print("next")',
    ],
    then(reports) {
      assert.equal(nth(reports, 0).status, 'ok', nth(reports, 0).stderr);
      const known = names(nth(reports, 0));
      for (const name of ['o1', 'o2', 'o3', 'o4', 'o5', 'o6', 'o7', 'o8']) {
        assert.ok(known.includes(name), `${name} is listed`);
      }
      assert.equal(nth(reports, 1).stdout, 'next\n');
    },
  },
  {
    title: 'await stands at the top level, before a text too',
    javascript: [
      'const p1 = await Promise.resolve(1); for await (const x of [2, 3]) print(x)\nasync function p4() { await null; return 4 }',
      'print(p1, await p4(), await "five")',
    ],
    then(reports) {
      assert.equal(nth(reports, 0).stdout, '2\n3\n');
      assert.equal(nth(reports, 1).stdout, '1 4 five\n');
    },
  },
  {
    title: 'the failure of a program that nobody awaited is not lost',
    javascript: [
      'async function main() {\n  await null\n  throw new RangeError("unheard")\n}\nmain()',
      'print(1)',
    ],
    then(reports) {
      assert.equal(nth(reports, 0).status, 'raised');
      assert.match(nth(reports, 0).stderr, /RangeError: unheard/);
      assert.match(nth(reports, 0).stderr, /\bline 3\b/);
      assert.equal(nth(reports, 1).status, 'ok');
    },
  },
];
