import assert from 'node:assert/strict';
import { test } from 'node:test';
import { llm, waiting } from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import { begun } from '../../../../test/kit/agent/random.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import type { Event, On } from '../../src/machine/event.js';
import { agent } from '../../src/machine/machine.js';
import {
  hasMoneyLimit,
  rearm,
  setLimit,
  spentText,
  stopBeforeCall,
} from '../../src/machine/moves/budget.js';
import {
  addUsage,
  closeOldProcess,
  costsNothing,
  countFailedCompaction,
  countFailure,
  countHookUsage,
  countReported,
  countStale,
  countToolUsage,
  countUsage,
  getAllowance,
  isPaid,
  remainingIn,
  reserve,
  reserveForCalls,
  settledUsage,
  stopUnpaid,
  toldUsage,
  usageWarnings,
  worstCaseWithin,
} from '../../src/machine/moves/request.js';
import {
  type Dimension,
  type Limits,
  noUsage,
  sumUsage,
  type Usage,
  type UsageTotals,
  usageSince,
} from '../../src/machine/settings.js';
import {
  changeSession,
  type In,
  isIgnored,
  knownCostUsd,
  measuredId,
  type RestingState,
  reservedUsd,
  type SessionData,
  type State,
} from '../../src/machine/state.js';

// Sums by themselves: what is added up, and what is left of a limit.

const totals: UsageTotals = {
  inputTokens: 1,
  outputTokens: 20,
  cacheReadTokens: 300,
  cacheWriteTokens: 4_000,
  costUsd: 0.5,
  unpriced: 6,
};
const call: Usage = {
  inputTokens: 10_000,
  outputTokens: 2_000,
  cacheReadTokens: 500,
  cacheWriteTokens: 60,
  costUsd: 0.25,
};

test('each kind of tokens is added to its own sum', () => {
  assert.deepEqual(addUsage(totals, call), {
    inputTokens: 10_001,
    outputTokens: 2_020,
    cacheReadTokens: 800,
    cacheWriteTokens: 4_060,
    costUsd: 0.75,
    unpriced: 6,
  });
});

test('a call without a price is counted as one, and costs nothing', () => {
  const { costUsd, unpriced } = addUsage(totals, { ...call, costUsd: null });
  assert.deepEqual({ costUsd, unpriced }, { costUsd: 0.5, unpriced: 7 });
});

test('calls without a price in the usage of a task are counted, beside the price of the others', () => {
  const ofTask = { ...call, unpriced: 2 };
  const { costUsd, unpriced } = addUsage(totals, ofTask);
  assert.deepEqual({ costUsd, unpriced }, { costUsd: 0.75, unpriced: 8 });
  assert.equal(sumUsage(ofTask, ofTask).unpriced, 4);
  assert.deepEqual(Object.keys(sumUsage(call, call)), Object.keys(call));
});

const session = (limits: Partial<Limits>, change: Partial<SessionData> = {}): SessionData => ({
  ...begun({ limits }).session,
  ...change,
});

test('usage is booked for an id that is open, and for no other', () => {
  const open = session({}, { unaccounted: ['req-1', 'req-2'] });
  const booked = countUsage(open, 'req-1', call);
  assert.deepEqual(booked.unaccounted, ['req-2']);
  assert.equal(booked.usage.costUsd, 0.25);
  assert.equal(countUsage(open, 'req-3', call), open);
  assert.equal(countUsage(open, 'req-1', null), open);
});

const hookCompleted = {
  type: 'HookCompleted',
  at: g.NOW,
  hookId: 'hook-9',
  commits: [],
  changedFiles: [],
  dirty: false,
  note: '',
  warning: '',
  proceed: true,
  usage: null,
} as const;

test('where nothing is to be booked, nothing changes', () => {
  const before = session({}, { unaccounted: ['req-1'] });
  assert.equal(countHookUsage(before, hookCompleted), before);
  const outcome = { status: 'ok', text: '' } as const;
  const tool = {
    type: 'ToolCompleted',
    at: g.NOW,
    batchId: 'batch-9',
    callId: '1',
    outcome,
  } as const;
  assert.equal(countToolUsage(before, tool), before);
  const state = waiting(before);
  assert.equal(countStale(state, hookCompleted).state, state);
});

