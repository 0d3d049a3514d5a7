import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../../../../test/fake-clock.js';
import {
  callTools,
  collect,
  command,
  hang,
  ok,
  play,
  rawCall,
  resultsOf,
  say,
  settingsOf,
  settle,
  testModel,
  tool,
  typesOf,
  watchedStore,
} from '../../../../test/kit/runtime/stage.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { initialState } from '../../src/machine/machine.js';
import { defaultSettings } from '../../src/machine/settings.js';
import type { AgentTypes, EntryDraft, Journal } from '../../src/ports/journal.js';
import type { ModelPiece } from '../../src/ports/model.js';
import type { Stepped } from '../../src/ports/session.js';
import { JournaledSession } from '../../src/session/loop.js';
import { agentAdapter } from '../../src/session/session.js';

/** A play whose journal and effects write into one list, in the order in which they happen. */
const traced = async (refuseAt = 0) => {
  const happened: string[] = [];
  let appends = 0;
  const onAppend = (drafts: readonly EntryDraft[]): void => {
    appends += 1;
    if (appends === refuseAt) throw new Error('the disk is full');
    happened.push(`append ${typesOf(drafts).join(' ')}`);
  };
  const effect = (name: string, traits = command) =>
    tool(
      name,
      () => {
        happened.push(`run ${name}`);
        return ok(`${name} done`);
      },
      traits,
    );
  const model = testModel(callTools(rawCall('1', 'one'), rawCall('2', 'two')), say('done'));
  const { stream } = model;
  const asked = {
    ...model,
    stream: (...given: Parameters<typeof stream>) => {
      happened.push('ask');
      return stream(...given);
    },
  };
  const journals = watchedStore(memoryJournals(), onAppend);
  const on = await play({ model: asked, tools: [effect('one'), effect('two')], journals });
  return { ...on, happened };
};

const WHOLE = [
  'append UserInput',
  'ask',
  'append LlmCompleted ToolStarted',
  'run one',
  'append ToolCompleted ToolStarted',
  'run two',
  'append ToolCompleted',
  'ask',
  'append LlmCompleted',
];

test('every effect comes after the append of what caused it, and a round costs two appends', async () => {
  const { say: type, rest, happened } = await traced();
  await type('go');
  await rest();
  assert.deepEqual(happened, WHOLE);
});

const appendsOf = (happened: readonly string[]): number =>
  happened.filter((each) => each.startsWith('append')).length;

for (let refused = 1; refused <= appendsOf(WHOLE); refused++) {
  test(`append ${refused} is refused: nothing is done because of it, and the session ends with the error`, async () => {
    const { say: type, happened, runtime, id } = await traced(refused);
    const ended = runtime.find(id).ended;
    const typed = type('go');
    await assert.rejects(ended, /the disk is full/);
    if (refused === 1) await assert.rejects(typed, /the disk is full/);
    else assert.deepEqual(await typed, { seq: 1 });
    await settle();
    const until = WHOLE.findIndex(
      (_each, index) => appendsOf(WHOLE.slice(0, index + 1)) === refused,
    );
    assert.deepEqual(happened, WHOLE.slice(0, until));
    await assert.rejects(runtime.send(id, { type: 'CancelTurn' }), /not open/);
  });
}

test('what is sent while an append fails is refused with its error, not kept for ever', async () => {
  const { say: type, runtime, id } = await traced(1);
  const sent = [type('a'), runtime.send(id, { type: 'CancelTurn' })];
  for (const each of await Promise.allSettled(sent)) assert.equal(each.status, 'rejected');
});

test('a failed append leaves the state as the journal has it', async () => {
  const { say: type, runtime, id, journals } = await traced(3);
  const ended = runtime.find(id).ended;
  await type('go');
  await assert.rejects(ended);
  const { state } = await runtime.state(id);
  assert.equal(state.name, 'ExecutingTools');
  const entries = await collect(journals.read(id));
  assert.deepEqual(typesOf(entries), ['UserInput', 'LlmCompleted', 'ToolStarted']);
});

test('what is sent at once is journaled with one append, and each send learns its own seq', async () => {
  const appends: string[] = [];
  const journals = watchedStore(memoryJournals(), (drafts) =>
    appends.push(typesOf(drafts).join(' ')),
  );
  const on = await play({ model: testModel(hang()), journals });
  const sent = await Promise.all([on.say('a'), on.say('b'), on.say('c')]);
  assert.deepEqual(sent, [{ seq: 1 }, { seq: 2 }, { seq: 3 }]);
  assert.deepEqual(appends, ['UserInput UserInput UserInput']);
});

