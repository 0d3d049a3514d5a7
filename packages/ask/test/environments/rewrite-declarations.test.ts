import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rewriteCell } from '../../src/environments/rewrite-cell.js';

const rows: readonly (readonly [title: string, given: string, then: string])[] = [
  ['let and const become var', 'let a = 1; const b = 2', 'var a = 1; var b = 2'],
  [
    'a let without a value sets the name to nothing',
    'let a, b = 1, c',
    'var a = void 0, b = 1, c = void 0;',
  ],
  [
    'a let without a value ends before a line that begins with a bracket',
    'let a\n[1].map(f)',
    'var a = void 0;\n[1].map(f)',
  ],
  ['a long sum', `let a = 0${' + 1'.repeat(3_000)}`, `var a = 0${' + 1'.repeat(3_000)}`],
  ['a var without a value leaves the name as it is', 'var a', 'var a'],
  ['patterns stay patterns', 'const { a, b: [c = 1] } = d', 'var { a, b: [c = 1] } = d'],
  [
    'a class becomes a value, ended before a line that begins with a bracket',
    'class A extends B {}\n[1].map(f)',
    'var A = class A extends B {};\n[1].map(f)',
  ],
  [
    'functions stay: they may be declared again',
    'function f() {}\nasync function* g() {}',
    'function f() {}\nasync function* g() {}',
  ],
  [
    'what is declared below the top level stays',
    'for (let i = 0; i < 1; i++) { const a = i }\n{ let b; class C {} }\nif (x) { let d }\n(() => { let e })()',
    'for (let i = 0; i < 1; i++) { const a = i }\n{ let b; class C {} }\nif (x) { let d }\n(() => { let e })()',
  ],
  [
    'Promise.all over calls of models becomes a batch',
    'const r = await Promise.all(ps.map((p) => llm_query("Read " + p)))\nlet s = await Promise.all([rlm_query("a"), rlm_query(b + c)])',
    'var r = await Promise.resolve(llm_query_batched(ps.map((p) => ("Read " + p))))\nvar s = await Promise.resolve(rlm_query_batched([("a"), (b + c)]))',
  ],
  [
    'whatever function makes the call',
    'Promise.all(ps.map(async p => await llm_query(p))); Promise.all(f(ps).map((p, i) => { return llm_query(p + i); }))',
    'Promise.resolve(llm_query_batched(ps.map( p => (p)))); Promise.resolve(llm_query_batched(f(ps).map((p, i) => { return (p + i); })))',
  ],
  ...[
    'Promise.all(ps.map((p) => llm_query(p).trim()))',
    'Promise.all(ps.map(async (p) => { const t = await llm_query(p); return t.trim(); }))',
    'Promise.all(ps.map((p) => llm_query(p, m)))',
    'Promise.all([llm_query(a), rlm_query(b)])',
    'Promise.all([llm_query(a), 1])',
    'Promise.all(ps.map(async (p) => llm_query(await f(p))))',
    'Promise.all(ps)',
    'x.all(ps.map((p) => llm_query(p)))',
  ].map((code) => [`what does more stays: ${code}`, code, code] as const),
  [
    'words inside texts and comments stay',
    '"let a = 1" // let b\n/* const c */',
    '"let a = 1" // let b\n/* const c */',
  ],
  [
    'await may stand at the top level',
    'let a = await b; for await (const c of d) e(c)',
    'var a = await b; for await (const c of d) e(c)',
  ],
  ['lines stay where they are', 'let a\n\n\nconst b =\n1', 'var a = void 0;\n\n\nvar b =\n1'],
];

const failing: readonly (readonly [
  title: string,
  given: string,
  message: RegExp,
  line: number | null,
])[] = [
  ['no program', 'a\nlet = = 1', /Unexpected token/, 2],
  ['a name declared twice in one cell', 'let a\nlet a', /already been declared/, 2],
  ['a module', 'import a from "b"', /import/, 1],
  ['a return', 'return 1', /return/, 1],
  ['await in a function that is not async', 'function f() { await g() }', /./, 1],
  ['nested too deeply', '('.repeat(100_000), /stack/, 1],
];

describe('declaring again', () => {
  for (const [title, given, then] of rows) {
    it(title, () => assert.deepEqual(rewriteCell(given), { status: 'ok', code: then }));
  }
  for (const [title, given, message, line] of failing) {
    it(`is refused: ${title}`, () => {
      const written = rewriteCell(given);
      assert.ok(written.status === 'failed');
      assert.match(written.message, message);
      assert.doesNotMatch(written.message, /\(\d+:\d+\)/);
      assert.equal(written.line, line);
    });
  }
});
