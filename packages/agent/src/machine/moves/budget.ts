/**
 * Limits, and the usage (tokens and dollars) that counts towards them.
 *
 * From top to bottom: the limits of session and turn; streaks of equal batches, which three limits
 * count; usage, which counts once per id, and whether its sum of dollars is exact; the reservation,
 * dollars set aside before a request whose price is known only afterwards; and the time limit with
 * its timers. A limit in dollars holds although usage comes late, because the worst case is
 * reserved first.
 *
 * Everything that may cost something has an id: a request to the model, a summary, a hook, and a
 * tool call that asks models itself (a spending call). The id stands in `unaccounted`, and is
 * called open, until its usage has been counted.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`, or `ignore(state, why)`. `rest` in the table is the move with which a
 * state begins to wait. `In<N>` is the state N, `On<T>` the event T.
 */

import type { Action } from '../action.js';
import type { EndedCall } from '../call.js';
import type { Event, ModelErrorKind, On } from '../event.js';
import {
  type Dimension,
  isReached,
  joinEstimated,
  type Limit,
  type Limits,
  type Prices,
  type Remaining,
  readLimit,
  remainingLimit,
  totalTokens,
  type Usage,
  type UsageCoverage,
  type UsageTotals,
} from '../settings.js';
import {
  changeSession,
  changeTurn,
  go,
  type In,
  ignore,
  type MoveTo,
  nextId,
  type Reservation,
  type SessionData,
  type SessionUpdate,
  type State,
  type Stay,
  type Timer,
  turnRuns,
  withSession,
} from '../state.js';
import { appendTexts } from './request.js';

// ---- Limits ----

/**
 * The dimensions in the order of their check (rules.md#limit-after-round), except time: only its
 * timer ends a turn's time, since times of events jump with the computer's clock.
 */
const checkedDimensions = [
  'usd',
  'tokens',
  'rounds',
  'truncation',
  'repeats',
  'errors',
  'sameResults',
] as const satisfies readonly Dimension[];
const dimensions: readonly Dimension[] = [...checkedDimensions, 'time'];
/** The limits after which the model may still be asked for its answer. */
const finishable: readonly Dimension[] = ['rounds', 'repeats', 'errors', 'sameResults'];

const getLimit = (limits: Limits, dimension: Dimension): Limit =>
  dimension === 'time' ? limits.timeMs : limits[dimension];

const getSpent = (session: SessionData, dimension: Dimension, at: number): number => {
  const { usage, turn } = session;
  switch (dimension) {
    case 'usd':
      return usage.costUsd;
    case 'tokens':
      return totalTokens(usage);
    case 'time':
      return elapsedMs(session, at);
    case 'rounds':
      return turn.rounds;
    case 'truncation':
      return turn.truncations;
    case 'repeats':
    case 'errors':
    case 'sameResults':
      return turn.streaks[dimension];
    default:
      return dimension satisfies never;
  }
};

/** The first of these counted limits that is reached, or null. Counts need no time: 0. */
const findReached = <D extends Dimension>(session: SessionData, counted: readonly D[]): D | null =>
  counted.find((dimension) =>
    isReached(getLimit(session.settings.limits, dimension), getSpent(session, dimension, 0)),
  ) ?? null;

/**
 * The first session limit that is reached (dollars, tokens), or null. A new turn does not reset
 * these.
 */
export const sessionLimit = (session: SessionData): 'usd' | 'tokens' | null =>
  findReached(session, ['usd', 'tokens']);

export const hasMoneyLimit = ({ settings }: SessionData): boolean =>
  settings.limits.usd !== 'unlimited';

export const hasSessionLimit = ({ settings: { limits } }: SessionData): boolean =>
  limits.usd !== 'unlimited' || limits.tokens !== 'unlimited';

/**
 * Whether a session limit is reached: the guard before every model call
 * (rules.md#limit-before-request).
 */
export const sessionIsSpent = ({ session }: State): boolean => sessionLimit(session) !== null;

export const stopBeforeCall = ({
  session,
}: In<'CallingLlm'> | In<'Compacting'>): MoveTo<'BudgetExceeded'> =>
  // The guard has checked that a limit is reached: the default only satisfies the type.
  go({ name: 'BudgetExceeded', session, dimension: sessionLimit(session) ?? 'usd' });

/** What is left of the session's limits. */
export const remainingIn = (
  session: SessionData,
): { readonly usd: Remaining; readonly tokens: Remaining } => {
  const { settings, usage } = session;
  const { limits } = settings;
  return {
    usd: remainingLimit(limits.usd, usage.costUsd + reservedUsd(session)),
    tokens: remainingLimit(limits.tokens, totalTokens(usage)),
  };
};

/** What a spending call may spend: its reservation, or without one all that remains. */
export const getAllowance = (
  session: SessionData,
  id: string,
): { readonly usd: Remaining; readonly tokens: Remaining } => {
  const remaining = remainingIn(session);
  const reservation = findReservation(session, id);
  if (reservation === undefined) return remaining;
  return { ...remaining, usd: { type: 'left', amount: reservation.usd } };
};

