import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  callTools,
  collect,
  command,
  ok,
  type Play,
  play,
  rawCall,
  resultsOf,
  say,
  settle,
  stage,
  testModel,
  tool,
  watchSession,
} from '../../../../test/kit/runtime/stage.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { steps } from '../../src/journal/steps.js';
import { toldUsage } from '../../src/machine/moves/request.js';
import type { HookVerdict, HookVerdicts } from '../../src/policy/judged-call.js';
import type { HookMoment, UserHooks } from '../../src/ports/hooks.js';

// Hooks at their moments: what they say is in the journal before anything follows from it.

type Facts = Parameters<UserHooks['run']>[1];
type Say = (facts: Facts, signal: AbortSignal) => HookVerdicts | Promise<HookVerdicts>;

const verdict = (own: Partial<HookVerdict>): HookVerdicts => [
  { hook: 'guard', decision: 'allow', ...own },
];
const deny = (reason: string): HookVerdicts => verdict({ decision: 'deny', reason });

/** Hooks that keep what they were told. */
const hooksOf = (says: Partial<Record<HookMoment, Say>>) => {
  const told: { readonly moment: HookMoment; readonly facts: Facts }[] = [];
  const hooks: UserHooks = {
    wants: (moment) => says[moment] !== undefined,
    async run(moment, facts, signal) {
      told.push({ moment, facts });
      return (await says[moment]?.(facts, signal)) ?? [];
    },
  };
  return {
    hooks,
    told,
    times: (moment: HookMoment) => told.filter((one) => one.moment === moment).length,
  };
};

const lastRequest = (on: Play): string => JSON.stringify(testRequests(on).at(-1)?.messages);
const testRequests = (on: Play) => (on.model as ReturnType<typeof testModel>).requests;

/** A replay of the journal arrives at the same state and runs nothing. */
const assertReplays = async (on: Play, context: TestContext): Promise<void> => {
  const { journals, id } = on;
  const { header } = await journals.peek(id);
  const before = await on.state();
  const entries = await collect(journals.read(id));
  let last: unknown;
  for (const { state } of steps(header, entries)) last = state;
  assert.deepEqual(last, before, `${context.name}: the replay`);
};

test('what a hook says before a tool decides in the policy, and allows nothing', async (context) => {
  let ran = 0;
  const tools = [
    tool('push', () => {
      ran += 1;
      return ok('pushed');
    }),
  ];
  const says = [deny('never on Friday'), verdict({ note: 'the branch is protected' })];
  const { hooks, told } = hooksOf({ 'before-tool': () => says.shift() ?? [] });
  const model = testModel(
    callTools(rawCall('1', 'push', { to: 'main' })),
    callTools(rawCall('2', 'push')),
  );
  const on = await play({ model, tools, userHooks: hooks });
  await on.say('push');
  await on.rest();
  assert.equal(ran, 1, 'the first was denied');
  assert.deepEqual(told[0]?.facts.tool_input, { to: 'main' });
  const [, second, third] = testRequests(on);
  assert.match(
    resultsOf(second?.messages ?? [])['1'] ?? '',
    /denied by policy: the hook guard: never on Friday/,
  );
  assert.equal(
    resultsOf(third?.messages ?? [])['2'],
    'pushed\n[hook guard] the branch is protected',
  );
  await assertReplays(on, context);
});

test('a hook cannot allow what the rules deny', async () => {
  const { hooks } = hooksOf({ 'before-tool': () => verdict({ decision: 'allow' }) });
  const tools = [tool('push', () => ok('pushed'))];
  const model = testModel(callTools(rawCall('1', 'push')));
  const on = await play({ model, tools, userHooks: hooks, settings: { rules: [] } });
  await on.say('push');
  await on.rest();
  assert.match(
    resultsOf(testRequests(on)[1]?.messages ?? [])['1'] ?? '',
    /denied by policy: no rule allows it/,
  );
});

test('a hook that asks makes the user decide, each time anew', async () => {
  const { hooks } = hooksOf({
    'before-tool': () => verdict({ decision: 'ask', reason: 'is it Friday?' }),
  });
  const tools = [tool('push', () => ok('pushed'))];
  const model = testModel(callTools(rawCall('1', 'push')), callTools(rawCall('2', 'push')));
  const on = await play({ model, tools, userHooks: hooks, settings: { onAsk: 'ask' } });
  await on.say('push');
  for (const callId of ['1', '2']) {
    const { actions } = await on.until(({ actions: some }) =>
      some.some((action) => action.type === 'RequestApproval' && action.call.callId === callId),
    );
    const asked = actions.find((action) => action.type === 'RequestApproval');
    assert.ok(asked?.type === 'RequestApproval' && asked.grantable === 'once');
    assert.equal(asked.why, 'the hook guard: is it Friday?');
    const { batchId } = asked;
    const answer = {
      type: 'ApprovalAnswered',
      batchId,
      callId,
      answer: { kind: 'allow' },
    } as const;
    await on.runtime.send(on.id, { ...answer, scope: 'session' });
  }
  await on.rest();
  assert.equal(resultsOf(testRequests(on)[2]?.messages ?? [])['2'], 'pushed');
});

