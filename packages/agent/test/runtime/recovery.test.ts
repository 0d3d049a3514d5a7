import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  callTools,
  collect,
  command,
  ok,
  play,
  rawCall,
  reopen,
  resultsOf,
  say,
  settle,
  stage,
  testModel,
  tool,
  traits,
  watchSession,
} from '../../../../test/kit/runtime/stage.js';
import type { Message } from '../../src/machine/message.js';
import type { Settings } from '../../src/machine/settings.js';
import type { CallTraits } from '../../src/policy/judged-call.js';
import type { ModelRequest } from '../../src/ports/model.js';
import type { FileHashes, Tool } from '../../src/ports/tool.js';
import { hooksOf, reopenWith } from './hooks.js';

/** Every call is answered once, in the next message, in call order, before any text; roles alternate. */
const assertValid = (messages: readonly Message[], what: string): void => {
  assert.equal(messages[0]?.role, 'user', what);
  assert.equal(messages.at(-1)?.role, 'user', what);
  messages.forEach((message, index) => {
    assert.ok(message.parts.length > 0, `${what}: message ${index} is empty`);
    assert.notEqual(message.role, messages[index - 1]?.role, `${what}: roles alternate`);
    if (message.role === 'user') {
      const before = messages[index - 1]?.parts ?? [];
      const asked = before.flatMap((part) => (part.type === 'call' ? [part.callId] : []));
      const answered = message.parts.flatMap((part) =>
        part.type === 'result' ? [part.callId] : [],
      );
      assert.deepEqual(answered, asked, what);
      const firstText = message.parts.findIndex((part) => part.type === 'text');
      const lastResult = message.parts.findLastIndex((part) => part.type === 'result');
      assert.ok(firstText === -1 || lastResult < firstText, `${what}: results come before text`);
    }
  });
};

const readText = (request: ModelRequest | undefined): string =>
  JSON.stringify(request?.messages.at(-1) ?? null);

test('after a crash at any point the session goes on: every request is valid, and no command runs twice', async () => {
  const runs: string[] = [];
  const tools = [
    tool('look', () => ok('looked')),
    tool(
      'make',
      (input) => {
        runs.push(String(input.what));
        return ok(`made ${String(input.what)}`);
      },
      command,
    ),
  ];
  const model = testModel(
    callTools(rawCall('1', 'look'), rawCall('2', 'make', { what: 'a' }), rawCall('3', 'look')),
    callTools(rawCall('4', 'make', { what: 'b' })),
    say('done'),
  );
  const on = await play({ model, tools });
  await on.say('go');
  await on.rest();
  const { seq: last } = await on.runtime.state(on.id);
  const entries = await collect(on.journals.read(on.id));
  assert.ok(last >= 10);
  for (let seq = 0; seq <= last; seq++) {
    const started = entries
      .slice(0, seq)
      .flatMap(({ event }) => (event.type === 'ToolStarted' ? [event.callId] : []));
    runs.length = 0;
    const again = await reopen(on, seq, tools);
    await again.say('and now?');
    const state = await again.rest();
    assert.equal(state.name, 'WaitingForUserInput', `cut after ${seq}`);
    for (const request of again.model.requests) assertValid(request.messages, `cut after ${seq}`);
    if (started.includes('2')) assert.ok(!runs.includes('a'), `cut after ${seq}: a ran twice`);
    if (started.includes('4')) assert.ok(!runs.includes('b'), `cut after ${seq}: b ran twice`);
    await again.runtime.close(again.id);
  }
});

/** A journal that ends while a call of these traits runs; `hashes` are what it recorded. */
const cutWhileRunning = async (
  own: Partial<CallTraits>,
  hashes?: FileHashes,
  settings: Partial<Settings> = {},
) => {
  const hash = hashes === undefined ? undefined : async () => hashes;
  const hanging = tool('act', () => new Promise(() => undefined), traits(own), hash);
  const model = testModel(callTools(rawCall('1', 'act')));
  const on = await play({ tools: [hanging], model, settings });
  await on.say('go');
  await settle();
  const { seq } = await on.runtime.state(on.id);
  return { on, seq };
};