test('the rest of a session’s limits: nothing for a reached limit, unlimited for none', () => {
  assert.deepEqual(remainingIn(session({}, { usage: totals })), {
    usd: { type: 'unlimited' },
    tokens: { type: 'unlimited' },
  });
  assert.deepEqual(remainingIn(session({ usd: 2, tokens: 5_000 }, { usage: totals })), {
    usd: { type: 'left', amount: 1.5 },
    tokens: { type: 'left', amount: 5_000 - 4_321 },
  });
  assert.deepEqual(remainingIn(session({ usd: 0.25, tokens: 4_321 }, { usage: totals })), {
    usd: { type: 'left', amount: 0 },
    tokens: { type: 'left', amount: 0 },
  });
});

test('two usages are added kind by kind; a cost that nobody knows makes the sum unknown', () => {
  const other = { ...call, inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, costUsd: 0.5 };
  assert.deepEqual(sumUsage(call, other), {
    inputTokens: 10_001,
    outputTokens: 2_002,
    cacheReadTokens: 503,
    cacheWriteTokens: 120,
    costUsd: 0.75,
  });
  assert.equal(sumUsage(null, call), call);
  const unknown = { ...call, costUsd: null };
  assert.equal(sumUsage(call, unknown).costUsd, null);
  assert.equal(sumUsage(unknown, call).costUsd, null);
});

const measured = { model: 'test/model', bytes: 9_000, tokens: 3_000 };
const reservation = (id: string, usd: number) => ({
  id,
  usd,
  outputUsd: 0,
  outputTokens: 0,
  sent: null,
});

test('a call that spends may spend what was set aside for it, any other what is left', () => {
  const one = session({ usd: 2 }, { usage: totals, reserved: [reservation('batch-1/1', 1.25)] });
  assert.deepEqual(getAllowance(one, 'batch-1/1').usd, { type: 'left', amount: 1.25 });
  assert.deepEqual(getAllowance(one, 'batch-1/2').usd, { type: 'left', amount: 0.25 });
  assert.deepEqual(getAllowance(one, 'batch-1/1').tokens, { type: 'unlimited' });
});

test('only a limit in dollars is one of money', () => {
  assert.ok(hasMoneyLimit(session({ usd: 0.01 })));
  assert.ok(!hasMoneyLimit(session({ tokens: 5 })));
});

test('a limit raises itself by its slice above what was spent, and not without a slice', () => {
  const slices = { usd: 'unlimited', tokens: 50 } as const;
  const before = { ...session({ usd: 0.25 }, { usage: totals }), slices };
  assert.deepEqual(rearm(before, 'usd'), { session: before, actions: [] });
  assert.equal(rearm(before, 'tokens').session.settings.limits.tokens, 4_321 + 50);
  const unpaid = { ...session({ tokens: 10_000 }, { usage: totals }), slices };
  assert.equal(rearm(unpaid, 'tokens').session.settings.limits.tokens, 10_000 + 50);
});

test('the first limit that is set is the slice by which it raises itself', () => {
  const slices = (dimension: Dimension, limit = 5) => {
    const changed = setLimit(session({}), dimension, limit);
    return [changed.slices, setLimit(changed, dimension, 9).slices];
  };
  const usd = { usd: 5, tokens: 'unlimited' };
  const tokens = { usd: 'unlimited', tokens: 5 };
  const none = { usd: 'unlimited', tokens: 'unlimited' };
  assert.deepEqual(slices('usd'), [usd, usd]);
  assert.deepEqual(slices('tokens'), [tokens, tokens]);
  assert.deepEqual(slices('rounds'), [none, none]);
});

test('what was spent is said with its limit, also where there is none', () => {
  const spent = session({ tokens: 5_000 }, { usage: totals });
  assert.equal(spentText(spent, 'tokens', g.NOW), '4321 of 5000 tokens used');
  assert.equal(spentText(spent, 'usd', g.NOW), '$0.5000 of no limit used');
});

