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
  {
    tool: 'read',
    input: { target_file: 'file', offset: '5' },
    becomes: { path: 'file', offset: 5 },
  },
  { tool: 'read', input: { path: 'file', offset: 0 }, becomes: { path: 'file', offset: 1 } },
  {
    tool: 'read',
    input: { path: 'file', start_line: '3', end_line: 7, limit: null },
    becomes: { path: 'file', offset: 3, limit: 5 },
  },
  {
    tool: 'read',
    input: { path: 'file', offset: null, limit: '', end_line: 7 },
    becomes: { path: 'file', limit: 7 },
  },
  {
    tool: 'read',
    input: { path: 'file', offset: '', end_line: '', view_range: [3, 7] },
    becomes: { path: 'file', offset: 3, limit: 5 },
  },
  {
    tool: 'search',
    input: {
      pattern: 'x',
      path: 'file',
      context: '',
      '-A': 2,
      filesOnly: '',
      output_mode: 'count',
    },
    becomes: { pattern: 'x', path: 'file', context: 2, filesOnly: false },
  },
  {
    tool: 'read',
    input: { path: 'file', view_range: [4, -1] },
    becomes: { path: 'file', offset: 4 },
  },
  {
    tool: 'read',
    input: { path: 'file', view_range: [0, '20'] },
    becomes: { path: 'file', offset: 1, limit: 20 },
  },
  {
    tool: 'write',
    input: { path: 'file', contents: 'x' },
    becomes: { path: 'file', content: 'x' },
  },
  {
    tool: 'find',
    input: { pattern: '*.ts', path: 'file' },
    becomes: { glob: '*.ts', path: 'file' },
  },
  {
    tool: 'search',
    input: { query: 'x', path: 'file', '-i': true, '-C': '2', output_mode: 'files_with_matches' },
    becomes: { pattern: 'x', path: 'file', ignoreCase: true, context: 2, filesOnly: true },
  },
  {
    tool: 'search',
    input: { pattern: 'x', path: 'file', glob: '', case_sensitive: false, '-A': 1, '-B': 3 },
    becomes: { pattern: 'x', path: 'file', ignoreCase: true, context: 3 },
  },
  {
    tool: 'search',
    input: { pattern: 'x', path: 'file', output_mode: 'count', before: 1, after: 2 },
    becomes: { pattern: 'x', path: 'file', filesOnly: false, context: 2 },
  },
  {
    tool: 'read',
    input: { file: 'file', start_line_one_indexed: 3, end_line_one_indexed_inclusive: 4 },
    becomes: { path: 'file', offset: 3, limit: 2 },
  },
  {
    tool: 'edit',
    input: { path: 'file', edits: [{ path: 'file', old_string: 'one', new_string: 'two' }] },
    becomes: OURS,
  },
  { tool: 'edit', input: { edits: [{ file_path: 'file', ...OURS.edits[0] }] }, becomes: OURS },
  { tool: 'bash', input: { cmd: 'ls' }, becomes: { command: 'ls' } },
  {
    tool: 'bash',
    input: { command: ['bash', '-lc', 'ls | wc'], timeout: 120_000, timeoutMs: null },
    becomes: { command: 'ls | wc', timeoutMs: 120_000 },
  },
  {
    tool: 'bash',
    input: { command: ['git', 'commit', '-m', "it's $HOME"], background: 'false' },
    becomes: { command: "git commit -m 'it'\\''s $HOME'", background: false },
  },
  {
    tool: 'bash',
    input: { command: '', jobAction: 'show', job_id: 2 },
    becomes: { jobAction: 'show', jobId: 'job-2' },
  },
];