/** Formats a number. Only dollars have their unit. */
const formatNumber = (dimension: Dimension, value: number): string => {
  if (dimension === 'usd') return `$${value.toFixed(value < 1 ? 4 : 2)}`;
  return String(dimension === 'time' ? Math.round(value / 1_000) : value);
};

const units: Readonly<Record<Dimension, readonly [one: string, many: string]>> = {
  usd: ['', ''],
  tokens: [' token', ' tokens'],
  time: [' s', ' s'],
  rounds: [' round', ' rounds'],
  truncation: [' cut reply', ' cut replies'],
  repeats: [' batch with the same calls', ' batches with the same calls'],
  errors: [' batch without success', ' batches without success'],
  sameResults: [' batch with the same results', ' batches with the same results'],
};

const formatLimit = (dimension: Dimension, value: Limit): string => {
  if (value === 'unlimited') return 'no limit';
  const [one, many] = units[dimension];
  return `${formatNumber(dimension, value)}${value === 1 ? one : many}`;
};

/** Text for notices: "$1.10 of $1.00 used", "100 of 100 rounds used". */
export const spentText = (session: SessionData, dimension: Dimension, at: number): string => {
  const spent = formatNumber(dimension, getSpent(session, dimension, at));
  return `${spent} of ${formatLimit(dimension, getLimit(session.settings.limits, dimension))} used`;
};

export const setLimit = (session: SessionData, dimension: Dimension, limit: Limit): SessionData => {
  const key = dimension === 'time' ? 'timeMs' : dimension;
  const limits = { ...session.settings.limits, [key]: limit };
  const warned = session.turn.warned.filter((other) => other !== dimension);
  const changed = changeSession(session, { settings: { ...session.settings, limits } });
  // A slice is what autoRearm adds at a time: the first limit that is set.
  const isFirstLimit =
    // Stryker disable next-line ConditionalExpression: only dollars and tokens have slices
    (dimension === 'usd' || dimension === 'tokens') && session.slices[dimension] === 'unlimited';
  const slices = isFirstLimit ? { ...session.slices, [dimension]: limit } : session.slices;
  return changeTurn(changeSession(changed, { slices }), { warned });
};

/**
 * autoRearm: raises a reached dollar or token limit by its slice, with a notice. With a limit and a
 * slice of $1 and $1.20 spent, the new limit is $2.20.
 */
export const rearm = (session: SessionData, dimension: Dimension): SessionUpdate => {
  if (session.settings.autoRearm === 'off' || (dimension !== 'usd' && dimension !== 'tokens'))
    return { session, actions: [] };
  const slice = session.slices[dimension];
  if (slice === 'unlimited') return { session, actions: [] };
  // The limit may be above `spent`, if the next request did not fit below it.
  const before = getLimit(session.settings.limits, dimension);
  const spent = getSpent(session, dimension, 0);
  const limit = (before === 'unlimited' ? spent : Math.max(before, spent)) + slice;
  const text = `the limit was raised to ${formatLimit(dimension, limit)} by itself (autoRearm)`;
  return {
    session: setLimit(session, dimension, limit),
    actions: [{ type: 'DisplayNotice', kind: 'budget', text }],
  };
};

/** Entry of CheckingBudget: counts one round of the turn. */
export const countRound = (state: In<'CheckingBudget'>): MoveTo<'CheckingBudget'> => {
  const { session } = state;
  return go({ ...state, session: changeTurn(session, { rounds: session.turn.rounds + 1 }) });
};

export const limitReached = (state: In<'CheckingBudget'>): boolean =>
  findReached(state.session, checkedDimensions) !== null;

/** Whether the model may be asked for its answer, in one more request without tools. */
export const mayFinish = (state: In<'CheckingBudget'>): boolean => {
  const { settings, turn } = state.session;
  const dimension = findReached(state.session, checkedDimensions);
  return (
    settings.atLimit === 'finish' &&
    turn.finishing === 'no' &&
    finishable.some((one) => one === dimension)
  );
};

export const askToFinish = (
  state: In<'CheckingBudget'>,
  event: Event,
): MoveTo<'GatheringAdditionalMessages'> => {
  const { session } = state;
  const dimension = findReached(session, checkedDimensions) ?? 'rounds';
  const spent = spentText(session, dimension, event.at);
  const noted = appendTexts(session, 'note', [
    `[${spent}: no tool runs any more. Give your final answer now.]`,
  ]);
  const finishing = changeTurn(noted, { finishing: dimension });
  return go(
    { name: 'GatheringAdditionalMessages', session: finishing },
    { type: 'DisplayNotice', kind: 'budget', text: `${spent}: the model is asked for its answer` },
  );
};

export const exceedBudget = (state: In<'CheckingBudget'>): MoveTo<'BudgetExceeded'> => {
  const dimension = findReached(state.session, checkedDimensions) ?? 'usd';
  return go({ name: 'BudgetExceeded', session: state.session, dimension });
};