test('a stop before a request names the limit that is reached', () => {
  const stopped = (limits: Partial<Limits>) =>
    stopBeforeCall(llm(session(limits, { usage: totals }))).state.dimension;
  assert.deepEqual([stopped({ tokens: 1 }), stopped({ usd: 0.1 })], ['tokens', 'usd']);
});

test('what is not known of a usage counts as what was set aside for it, if that is anything', () => {
  const one = session(
    {},
    { reserved: [reservation('req-1', 0.5), reservation('req-2', 0)], measured },
  );
  const unknown = { ...call, costUsd: null };
  assert.equal(settledUsage(one, 'req-1', unknown, 'whole').costUsd, 0.5);
  assert.equal(settledUsage(one, 'req-2', unknown, 'whole'), unknown);
  assert.equal(settledUsage(one, 'req-3', unknown, 'partial'), unknown);
  assert.equal(settledUsage(one, 'req-1', call, 'whole'), call);
});

test('the size of a request is known from a whole usage with a price alone', () => {
  const sent = { model: 'test/model', bytes: 12_000 };
  const one = session(
    {},
    { unaccounted: ['req-1'], reserved: [{ ...reservation('req-1', 0.5), sent }], measured },
  );
  const known = { ...sent, tokens: 12_560 };
  assert.deepEqual(countUsage(one, 'req-1', call).measured, known);
  assert.equal(countUsage(one, 'req-1', call, 'partial').measured, measured);
  assert.equal(countUsage(one, 'req-1', { ...call, costUsd: null }).measured, measured);
});

test('what comes late says nothing of the size of the next request', () => {
  const sent = { model: 'test/model', bytes: 12_000 };
  const reserved = [{ ...reservation('req-1', 0.5), sent }];
  const before = session({ usd: 2 }, { unaccounted: ['req-1'], reserved, measured });
  const late = { type: 'UsageReported', at: g.NOW, usageId: 'req-1', usage: call } as const;
  const { session: own } = countReported(waiting(before), { ...late, coverage: 'whole' }).state;
  assert.deepEqual([own.usage.costUsd, own.measured], [0.25, measured]);
  const reply = { ...late, type: 'LlmFailed', requestId: 'req-1', coverage: 'whole' } as const;
  const stale = countStale(waiting(before), reply as unknown as On<'LlmFailed'>).state.session;
  assert.deepEqual([stale.usage.costUsd, stale.measured], [0.25, measured]);
});

/** A session in which `req-1` and the call `batch-1/1` are open, with what is set aside for them. */
const spending = (limits: Partial<Limits> = {}): SessionData =>
  session(limits, {
    unaccounted: ['req-1', 'batch-1/1'],
    reserved: [{ ...reservation('req-1', 0.5), outputUsd: 0.4 }, reservation('batch-1/1', 0.5)],
    measured,
  });

test('only an answer that refuses a request, or a request that was not sent, costs nothing', () => {
  const fails = (part: object, firstPieceAt?: number) =>
    costsNothing({
      error: { kind: 'unreachable', message: '', retryable: true, retryAfterMs: null, ...part },
      ...(firstPieceAt === undefined ? {} : { firstPieceAt }),
    });
  assert.ok(fails({ kind: 'rateLimited' }));
  assert.ok(fails({ sent: 'no' }));
  assert.ok(!fails({}));
  assert.ok(!fails({ sent: 'yes' }));
  assert.ok(!fails({ kind: 'rateLimited' }, g.NOW));
  assert.ok(!fails({ sent: 'no' }, g.NOW));
});

/** A session without a limit in dollars, in which these ids are open. */
const open = (...unaccounted: readonly string[]) => session({ usd: 'unlimited' }, { unaccounted });