for (const { tool, input, becomes } of read) {
  test(`${tool} reads ${JSON.stringify(input)}`, async (t) => {
    const place = await makePlace(t);
    const judgement = await place.judge(tool, input);
    assert.equal(judgement.kind, 'ok');
    assert.deepEqual(judgement.input, becomes, 'what policy decides about and the journal keeps');
    if (tool === 'bash')
      assert.deepEqual(
        judgement.facts.argv,
        becomes.command === undefined ? [] : [becomes.command],
      );
    else assert.deepEqual(judgement.facts.paths, [place.path('file')]);
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
    tool: 'read',
    input: { path: 'a', offset: 'abc', end_line: 7 },
    field: 'offset',
    why: /^must be number, not "abc"\. Fields/,
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
  {
    tool: 'bash',
    input: { command: 'ls', timeout: 5 },
    field: 'timeout',
    why: /ms or seconds: give timeoutMs, in ms \(5000 for 5 seconds\)/,
  },
  {
    tool: 'edit',
    input: { path: 'a', edits: [{ path: 'b', ...edit }] },
    field: 'edits[0].path',
    why: /another file: one call changes one file/,
  },
  {
    tool: 'edit',
    input: {
      edits: [
        { path: 'a', ...edit },
        { path: 'b', ...edit },
      ],
    },
    field: 'edits[1].path',
    why: /another file: one call changes one file/,
  },
  { tool: 'bash', input: { bash_id: '1' }, field: 'jobAction', why: /"show" its output or "kill"/ },
  {
    tool: 'todo',
    input: { todos: [{ content: 'x', status: 'cancelled' }] },
    field: 'items[0].status',
    why: /leave the item out/,
  },
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

/** Fields that only the tools of other agents have: the value that changes nothing, and another one. */
const foreign: readonly (readonly [
  tool: string,
  input: JsonObject,
  same: JsonObject,
  other: JsonObject,
  way: RegExp,
])[] = [
  [
    'read',
    { path: 'file' },
    { pages: '', should_read_entire_file: true },
    { pages: '1-3' },
    /bash/,
  ],
  ['read', { path: 'file' }, { command: 'view' }, { command: 'create' }, /edit and write/],
  ['read', { path: 'file' }, { mode: 'slice' }, { lines: '3-9' }, /give offset and limit/],
  ['write', { path: 'file', content: 'x' }, { command: 'create' }, { append: true }, /use edit/],
  ['edit', OURS, { expected_replacements: 1 }, { expected_replacements: 2 }, /replaceAll: true/],
  ['edit', OURS, { instruction: 'x' }, { insert_line: 3 }, /a text beside the place/],
  ['edit', OURS, { instruction: 'x' }, { patch: '*** Begin Patch' }, /edits: \[\{oldText, newText/],
  [
    'bash',
    { command: 'ls' },
    { with_escalated_permissions: false, justification: 'x' },
    { with_escalated_permissions: true },
    /give needs: "outside"/,
  ],
  [
    'bash',
    { command: 'ls' },
    {
      ...{ workdir: '.', cwd: null, dir_path: '' },
      ...{ yield_time_ms: 1, max_output_tokens: 9, login: true, shell: 'bash' },
    },
    { directory: 'src' },
    /begin the command with cd/,
  ],
  ['bash', { command: 'ls' }, { restart: false, tty: false }, { env: { A: 'b' } }, /NAME=value/],
  [
    'find',
    { glob: '*' },
    { respect_git_ignore: true, case_sensitive: true },
    { exclude: 'x' },
    /narrow glob or path/,
  ],
  ['search', { pattern: 'x' }, { offset: 0, multiline: false }, { type: 'js' }, /\*\*\/\*\.js/],
  ['search', { pattern: 'x' }, { literal: false }, { exclude_pattern: 'y' }, /!test/],
  ['list', {}, { ignore: ['x'], recursive: true }, { offset: 7 }, /raise limit/],
  ['todo', { items: [] }, { merge: false }, { merge: true }, /the whole list/],
  [
    'fetch',
    { url: 'https://example.com/' },
    { format: 'markdown', timeout: 5 },
    { urls: [] },
    /one url/,
  ],
];
for (const [tool, input, same, other, way] of foreign) {
  test(`${tool} ignores ${JSON.stringify(same)}, and says what to do instead of ${JSON.stringify(other)}`, async (t) => {
    const place = await makePlace(t);
    assert.equal((await place.judge(tool, { ...input, ...same })).kind, 'ok');
    const judgement = await place.judge(tool, { ...input, ...other });
    assert.equal(judgement.kind, 'invalid');
    assert.deepEqual([judgement.field], Object.keys(other));
    assert.match(judgement.why, way);
  });
}

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

test('a to-do list in the form of other agents is read', async (t) => {
  const place = await makePlace(t);
  const todos = [
    { content: 'one', status: 'completed', id: '1', priority: 'high' },
    { content: 'two', status: 'in_progress', activeForm: 'Doing two' },
  ];
  const becomes = {
    items: [
      { text: 'one', status: 'done' },
      { text: 'two', status: 'inProgress' },
    ],
  };
  const plan = todos.map(({ content, status }) => ({ step: content, status }));
  for (const input of [{ todos }, { todos: nested(todos) }, { plan }]) {
    const judgement = await place.judge('todo', input);
    assert.equal(judgement.kind, 'ok');
    const { items } = judgement.input;
    assert.deepEqual(JSON.parse(JSON.stringify({ items })), becomes);
  }
});

const several: readonly (readonly [tool: string, input: JsonObject, text: string])[] = [
  [
    'read',
    { offset: 'x', limit: 1.5, line: 3 },
    'path: is missing; offset: must be number, not "x"; limit: must be a whole number; line: is not a field of this tool. Fields: path, offset?, limit?.',
  ],
  [
    'bash',
    { command: 'ls', cmd: 'rm -rf x', workdir: '/elsewhere', timeout: 30 },
    'cmd: says something else than command: give command alone; workdir: is not a field of this tool: begin the command with cd; timeout: may be ms or seconds: give timeoutMs, in ms (30000 for 30 seconds). Fields: command?, timeoutMs?, background?, jobAction?, jobId?, needs?.',
  ],
  [
    'bash',
    { command: ['ls', '&&', 'pwd'] },
    'command: is a list with &&, which can be read in two ways: give one text. Fields: command?, timeoutMs?, background?, jobAction?, jobId?, needs?.',
  ],
  [
    'edit',
    { path: 'a', edits: [{ oldText: 'x', old: 1 }, { newText: 2 }] },
    'edits[0].newText: is missing; edits[1].oldText: is missing; edits[1].newText: must be string, not 2; edits[0].old: is not a field of this tool. Fields: path, edits: [{oldText, newText, replaceAll?}].',
  ],
  [
    'todo',
    { todos: [{ content: 'x', task: 'y', status: 'cancelled' }] },
    'items[0].task: says something else than text: give text alone; items[0].status: must be pending, inProgress or done: leave the item out. Fields: items: [{text, status}].',
  ],
  [
    'read',
    { path: 'a', start_line: 9, end_line: 3 },
    'end_line: lies before the first line, 9. Fields: path, offset?, limit?.',
  ],
  [
    'search',
    { pattern: 'x', query: 'y', output_mode: 'lines' },
    'query: says something else than pattern: give pattern alone; output_mode: must be content, count or files_with_matches. Fields: pattern, path?, glob?, ignoreCase?, context?, filesOnly?, limit?.',
  ],
];
for (const [tool, input, text] of several) {
  test(`${tool} names all faults of ${JSON.stringify(input)} and its fields`, async (t) => {
    const place = await makePlace(t);
    const judgement = await place.judge(tool, input);
    assert.equal(judgement.kind, 'invalid');
    assert.equal(`${judgement.field}: ${judgement.why}`, text);
  });
}

test('a refusal stays short, however many faults there are and however long a name is', async (t) => {
  const place = await makePlace(t);
  const items = Array.from({ length: 2_000 }, () => ({ ['n'.repeat(5_000)]: 1 }));
  const judgement = await place.judge('todo', { items });
  assert.equal(judgement.kind, 'invalid');
  assert.ok(judgement.why.length < 2_000, String(judgement.why.length));
  assert.match(judgement.why, /\d+ more faults\. Fields: items/);
});
