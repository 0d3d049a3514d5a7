import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ok, rawCall, tool } from '../../../../test/kit/runtime/stage.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import type { Tool } from '../../src/ports/tool.js';
import { judgeCall } from '../../src/session/judge-call.js';

const facts = { argv: [], paths: ['/workspace/a'], hosts: [], shape: 'read a' };
const read: Tool = {
  ...tool('read', () => ok('')),
  judge: (input) =>
    typeof input.path === 'string'
      ? { kind: 'ok', input: { path: input.path }, facts, deadlineMs: 7 }
      : { kind: 'invalid', field: 'path', why: 'a text is expected' },
};
const broken: Tool = {
  ...tool('broken', () => ok('')),
  judge: () => {
    throw new Error('oh');
  },
};
const plain = tool('plain', () => ok(''));
const tools = new Map([read, broken, plain].map((each) => [each.name, each]));

type Row = {
  readonly given: string;
  readonly tool: string;
  readonly input: string;
  readonly then: Partial<JudgedCall>;
};
const rows: readonly Row[] = [
  {
    given: 'input that fits is passed on as the tool understood it, with the deadline it asked for',
    tool: 'read',
    input: '{"path":"a","more":1}',
    then: {
      input: { path: 'a' },
      verdict: { kind: 'ok' },
      facts,
      traits: { ...read.traits, deadlineMs: 7 },
    },
  },
  {
    given: 'a field that does not fit is named',
    tool: 'read',
    input: '{"path":1}',
    then: {
      input: { path: 1 },
      verdict: { kind: 'invalid', field: 'path', why: 'a text is expected' },
    },
  },
  {
    given: 'no arguments at all are the empty object',
    tool: 'plain',
    input: '',
    then: { input: {}, verdict: { kind: 'ok' } },
  },
  {
    given: 'arguments that are no JSON are quoted and never repaired',
    tool: 'plain',
    input: '{"path": "a',
    then: {
      input: {},
      rawInput: '{"path": "a',
      verdict: {
        kind: 'invalid',
        field: 'input',
        why: 'the arguments were not valid JSON: {"path": "a',
      },
    },
  },
  ...['[1]', 'null', '"f.js"'].map((input) => ({
    given: `JSON that is no object is not taken for one, and is not called invalid JSON: ${input}`,
    tool: 'plain',
    input,
    then: {
      input: {},
      rawInput: input,
      verdict: {
        kind: 'invalid' as const,
        field: 'input',
        why: `the arguments must be a JSON object, not: ${input}`,
      },
    },
  })),
  {
    given: 'an unknown tool is answered with the names that exist',
    tool: 'raed',
    input: '{}',
    then: { verdict: { kind: 'noSuchTool', known: ['read', 'broken', 'plain'] } },
  },
  ...[
    'functions.read',
    'default_api:read',
    'Read',
    'tools/READ',
    ' read\n',
    'functions.read:0',
    'read<|channel|>commentary',
    'default_api_read',
    'read()',
  ].map((spelling) => ({
    given: `${spelling} is a spelling of read`,
    tool: spelling,
    input: '{"path":"a"}',
    then: { tool: 'read', verdict: { kind: 'ok' as const } },
  })),
  {
    given: 'the same name of another namespace is another tool',
    tool: 'github.read',
    input: '{}',
    then: {
      tool: 'github.read',
      verdict: { kind: 'noSuchTool', known: ['read', 'broken', 'plain'] },
    },
  },
  {
    given: 'a tool that throws while it judges makes the call invalid and nothing else',
    tool: 'broken',
    input: '{}',
    then: { verdict: { kind: 'invalid', field: 'input', why: 'the tool could not judge it: oh' } },
  },
];

for (const row of rows) {
  test(row.given, async () => {
    const judged = await judgeCall(rawCall('1', row.tool, row.input), tools, '/workspace');
    assert.deepEqual({ ...judged, ...row.then }, judged);
    assert.equal('rawInput' in judged, 'rawInput' in row.then);
  });
}

test('long text that is no JSON is quoted in part, but kept whole', async () => {
  const raw = `{"text": "${'x'.repeat(5_000)}`;
  const judged = await judgeCall(rawCall('1', 'plain', raw), tools, '/workspace');
  assert.equal(judged.rawInput, raw);
  assert.ok(judged.verdict.kind === 'invalid' && judged.verdict.why.length < 600);
});

const nested = (depth: number): string =>
  `{"deep":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)},"text":"[[[{\\"["}`;

/** Walks through a value as most code does. */
const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? 1 + Math.max(0, ...Object.values(value).map(depthOf))
    : 0;

test('arguments that nest deeper than a limit are invalid, and no tool sees them', async () => {
  const seen: unknown[] = [];
  const custom: Tool = {
    ...tool('custom', () => ok('')),
    judge: (input) => {
      seen.push(depthOf(input));
      return { kind: 'ok', input, facts };
    },
  };
  const known = new Map([[custom.name, custom]]);
  const verdictOf = async (depth: number) =>
    (await judgeCall(rawCall('1', 'custom', nested(depth)), known, '/workspace')).verdict;
  assert.deepEqual(await verdictOf(100), { kind: 'ok' });
  for (const depth of [101, 3_000, 1_000_000]) {
    const verdict = await verdictOf(depth);
    assert.ok(verdict.kind === 'invalid');
    assert.match(verdict.why, /^the arguments were nested deeper than 100 levels: .{1,600}$/);
  }
  assert.deepEqual(seen, [100]);
  // Control: the text is JSON, and what walks through it ends in a full stack.
  assert.throws(() => depthOf(JSON.parse(nested(1_000_000))), RangeError);
});

test('arguments that are longer than a limit are invalid, and are not kept', async () => {
  const raw = JSON.stringify({ text: 'x'.repeat(8_000_000) });
  const judged = await judgeCall(rawCall('1', 'plain', raw), tools, '/workspace');
  assert.ok(judged.verdict.kind === 'invalid');
  assert.match(judged.verdict.why, /^the arguments were longer than 8000000 characters: /);
  assert.ok((judged.rawInput ?? raw).length < 600);
});

test('a tool that does not judge in time makes the call invalid', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const slow: Tool = { ...tool('slow', () => ok('')), judge: () => new Promise(() => undefined) };
  const judging = judgeCall(rawCall('1', 'slow'), new Map([['slow', slow]]), '/workspace');
  await Promise.resolve();
  t.mock.timers.tick(60_000);
  const { verdict } = await judging;
  assert.ok(verdict.kind === 'invalid');
  assert.match(verdict.why, /could not judge it in time/);
});