test('after a tool, after a batch and before a request, remarks reach the next request', async (context) => {
  const { hooks, told } = hooksOf({
    'session-start': () => verdict({ note: 'staging is down' }),
    'before-request': ({ request_id }) =>
      request_id === 'req-1' ? [] : verdict({ note: 'be quick' }),
    'after-tool': () => deny('the file is not formatted'),
    'after-batch': () => verdict({ note: 'the index is stale' }),
  });
  const tools = [tool('edit', () => ok('edited'), command)];
  const model = testModel(callTools(rawCall('1', 'edit')), say('Done.'));
  const on = await play({ model, tools, userHooks: hooks });
  await on.say('edit');
  await on.rest();
  const [first, second] = testRequests(on);
  assert.match(JSON.stringify(first?.messages), /\[hook guard\] staging is down/);
  assert.equal(
    resultsOf(second?.messages ?? [])['1'],
    'edited\n[hook guard] objects: the file is not formatted',
  );
  assert.match(lastRequest(on), /\[hook guard\] the index is stale.*\[hook guard\] be quick/);
  assert.deepEqual(told.find(({ moment }) => moment === 'before-request')?.facts, {
    request_id: 'req-1',
    attempt: 1,
    model: 'test/one',
    context_tokens: 8,
    cost_usd: 0,
  });
  assert.deepEqual(told.find(({ moment }) => moment === 'after-batch')?.facts, {
    tool_calls: [{ tool_name: 'edit', tool_use_id: '1', tool_input: {}, failed: false }],
  });
  assert.deepEqual(told.find(({ moment }) => moment === 'after-tool')?.facts.tool_response, {
    status: 'ok',
    text: 'edited',
  });
  await assertReplays(on, context);
});

test('a hook holds a request back, and the turn ends with its reason', async () => {
  const { hooks } = hooksOf({ 'before-request': () => deny('the budget of the team is spent') });
  const on = await play({ model: testModel(say('no')), userHooks: hooks });
  await on.say('hi');
  await on.rest();
  assert.equal(testRequests(on).length, 0);
  const shown = JSON.stringify(on.steps.flatMap(({ actions }) => actions));
  assert.match(shown, /the hook guard: the budget of the team is spent/);
});

