import assert from 'node:assert/strict';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import * as v from 'valibot';
import type { Judgement } from '../../src/ports/tool.js';
import { builtinTools } from '../../src/tools/builtin-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { todoTool } from '../../src/tools/todo.js';
import { makePlace } from './context.js';

type Refused = {
  readonly tool: string;
  readonly input: JsonObject;
  readonly field: string;
  readonly why: RegExp;
};

const edit = { oldText: 'a', newText: 'b' };
const refused: readonly Refused[] = [
  {
    tool: 'read',
    input: {},
    field: 'path',
    why: /^is missing\. Fields: path, offset\?, limit\?\.$/,
  },
  { tool: 'read', input: { path: '' }, field: 'path', why: /must not be empty/ },
  { tool: 'read', input: { path: 7 }, field: 'path', why: /must be string, not 7/ },
  { tool: 'read', input: { path: 'a\0b' }, field: 'path', why: /NUL/ },
  { tool: 'read', input: { path: 'a', offset: -1 }, field: 'offset', why: /counts from 1/ },
  { tool: 'read', input: { path: 'a', limit: 1.5 }, field: 'limit', why: /whole number/ },
  { tool: 'list', input: { depth: 1.5 }, field: 'depth', why: /^must be a whole number/ },
  {
    tool: 'search',
    input: { pattern: 'a', context: 1.5 },
    field: 'context',
    why: /^must be a whole number/,
  },
  {
    tool: 'read',
    input: { path: 'a', files: 'b' },
    field: 'files',
    why: /is not a field of this tool/,
  },
  { tool: 'write', input: { path: 'a' }, field: 'content', why: /is missing/ },
  {
    tool: 'write',
    input: { path: 'a', content: null },
    field: 'content',
    why: /must be string, not null/,
  },
  { tool: 'edit', input: { path: 'a', edits: [] }, field: 'edits', why: /at least one edit/ },
  { tool: 'edit', input: { path: 'a', edits: '[]' }, field: 'edits', why: /at least one edit/ },
  {
    tool: 'edit',
    input: { path: 'a', edits: [edit, { newText: 'b' }] },
    field: 'edits[1].oldText',
    why: /is missing/,
  },
  {
    tool: 'edit',
    input: { path: 'a', edits: [{ ...edit, replace: true }] },
    field: 'edits[0].replace',
    why: /is not a field/,
  },
  {
    tool: 'edit',
    input: { path: 'a', edits: [{ oldText: 'a', newText: 'a' }] },
    field: 'edits[0].newText',
    why: /same as oldText/,
  },
  { tool: 'bash', input: {}, field: 'command', why: /is missing/ },
  { tool: 'bash', input: { command: '' }, field: 'command', why: /must not be empty/ },
  { tool: 'bash', input: { command: 'a\0b' }, field: 'command', why: /NUL/ },
  {
    tool: 'bash',
    input: { command: 'ls', timeoutMs: 600_001 },
    field: 'timeoutMs',
    why: /at most 600000/,
  },
  {
    tool: 'bash',
    input: { command: 'ls', jobAction: 'list' },
    field: 'jobAction',
    why: /together with command/,
  },
  { tool: 'bash', input: { command: 'ls', needs: 'root' }, field: 'needs', why: /network/ },
  { tool: 'bash', input: { jobAction: 'kill' }, field: 'jobId', why: /is missing/ },
  {
    tool: 'bash',
    input: { jobAction: 'stop' },
    field: 'jobAction',
    why: /must be \("list" \| "show" \| "kill"\)/,
  },
  { tool: 'search', input: { pattern: '' }, field: 'pattern', why: /must not be empty/ },
  { tool: 'search', input: { pattern: 'a', context: 21 }, field: 'context', why: /at most 20/ },
];

for (const { tool, input, field, why } of refused) {
  test(`judge: ${tool} refuses ${JSON.stringify(input)} and names ${field}`, async (t) => {
    const place = await makePlace(t);
    const judgement = await place.judge(tool, input);
    assert.equal(judgement.kind, 'invalid');
    assert.equal(judgement.field, field);
    assert.match(judgement.why, why);
  });
}