/** The turn goes on, with one warning per limit above the warn ratio (rules.md#limit-warning). */
export const warnOfBudget = (
  state: In<'CheckingBudget'>,
  event: Event,
): MoveTo<'GatheringAdditionalMessages'> => {
  const { session } = state;
  const { limits, budgetWarnRatio } = session.settings;
  const aboveWarnRatio = dimensions.filter((dimension) => {
    const limit = getLimit(limits, dimension);
    if (limit === 'unlimited' || session.turn.warned.includes(dimension)) return false;
    return getSpent(session, dimension, event.at) >= limit * budgetWarnRatio;
  });
  const warnings = aboveWarnRatio.map((dimension): Action => {
    return {
      type: 'DisplayWarning',
      kind: 'budget',
      text: spentText(session, dimension, event.at),
    };
  });
  // A limit that was raised meanwhile lets tools run again.
  const warned = changeTurn(session, {
    finishing: 'no',
    warned: [...session.turn.warned, ...aboveWarnRatio],
  });
  return go({ name: 'GatheringAdditionalMessages', session: warned }, ...warnings);
};

/** BudgetExceeded -> WaitingForUserInput; the queue stays held (rules.md#queue-after-stop). */
export const stopForBudget = (
  state: In<'BudgetExceeded'>,
  event: Event,
): MoveTo<'WaitingForUserInput'> => {
  const { dimension, unpaid } = state;
  const text = `stopped: ${unpaid ?? spentText(state.session, dimension, event.at)}`;
  const { session, actions } = rearm(state.session, dimension);
  const reason = { kind: 'budget', dimension } as const;
  return go(
    { name: 'WaitingForUserInput', session, reason, next: 'rest' },
    { type: 'DisplayNotice', kind: 'budget', text },
    ...actions,
  );
};

/** Whether a value is a limit: a number from 0 (0 lifts the limit) or `unlimited`. */
export const isLimit = (limit: Limit): boolean =>
  limit === 'unlimited' || (limit >= 0 && Number.isFinite(limit));

/** ApproveBudget: raises, lowers or lifts the limit; the turn goes on as it was. */
export const raiseLimit = <S extends State>(state: S, event: On<'ApproveBudget'>): Stay<S> => {
  if (!isLimit(event.limit)) return ignore(state, 'a limit is a number from 0 up');
  const limit = readLimit(event.limit);
  const raised = setLimit(state.session, event.dimension, limit);
  const { session, actions } = resetClock(state, state.session, raised, event.at);
  const text =
    limit === 'unlimited'
      ? 'the limit is lifted'
      : `the limit is now ${formatLimit(event.dimension, limit)}`;
  return go(withSession(state, session), ...actions, {
    type: 'DisplayNotice',
    kind: 'budget',
    text,
  });
};

// ---- Streaks: equal batches in a row, for the limits repeats, errors and sameResults ----

/** FNV-1a over UTF-16 units, 32 bits: a fingerprint, not a cryptographic hash. */
const fingerprint = (text: string): string => {
  let hash = 0x81_1c_9d_c5;
  // Stryker disable next-line EqualityOperator: any number may stand for a text
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01_00_01_93);
  }
  return `${text.length}.${(hash >>> 0).toString(16)}`;
};

const hashCalls = (calls: readonly EndedCall[]): string =>
  fingerprint(
    JSON.stringify(calls.map(({ judged }) => [judged.tool, judged.rawInput ?? judged.input])),
  );

const hashResults = (calls: readonly EndedCall[]): string =>
  fingerprint(JSON.stringify(calls.map(({ outcome }) => outcome.text)));

/** Counts one batch, only if one of the limits is set. */
export const countStreaks = (session: SessionData, calls: readonly EndedCall[]): SessionData => {
  const { repeats, errors, sameResults } = session.settings.limits;
  if ([repeats, errors, sameResults].every((limit) => limit === 'unlimited')) return session;
  const before = session.turn.streaks;
  const [asked, answered] = [hashCalls(calls), hashResults(calls)];
  const streaks = {
    calls: asked,
    results: answered,
    repeats: asked === before.calls ? before.repeats + 1 : 1,
    errors: calls.every(({ outcome }) => outcome.failed) ? before.errors + 1 : 0,
    sameResults: answered === before.results ? before.sameResults + 1 : 1,
  };
  return changeTurn(session, { streaks });
};

/** The counts at the start of a turn. */
export const noStreaks: SessionData['turn']['streaks'] = {
  calls: '',
  results: '',
  repeats: 0,
  errors: 0,
  sameResults: 0,
};

// ---- Usage: it counts once per id (rules.md#usage-counts-once) ----

/** Totals with the usage of one more call. */
export const addUsage = (total: UsageTotals, usage: Usage): UsageTotals => ({
  inputTokens: total.inputTokens + usage.inputTokens,
  outputTokens: total.outputTokens + usage.outputTokens,
  cacheReadTokens: total.cacheReadTokens + usage.cacheReadTokens,
  cacheWriteTokens: total.cacheWriteTokens + usage.cacheWriteTokens,
  costUsd: total.costUsd + (usage.costUsd ?? 0),
  unpriced: total.unpriced + (usage.unpriced ?? 0) + (usage.costUsd === null ? 1 : 0),
  ...((total.estimated ?? usage.estimated) ? joinEstimated(total, usage) : {}),
  ...(total.atLeast || usage.atLeast ? { atLeast: true } : {}),
});