test('a call that reports a part of its usage makes the sum of dollars a lower bound', () => {
  const isBound = (part: Partial<Usage>, before = open('req-1')) => {
    const after = countUsage(before, 'req-1', { ...call, ...part }, 'partial');
    return after.usage.atLeast ?? false;
  };
  assert.ok(isBound({}));
  assert.ok(isBound({ ...noUsage }), 'the provider has said nothing yet');
  assert.ok(!isBound({ costUsd: 0 }), 'the model is free');
  assert.ok(!isBound({ costUsd: null }), 'the price is unknown, which is said');
  assert.ok(!isBound({}, spending()), 'its worst case counts');
  assert.ok(!isBound({}, open()), 'it was counted before');
  assert.equal(countUsage(open('req-1'), 'req-1', call).usage.atLeast, undefined);
  const later = countUsage(
    countUsage(open('req-1', 'req-2'), 'req-1', call, 'partial'),
    'req-2',
    call,
  );
  assert.equal(later.usage.atLeast, true, 'it stays one');
});

test('a request that was refused is closed; one that broke off without usage may have cost', () => {
  const failed = (kind: 'unreachable' | 'rateLimited') => {
    const error = { kind, message: '', retryable: true, retryAfterMs: null };
    const request = { requestId: 'req-1', usage: null, jitter: 0, error };
    return countFailure(open('req-1'), { type: 'LlmFailed', at: g.NOW, ...request });
  };
  assert.deepEqual(failed('rateLimited').unaccounted, []);
  assert.equal(toldUsage(waiting(failed('rateLimited'))).atLeast, undefined);
  assert.equal(toldUsage(waiting(failed('unreachable'))).atLeast, true);
});

test('a call that cost nothing leaves no size of its request', () => {
  const sent = { model: 'test/model', bytes: 12_000 };
  const own = session(
    {},
    { unaccounted: ['req-1'], reserved: [{ ...reservation('req-1', 0.5), sent }], measured },
  );
  const closed = countUsage(own, 'req-1', noUsage, 'whole');
  assert.deepEqual([closed.unaccounted, reservedUsd(closed), closed.measured], [[], 0, measured]);
});

test('a failed summary and a phase say themselves how much of their usage is known', () => {
  const compaction = (coverage: { coverage?: 'whole' }) =>
    countFailedCompaction(open('compaction-1'), {
      ...{ type: 'CompactionFailed', at: g.NOW, compactionId: 'compaction-1', message: '' },
      ...{ usage: call, ...coverage },
    }).usage.atLeast;
  assert.deepEqual([compaction({}), compaction({ coverage: 'whole' })], [true, undefined]);
  const phase = (coverage: { coverage?: 'partial' }) =>
    countHookUsage(open('hook-1'), {
      ...hookCompleted,
      ...{ hookId: 'hook-1', usage: call },
      ...coverage,
    }).usage.atLeast;
  assert.deepEqual([phase({}), phase({ coverage: 'partial' })], [undefined, true]);
});

test('a spending call that ends without its usage may have cost', () => {
  const ended = (status: 'ok' | 'lost', ran: 'no' | undefined, before = open('batch-1/1')) => {
    const ended = { status, text: '', effect: 'none' } as const;
    const outcome = ran === undefined ? ended : { ...ended, ran };
    return countToolUsage(before, {
      ...{ type: 'ToolCompleted', at: g.NOW, batchId: 'batch-1', callId: '1', outcome },
    });
  };
  assert.equal(ended('lost', undefined).usage.atLeast, true);
  assert.deepEqual(ended('lost', undefined).unaccounted, []);
  assert.equal(ended('lost', 'no').usage.atLeast, undefined);
  assert.equal(ended('ok', undefined).usage.atLeast, undefined);
  assert.equal(ended('lost', undefined, open()).usage.atLeast, undefined);
  const reserved = spending();
  assert.equal(ended('lost', undefined, reserved), reserved, 'its worst case stays set aside');
});

