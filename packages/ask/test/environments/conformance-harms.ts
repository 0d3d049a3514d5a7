import assert from 'node:assert/strict';
import { nth, type Row } from './conformance.js';

/** Code that does harm: it hurts nobody, it is reported, and the next cell works. */

const SHORT_MS = 400;
const quick = (code: string) => ({ code, deadlineMs: SHORT_MS });

const JAVASCRIPT_LOOPS = [
  'for (;;);',
  'for (;;) { try { for (;;); } catch {} finally { for (;;); } }',
  '/(a+)+$/.test("a".repeat(40) + "b")',
  'function* g() { for (;;) yield 1 }\nfor (const x of g());',
  '[1].map(function f() { for (;;); })',
];
const PYTHON_LOOPS = [
  'while True: pass',
  'while True:\n    try:\n        while True: pass\n    except BaseException: pass',
  'import re\nre.match(r"(a+)+$", "a" * 40 + "b")',
  'import time\ntime.sleep(1000)',
  'for x in iter(int, 1): pass',
];

/** Of a cell that may be killed: it was not well, and it is said whether its variables are lost. */
const assertUnwell = (row: Parameters<Row['then']>[0][number]): void => {
  assert.notEqual(row.status, 'ok');
  assert.equal(row.variablesLost, row.status === 'died' ? 'yes' : 'no');
  assert.notEqual(row.stderr, '', 'the model is told');
};