/**
 * The usage as it counts: an unknown part counts at its reserved worst case. A request with $0.10
 * reserved for its input and $0.40 for its output breaks off, and reports $0.12: it counts $0.50.
 */
export const settledUsage = (
  session: SessionData,
  id: string,
  usage: Usage,
  coverage: UsageCoverage,
): Usage => {
  const reservation = findReservation(session, id);
  if (reservation === undefined || reservation.usd === 0) return usage;
  if (usage.costUsd === null) return { ...usage, costUsd: reservation.usd };
  if (coverage === 'whole') return usage;
  const worstUsd = Math.min(reservation.usd, usage.costUsd + reservation.outputUsd);
  return { ...usage, costUsd: Math.max(usage.costUsd, worstUsd) };
};

/** Under a limit in dollars the worst case of a call counts until its cost is known. */
const hasWorstCase = (session: SessionData, id: string): boolean =>
  (findReservation(session, id)?.usd ?? 0) > 0;

/** Whether a call that broke off, with this part of its usage, may have cost more than it counts. */
const mayCostMore = (session: SessionData, id: string, usage: Usage): boolean => {
  const isFree = usage.costUsd === 0 && totalTokens(usage) > 0; // of a free model
  return usage.costUsd !== null && !isFree && !hasWorstCase(session, id);
};

/** Counts usage once per id. Without usage the id stays open, since usage may come late. */
export const countUsage = (
  session: SessionData,
  id: string,
  usage: Usage | null,
  coverage: UsageCoverage = 'whole',
): SessionData => {
  if (usage === null || !session.unaccounted.includes(id)) return session;
  const counted = settledUsage(session, id, usage, coverage);
  const sent = findReservation(session, id)?.sent ?? null;
  const isCounted = usage.costUsd !== null && totalTokens(usage) > 0;
  const isKnown = coverage === 'whole' && isCounted && sent !== null;
  const atLeast = coverage === 'partial' && mayCostMore(session, id, usage);
  return changeSession(session, {
    unaccounted: session.unaccounted.filter((open) => open !== id),
    reserved: withoutReservations(session, [id]),
    usage: addUsage(session.usage, atLeast ? { ...counted, atLeast } : counted),
    ...(isKnown ? { measured: { ...sent, tokens: totalTokens(usage) } } : {}),
  });
};

/** An answer with one of these errors, in place of a reply, costs nothing. */
const refusals: ReadonlySet<ModelErrorKind> = new Set([
  'auth',
  'badRequest',
  'rateLimited',
  'overloaded',
  'quotaExhausted',
  'contextOverflow',
]);

/** Whether a failed request without usage was refused by its provider, or never got there. */
export const costsNothing = ({
  error,
  firstPieceAt,
}: Pick<On<'LlmFailed'>, 'error' | 'firstPieceAt'>): boolean =>
  firstPieceAt === undefined && (error.sent === 'no' || refusals.has(error.kind));

/**
 * Counts a failed request. If its provider refused or never received it, its id is closed. Any
 * other failed request without usage stays open and reserved, since it may have cost that much.
 */
export const countFailure = (session: SessionData, failure: On<'LlmFailed'>): SessionData => {
  const { requestId, usage } = failure;
  if (usage !== null) return countUsage(session, requestId, usage, failure.coverage ?? 'partial');
  const isFree = failure.coverage === 'whole' || costsNothing(failure);
  return isFree ? closeId(session, requestId, null) : session;
};

/** Counts a failed compaction. If its cost is unknown, its id stays open. */
export const countFailedCompaction = (
  session: SessionData,
  { compactionId, usage, coverage }: On<'CompactionFailed'>,
): SessionData =>
  coverage === 'whole'
    ? closeId(session, compactionId, usage)
    : countUsage(session, compactionId, usage, 'partial');

/**
 * Counts the final report of an id. Without usage the id is closed, since nothing can come late.
 */
const closeId = (
  session: SessionData,
  id: string,
  usage: Usage | null,
  coverage?: UsageCoverage,
): SessionData => {
  if (usage !== null) return countUsage(session, id, usage, coverage);
  if (!session.unaccounted.includes(id)) return session;
  return changeSession(session, {
    unaccounted: session.unaccounted.filter((open) => open !== id),
    reserved: withoutReservations(session, [id]),
  });
};

/** Warns of a provider that charged more than the worst case of the request. */
export const surplusWarnings = (
  session: SessionData,
  id: string,
  usage: Usage | null,
): readonly Action[] => {
  const reservation = findReservation(session, id);
  const usd = usage?.costUsd ?? 0;
  if (reservation === undefined || usd <= reservation.usd) return [];
  // without a limit nothing was set aside, so nothing was foreseen
  if (reservation.usd === 0 && session.settings.limits.usd === 'unlimited') return [];
  if (!session.unaccounted.includes(id)) return [];
  const most = formatNumber('usd', reservation.usd);
  const text =
    `the provider charged ${formatNumber('usd', usd)} for a request that could cost ${most} at ` +
    'most: its reply or its prices are larger than it was told';
  return [{ type: 'DisplayWarning', kind: 'usage', text }];
};

