import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { makePlace } from './context.js';

/** Input in the shape of other agents' tools: what the tool, the policy and the journal get of it. */

const OURS = { path: 'file', edits: [{ oldText: 'one', newText: 'two' }] };
const nested = (value: unknown): string => JSON.stringify(value);

const read: readonly {
  readonly tool: string;
  readonly input: JsonObject;
  readonly becomes: JsonObject;
}[] = [
  { tool: 'edit', input: OURS, becomes: OURS },
  {
    tool: 'edit',
    input: { file_path: 'file', old_string: 'one', new_string: 'two' },
    becomes: OURS,
  },
  {
    tool: 'edit',
    input: { file_path: 'file', old_string: 'one', new_string: 'two', replace_all: true },
    becomes: { path: 'file', edits: [{ oldText: 'one', newText: 'two', replaceAll: true }] },
  },
  { tool: 'edit', input: { filePath: 'file', oldString: 'one', newString: 'two' }, becomes: OURS },
  {
    tool: 'edit',
    input: { command: 'str_replace', path: 'file', old_str: 'one', new_str: 'two' },
    becomes: OURS,
  },
  { tool: 'edit', input: { path: 'file', oldText: 'one', newText: 'two' }, becomes: OURS },
  {
    tool: 'edit',
    input: { path: 'file', oldText: 'one', newText: 'two', edits: [] },
    becomes: OURS,
  },
  { tool: 'edit', input: { path: 'file', edits: nested(OURS.edits) }, becomes: OURS },
  { tool: 'edit', input: { path: 'file', edits: nested(OURS.edits[0]) }, becomes: OURS },
  { tool: 'edit', input: { path: 'file', edits: OURS.edits[0] ?? {} }, becomes: OURS },
  { tool: 'edit', input: { path: 'file', edits: [nested(OURS.edits[0])] }, becomes: OURS },
  {
    tool: 'edit',
    input: {
      file_path: 'file',
      edits: nested([
        { old_string: 'one', new_string: 'two', replace_all: 'false', description: 'x' },
      ]),
    },
    becomes: { path: 'file', edits: [{ oldText: 'one', newText: 'two', replaceAll: false }] },
  },
  {
    tool: 'write',
    input: { file_path: 'file', content: 'x' },
    becomes: { path: 'file', content: 'x' },
  },
  { tool: 'read', input: { file_path: 'file', limit: 3 }, becomes: { path: 'file', limit: 3 } },
  {
    tool: 'read',
    input: { path: 'file', file_path: 'file' },
    becomes: { path: 'file' },
  },
  {
    tool: 'bash',
    input: { command: 'ls', run_in_background: true, timeout_ms: 5 },
    becomes: { command: 'ls', background: true, timeoutMs: 5 },
  },
];

for (const { tool, input, becomes } of read) {
  test(`${tool} reads ${JSON.stringify(input)}`, async (t) => {
    const place = await makePlace(t);
    const judgement = await place.judge(tool, input);
    assert.equal(judgement.kind, 'ok');
    assert.deepEqual(judgement.input, becomes, 'what policy decides about and the journal keeps');
    if (tool !== 'bash') assert.deepEqual(judgement.facts.paths, [place.path('file')]);
  });
}

const edit = { oldText: 'one', newText: 'two' };
const refused: readonly {
  readonly tool: string;
  readonly input: JsonObject;
  readonly field: string;
  readonly why: RegExp;
}[] = [
  {
    tool: 'read',
    input: { path: 'a', file_path: 'b' },
    field: 'file_path',
    why: /something else than path/,
  },
  {
    tool: 'edit',
    input: { path: 'a', edits: [{ ...edit, old_string: 'three' }] },
    field: 'edits[0].old_string',
    why: /something else than oldText/,
  },
  {
    tool: 'edit',
    input: { path: 'a', edits: [edit], oldText: 'x', newText: 'y' },
    field: 'oldText',
    why: /stands beside edits/,
  },
  {
    tool: 'edit',
    input: { path: 'a', edits: '[{"oldText":' },
    field: 'edits',
    why: /without valid JSON/,
  },
  { tool: 'edit', input: { path: 'a', edits: '7' }, field: 'edits', why: /without valid JSON/ },
  { tool: 'edit', input: { path: 'a', edits: ['x'] }, field: 'edits[0]', why: /must be Object/ },
  {
    tool: 'edit',
    input: { command: 'insert', path: 'a', new_str: 'x' },
    field: 'edits[0].oldText',
    why: /missing/,
  },
  {
    tool: 'edit',
    input: { path: 'a', old_string: 'x' },
    field: 'edits[0].newText',
    why: /is missing/,
  },
  { tool: 'write', input: { file_path: 7, content: '' }, field: 'path', why: /must be string/ },
  { tool: 'bash', input: { command: 'ls', timeout: 5 }, field: 'timeout', why: /not a field/ },
];

for (const { tool, input, field, why } of refused) {
  test(`${tool} refuses ${JSON.stringify(input)} and names ${field}`, async (t) => {
    const place = await makePlace(t);
    const judgement = await place.judge(tool, input);
    assert.equal(judgement.kind, 'invalid');
    assert.equal(judgement.field, field);
    assert.match(judgement.why, why);
  });
}

test('a description or an explanation is ignored by every tool; any other unknown field is refused', async (t) => {
  const place = await makePlace(t);
  const inputs: readonly (readonly [tool: string, input: JsonObject])[] = [
    ['read', { path: 'file' }],
    ['list', {}],
    ['find', { glob: '*' }],
    ['search', { pattern: 'x' }],
    ['edit', OURS],
    ['write', { path: 'file', content: 'x' }],
    ['bash', { command: 'true' }],
    ['todo', { items: [] }],
    ['fetch', { url: 'https://example.com/' }],
  ];
  for (const [tool, input] of inputs) {
    for (const name of ['description', 'explanation']) {
      assert.equal(
        (await place.judge(tool, { ...input, [name]: 'why' })).kind,
        'ok',
        `${tool} ${name}`,
      );
    }
    const other = await place.judge(tool, { ...input, comment: 'why' });
    assert.equal(other.kind, 'invalid', tool);
    assert.equal(other.field, 'comment', tool);
  }
});

test('an edit in another shape is made', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('file'), 'one\n');
  await place.run('read', { file_path: 'file' });
  const outcome = await place.run('edit', {
    file_path: 'file',
    old_string: 'one',
    new_string: 'two',
  });
  assert.equal(outcome.status, 'ok', outcome.text);
  assert.equal(await readFile(place.path('file'), 'utf8'), 'two\n');
});
