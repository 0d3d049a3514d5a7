import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  callTools,
  collect,
  completed,
  ok,
  play,
  rawCall,
  say,
  settingsOf,
  settle,
  stage,
  testModel,
  tool,
  traits,
  typesOf,
  watchedStore,
} from '../../../../test/kit/runtime/stage.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import type { Journal } from '../../src/ports/journal.js';
import type { ToolOutcome } from '../../src/ports/tool.js';

/** What is still heard and journaled when a session ends, and what its end waits for. */

/** Says what a cut reply cost only some time after it was cut. */
const costAfterAbort: Answer = async function* (_request, signal) {
  yield { type: 'text', text: 'half' };
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  await settle();
  yield completed([]);
};

test('what a reply cost that is cut short by the end is in the journal', async () => {
  const on = await play({ model: testModel(costAfterAbort) });
  await on.say('go');
  await settle();
  await on.runtime.close(on.id);
  const { state } = await on.runtime.state(on.id);
  assert.deepEqual([state.session.usage.inputTokens, state.session.unaccounted], [100, []]);
  assert.deepEqual(
    (await collect(on.journals.read(on.id))).map(({ event }) => event.type).slice(-2),
    ['ShutdownRequested', 'UsageReported'],
  );
});

test('what a summary cost that is cut short by the end is in the journal', async () => {
  const on = await play({ model: testModel(say('a'), say('b'), costAfterAbort) });
  for (const text of ['one', 'two']) {
    await on.say(text);
    await on.rest();
  }
  await on.runtime.send(on.id, { type: 'CompactRequested' });
  await settle();
  await on.runtime.close(on.id);
  const { state } = await on.runtime.state(on.id);
  assert.deepEqual([state.session.usage.inputTokens, state.session.unaccounted], [300, []]);
});

test('what a reply cost that was whole at the end is in the journal, however long its calls are judged', async () => {
  const look = tool('look', () => ok(''));
  const slow = { ...look, judge: async () => settle().then(() => look.judge({}, '/workspace')) };
  const on = await play({ tools: [slow], model: testModel(callTools(rawCall('1', 'look'))) });
  await on.say('go');
  await on.runtime.close(on.id);
  const { state } = await on.runtime.state(on.id);
  assert.equal(state.session.usage.inputTokens, 100);
});

test('tools that are still being declared do not hold up the end', async () => {
  const journals = memoryJournals();
  const { put } = journals.blobs;
  let isFull = false;
  const refuse = (): void => assert.ok(!isFull, 'no space');
  const on = await play({
    journals: watchedStore(journals, refuse),
    tools: [tool('plan', () => ok(''), traits({ asks: 'plan' }))],
  });
  const patch = { preset: 'plan', onAsk: 'ask' } as const;
  await on.runtime.send(on.id, { type: 'SettingsChanged', patch });
  let store = (): void => assert.fail('nothing is declared');
  const held: typeof put = (text) =>
    new Promise((resolve) => {
      store = () => resolve(put(text));
    });
  Object.assign(journals.blobs, { put: held });
  await on.say('go');
  await settle();
  isFull = true;
  await assert.rejects(on.say('more'), /no space/);
  store();
  await settle();
  assert.equal(on.clock.waiting(), 0, 'the grace period is not waited for');
});

test('a model that ignores its abort holds up the end for the grace time at most', async () => {
  const on = await play({
    model: testModel(async function* () {
      yield { type: 'text', text: 'half' };
      await new Promise(() => undefined);
    }),
  });
  await on.say('go');
  await settle();
  const closed = on.runtime.close(on.id);
  await settle();
  on.clock.advance(5_000);
  await closed;
});

for (const [title, own, before] of [
  ['that may run at once', undefined, undefined],
  ['that change files', traits({ effect: 'probeable' }), async () => ({ before: 'abc' })],
] as const) {
  test(`a journal that can't be written when a batch starts ends the session at once: calls ${title}`, async () => {
    let runs = 0;
    const journals = watchedStore(memoryJournals(), (drafts) => {
      if (typesOf(drafts).includes('ToolStarted')) throw new Error('the disk is full');
    });
    const count = (): ToolOutcome => {
      runs += 1;
      return ok('');
    };
    const look = tool('look', count, own, before);
    const model = testModel(callTools(rawCall('1', 'look'), rawCall('2', 'look')));
    const on = await play({ tools: [look], model, journals });
    const ended = on.runtime.find(on.id).ended;
    await on.say('go');
    await assert.rejects(ended, /the disk is full/);
    assert.deepEqual([runs, on.clock.waiting()], [0, 0]);
  });
}

test('a call whose start used the last space of a full disk does not run', async () => {
  let runs = 0;
  let full: Error | null = null;
  const store = watchedStore(memoryJournals(), (drafts) => {
    if (typesOf(drafts).includes('ToolStarted')) full = new Error('the disk is full');
  });
  const journals: typeof store = {
    ...store,
    create: async (header) =>
      Object.defineProperty(await store.create(header), 'full', { get: () => full }),
  };
  const look = tool('look', () => {
    runs += 1;
    return ok('');
  });
  const on = await play({
    tools: [look],
    model: testModel(callTools(rawCall('1', 'look'))),
    journals,
  });
  const ended = on.runtime.find(on.id).ended;
  await on.say('go');
  await assert.rejects(ended, /the disk is full/);
  assert.equal(runs, 0);
});

test('what a session was equipped with is closed if it can not be created or opened', async () => {
  let closed = 0;
  const close = async (): Promise<void> => {
    closed += 1;
  };
  const journals = watchedStore(memoryJournals(), () => undefined);
  const fail = (): Promise<never> => Promise.reject(new Error('the disk is full'));
  const full = stage({ journals: { ...journals, create: fail }, close }).runtime;
  await assert.rejects(full.create({ settings: settingsOf(), instructions: '' }), /disk is full/);
  assert.equal(closed, 1);
  const on = await play({ journals, close });
  await on.runtime.close(on.id);
  const open: typeof journals.open = async (id) => {
    const opened = await journals.open(id);
    return { ...opened, journal: Object.assign(opened.journal, { frozen: fail }) };
  };
  await assert.rejects(stage({ journals: { ...journals, open }, close }).runtime.open(on.id));
  assert.equal(closed, 3);
});

test('a session that was taken over stays open when the one before it ends', async () => {
  const store = memoryJournals();
  let journal: Journal | null = null;
  const create: typeof store.create = async (header) => {
    journal = await store.create(header);
    return journal;
  };
  const open: typeof store.open = async () => ({
    journal: journal ?? assert.fail('there is none'),
    state: await on.state(),
    tornTail: null,
  });
  const on = await play({ journals: { ...store, create, open } });
  const before = on.runtime.find(on.id);
  const after = await on.runtime.open(on.id, { takeOver: true });
  assert.equal(on.runtime.find(on.id), after);
  await before.shutDown();
  assert.equal(on.runtime.find(on.id), after);
});