test('events get the time at which they are stepped', async () => {
  const on = await play({ model: testModel(hang()) });
  on.clock.advance(500);
  await on.say('a');
  assert.equal(on.steps[0]?.event.at, on.clock.now());
});

const text = (piece: string): ModelPiece => ({ type: 'text', text: piece });

const streamed = async (...pieces: ModelPiece[]) => {
  const on = await play({ model: testModel(hang(...pieces)) });
  await on.say('hi');
  await settle();
  return {
    ...on,
    journaled: async () => (await collect(on.journals.read(on.id))).map(({ event }) => event),
  };
};

test('deltas are stepped and shown at once, and are not in the journal while the reply comes', async () => {
  const { steps, journaled, clock } = await streamed(text('a'), text('b'), text('c'));
  clock.advance(40);
  await settle();
  const deltas = steps.filter(({ event }) => event.type === 'TextDelta');
  assert.deepEqual(
    deltas.map(({ seq, actions }) => [seq, actions[0]?.type]),
    [
      [null, 'DisplayText'],
      [null, 'DisplayText'],
    ],
  );
  assert.deepEqual(
    (await journaled()).map(({ type }) => type),
    ['UserInput'],
  );
});

test('text is written merged, just before the next other event', async () => {
  const on = await streamed(text('a'), text('b'), { type: 'reasoning', text: 'hm' }, text('c'));
  on.clock.advance(40);
  await settle();
  assert.deepEqual(await on.say('more'), { seq: 3 });
  const events = await on.journaled();
  assert.deepEqual(
    events.map((event) => (event.type === 'TextDelta' ? event.text : event.type)),
    ['UserInput', 'abc', 'UserInput'],
  );
});

test('text is not written when its reply is complete, which holds it', async () => {
  const whole: ModelPiece = {
    type: 'completed',
    parts: [{ type: 'text', text: 'ab' }],
    stopReason: 'end',
    usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
  };
  const { journaled, steps, rest } = await streamed(text('a'), text('b'), whole);
  await rest();
  assert.deepEqual(
    (await journaled()).map(({ type }) => type),
    ['UserInput', 'LlmCompleted'],
  );
  assert.equal(steps.filter(({ event }) => event.type === 'TextDelta').length, 2);
});

test('text is written before a cancel, so that replay keeps it as the live run did', async () => {
  const on = await streamed(text('half an'), text(' answer'));
  on.clock.advance(40);
  await settle();
  await on.runtime.send(on.id, { type: 'CancelTurn' });
  const events = await on.journaled();
  assert.deepEqual(
    events.map(({ type }) => type),
    ['UserInput', 'TextDelta', 'CancelTurn'],
  );
  const live = await on.state();
  await on.runtime.close(on.id);
  const { state } = await on.runtime.state(await on.runtime.fork(on.id, 3));
  assert.deepEqual(JSON.parse(JSON.stringify(state)), JSON.parse(JSON.stringify(live)));
});

test('reasoning, calls in the making and progress of tools are shown and never journaled', async () => {
  const noisy = tool('noisy', async (_input, { progress }) => {
    progress('10 %');
    await settle();
    return ok('done');
  });
  const model = testModel(async function* () {
    yield { type: 'reasoning', text: 'hm' };
    yield { type: 'toolCall', tool: 'noisy', text: '{}' };
    yield* callTools(rawCall('1', 'noisy'))(
      { instructions: '', tools: [], messages: [] },
      new AbortController().signal,
    );
  }, say('done'));
  const on = await play({ model, tools: [noisy] });
  await on.say('go');
  await on.rest();
  const shown = on.steps.filter(({ seq }) => seq === null).map(({ event }) => event.type);
  assert.deepEqual(shown, ['ReasoningDelta', 'ToolCallDelta', 'ToolProgress']);
  const types = (await collect(on.journals.read(on.id))).map(({ event }) => event.type);
  assert.deepEqual(types, [
    'UserInput',
    'LlmCompleted',
    'ToolStarted',
    'ToolCompleted',
    'LlmCompleted',
  ]);
  assert.equal(resultsOf(on.model.requests[1]?.messages ?? [])['1'], 'done');
});

test('a watcher that throws is reported and dropped; the session and other watchers go on', async () => {
  const on = await play({ model: testModel(say('hello')) });
  let calls = 0;
  on.runtime.watch(on.id, () => {
    calls += 1;
    throw new Error('broken pipe');
  });
  await on.say('hi');
  await on.rest();
  assert.equal(calls, 1);
  assert.deepEqual(
    on.faults.map(({ message }) => message),
    ['broken pipe'],
  );
  assert.ok(on.steps.length >= 2);
});