test('judge: paths are real, also where they lead out of the workspace or do not exist yet', async (t) => {
  const place = await makePlace(t);
  const outside = await makePlace(t);
  await mkdir(place.path('folder'));
  await symlink(outside.workspace, place.path('out'));
  await symlink('folder', place.path('in'));
  await symlink(path.join(outside.workspace, 'later'), place.path('dangling'));
  await symlink('circle', place.path('circle'));
  const rows: readonly (readonly [given: string, real: string])[] = [
    ['folder/new.txt', place.path('folder/new.txt')],
    ['in/new/deep.txt', place.path('folder/new/deep.txt')],
    ['out/secret.txt', path.join(outside.workspace, 'secret.txt')],
    ['out/new/deep.txt', path.join(outside.workspace, 'new/deep.txt')],
    ['dangling', path.join(outside.workspace, 'later')],
    ['../other', path.join(path.dirname(place.workspace), 'other')],
    ['/etc/../nowhere-at-all', '/nowhere-at-all'],
    ['~/x', path.join(homedir(), 'x')],
    [place.path('folder'), place.path('folder')],
  ];
  for (const [given, real] of rows) {
    const judgement = await place.judge('write', { path: given, content: '' });
    assert.equal(judgement.kind, 'ok', given);
    assert.deepEqual(judgement.facts.paths, [real], given);
    assert.equal(judgement.facts.shape, real, given);
  }
  const circle = await place.judge('write', { path: 'circle', content: '' });
  assert.equal(circle.kind, 'invalid');
  assert.equal(circle.field, 'path');
});

test('judge: nothing is touched', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('file'), 'a');
  await place.judge('write', { path: 'new/file', content: 'x' });
  await place.judge('edit', { path: 'file', edits: [edit] });
  await place.judge('bash', { command: 'touch made' });
  assert.deepEqual(await readdir(place.workspace), ['file']);
});

/** What the text would run is a subject of its own: packages/agent/test/shell. */
const withoutShell = (judged: Judgement): unknown => {
  if (judged.kind !== 'ok') return judged;
  const { shell: _, ...facts } = judged.facts;
  return { ...judged, facts };
};

test('judge: a command is its own shape, touches the workspace, and may set its time limit', async (t) => {
  const place = await makePlace(t);
  const input = { command: 'npm test', timeoutMs: 5 };
  const facts = { argv: ['npm test'], paths: [place.workspace], hosts: [], shape: 'npm test' };
  const judged = await place.judge('bash', input);
  assert.deepEqual(withoutShell(judged), {
    kind: 'ok',
    input,
    facts,
    deadlineMs: 5,
    title: 'npm test',
  });
  assert.deepEqual(judged.kind === 'ok' && judged.facts.shell?.commands.map(({ words }) => words), [
    ['npm', 'test'],
  ]);
});

test('judge: a command says what it leaves the sandbox for; a description is nobody’s business', async (t) => {
  const place = await makePlace(t);
  const input = { command: 'npm ci', needs: 'network', description: 'Install dependencies' };
  const facts = {
    argv: ['npm ci'],
    paths: [place.workspace],
    hosts: [],
    shape: 'npm ci (needs: network)',
    needs: 'network',
  };
  assert.deepEqual(withoutShell(await place.judge('bash', input)), {
    kind: 'ok',
    input,
    facts,
    title: 'npm ci',
  });
  const job = await place.judge('bash', { jobAction: 'list', needs: 'outside' });
  assert.equal(job.kind === 'ok' && 'needs' in job.facts, false, 'to look at a job leaves nothing');
  const declared = JSON.stringify(place.tool('bash').inputSchema);
  assert.doesNotMatch(declared, /"description":\{/, 'the field is accepted, not offered');
});

test('traits: what only looks is pure and may run side by side, what changes runs alone', () => {
  const traits = Object.fromEntries(builtinTools().map((tool) => [tool.name, tool.traits]));
  const looks = { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 30_000 };
  const changes = {
    effect: 'probeable',
    parallelSafe: false,
    mutating: true,
    deadlineMs: 30_000,
    group: 'fileChanges',
  };
  const bash = { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 120_000 };
  assert.deepEqual(traits, {
    read: looks,
    list: looks,
    find: looks,
    search: looks,
    edit: changes,
    write: changes,
    bash,
    [todoTool.name]: { ...looks, deadlineMs: 5_000, shown: 'list' },
    fetch: looks,
  });
  for (const tool of builtinTools())
    assert.equal(tool.before !== undefined, tool.traits.effect === 'probeable');
});

test('a field that models add by habit reaches a tool that has it', async () => {
  const tool = defineTool({
    name: 'note',
    description: '',
    schema: v.strictObject({ description: v.string() }),
    traits: todoTool.traits,
    judge: async () => ({ kind: 'ok', facts: { argv: [], paths: [], hosts: [], shape: '' } }),
    title: ({ description }) => description,
    run: async () => ({ status: 'ok', text: '' }),
  });
  const judged = await tool.judge({ description: 'why' }, '/nowhere');
  assert.equal(judged.kind === 'ok' && judged.title, 'why');
});