test('what is told is a lower bound while a call that is over has an open id', () => {
  // of a state only its name, its session and the id of its work are looked at
  const at = (name: State['name'], own: SessionData, work: object = {}): State =>
    ({ name, session: own, ...work }) as State;
  const asked = (own: SessionData) => changeSession(own, { reserved: [reservation('hook-1', 0)] });
  const running = { batchId: 'batch-1', calls: [{ status: 'running', judged: { callId: '1' } }] };
  const rows: readonly (readonly [boolean, State])[] = [
    [false, waiting(open())],
    [false, llm(open('req-1'))],
    [true, llm(open('req-1', 'req-9'))],
    [true, waiting(open('req-1'))],
    [false, at('Compacting', open('compaction-1'), { compactionId: 'compaction-1' })],
    [true, waiting(open('compaction-1'))],
    [false, at('ExecutingTools', open('batch-1/1'), running)],
    [true, at('ExecutingTools', open('batch-1/1', 'req-1'), running)],
    [true, at('ExecutingTools', open('batch-1/1'), { ...running, batchId: 'batch-2' })],
    [true, at('ExecutingTools', open('batch-1/1'), { ...running, calls: [] })],
    [true, waiting(open('batch-1/1'))],
    [false, waiting(open('hook-1'))],
    [true, waiting(asked(open('hook-1')))],
    [false, at('PostToolsHook', asked(open('hook-1')), { hookId: 'hook-1' })],
  ];
  for (const [index, [isBound, state]] of rows.entries())
    assert.equal(toldUsage(state).atLeast ?? false, isBound, `row ${index}`);
  const exact = waiting(open());
  assert.equal(toldUsage(exact), exact.session.usage);
});

test('what an ended process had sent may have cost', () => {
  const resumed = (sentId: string | null, running: readonly string[], ...ids: readonly string[]) =>
    closeOldProcess(open(...ids), { running, again: sentId }).session;
  assert.equal(resumed('req-1', [], 'req-1').usage.atLeast, true);
  assert.deepEqual(resumed('req-1', [], 'req-1').unaccounted, ['req-1'], 'it is sent again');
  assert.equal(resumed('req-1', []).usage.atLeast, undefined);
  assert.equal(resumed(null, [], 'req-9', 'hook-1').usage.atLeast, undefined);
  assert.equal(resumed(null, [], 'batch-1/1').usage.atLeast, true);
  assert.deepEqual(resumed(null, [], 'batch-1/1').unaccounted, []);
  assert.equal(resumed(null, ['batch-1/1'], 'batch-1/1').usage.atLeast, undefined);
  assert.deepEqual(resumed(null, ['batch-1/1'], 'batch-1/1').unaccounted, ['batch-1/1']);
  const { session: reserved } = closeOldProcess(spending(), { running: [], again: 'req-1' });
  assert.equal(reserved.usage.atLeast, undefined, 'the worst cases count');
});

test('a session that is opened again keeps what its last process may have cost', () => {
  const event = { type: 'Resumed', at: g.NOW, epoch: 9 } as const;
  const atLeast = (state: RestingState): boolean =>
    agent.step(state, event).state.session.usage.atLeast ?? false;
  const work = { compactionId: 'compaction-1', length: 0, mode: { kind: 'mid' } } as const;
  const hooks = (own: SessionData): In<'PostToolsHook'> => ({
    ...{ name: 'PostToolsHook', session: own, phase: 'AutoCommitting', hookId: 'hook-1' },
    ...{ mutated: [], tree: 'unknown' },
  });
  assert.ok(atLeast(hooks(open('hook-1'))), 'nobody knows whether it has asked a model');
  const limited = session({ usd: 1 }, { unaccounted: ['hook-1'] });
  assert.ok(!atLeast(hooks(limited)), 'it would have reserved');
  assert.ok(atLeast(llm(open('req-1'))));
  assert.ok(atLeast({ name: 'Compacting', session: open('compaction-1'), ...work }));
  assert.ok(!atLeast(waiting(open('req-1'))), 'told while its id is open');
  assert.ok(!atLeast(waiting(open())));
});

