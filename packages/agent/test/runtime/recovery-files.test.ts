import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import {
  callTools,
  collect,
  type Play,
  play,
  rawCall,
  reopen,
  resultsOf,
  say,
  testModel,
} from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import type { OpenJournal } from '../../src/ports/journal.js';
import { builtinTools } from '../../src/tools/builtin-tools.js';

/** Recovery with the real tools: what becomes of files, and what a session that is opened again knows of them. */

const edit: JsonObject = { path: 'a.txt', edits: [{ oldText: 'one', newText: 'two' }] };
const write: JsonObject = { path: 'a.txt', content: 'two\n' };

type Scene = { readonly on: Play; readonly file: string };

/** The model reads `a.txt` (it holds \"one\") and then calls one tool more. */
const playScene = async (t: TestContext, tool: string, input: JsonObject): Promise<Scene> => {
  const workspace = temporaryFolder(t, 'recovery');
  const file = path.join(workspace, 'a.txt');
  await writeFile(file, 'one\n');
  const model = testModel(
    callTools(rawCall('1', 'read', { path: 'a.txt' })),
    callTools(rawCall('2', tool, input)),
    say('done'),
  );
  const on = await play({ tools: builtinTools(), settings: { workspace }, model });
  await on.say('go');
  await on.rest();
  return { on, file };
};

const startOf = async (on: Play, callId: string): Promise<number> => {
  const entries = await collect(on.journals.read(on.id));
  const started = entries.find(
    ({ event }) => event.type === 'ToolStarted' && event.callId === callId,
  );
  assert.ok(started !== undefined);
  return started.seq;
};

type Row = {
  readonly title: string;
  readonly tool: string;
  readonly input: JsonObject;
  readonly found: string;
  readonly becomes: string;
  readonly result: RegExp;
};
const rows: readonly Row[] = [
  {
    title: 'an edit that had not taken effect is done again',
    tool: 'edit',
    input: edit,
    found: 'one\n',
    becomes: 'two\n',
    result: /^Edited a\.txt: 1 replacement\.$/,
  },
  {
    title: 'an edit that had taken effect is done',
    tool: 'edit',
    input: edit,
    found: 'two\n',
    becomes: 'two\n',
    result: /^it had taken effect before the crash/,
  },
  {
    title: 'an edit of a file that is neither as before nor as after is lost',
    tool: 'edit',
    input: edit,
    found: 'three\n',
    becomes: 'three\n',
    result: /^outcome unknown after a crash\nthe file has changed since the call began/,
  },
  {
    title: 'a write that had not taken effect is done again',
    tool: 'write',
    input: write,
    found: 'one\n',
    becomes: 'two\n',
    result: /^Replaced a\.txt \(1 line\)\.$/,
  },
  {
    title: 'a write that had taken effect is done',
    tool: 'write',
    input: write,
    found: 'two\n',
    becomes: 'two\n',
    result: /^it had taken effect before the crash/,
  },
];

/** What the model does next shows what the session remembers of the file. */
const goesOn = callTools(
  rawCall('3', 'edit', { path: 'a.txt', edits: [{ oldText: 'two', newText: 'three' }] }),
);

/** The store with another way to open a session. */
const opening = (on: Play, change: (opened: OpenJournal) => OpenJournal): Play => ({
  ...on,
  journals: {
    ...on.journals,
    open: async (sessionId) => change(await on.journals.open(sessionId)),
  },
});

/** Such a journal is only read while it is opened. */
const readOnce = (on: Play): Play =>
  opening(on, (opened) => {
    Object.defineProperty(opened.journal, 'read', {
      value: () => assert.fail('the journal is read again'),
    });
    return opened;
  });
/** A store of the user's own collects nothing: the session reads the journal again. */
const collectingNothing = (on: Play): Play =>
  opening(on, ({ journal, state, tornTail }) => ({ journal, state, tornTail }));

for (const [row, [how, opened]] of rows.flatMap((row) =>
  (
    [
      ['read once', readOnce],
      ['read again', collectingNothing],
    ] as const
  ).map((way) => [row, way] as const),
)) {
  test(`after a crash, ${row.title} (journal ${how})`, async (t) => {
    const { on, file } = await playScene(t, row.tool, row.input);
    await writeFile(file, row.found);
    const again = await reopen(
      opened(on),
      await startOf(on, '2'),
      builtinTools(),
      testModel(goesOn),
    );
    await again.rest();
    const [first, second] = again.model.requests;
    assert.match(resultsOf(first?.messages ?? [])['2'] ?? '', row.result);
    const known = row.becomes === 'two\n';
    const next = resultsOf(second?.messages ?? [])['3'] ?? '';
    assert.match(next, known ? /^Edited a\.txt/ : /a\.txt has changed since it was last read/);
    assert.equal(await readFile(file, 'utf8'), known ? 'three\n' : row.becomes);
  });
}

test('a session that was closed and is opened again remembers what it read and wrote', async (t) => {
  const { on, file } = await playScene(t, 'edit', edit);
  const { seq } = await on.runtime.state(on.id);
  const again = await reopen(on, seq, builtinTools(), testModel(goesOn));
  await again.say('go on');
  await again.rest();
  assert.match(resultsOf(again.model.requests[1]?.messages ?? [])['3'] ?? '', /^Edited a\.txt/);
  assert.equal(await readFile(file, 'utf8'), 'three\n');
});

test('a session that was closed and is opened again knows that a file has changed meanwhile', async (t) => {
  const { on, file } = await playScene(t, 'edit', edit);
  const { seq } = await on.runtime.state(on.id);
  await writeFile(file, 'two, says somebody else\n');
  const again = await reopen(on, seq, builtinTools(), testModel(goesOn));
  await again.say('go on');
  await again.rest();
  const result = resultsOf(again.model.requests[1]?.messages ?? [])['3'] ?? '';
  assert.match(result, /a\.txt has changed since it was last read/);
});