type Row = {
  readonly title: string;
  readonly effect: CallTraits['effect'];
  readonly recorded?: FileHashes;
  readonly now?: string;
  readonly runs: number;
  readonly result: RegExp;
};
const rows: readonly Row[] = [
  { title: 'a pure call runs again', effect: 'pure', runs: 1, result: /ran again/ },
  {
    title: 'an edit whose file is as it was before runs again',
    effect: 'probeable',
    recorded: { before: 'abc', after: 'xyz' },
    now: 'abc',
    runs: 1,
    result: /ran again/,
  },
  {
    title: 'an edit whose file has changed is lost, and says so',
    effect: 'probeable',
    recorded: { before: 'abc', after: 'xyz' },
    now: 'def',
    runs: 0,
    result: /outcome unknown after a crash\\nthe file has changed since the call began/,
  },
  {
    title: 'an edit whose file is as the edit leaves it is done, and does not run again',
    effect: 'probeable',
    recorded: { before: 'abc', after: 'xyz' },
    now: 'xyz',
    runs: 0,
    result: /"failed":false,"text":"it had taken effect before the crash/,
  },
  {
    title: 'an edit whose file was not recorded is lost, and says so',
    effect: 'probeable',
    runs: 0,
    result: /outcome unknown after a crash\\nhow the file was before the call is not recorded/,
  },
  {
    title: 'a command never runs again by itself: it is lost, and says what to do',
    effect: 'opaque',
    runs: 0,
    result:
      /outcome unknown after a crash\\nthe session was interrupted while this call started or ran; check whether it took effect/,
  },
];

for (const row of rows) {
  test(row.title, async () => {
    const own = { effect: row.effect, mutating: row.effect !== 'pure' };
    const { on, seq } = await cutWhileRunning(own, row.recorded);
    let runs = 0;
    const { now } = row;
    const acting = tool(
      'act',
      () => ok(`ran again ${++runs}`),
      traits(own),
      now === undefined ? undefined : async () => ({ before: now }),
    );
    const again = await reopen(on, seq, [acting]);
    await again.rest();
    assert.equal(runs, row.runs);
    assert.match(readText(again.model.requests[0]), row.result);
    const types = (await collect(again.journals.read(again.id, seq + 1))).map(
      ({ event }) => event.type,
    );
    assert.deepEqual(types, ['Resumed', 'ToolCompleted', 'LlmCompleted']);
  });
}

test('a call whose tool is gone after a crash has failed without an effect, and the turn goes on', async () => {
  const own = { effect: 'pure', mutating: true } as const;
  const { on, seq } = await cutWhileRunning(own, undefined, { hooks: 'mutating' });
  const hooks = hooksOf();
  const again = await reopenWith(on, seq, { hooks });
  await again.rest();
  assert.match(
    resultsOf(again.model.requests[0]?.messages ?? [])['1'] ?? '',
    /there is no tool act any more/,
  );
  assert.deepEqual(hooks.log, ['before 1', 'after 1'], 'it did not run, so no phase follows');
});

test('a call that is cancelled while recovery looks at its file waits for no hooks', async () => {
  const own = { effect: 'probeable', mutating: true } as const;
  const hashes = { before: 'abc', after: 'xyz' };
  const { on, seq } = await cutWhileRunning(own, hashes, { hooks: 'mutating' });
  let looked: (now: FileHashes) => void = () => undefined;
  const before = () =>
    new Promise<FileHashes>((resolve) => {
      looked = resolve;
    });
  const again = await reopenWith(on, seq, {
    tools: [tool('act', () => assert.fail('it was cancelled'), traits(own), before)],
    hooks: hooksOf({}, () => new Promise(() => undefined)),
  });
  await again.runtime.send(again.id, { type: 'CancelTurn' });
  looked({ before: 'abc' });
  await settle();
  assert.equal((await again.state()).name, 'WaitingForUserInput');
});

test('a call that had not started when the session ended starts now, once', async () => {
  const { on, seq } = await cutWhileRunning({ effect: 'opaque' });
  let runs = 0;
  const again = await reopen(on, seq - 1, [
    tool('act', () => ok(`ran ${++runs}`), traits({ effect: 'opaque' })),
  ]);
  await again.rest();
  assert.equal(runs, 1);
  assert.equal(resultsOf(again.model.requests[0]?.messages ?? [])['1'], 'ran 1');
});

test('a turn that ends before the session is opened goes on with nothing, wherever it was cut', async () => {
  let runs = 0;
  const tools = [tool('make', () => ok(`made ${++runs}`), command)];
  const calls = callTools(rawCall('1', 'make'), rawCall('2', 'make'));
  const on = await play({ model: testModel(calls, say('done')), tools });
  await on.say('go');
  await on.rest();
  const { seq: last } = await on.runtime.state(on.id);
  for (let seq = 0; seq <= last; seq++) {
    runs = 0;
    const id = await on.runtime.fork(on.id, seq);
    const later = stage({ journals: on.journals, model: testModel(), tools });
    const session = await later.runtime.open(id, { endsTurn: true });
    await settle();
    const what = `cut after ${seq}`;
    assert.match((await session.state()).name, /^(Ready|WaitingForUserInput)$/, what);
    assert.deepEqual([runs, later.model.requests.length], [0, 0], what);
    await session.prompt('and now?');
    assertValid(later.model.requests.at(-1)?.messages ?? [], what);
    await session.close();
  }
});