/** Counts a completed hook phase. A failed phase leaves its id open. */
export const countHookUsage = (
  session: SessionData,
  { hookId, usage, coverage }: On<'HookCompleted'>,
): SessionData => closeId(session, hookId, usage, coverage);

/** The usage id of a spending call, open from its start to its outcome. */
export const spendingId = (batchId: string, callId: string): string => `${batchId}/${callId}`;
export const isSpendingId = (id: string): boolean => id.includes('/');
const isHookId = (id: string): boolean => id.startsWith('hook-');

/**
 * Counts the outcome of a spending call. A stopped or lost call that reports no usage keeps its
 * reservation; without one nobody knows what it cost.
 */
export const countToolUsage = (
  session: SessionData,
  { batchId, callId, outcome }: On<'ToolCompleted'>,
): SessionData => {
  const id = spendingId(batchId, callId);
  const { status, ran, usage = null } = outcome;
  const mayCost = usage === null && ran !== 'no' && status !== 'ok' && status !== 'failed';
  if (!mayCost || !session.unaccounted.includes(id)) return closeId(session, id, usage);
  return findReservation(session, id) === undefined
    ? asLowerBound(closeId(session, id, null))
    : session;
};

/** The session whose sum of dollars is a lower bound from now on. */
const asLowerBound = (session: SessionData): SessionData =>
  changeSession(session, { usage: { ...session.usage, atLeast: true } });

/**
 * The sums of a session as they are told: `atLeast` also while the usage of a call that is over has
 * not come. A hook whose id is open has asked no model, if nothing is reserved for it.
 */
export const toldUsage = (state: State): UsageTotals => {
  const { session } = state;
  const current = measuredId(state);
  const runsCalls = state.name === 'ExecutingTools';
  const isMissing = (id: string): boolean =>
    id !== current &&
    !(runsCalls && isSpendingId(id)) &&
    !(isHookId(id) && findReservation(session, id) === undefined);
  const { usage, unaccounted } = session;
  return unaccounted.some(isMissing) ? { ...usage, atLeast: true } : usage;
};

/**
 * The session in another process. The request `sentId` of the old one may have cost something,
 * although it is sent again under its id; so may its spending calls. Their ids are closed unless
 * they run again: no report can come any more.
 */
export const countAbandoned = (
  session: SessionData,
  sentId: string | null,
  running: readonly string[],
): SessionData => {
  const { unaccounted } = session;
  const isAbandoned = (id: string): boolean => isSpendingId(id) && !running.includes(id);
  const mayHaveCost = unaccounted.some(
    (id) => (id === sentId || isAbandoned(id)) && !hasWorstCase(session, id),
  );
  const open = unaccounted.filter((id) => !isAbandoned(id));
  const closed = changeSession(session, { unaccounted: open });
  return mayHaveCost ? asLowerBound(closed) : closed;
};

/** Counts the usage in an event, if it has any. */
const countEvent = (session: SessionData, event: Event): SessionData => {
  switch (event.type) {
    case 'LlmCompleted':
      return countUsage(session, event.requestId, event.usage);
    case 'LlmFailed':
      return countFailure(session, event);
    case 'CompactionCompleted':
      return countUsage(session, event.compactionId, event.usage);
    case 'CompactionFailed':
      return countFailedCompaction(session, event);
    case 'HookCompleted':
      return countHookUsage(session, event);
    case 'ToolCompleted':
      return countToolUsage(session, event);
    case 'UsageReported':
      return countUsage(session, event.usageId, event.usage, event.coverage ?? 'partial');
    default:
      return session;
  }
};

/** A stale event changes nothing but usage, and is told as late (rules.md#stale-events). */
export const countStale = <S extends State>(state: S, event: Event): Stay<S> => {
  const session = countEvent(state.session, event);
  const why = `stale: ${event.type} answers nothing that is open`;
  return session === state.session
    ? ignore(state, why)
    : { ...go(withSession(state, session)), late: why };
};

/** UsageReported: usage that came late, or a report that could not be counted. */
export const countReported = <S extends State>(state: S, event: On<'UsageReported'>): Stay<S> => {
  const session = countEvent(state.session, event);
  const { fault } = event;
  const warnings = [
    ...(fault === undefined
      ? []
      : [{ type: 'DisplayWarning', kind: 'usage', text: fault } as const]),
    ...surplusWarnings(state.session, event.usageId, event.usage),
  ];
  if (session !== state.session) return go(withSession(state, session), ...warnings);
  if (fault !== undefined) return go(state, ...warnings);
  return ignore(state, 'this usage was counted before, or belongs to nothing we asked for');
};

/** Says once of each model that its server reports no usage, when the first estimate counts. */
export const estimateWarnings = (before: SessionData, after: SessionData): readonly Action[] => {
  const { estimated: known = [] } = before.usage;
  const { estimated = known } = after.usage;
  return estimated
    .filter((model) => !known.includes(model))
    .map((model): Action => ({ type: 'DisplayWarning', kind: 'usage', text: silentText(model) }));
};