test('a phase of hooks that runs again in another process counts both times', () => {
  const reserved = [reservation('hook-1', 0.5)];
  const own = session({ usd: 2 }, { unaccounted: ['hook-1'], reserved });
  const before: In<'PostToolsHook'> = {
    ...{ name: 'PostToolsHook', session: own, phase: 'AutoCommitting', hookId: 'hook-1' },
    ...{ mutated: [], tree: 'unknown' },
  };
  const again = agent.step(before, { type: 'Resumed', at: g.NOW, epoch: 9 }).state;
  assert.deepEqual([again.session.usage.costUsd, again.session.unaccounted], [0.5, ['hook-1']]);
  const held = reserve(again, { ...request, usageId: 'hook-1', prices: PRICES }).state;
  const after = agent.step(held, { ...hookCompleted, hookId: 'hook-1', usage: call }).state;
  assert.deepEqual([after.session.usage.costUsd, after.session.reserved], [0.75, []]);
});

test('what was added to a sum is a lower bound if the sum has become one', () => {
  const bound = { ...totals, atLeast: true };
  assert.equal(usageSince(totals, bound).atLeast, true);
  assert.equal(usageSince(bound, bound).atLeast, undefined);
  assert.equal(usageSince(totals, totals).atLeast, undefined);
  assert.equal(addUsage(totals, { ...call, atLeast: true }).atLeast, true);
  assert.equal(addUsage(bound, call).atLeast, true);
});

test('a provider is told of that charges more than a request could cost, once', () => {
  const warned = (before: SessionData, costUsd: number | null, id = 'req-1') =>
    usageWarnings(before, countUsage(before, id, { ...call, costUsd }));
  const count = (costUsd: number | null, id?: string) => warned(spending(), costUsd, id).length;
  assert.deepEqual([count(0.51), count(0.5), count(null), count(9, 'req-2')], [1, 0, 0, 0]);
  const zero = { unaccounted: ['req-1'], reserved: [reservation('req-1', 0)] };
  assert.deepEqual(warned(session({ usd: 'unlimited' }, zero), 9), []);
  const [warning] = warned(session({ usd: 1 }, zero), 0.02);
  assert.match(JSON.stringify(warning), /charged \$0\.0200 for what counted as free/);
  assert.deepEqual(warned(changeSession(spending(), { unaccounted: [] }), 9), []);
  // whatever brings the usage
  const phase = { ...spending(), unaccounted: ['hook-1'], reserved: [reservation('hook-1', 0.5)] };
  const counted = countHookUsage(phase, {
    ...hookCompleted,
    ...{ hookId: 'hook-1', usage: { ...call, costUsd: 0.6 } },
  });
  assert.equal(usageWarnings(phase, counted).length, 1);
});

test('a call that was stopped or lost, and did not say what it cost, keeps what was set aside', () => {
  type Outcome = On<'ToolCompleted'>['outcome'];
  const keeps = (outcome: Omit<Outcome, 'text'>, callId = '1'): boolean => {
    const before = changeSession(spending(), { unaccounted: ['batch-1/1', 'batch-1/2'] });
    const event = { type: 'ToolCompleted', at: g.NOW, batchId: 'batch-1', callId } as const;
    const after = countToolUsage(before, { ...event, outcome: { text: '', ...outcome } });
    return after.unaccounted.length === 2;
  };
  assert.ok(keeps({ status: 'cancelled' }));
  assert.ok(keeps({ status: 'lost' }));
  assert.ok(!keeps({ status: 'cancelled', usage: call }));
  assert.ok(!keeps({ status: 'cancelled', ran: 'no' }));
  assert.ok(!keeps({ status: 'ok' }));
  assert.ok(!keeps({ status: 'failed' }));
  assert.ok(!keeps({ status: 'cancelled' }, '2'));
});

test('a whole reply or summary that comes late counts what it says, and no worst case', () => {
  const message = { role: 'assistant', model: 'm', cut: false, parts: [] } as const;
  const reply: Event = {
    type: 'LlmCompleted',
    at: g.NOW,
    requestId: 'req-1',
    message,
    calls: [],
    stopReason: 'end',
    usage: call,
  };
  const summary: Event = {
    type: 'CompactionCompleted',
    at: g.NOW,
    compactionId: 'req-1',
    summary: 'short',
    usage: call,
  };
  for (const event of [reply, summary]) {
    const { state } = countStale(waiting(spending()), event);
    assert.equal(state.session.usage.costUsd, 0.25, event.type);
  }
});