for (const { sent, runs, result } of [
  { sent: 'notSent', runs: 1, result: /^ran 1$/ },
  { sent: 'sent', runs: 0, result: /outcome unknown after a crash/ },
  { sent: 'unknown', runs: 0, result: /outcome unknown after a crash/ },
] as const)
  test(`a call whose tool finds nothing itself, recorded as ${sent}: it runs ${runs} times after a crash`, async () => {
    const { on } = await cutWhileRunning({ effect: 'opaque' });
    let count = 0;
    const recorded: string[] = [];
    const sentCalls = {
      announce: () => undefined,
      record: (_: string, call: string) => void recorded.push(call),
      find: async () => sent,
    };
    const acting = tool('act', () => ok(`ran ${++count}`), traits({ effect: 'opaque' }));
    const id = await on.runtime.fork(on.id, (await on.runtime.state(on.id)).seq);
    const later = stage({ journals: on.journals, tools: [acting], sentCalls });
    await later.runtime.open(id);
    const again = watchSession(later, id);
    await again.rest();
    assert.equal(count, runs);
    assert.equal(recorded.length, runs, 'it is recorded before it runs');
    assert.match(resultsOf(later.model.requests[0]?.messages ?? [])['1'] ?? '', result);
  });

test('a command that is found still running is waited for and not run again', async () => {
  const { on, seq } = await cutWhileRunning({ effect: 'opaque' });
  let runs = 0;
  const acting = {
    ...tool('act', () => ok(`ran ${++runs}`), traits({ effect: 'opaque' })),
    findInterrupted: async () =>
      ({ kind: 'found', leftMs: null, finish: async () => ok('found') }) as const,
  };
  const again = await reopen(on, seq, [acting]);
  await again.rest();
  assert.deepEqual([runs, resultsOf(again.model.requests[0]?.messages ?? [])['1']], [0, 'found']);
});

test('a command that is recovered after its deadline is asked to end at once', async () => {
  const { on, seq } = await cutWhileRunning({ effect: 'opaque' });
  const acting: Tool = {
    ...tool('act', () => ok('ran'), traits({ effect: 'opaque' })),
    findInterrupted: async (_, { signal }) => ({
      kind: 'found',
      leftMs: -5,
      finish: () =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve({ status: 'timedOut', text: 'so far' }));
        }),
    }),
  };
  const again = await reopen(on, seq, [acting]);
  again.clock.advance(1);
  await settle();
  assert.match(resultsOf(again.model.requests[0]?.messages ?? [])['1'] ?? '', /so far/);
});

test('a fork in the middle of a turn is a session of its own: both go on', async () => {
  const { on, seq } = await cutWhileRunning({ effect: 'opaque' });
  const fork = await reopen(on, seq, []);
  await fork.rest();
  await fork.say('go on here');
  await fork.rest();
  assert.equal((await on.state()).name, 'ExecutingTools');
  const info = (await collect(fork.runtime.list())).find(({ sessionId }) => sessionId === fork.id);
  assert.deepEqual(info?.parent, { sessionId: on.id, seq });
  await on.runtime.send(on.id, { type: 'CancelTurn' });
  on.clock.advance(5_000);
  assert.equal((await on.rest()).name, 'WaitingForUserInput');
});

test('a crash while a retry waits: the timer runs for what is left of it, and the same request is tried again', async () => {
  const failing = testModel(async function* () {
    const error = {
      kind: 'overloaded',
      message: 'busy',
      retryable: true,
      retryAfterMs: null,
    } as const;
    yield { type: 'failed', error, usage: null };
  });
  const on = await play({ model: failing });
  await on.say('go');
  await on.until(({ state }) => state.name === 'Error');
  on.clock.advance(400);
  const id = await on.runtime.fork(on.id, 2);
  const later = stage({ journals: on.journals, clock: on.clock, model: testModel(say('at last')) });
  await later.runtime.open(id);
  const again = watchSession(later, id);
  on.clock.advance(1_124); // of 1,125 in all: the 400 ms since the last event do not count
  await settle();
  assert.equal(later.model.requests.length, 0);
  on.clock.advance(1);
  await again.rest();
  assert.equal(later.model.requests.length, 1);
});