export const silentText = (model: string): string =>
  `the server of ${model} reports no usage that can be counted: tokens are estimated from the ` +
  'length of its requests and replies, and under a limit in dollars each request counts as the ' +
  'most that it can cost';

// ---- Money is set aside before a request is sent (rules.md#reserve-before-request) ----

/*
 * The worst case: each byte of its text is a token, each image IMAGE_TOKENS_MAX, all of it is
 * written to the cache, and the reply is as long as it may be. What the model counted of the
 * same conversation replaces its bytes.
 *
 * "Measured" has two meanings: RequestMeasured tells the size of the next request, before it is
 * sent; `session.measured` is the last request whose tokens the model has counted.
 *
 * `changeSession` adds `measured` as soon as something is reserved, so a session without it has
 * never set money aside: those of earlier versions do not.
 */

/** More than any provider counts for a picture. */
export const IMAGE_TOKENS_MAX = 6_000;
/** What a provider adds to a request by itself, such as its instructions about tools. */
export const HIDDEN_TOKENS_MAX = 1_000;
/** No tokenizer makes fewer tokens of a text: a smaller count is not believed. */
const BYTES_PER_TOKEN_MAX = 8;
/** The largest output under a limit in dollars: what a lost request costs stays bearable. */
export const OUTPUT_TOKENS_MAX = 32_000;
/** A reply that may not be that long is not worth its request. */
export const OUTPUT_TOKENS_MIN = 1_024;
const MILLION = 1_000_000;
/** Sums of prices are not exact: this share of a limit stays free. */
const ROUNDING = 1e-9;

/** The dollars that are set aside, except for these ids. */
export const reservedUsd = (session: SessionData, except: readonly string[] = []): number =>
  withoutReservations(session, except).reduce((sum, { usd }) => sum + usd, 0);

export const findReservation = (
  { reserved = [] }: SessionData,
  id: string,
): Reservation | undefined => reserved.find((one) => one.id === id);

export const withoutReservations = (
  { reserved = [] }: SessionData,
  ids: readonly string[],
): readonly Reservation[] => reserved.filter(({ id }) => !ids.includes(id));

/** A request that the runtime is about to send, with its size. */
type NextRequest = On<'RequestMeasured'>;

/**
 * The most tokens that the next request can have. After a counted request only further bytes count
 * one token each: `freshBytes` of a request for a summary, the growth of any other request. If
 * 20,000 bytes were 5,000 tokens, a request of 21,000 has 7,000 at most: 5,000, one for each
 * further byte, and HIDDEN_TOKENS_MAX. The 5,000 include the reply, whose bytes are further ones,
 * too: an upper bound.
 */
const inputTokensMax = (
  { name, session }: State,
  { model, bytes, images, freshBytes }: NextRequest,
): number => {
  const { measured: counted } = session;
  // Negative: the next request does not continue the counted one, whose tokens say nothing of it.
  const more = freshBytes ?? (name === 'CallingLlm' ? bytes - (counted?.bytes ?? 0) : -1);
  const tokens =
    counted !== undefined && counted.model === model && more >= 0
      ? Math.max(counted.tokens, counted.bytes / BYTES_PER_TOKEN_MAX) + more
      : bytes;
  return Math.ceil(Math.min(bytes, tokens)) + images * IMAGE_TOKENS_MAX + HIDDEN_TOKENS_MAX;
};

/** What a request may cost at most, and how long its reply may be. */
type WorstCase = {
  readonly inputTokens: number;
  readonly inputUsd: number;
  readonly outputTokens: number;
  readonly outputUsd: number;
  /** Whether what is left pays for the shortest reply that is worth the request. */
  readonly fits: boolean;
};

/** The worst case of the next request, with the longest reply that the limit allows. */
const worstCase = (state: State, event: NextRequest): WorstCase => {
  const { session } = state;
  const limit = session.settings.limits.usd;
  const { prices, outputTokensMax } = event;
  const inputTokens = inputTokensMax(state, event);
  if (limit === 'unlimited' || prices === null) {
    const outputTokens = outputTokensMax;
    return { inputTokens, inputUsd: 0, outputTokens, outputUsd: 0, fits: true };
  }
  const usd = limit * (1 - ROUNDING) - session.usage.costUsd - reservedUsd(session);
  return worstCaseWithin(usd, { inputTokens, prices, outputTokensMax });
};

/** The highest price of the input, in dollars per million tokens. */
export const highestInputPrice = ({ input, cacheWrite, cacheRead }: Prices): number =>
  Math.max(input, cacheWrite, cacheRead);

type PricedRequest = {
  readonly inputTokens: number;
  readonly prices: Prices;
  readonly outputTokensMax: number;
};

/**
 * The worst case of a request that may cost `usd` dollars, with the longest reply. For $1, 100,000
 * tokens in at $3 a million and output at $15, the input costs $0.30 and $0.70 pay for 46,666
 * tokens of output: the reply may have 32,000 (OUTPUT_TOKENS_MAX).
 */