test('a report of usage that could not be counted is said, whether it counts or not', () => {
  const reported = (part: object) =>
    countReported(waiting(spending()), {
      type: 'UsageReported',
      at: g.NOW,
      usageId: 'req-1',
      usage: call,
      ...part,
    });
  const fault = 'the provider sent no figures';
  const warning = { type: 'DisplayWarning', kind: 'usage', text: fault };
  for (const usageId of ['req-1', 'req-2']) {
    const { actions, late } = reported({ fault, usageId });
    assert.deepEqual([actions, late], [[warning], undefined]);
  }
  assert.deepEqual(reported({}).actions, []);
  assert.equal(typeof reported({ usageId: 'req-2' }).late, 'string');
});

test('an event that comes too late is ignored, but not one that leads to an action', () => {
  const event = { type: 'UsageReported', at: g.NOW, usageId: 'req-1', usage: call } as const;
  const late = { kind: 'late', state: 'Idle', event: event.type, why: 'it is over' } as const;
  const diagnostics = [late];
  const warning = { type: 'DisplayWarning', kind: 'usage', text: 'no figures' } as const;
  assert.equal(isIgnored({ event, actions: [], path: [], diagnostics }), true);
  assert.equal(isIgnored({ event, actions: [warning], path: [], diagnostics }), false);
  assert.equal(isIgnored({ event, actions: [], path: [], diagnostics: [] }), false, 'control');
});

const PRICES = { input: 50, output: 500, cacheRead: 5, cacheWrite: 50 };
const request = {
  type: 'RequestMeasured',
  at: g.NOW,
  usageId: 'req-1',
  model: 'test/model',
  bytes: 9_000,
  images: 0,
  outputTokensMax: 1_000,
} as const;

test('where nobody knows the price, or no limit is set, a request is paid and takes nothing', () => {
  for (const [limits, prices] of [
    [{ usd: 0.0001 }, null],
    [{}, PRICES],
  ] as const) {
    const state = waiting(session(limits));
    assert.ok(isPaid(state, { ...request, prices }));
    const after = reserve(state, { ...request, prices }).state.session;
    assert.deepEqual(after.reserved, [
      { id: 'req-1', usd: 0, outputUsd: 0, outputTokens: 1_000, sent: null },
    ]);
    assert.deepEqual(after.measured, { model: '', bytes: 0, tokens: 0 });
  }
});

test('a request that could cost all that is left is not paid: sums of prices are not exact', () => {
  const paid = (usd: number): boolean =>
    isPaid(waiting(session({ usd })), { ...request, prices: PRICES });
  assert.deepEqual([paid(1), paid(1.000_001)], [false, true]);
});

test('a request counts by its bytes and pictures, and by what the model counted of the same bytes', () => {
  const tokens = (part: object, model = 'test/model'): number => {
    const state = waiting(session({ usd: 100 }, { measured: { ...measured, model } }));
    const event = { ...request, freshBytes: 0, prices: PRICES, ...part };
    const [held] = reserve(state, event).state.session.reserved ?? [];
    assert.ok(held !== undefined);
    return Math.round(((held.usd - held.outputUsd) / PRICES.input) * 1_000_000);
  };
  assert.equal(tokens({}), 3_000 + 1_000);
  assert.equal(tokens({ freshBytes: 500 }), 3_500 + 1_000);
  assert.equal(tokens({}, 'test/other'), 9_000 + 1_000);
  assert.equal(tokens({ images: 2 }), 3_000 + 1_000 + 12_000);
});

test('a reply may be as long as what is left pays for, and what costs nothing as long as any', () => {
  const offered = (left: number, output: number, outputTokensMax = 64_000) =>
    worstCaseWithin(left, {
      inputTokens: 10_000,
      prices: { ...PRICES, output },
      outputTokensMax,
    });
  assert.equal(offered(1, 50).outputTokens, 10_000);
  assert.equal(offered(9, 5).outputTokens, 32_000);
  const exact = offered(1, 500, 1_000);
  assert.deepEqual([exact.fits, exact.inputUsd, exact.outputUsd], [true, 0.5, 0.5]);
  assert.deepEqual([offered(0.1, 0).outputTokens, offered(0.1, 0).fits], [32_000, false]);
});

