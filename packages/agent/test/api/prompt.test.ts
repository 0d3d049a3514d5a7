import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openHere } from '../../../../test/kit/api/stage.js';
import {
  type Answer,
  callTools,
  completed,
  hang,
  ok,
  pieces,
  rawCall,
  say,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import type { Entry } from '../../src/ports/journal.js';
import type { openSession } from '../../src/session/create-agent.js';

const failing = pieces({
  type: 'failed',
  error: { kind: 'auth', message: 'no such key', retryable: false, retryAfterMs: null },
  usage: null,
});

test('prompt resolves with the answer, and with what this turn used and cost', async (context) => {
  const tools = [tool('look', () => ok('seen'))];
  const model = testModel(callTools(rawCall('1', 'look')), say('one'), say('two'));
  const { session } = await openHere(context, model, { tools });
  const first = await session.prompt('look');
  assert.deepEqual(
    [first.ok, first.text, first.reason],
    [true, 'one', { kind: 'endOfTurn', cause: 'answer' }],
  );
  assert.deepEqual([first.usage.inputTokens, first.usage.outputTokens], [200, 20]);
  assert.ok(Math.abs((first.usage.costUsd ?? 0) - 0.0004) < 1e-9);
  const second = await session.prompt('again');
  assert.deepEqual(
    [second.text, second.usage.inputTokens, second.usage.outputTokens],
    ['two', 100, 10],
  );
  assert.equal(second.state.session.usage.inputTokens, 300);
});

test('a cost that nobody knows is not said to be nothing', async (context) => {
  const model = testModel(say('one'));
  const unpriced = { ...model, facts: { ...model.facts, prices: null } };
  const { session } = await openHere(context, unpriced);
  assert.equal((await session.prompt('hi')).usage.costUsd, null);
});

type Row = {
  readonly given: string;
  readonly answer: Parameters<typeof testModel>[0];
  readonly reason: string;
};

const rows: readonly Row[] = [
  { given: 'a model that fails', answer: failing, reason: 'error auth' },
  {
    given: 'a refusal',
    answer: pieces(completed([], 'contentFilter')),
    reason: 'endOfTurn refused',
  },
  { given: 'nothing said', answer: pieces(completed([])), reason: 'endOfTurn empty' },
];

for (const { given, answer, reason } of rows) {
  test(`prompt: ${given} is an outcome and no exception`, async (context) => {
    const settings = { emptyRetries: 0 };
    const { session } = await openHere(context, testModel(answer ?? say('')), { settings });
    const turn = await session.prompt('hi');
    const { kind } = turn.reason;
    const detail =
      kind === 'error' ? turn.reason.error : kind === 'endOfTurn' ? turn.reason.cause : '';
    assert.deepEqual([turn.ok, turn.text, `${kind} ${detail}`], [false, '', reason]);
  });
}

test('a limit that stops the turn is an outcome, and words from before it are no answer', async (context) => {
  const tools = [tool('look', () => ok('seen'))];
  const again = () =>
    pieces(completed([{ type: 'text', text: 'I look' }, rawCall('1', 'look')], 'toolUse'));
  const { session } = await openHere(context, testModel(again(), again()), {
    tools,
    settings: { limits: { rounds: 1 } },
  });
  const turn = await session.prompt('look');
  assert.deepEqual(
    [turn.ok, turn.text, turn.reason],
    [false, '', { kind: 'budget', dimension: 'rounds' }],
  );
});

/** Resolves when the model streams. */
const begun = (session: Awaited<ReturnType<typeof openSession>>): Promise<void> =>
  new Promise((resolve) => {
    session.watch(({ event }) => {
      if (event.type === 'TextDelta') resolve();
    });
  });

test('a signal that is aborted cancels the turn, which is an outcome; the session goes on', async (context) => {
  const model = testModel(hang({ type: 'text', text: 'I th' }), say('two'));
  const { session } = await openHere(context, model);
  const controller = new AbortController();
  const streaming = begun(session);
  const turn = session.prompt('think', { signal: controller.signal });
  await streaming;
  controller.abort();
  const { reason, text, ok: isOk } = await turn;
  assert.deepEqual([reason, text, isOk], [{ kind: 'cancelled', cause: 'user' }, '', false]);
  assert.equal((await session.prompt('and now?')).text, 'two');
});

test('a signal that was aborted before says nothing to the model', async (context) => {
  const model = testModel(say('one'));
  const { session } = await openHere(context, model);
  const signal = AbortSignal.abort(new Error('too late'));
  await assert.rejects(session.prompt('hi', { signal }), /too late/);
  assert.equal(model.requests.length, 0);
  assert.equal((await session.state()).name, 'Ready');
});

test('a signal that is aborted after the turn does nothing to the next one', async (context) => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow: Answer = async function* () {
    yield { type: 'text', text: 'tw' };
    await released;
    yield completed([{ type: 'text', text: 'two' }]);
  };
  const { session } = await openHere(context, testModel(say('one'), slow));
  const controller = new AbortController();
  await session.prompt('hi', { signal: controller.signal });
  const streaming = begun(session);
  const second = session.prompt('again');
  await streaming;
  controller.abort();
  await session.send({ type: 'EditQueue', items: [] }); // what an abort would have sent stands before this
  release();
  assert.equal((await second).text, 'two');
});