/** A session that performs nothing; its queue is open to the test. */
class IdleSession extends JournaledSession<AgentTypes> {
  readonly send = this.submit;
  readonly add = this.post;
  readonly finish = this.end;
  onStop = (): void => undefined;
  protected readonly prepare = () => [];
  protected readonly perform = () => undefined;
  protected readonly stopAll = async () => this.onStop();
  protected override async shutdownEvent() {
    return { type: 'ShutdownRequested' } as const;
  }
}

/** An idle session, with what it writes and shows. */
const openIdle = (more: Partial<Journal> = {}, adapter = agentAdapter) => {
  const written: string[] = [];
  const journal = {
    header: { sessionId: 'alone' } as Journal['header'], // this loop looks at nothing of it
    get seq() {
      return written.length;
    },
    append: async (drafts: readonly EntryDraft[]) => void written.push(...typesOf(drafts)),
    read: async function* () {
      yield* [];
    },
    blobs: { put: async () => '', get: async () => undefined },
    frozen: async () => ({ instructions: '', tools: '[]' }),
    close: async () => undefined,
  };
  const session = new IdleSession({
    adapter,
    journal: Object.assign(journal, more),
    state: initialState(settingsOf()),
    clock: fakeClock(),
    report: (fault) => assert.fail(fault),
  });
  const shown: Stepped[] = [];
  session.watch((stepped) => shown.push(stepped));
  return { session, written, shown };
};

test('text that comes when nobody waits for it is named in a diagnostic and leaves no trace in the journal', async () => {
  const { session, written, shown } = openIdle();
  await session.send({ type: 'Start' });
  session.add({ type: 'TextDelta', requestId: 'req-9', text: 'late' });
  await session.send({ type: 'CancelTurn' });
  assert.deepEqual(written, ['Start', 'CancelTurn']);
  assert.equal(shown[1]?.diagnostics.length, 1);
});

test('what is queued behind an event that can’t be stepped is refused with its error', async () => {
  const step: typeof agentAdapter.step = (state, event) => {
    if (event.type === 'TextDelta') throw new Error('no such text');
    return agentAdapter.step(state, event);
  };
  const { session } = openIdle({}, { ...agentAdapter, step });
  session.add({ type: 'TextDelta', requestId: 'req-9', text: 'late' });
  await assert.rejects(session.send({ type: 'Start' }), /no such text/);
});

test('the shutdown on a full disk is read like every other entry, and is in the state', async () => {
  const { session, written, shown } = openIdle({ full: new Error('the disk is full') });
  const read: string[] = [];
  const reading = (async () => {
    for await (const { event } of session.events()) read.push(event.type);
  })();
  await session.send({ type: 'Start' });
  await assert.rejects(session.ended, /the disk is full/);
  await assert.rejects(reading, /the disk is full/);
  assert.deepEqual(written, ['Start', 'ShutdownRequested']);
  assert.deepEqual(read, written);
  assert.deepEqual(typesOf(shown), ['Start']);
  assert.equal(session.current.name, 'ShuttingDown');
});

test('a session whose work can’t be stopped ends, and closes its journal', async () => {
  let isClosed = false;
  const { session } = openIdle({
    append: async () => assert.fail('the disk is full'),
    close: async () => {
      isClosed = true;
    },
  });
  session.onStop = () => assert.fail('no process can be ended');
  await assert.rejects(session.send({ type: 'Start' }), /the disk is full/);
  await assert.rejects(session.ended, /the disk is full/);
  assert.ok(isClosed);
});

test('an append that is refused while the session ends is its fault', async () => {
  const { session } = openIdle({ append: async () => assert.fail('the disk is full') });
  session.onStop = () => session.add({ type: 'Start' });
  await session.finish(null);
  await assert.rejects(session.ended, /the disk is full/);
});

test('a session that is stopped by its journal leaves no timer and no request behind', async () => {
  let isFull = false;
  const journals = watchedStore(memoryJournals(), () => {
    if (isFull) throw new Error('the disk is full');
  });
  let signal: AbortSignal | undefined;
  const model = testModel((request, given) => {
    signal = given;
    return hang()(request, given);
  });
  const limits = { ...defaultSettings.limits, timeMs: 60_000, rounds: 0 };
  const on = await play({ model, journals, settings: { limits } });
  await on.say('go');
  assert.ok(on.clock.waiting() > 0);
  isFull = true;
  const ended = on.runtime.find(on.id).ended;
  await assert.rejects(on.say('more'), /the disk is full/);
  await assert.rejects(ended, /the disk is full/);
  assert.deepEqual([on.clock.waiting(), signal?.aborted], [0, true]);
});