export const worstCaseWithin = (
  usd: number,
  { inputTokens, prices, outputTokensMax }: PricedRequest,
): WorstCase => {
  const inputUsd = (inputTokens * highestInputPrice(prices)) / MILLION;
  const free = usd - inputUsd;
  const most = Math.min(outputTokensMax, OUTPUT_TOKENS_MAX);
  const least = Math.min(outputTokensMax, OUTPUT_TOKENS_MIN);
  const paid = prices.output === 0 ? most : Math.floor((free * MILLION) / prices.output);
  const outputTokens = Math.max(least, Math.min(most, paid));
  const outputUsd = (outputTokens * prices.output) / MILLION;
  return { inputTokens, inputUsd, outputTokens, outputUsd, fits: free - outputUsd >= 0 };
};

/** Whether what is left pays for the request, or there is no limit any more. */
export const isPaid = (state: State, event: NextRequest): boolean => worstCase(state, event).fits;

/** The usage id of the state's work, if its requests are measured; else null. */
export const measuredId = (state: State): string | null => {
  switch (state.name) {
    case 'CallingLlm':
      return state.requestId;
    case 'Compacting':
      return state.compactionId;
    case 'PostToolsHook':
      return state.hookId;
    default:
      return null;
  }
};

export const isStaleMeasure = (state: State, event: NextRequest): boolean =>
  event.usageId !== measuredId(state);
export const ignoreMeasure = <S extends State>(state: S): Stay<S> =>
  ignore(state, 'stale: nobody waits for this request');

/** Sets the worst case aside. The runtime sends the request when it sees the reservation. */
export const reserve = <S extends State>(state: S, event: NextRequest): Stay<S> => {
  const { session } = state;
  const { usageId: id, model, bytes } = event;
  const { inputUsd, outputUsd, outputTokens } = worstCase(state, event);
  // Several requests of one summary or hook share an id: their worst cases add up.
  const before = findReservation(session, id);
  const reservation = {
    id,
    usd: (before?.usd ?? 0) + inputUsd + outputUsd,
    outputUsd: (before?.outputUsd ?? 0) + outputUsd,
    outputTokens,
    sent: state.name === 'CallingLlm' ? { model, bytes } : null,
  };
  const reserved = [...withoutReservations(session, [id]), reservation];
  return go(withSession(state, changeSession(session, { reserved })));
};

/** A side request (a text beside the conversation) that can't be paid is not sent. */
export const refuseSideRequest = <S extends State>(state: S): Stay<S> =>
  ignore(state, 'what is left of the limit does not pay for this request');

/** The request is not sent. Its id is closed, unless an earlier request was sent under it. */
export const stopUnpaid = (
  state: In<'CallingLlm'> | In<'Compacting'>,
  event: NextRequest,
): MoveTo<'BudgetExceeded'> => {
  const { session } = state;
  const { usageId } = event;
  const { inputTokens, inputUsd, outputTokens, outputUsd } = worstCase(state, event);
  const unaccounted =
    findReservation(session, usageId) === undefined
      ? session.unaccounted.filter((id) => id !== usageId)
      : session.unaccounted;
  const costs = formatNumber('usd', inputUsd + outputUsd);
  const unpaid =
    `the next request could cost ${costs} (up to ${inputTokens} tokens in, ${outputTokens} out), ` +
    `and ${moneyText(session)}: raise the limit with /budget DOLLARS, or with --max-usd`;
  const abort: Action =
    state.name === 'CallingLlm'
      ? { type: 'AbortLlmRequest', requestId: usageId }
      : { type: 'AbortCompaction', compactionId: usageId };
  const changed = changeSession(session, { unaccounted });
  return go({ name: 'BudgetExceeded', session: changed, dimension: 'usd', unpaid }, abort);
};

/** "$0.80 of $1.00 is used, $0.30 of it reserved until its cost is known". */
const moneyText = (session: SessionData): string => {
  const reserved = reservedUsd(session);
  const used = formatNumber('usd', session.usage.costUsd + reserved);
  const ofLimit = `${used} of ${formatLimit('usd', session.settings.limits.usd)} is used`;
  return reserved === 0
    ? ofLimit
    : `${ofLimit}, ${formatNumber('usd', reserved)} of it reserved until its cost is known`;
};

/** Reserves the rest of the limit for a spending call, until its outcome reports its usage. */
export const reserveForCalls = (session: SessionData, ids: readonly string[]): SessionData => {
  const remaining = remainingIn(session).usd;
  const [id] = ids; // at most one: under a limit, calls that spend run one at a time
  const setsMoneyAside = session.measured !== undefined; // changeSession adds it
  if (!setsMoneyAside || remaining.type === 'unlimited' || id === undefined) return session;
  const { reserved = [] } = session;
  const usd = remaining.amount;
  const reservation = { id, usd, outputUsd: usd, outputTokens: 0, sent: null };
  return changeSession(session, { reserved: [...reserved, reservation] });
};

/**
 * Counts reservations of an ended process as spent, since no usage of its requests can come any
 * more, and closes their ids, but that of the request `sentId`, which is sent again. The work in
 * `current` is excepted: it runs, and will report its usage.
 */