export const harmRows: readonly Row[] = [
  ...JAVASCRIPT_LOOPS.map((code, index) => ({
    title: `a loop for ever (${index + 1}) is ended at its deadline`,
    javascript: [
      'let kept = "kept"',
      quick(`let begun = 1;\n${code}`),
      'print(typeof kept, typeof begun)',
    ],
    python: [
      'kept = "kept"',
      quick(`begun = 1\n${PYTHON_LOOPS[index]}`),
      'print("kept" in globals())',
    ],
    then(reports: Parameters<Row['then']>[0]) {
      assertUnwell(nth(reports, 1));
      // A loop that swallows every interrupt may have to be killed.
      if (index !== 1) assert.equal(nth(reports, 1).status, 'stopped');
      assert.equal(nth(reports, 2).status, 'ok');
      if (nth(reports, 1).status === 'stopped')
        assert.match(nth(reports, 2).stdout, /^(string number|True)\n$/);
    },
  })),
  {
    title: 'a chain of promises without end is ended at its deadline',
    javascript: ['let l1 = 1', quick('(async () => { for (;;) await null })()'), 'print(l1)'],
    then(reports) {
      assertUnwell(nth(reports, 1));
      assert.equal(nth(reports, 2).status, nth(reports, 1).status === 'died' ? 'raised' : 'ok');
    },
  },
  {
    title: 'a promise that never settles does not hold the cell for ever',
    javascript: ['let l2 = 1', quick('await new Promise(() => {})'), 'print("next")'],
    then(reports) {
      assertUnwell(nth(reports, 1));
      assert.equal(nth(reports, 2).stdout, 'next\n');
    },
  },
  {
    title:
      'what cannot be interrupted is killed: its variables are lost, its first output is shown, a fresh one stands ready',
    javascript: [
      'let gone = 1',
      quick('print("begun"); Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)'),
      'print(typeof gone, context.length)',
    ],
    python: [
      'gone = 1',
      quick('print("begun")\nmax(iter(int, 1))'),
      'print("gone" in globals(), len(context))',
    ],
    then(reports) {
      const killed = nth(reports, 1);
      assert.equal(killed.status, 'died');
      assert.equal(killed.variablesLost, 'yes');
      assert.deepEqual(killed.variables, []);
      assert.equal(killed.stdout, 'begun\n');
      assert.match(killed.stderr, /lost/);
      assert.match(nth(reports, 2).stdout, /^(undefined|False) 13\n$/);
    },
  },
  ...[
    [
      'objects',
      'const h1 = []; for (;;) h1.push({ x: h1.length })',
      'h1 = []\nwhile True: h1.append([len(h1)])',
    ],
    [
      'texts',
      'const h2 = []; for (;;) h2.push("x".repeat(100000) + h2.length)',
      'h2 = []\nwhile True: h2.append("x" * 100000 + str(len(h2)))',
    ],
    [
      'one big text',
      'let h3 = "x"; for (;;) h3 = [h3, h3].join("")',
      'h3 = "x"\nwhile True: h3 = h3 + h3',
    ],
    [
      'bytes',
      'const h4 = []; for (;;) h4.push(new Uint8Array(10000000).fill(1))',
      'h4 = []\nwhile True: h4.append(bytearray(10000000))',
    ],
  ].map(([what, javascript = '', python = '']) => ({
    title: `code that allocates ${what} without end is ended, and the next cell works`,
    // What is left of it would be in the way of the rows behind.
    javascript: [javascript, 'h1 = h2 = h3 = h4 = null; print(context.length)'],
    python: [python, 'h1 = h2 = h3 = h4 = None\nprint(len(context))'],
    then(reports: Parameters<Row['then']>[0]) {
      assertUnwell(nth(reports, 0));
      assert.equal(nth(reports, 1).stdout, '13\n', nth(reports, 1).stderr);
    },
  })),
  {
    title: 'code that prints without end is ended; head and tail are shown',
    javascript: [
      quick('for (let i = 0; ; i++) print(i, "x".repeat(1000))'),
      'print(context.length)',
    ],
    python: [
      quick('i = 0\nwhile True:\n    print(i, "x" * 1000)\n    i += 1'),
      'print(len(context))',
    ],
    then(reports) {
      assertUnwell(nth(reports, 0));
      assert.ok(nth(reports, 0).stdout.startsWith('0 xxxx'));
      assert.ok(nth(reports, 0).stdout.length < 21_000);
      assert.equal(nth(reports, 1).stdout, '13\n');
    },
  },
  {
    title: 'recursion without end is a failure of the code, not of the environment',
    javascript: [
      'let t1 = 1; function deep() { return deep() + 1 }\ndeep()',
      'let t2 = []; for (let i = 0; i < 100000; i++) t2 = [t2]; try { String(t2) } catch (e) { print("caught") }',
      'print(t1)',
    ],
    python: [
      't1 = 1\ndef deep(): return deep() + 1\ndeep()',
      't2 = []\nfor i in range(10000): t2 = [t2]\ntry:\n    repr(t2)\nexcept RecursionError:\n    print("caught")\nt2 = None',
      'print(t1)',
    ],
    then(reports) {
      assert.equal(nth(reports, 0).status, 'raised');
      assert.match(nth(reports, 0).stderr, /stack|recursion/i);
      assert.equal(nth(reports, 1).stdout, 'caught\n', nth(reports, 1).stderr);
      assert.equal(nth(reports, 2).stdout, '1\n');
    },
  },
  {
    title: 'code nested deeper than any stack is a failure of the code',
    javascript: [
      `${'('.repeat(100_000)}1${')'.repeat(100_000)}`,
      `JSON.parse("[".repeat(1000000))`,
      'print("next")',
    ],
    python: [
      `${'('.repeat(100_000)}1${')'.repeat(100_000)}`,
      'import json\njson.loads("[" * 1000000)',
      'print("next")',
    ],
    then(reports) {
      assertUnwell(nth(reports, 0));
      assertUnwell(nth(reports, 1));
      assert.equal(nth(reports, 2).stdout, 'next\n');
    },
  },
  {
    title: 'the end of the process is out of reach, or ends nothing but the environment',
    javascript: ['process.exit(1)', 'process.kill(process.pid)', 'print("next")'],
    python: [
      'import sys\nsys.exit(1)',
      'import os\nos._exit(1)',
      'import os\nos.kill(os.getpid(), 9)',
      'print("next")',
    ],
    then(reports) {
      for (const report of reports.slice(0, -1)) assertUnwell(report);
      assert.equal(nth(reports, reports.length - 1).stdout, 'next\n');
    },
  },
  {
    title: 'built-ins that a cell breaks are not those that the report is made with',
    javascript: [
      `Object.prototype.toJSON = () => "polluted"; Object.prototype.get = 1; Array.prototype.toJSON = () => "polluted";
       JSON.stringify = JSON.parse = null; Array.prototype.map = Array.prototype.join = Array.prototype.push = null;
       Array.prototype[Symbol.iterator] = null; String.prototype.split = String.prototype.slice = null;
       Map.prototype.has = Map.prototype.get = null; Promise.prototype.then = null; Reflect.ownKeys = null;
       Object.keys = Object.entries = Object.defineProperty = Object.getOwnPropertyDescriptor = null;
       Error.prototype.toString = null; Function.prototype.call = Function.prototype.apply = null;
       let u1 = [1, 2]; print("printed", u1); answer.content = "x"; answer.ready = true`,
      'print(llm_query("a"), llm_query_batched(["b"])[0], u1.length); null.x',
      'print(show_vars().length > 0)',
    ],
    python: [
      `import builtins
saved = {name: getattr(builtins, name) for name in ("len", "str", "isinstance", "repr", "dict", "list", "sorted", "type")}
for name in saved: setattr(builtins, name, None)
u1 = [1, 2]
print("printed", u1)
answer["content"] = "x"
answer["ready"] = True`,
      'print(llm_query("a"), llm_query_batched(["b"])[0], 2)\nNone.x',
      'print(show_vars() != "")\nfor name in saved: setattr(builtins, name, saved[name])',
    ],
    then(reports) {
      const [first, second, third] = [nth(reports, 0), nth(reports, 1), nth(reports, 2)];
      assert.equal(first.status, 'ok', first.stderr);
      assert.match(first.stdout, /^printed \[ ?1, 2 ?\]\n$/);
      assert.equal(first.answer, 'x');
      assert.equal(first.variables.find(({ name }) => name === 'u1')?.size, 2);
      assert.equal(second.status, 'raised');
      assert.equal(second.stdout, 'llm: a llm: b 2\n');
      assert.match(second.stderr, /TypeError|AttributeError/);
      assert.match(third.stdout, /^true\n$/i);
    },
  },
];
