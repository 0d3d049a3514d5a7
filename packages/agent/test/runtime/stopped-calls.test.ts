import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  callTools,
  collect,
  command,
  ok,
  play,
  rawCall,
  settle,
  testModel,
  tool,
  typesOf,
  watchedStore,
} from '../../../../test/kit/runtime/stage.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { noUsage } from '../../src/machine/settings.js';
import type { FileHashes, ToolContext, ToolOutcome } from '../../src/ports/tool.js';

/** What the model is told of calls that the end of the session has stopped. */

const probeable = { ...command, effect: 'probeable' } as const;

/** A tool that edits as the real ones do: after `act` it looks at its signal, then it changes the file. */
const editing = (
  act: (context: ToolContext) => Promise<void>,
  before?: () => Promise<FileHashes>,
) =>
  tool(
    'edit',
    async (_input, context): Promise<ToolOutcome> => {
      await act(context);
      if (context.signal.aborted && context.files.get('/made') === undefined)
        return { status: 'cancelled', ran: 'no', text: 'Cancelled before anything was changed.' };
      context.files.set('/made', 'abc');
      return ok('Edited.');
    },
    probeable,
    before,
  );

const talkOf = async (on: Awaited<ReturnType<typeof play>>): Promise<string> =>
  JSON.stringify((await on.runtime.state(on.id)).state.session.conversation);

const oneEdit = () => testModel(callTools(rawCall('1', 'edit')));

for (const isMade of [true, false]) {
  test(`the end of a session waits for a change of a file and says whether it was made: ${isMade}`, async () => {
    const edit = editing(async ({ signal, files }) => {
      if (isMade) files.set('/made', 'abc');
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    });
    const journals = memoryJournals();
    const on = await play({ tools: [edit], model: oneEdit(), journals });
    await on.say('go');
    await settle();
    await on.runtime.close(on.id);
    const talk = await talkOf(on);
    assert.match(talk, isMade ? /"text":"Edited\."/ : /"text":"not run: session closed"/);
    assert.doesNotMatch(talk, /unknown/);
    const end = (await collect(journals.read(on.id))).at(-1)?.event;
    assert.ok(end?.type === 'ShutdownRequested');
    assert.deepEqual(
      end.outcomes?.[0]?.outcome.seen,
      isMade ? [{ path: '/made', sha256: 'abc' }] : undefined,
    );
    assert.equal(on.clock.waiting(), 0);
  });
}

test('a call whose start is on its way when the session ends never runs, and that is said', async () => {
  let looked: (hashes: FileHashes) => void = () => undefined;
  let runs = 0;
  const before = (): Promise<FileHashes> =>
    new Promise((resolve) => {
      looked = resolve;
    });
  const edit = editing(async () => void runs++, before);
  const on = await play({ tools: [edit], model: oneEdit() });
  await on.say('go');
  await settle();
  const closed = on.runtime.close(on.id);
  looked({ before: 'abc' });
  await closed;
  assert.equal(runs, 0);
  assert.match(await talkOf(on), /"text":"not run: session closed"/);
});

test('the end of a session does not name a start that was refused in an earlier batch', async () => {
  const looked: ((hashes: FileHashes) => void)[] = [];
  const before = (): Promise<FileHashes> => new Promise((resolve) => looked.push(resolve));
  const edit = editing(
    ({ signal }) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
    before,
  );
  const model = testModel(callTools(rawCall('1', 'edit')), callTools(rawCall('2', 'edit')));
  const on = await play({ tools: [edit], model });
  await on.say('go');
  await settle();
  for (let times = 0; times < 2; times++) await on.runtime.send(on.id, { type: 'CancelTurn' });
  looked[0]?.({ before: 'abc' });
  await settle();
  await on.say('again');
  await settle();
  looked[1]?.({ before: 'abc' });
  await settle();
  await on.runtime.close(on.id);
  const end = (await collect(on.journals.read(on.id))).at(-1)?.event;
  assert.ok(end?.type === 'ShutdownRequested');
  assert.deepEqual(
    end.outcomes?.map(({ callId }) => callId),
    ['2'],
  );
});

test('calls that start on a full disk do not run, and that is said', async () => {
  let isFull = false;
  let runs = 0;
  const full = new Error('the disk is full');
  const journals = watchedStore(
    memoryJournals(),
    (drafts) => {
      isFull ||= typesOf(drafts).includes('ToolStarted');
    },
    () => (isFull ? full : null),
  );
  const edit = editing(
    async () => void runs++,
    async () => ({ before: 'abc' }),
  );
  const on = await play({ tools: [edit], model: oneEdit(), journals });
  const ended = on.runtime.find(on.id).ended;
  await on.say('go');
  await assert.rejects(ended, full);
  assert.equal(runs, 0);
  const talk = await talkOf(on);
  assert.match(talk, /"text":"not run: session closed"/);
  assert.doesNotMatch(talk, /unknown/);
});

test('the usage of a call that ends while the end of the session is written still counts', async () => {
  let end: (outcome: ToolOutcome) => void = () => undefined;
  const ended = new Promise<ToolOutcome>((resolve) => {
    end = resolve;
  });
  const slow = tool('slow', () => ended, command);
  const store = memoryJournals();
  const journals = watchedStore(store, async (drafts) => {
    if (!typesOf(drafts).includes('ShutdownRequested')) return;
    end({ ...ok('late'), usage: { ...noUsage, outputTokens: 7 } });
    await settle();
  });
  const on = await play({
    tools: [slow],
    model: testModel(callTools(rawCall('1', 'slow'))),
    journals,
  });
  await on.say('go');
  await settle();
  const closed = on.runtime.close(on.id);
  await settle();
  on.clock.advance(1_000);
  await closed;
  const types = typesOf(await collect(store.read(on.id)));
  assert.equal(types.includes('UsageReported'), true);
});