export const settleLost = (
  session: SessionData,
  current: readonly string[],
  sentId: string | null = null,
): SessionUpdate => {
  const { reserved = [] } = session;
  const lost = reserved.filter(({ id }) => !current.includes(id));
  const usd = lost.reduce((sum, one) => sum + one.usd, 0);
  if (lost.length === 0) return { session, actions: [] };
  const isSettled = (id: string): boolean =>
    id !== sentId && lost.some((one) => one.id === id && one.usd > 0);
  const settled = changeSession(session, {
    unaccounted: session.unaccounted.filter((id) => !isSettled(id)),
    reserved: reserved.filter(({ id }) => current.includes(id)),
    usage: { ...session.usage, costUsd: session.usage.costUsd + usd },
  });
  if (usd === 0) return { session: settled, actions: [] };
  const text =
    `the cost of ${lost.length === 1 ? 'a request is' : `${lost.length} requests is`} unknown: ` +
    `${formatNumber('usd', usd)}, the most that it can be, counts as spent`;
  return { session: settled, actions: [{ type: 'DisplayNotice', kind: 'budget', text }] };
};

// ---- The time limit of a turn: a timer as long as the turn (rules.md#time-limit) ----

const cancelClock = (session: SessionData): readonly Action[] =>
  session.turn.timeLimit === null
    ? []
    : [{ type: 'CancelTimer', timerId: session.turn.timeLimit.timerId }];

/**
 * Schedules the end of the turn's time, of which `passed` ms are over. Without a limit the turn has
 * no timer.
 */
export const startClock = (before: SessionData, at: number, passed = 0): SessionUpdate => {
  const { timeMs } = before.settings.limits;
  if (timeMs === 'unlimited')
    return { session: changeTurn(before, { timeLimit: null }), actions: [] };
  const [timerId, session] = nextId(before, 'timer');
  const timeLimit = timerFrom(timerId, at, timeMs - clamp(passed, timeMs));
  return { session: changeTurn(session, { timeLimit }), actions: [schedule(timeLimit)] };
};

/** Milliseconds that the turn has run, by its timer, or by the clock if there is no timer. */
const elapsedMs = ({ turn, settings }: SessionData, at: number): number => {
  const { timeMs } = settings.limits;
  // Stryker disable next-line ConditionalExpression,LogicalOperator: a timer has a limit
  return turn.timeLimit === null || timeMs === 'unlimited'
    ? Math.max(0, at - turn.startedAt)
    : timeMs - remainingTimer(turn.timeLimit, at).delayMs;
};

/**
 * Replaces the time limit of a running turn after the limits changed. The turn has run until
 * `ranUntil`: now, or if the session is being resumed, the time when it was stopped, from which
 * Resumed continues.
 */
export const resetClock = (
  state: State,
  before: SessionData,
  after: SessionData,
  ranUntil: number,
): SessionUpdate => {
  const isUnchanged = before.settings.limits.timeMs === after.settings.limits.timeMs;
  if (isUnchanged || !turnRuns(state)) return { session: after, actions: [] };
  const started = startClock(after, ranUntil, elapsedMs(before, ranUntil));
  return { session: started.session, actions: [...cancelClock(after), ...started.actions] };
};

/**
 * Continues the time of the turn in a resumed session: the time limit with the rest of its delay.
 * The time while the session was stopped does not count (rules.md#time-while-stopped).
 */
export const resumeClock = (
  before: SessionData,
  { at, stoppedAt }: On<'Resumed'>,
): SessionUpdate => {
  const { startedAt, timeLimit } = before.turn;
  const session =
    stoppedAt === undefined
      ? before
      : changeTurn(before, { startedAt: startedAt + at - stoppedAt });
  if (timeLimit === null) return { session, actions: [] };
  const rest = remainingTimer(timeLimit, at, stoppedAt);
  return { session: changeTurn(session, { timeLimit: rest }), actions: [schedule(rest)] };
};

/** Entry of WaitingForUserInput and ShuttingDown: the time limit ends with the turn. */
export const stopClock = <S extends In<'WaitingForUserInput'> | In<'ShuttingDown'>>(
  state: S,
): Stay<S> => {
  const session = changeTurn(state.session, { timeLimit: null });
  return go({ ...state, session }, ...cancelClock(state.session));
};

/*
 * The computer's clock may jump, so a timer counts only its delay. Times of events estimate how
 * much of the delay is over, clamped to the delay.
 */

const clamp = (value: number, most: number): number => Math.min(Math.max(value, 0), most);

/** The action that schedules a timer. */
export const schedule = ({ timerId, dueAt, delayMs }: Timer): Action => ({
  type: 'ScheduleTimer',
  timerId,
  dueAt,
  delayMs,
});

export const timerFrom = (timerId: string, at: number, delayMs: number): Timer => ({
  timerId,
  dueAt: at + delayMs,
  delayMs,
});

/** The rest of a timer. After a resume, the time since `stoppedAt` does not count. */
export const remainingTimer = (
  { timerId, dueAt, delayMs }: Timer,
  at: number,
  stoppedAt = at,
): Timer => timerFrom(timerId, at, clamp(dueAt - stoppedAt, delayMs));