test('an objection to the end of a turn begins another, three times at most', async (context) => {
  const { hooks, told } = hooksOf({
    'turn-end': () => [...deny('the tests fail'), ...verdict({ note: 'it rains' })],
  });
  const model = testModel(say('1'), say('2'), say('3'), say('4'), say('5'));
  const on = await play({ model, userHooks: hooks });
  await on.say('go');
  await on.rest();
  assert.equal(testRequests(on).length, 4);
  assert.match(lastRequest(on), /\[hook guard\] objects: the tests fail"\}\]\}\]$/);
  assert.deepEqual(
    told.map(({ facts }) => [
      facts.last_assistant_message,
      facts.stop_hook_active,
      facts.objections,
    ]),
    [
      ['1', false, 0],
      ['2', true, 1],
      ['3', true, 2],
      ['4', true, 3],
    ],
  );
  await on.say('more');
  await on.rest();
  const next = JSON.stringify(testRequests(on)[4]?.messages);
  assert.equal(next.split('it rains').length - 1, 4, 'also what was said with the last objection');
  await assertReplays(on, context);
});

test('a hook refuses a compaction, or adds to what the summary keeps', async () => {
  const says = [deny('not now'), verdict({ note: 'keep the ids' })];
  const { hooks } = hooksOf({ 'before-compaction': () => says.shift() ?? [] });
  const on = await play({ model: testModel(say('a'), say('summary')), userHooks: hooks });
  await on.say('hi');
  await on.rest();
  await on.runtime.send(on.id, { type: 'CompactRequested' });
  await on.until(({ event }) => event.type === 'CompactionFailed');
  assert.equal(testRequests(on).length, 1);
  assert.equal(toldUsage(await on.state()).atLeast, undefined, 'nothing was sent');
  await on.runtime.send(on.id, { type: 'CompactRequested' });
  await on.until(({ event }) => event.type === 'CompactionCompleted');
  assert.match(lastRequest(on), /summarise: \[hook guard\] keep the ids/);
});

/** Resolves when aborted, as a hook that is killed. */
const untilAborted: Say = (_facts, signal) =>
  new Promise((resolve) =>
    signal.addEventListener('abort', () => resolve(verdict({ fault: 'it was stopped' })), {
      once: true,
    }),
  );

for (const moment of ['before-request', 'before-tool', 'turn-end', 'before-compaction'] as const) {
  test(`a cancel ends the hook ${moment}, and nothing follows from it`, async () => {
    const { hooks, times } = hooksOf({ [moment]: untilAborted });
    const calls = [rawCall('1', 'push'), rawCall('2', 'push')];
    const reply = moment === 'before-tool' ? callTools(...calls) : say('one');
    const on = await play({
      model: testModel(reply),
      tools: [tool('push', () => ok('x'))],
      userHooks: hooks,
    });
    await on.say('go');
    if (moment === 'before-compaction') {
      await on.rest();
      await on.runtime.send(on.id, { type: 'CompactRequested' });
    }
    while (times(moment) === 0) await settle();
    await on.runtime.send(on.id, { type: 'CancelTurn' });
    await settle();
    const state = await on.state();
    assert.equal(state.name, 'WaitingForUserInput');
    assert.ok(state.name === 'WaitingForUserInput' && state.reason.kind === 'cancelled');
    assert.equal(times(moment), 1, 'no other hook of the request begins');
    if (moment === 'before-compaction')
      assert.equal(toldUsage(await on.state()).atLeast, undefined, 'nothing was sent');
    await on.runtime.close(on.id);
  });
}

test('a hook that hangs does not keep the session from closing', async () => {
  const { hooks } = hooksOf({
    'session-start': untilAborted,
    'session-end': () => verdict({ note: 'bye' }),
  });
  const on = await play({ model: testModel(say('no')), userHooks: hooks });
  await on.say('hi');
  await on.runtime.close(on.id);
  const entries = await collect(on.journals.read(on.id));
  const last = entries.at(-1)?.event;
  assert.ok(last?.type === 'UserHooksRan' && last.moment === 'session-end');
  assert.equal(testRequests(on).length, 0);
});

test('the user is asked: hooks are told, nothing waits for them, and only their remarks are recorded', async () => {
  const says = [[], verdict({ fault: 'no display' })];
  const { hooks, told } = hooksOf({ 'ask-user': () => says.shift() ?? [] });
  const on = await play({ model: testModel(say('a'), say('b')), userHooks: hooks });
  await on.runtime.send(on.id, { type: 'Start' });
  await on.say('hi');
  await on.rest();
  await on.say('more');
  await on.until(({ event }) => event.type === 'UserHooksRan');
  assert.deepEqual(
    told.map(({ facts }) => facts),
    [
      { notification_type: 'waiting', message: 'endOfTurn: answer' },
      { notification_type: 'waiting', message: 'endOfTurn: answer' },
    ],
  );
  const shown = JSON.stringify(on.steps.flatMap(({ actions }) => actions));
  assert.match(shown, /hook guard: no display/);
});

test('after a crash no hook runs again for a call that was judged, nor for a batch that it has seen', async () => {
  const journals = memoryJournals();
  const first = hooksOf({
    'before-tool': () => verdict({ note: 'judged' }),
    'after-batch': () => verdict({}),
  });
  const tools = [tool('edit', () => ok('edited'), command)];
  const model = testModel(callTools(rawCall('1', 'edit')), say('Done.'));
  const on = await play({ model, tools, userHooks: first.hooks, journals });
  await on.say('edit');
  await on.rest();
  const entries = await collect(journals.read(on.id));
  const seqOf = (type: string): number =>
    entries.find(({ event }) => event.type === type)?.seq ?? 0;
  for (const [place, batches] of [
    [seqOf('LlmCompleted'), 1],
    [seqOf('UserHooksRan'), 0],
  ] as const) {
    const again = hooksOf({ 'before-tool': () => deny('twice'), 'after-batch': () => verdict({}) });
    const id = await on.runtime.fork(on.id, place); // to the byte what a crash leaves behind
    const later = stage({
      journals,
      model: testModel(say('Done.')),
      tools,
      userHooks: again.hooks,
    });
    await later.runtime.open(id);
    const play2 = watchSession(later, id);
    await play2.rest();
    assert.equal(again.times('before-tool'), 0);
    assert.equal(again.times('after-batch'), batches, `after ${place}`);
    assert.match(lastRequest(play2), /\[hook guard\] judged/);
  }
});

test('hooks of a start that say nothing leave no event', async () => {
  const { hooks, times } = hooksOf({ 'session-start': () => [] });
  const on = await play({ userHooks: hooks });
  await settle();
  await on.say('hello');
  await on.rest();
  assert.equal(times('session-start'), 1);
  const entries = await collect(on.journals.read(on.id));
  assert.deepEqual(
    entries.map(({ event }) => event.type).filter((type) => type === 'UserHooksRan'),
    [],
  );
});