test('where no request is open, none is measured', () => {
  assert.equal(measuredId(waiting()), null);
});

test('what is left of a limit in dollars is set aside for a call that spends', () => {
  const before = session({ usd: 2 }, { usage: totals, measured });
  const held = { id: 'batch-1/1', usd: 1.5, outputUsd: 1.5, outputTokens: 0, sent: null };
  assert.deepEqual(reserveForCalls(before, ['batch-1/1']).reserved, [held]);
  assert.equal(reserveForCalls(before, []), before);
  const free = session({}, { measured });
  assert.equal(reserveForCalls(free, ['batch-1/1']), free);
});

test('money is set aside for a call also if the first limit is set while the model answers', () => {
  const walker = bring('C[u]');
  walker.send({ type: 'ApproveBudget', at: g.NOW, dimension: 'usd', limit: 2 });
  const { session: own } = walker.state();
  const [held] = reserveForCalls(own, ['batch-1/1']).reserved;
  assert.deepEqual([held?.id, held?.usd], ['batch-1/1', 2]);
});

test('a request that is not paid is not sent, costs nothing, and says what could be spent', () => {
  const walker = bring('C[u]', { autoRearm: 'off', limits: { usd: 1 } });
  const { session: own } = walker.state();
  const open = changeSession(own, { unaccounted: ['req-0', 'req-1'] });
  const stopped = (part: Partial<SessionData>) => {
    const state = { ...walker.state(), session: changeSession(open, part) } as In<'CallingLlm'>;
    return stopUnpaid(state, { ...request, prices: PRICES }).state;
  };
  const unpaid = stopped({});
  assert.deepEqual(unpaid.session.unaccounted, ['req-0']);
  assert.equal(
    unpaid.unpaid,
    'the next request could cost $1.00 (up to 10000 tokens in, 1000 out), ' +
      'and $0.0000 of $1.00 is used: raise the limit with /budget DOLLARS, or with --max-usd',
  );
  const held = stopped({ reserved: [reservation('req-1', 0.25)], measured, usage: totals });
  assert.deepEqual(held.session.unaccounted, ['req-0', 'req-1']);
  assert.match(
    held.unpaid ?? '',
    /and \$0\.7500 of \$1\.00 is used, \$0\.2500 of it reserved until its cost is known: raise/,
  );
});

test('a lost request whose worst case counts is closed, unless it is sent again', () => {
  const reserved = [reservation('req-1', 0.5), reservation('req-2', 0.5), reservation('req-3', 0)];
  const before = session({}, { unaccounted: ['req-1', 'req-2', 'req-3'], reserved, measured });
  const { session: settled } = closeOldProcess(before, { running: [], again: 'req-2' });
  assert.deepEqual(settled.unaccounted, ['req-2', 'req-3']);
  assert.equal(toldUsage(llm(settled, 1, 'req-2')).atLeast, true, 'of req-3 nothing is known');
});

test('a lost request that could cost nothing is settled without a word', () => {
  const reserved = [reservation('req-1', 0), reservation('req-2', 0.5)];
  const before = session({}, { reserved, measured });
  const { session: settled, actions } = closeOldProcess(before, {
    running: ['req-2'],
    again: null,
  });
  assert.deepEqual(settled.reserved, [reservation('req-2', 0.5)]);
  assert.deepEqual([settled.usage.costUsd, actions], [0, []]);
  assert.deepEqual(closeOldProcess(settled, { running: ['req-2'], again: null }).session, settled);
  const lost = closeOldProcess(before, { running: [], again: null });
  assert.equal(lost.session.usage.costUsd, 0.5);
  assert.match(
    JSON.stringify(lost.actions),
    /of the ended process have cost is unknown: \$0\.5000, the most/,
  );
});

test('the cost of a session is known if each of its calls had a price', () => {
  const cost = (unpriced: number) => knownCostUsd({ ...totals, unpriced });
  assert.deepEqual([cost(0), cost(1)], [0.5, null]);
});