test('the session’s own signal shuts it down as close does', async (context) => {
  const controller = new AbortController();
  const model = testModel(hang({ type: 'text', text: 'I th' }));
  const { session } = await openHere(context, model, { signal: controller.signal });
  const streaming = begun(session);
  const turn = session.prompt('think');
  await streaming;
  controller.abort();
  await session.ended;
  assert.deepEqual([(await turn).ok, (await session.state()).name], [false, 'ShuttingDown']);
});

test('a session whose signal was aborted before is not opened', async (context) => {
  const signal = AbortSignal.abort(new Error('never mind'));
  await assert.rejects(openHere(context, testModel(), { signal }), /never mind/);
});

const typesOf = async (events: AsyncIterable<Entry>): Promise<readonly string[]> => {
  const types: string[] = [];
  for await (const { seq, event } of events) types.push(`${seq} ${event.type}`);
  return types;
};

test('events gives the journal from an entry on, then what comes live, and ends with the session', async (context) => {
  const { session, journals } = await openHere(context, testModel(say('one'), say('two')));
  await session.prompt('first');
  const [all, later] = [typesOf(session.events()), typesOf(session.events(3))];
  await session.prompt('second');
  await session.close();
  const written = await typesOf(journals.read(session.id));
  assert.deepEqual(await all, written);
  assert.deepEqual(await later, written.slice(2));
  assert.deepEqual(await typesOf(session.events()), written, 'after its end too');
  assert.match(written.at(-1) ?? '', /ShutdownRequested/);
});

test('a reader that stops early disturbs no other reader', async (context) => {
  const { session } = await openHere(context, testModel(say('one')));
  const prompt = session.prompt('first');
  for await (const { event } of session.events()) {
    if (event.type === 'UserInput') break;
  }
  assert.equal((await prompt).text, 'one');
});

test('prompts while a turn runs are taken up by it, and all of them resolve when it rests', async (context) => {
  const open: (() => void)[] = [];
  const tools = [
    tool('wait', () => new Promise((resolve) => open.push(() => resolve(ok('waited'))))),
  ];
  const model = testModel(callTools(rawCall('1', 'wait')), say('both done'));
  const { session } = await openHere(context, model, { tools });
  const running = new Promise<void>((resolve) => {
    session.watch(({ state }) => {
      if (state.name === 'ExecutingTools' && state.calls[0]?.status === 'running') resolve();
    });
  });
  const first = session.prompt('one');
  await running;
  const second = session.prompt('two');
  await session.state();
  for (const go of open) go();
  assert.deepEqual([(await first).text, (await second).text], ['both done', 'both done']);
  assert.match(JSON.stringify(model.requests.at(-1)?.messages), /two/);
});
