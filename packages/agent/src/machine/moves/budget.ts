/**
 * Limits, and the usage (tokens and dollars) that counts towards them.
 *
 * From top to bottom: the limits of session and turn; streaks, batches in a row that three limits
 * count; usage, which counts once per id, and whether its sum of dollars is exact; and the clock of
 * a turn, for its limit of time. A limit in dollars holds although usage comes late, because the
 * worst case of a request is set aside before it is sent (request.ts).
 *
 * Everything that may cost something has an id: a request to the model, a compaction (it asks for a
 * summary), a phase of hooks, and a tool call that asks models itself (a spending call). The id
 * stands in `unaccounted`, and is called open, until its usage is counted or can't come any more.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`, or `ignore(state, why)`. The entry of a state runs when it is entered;
 * `rest` is the move with which it begins to wait. `In<N>` is the state N, `On<T>` the event T; a
 * `Stay` remains in its state, and a `SessionUpdate` is a part of a move.
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
  readLimit,
  totalTokens,
  type Usage,
  type UsageCoverage,
  type UsageTotals,
} from '../settings.js';
import {
  changeSession,
  changeTurn,
  clamp,
  findReservation,
  go,
  type In,
  ignore,
  type MoveTo,
  measuredId,
  nextId,
  remainingTimer,
  type SessionData,
  type SessionUpdate,
  type State,
  type Stay,
  schedule,
  timerFrom,
  turnRuns,
  withoutReservations,
  withSession,
} from '../state.js';
import { isRunning } from './batch-calls.js';

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
type CheckedDimension = (typeof checkedDimensions)[number];
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

/** The first of these limits that is reached, or null. None of them needs the time: it is 0. */
const findReached = <D extends CheckedDimension>(
  session: SessionData,
  among: readonly D[],
): D | null =>
  among.find((dimension) =>
    isReached(getLimit(session.settings.limits, dimension), getSpent(session, dimension, 0)),
  ) ?? null;

/** The limit that is reached after a round, or null. */
export const reachedLimit = (session: SessionData): CheckedDimension | null =>
  findReached(session, checkedDimensions);

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

/** Formats a number. Only dollars have their unit. */
export const formatNumber = (dimension: Dimension, value: number): string => {
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

export const formatLimit = (dimension: Dimension, value: Limit): string => {
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
  reachedLimit(state.session) !== null;

/** Whether the model may be asked for its answer, in one more request without tools. */
export const mayFinish = (state: In<'CheckingBudget'>): boolean => {
  const { settings, turn } = state.session;
  const dimension = reachedLimit(state.session);
  return (
    settings.atLimit === 'finish' &&
    turn.finishing === 'no' &&
    finishable.some((one) => one === dimension)
  );
};

export const exceedBudget = (state: In<'CheckingBudget'>): MoveTo<'BudgetExceeded'> => {
  const dimension = reachedLimit(state.session) ?? 'usd';
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

// ---- Streaks: batches in a row with the same calls, without success, with the same results ----

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

/** Counts one batch. While none of the three limits is set, nothing counts. */
export const countStreaks = (session: SessionData, calls: readonly EndedCall[]): SessionData => {
  const { repeats, errors, sameResults } = session.settings.limits;
  if ([repeats, errors, sameResults].every((limit) => limit === 'unlimited'))
    return changeTurn(session, { streaks: noStreaks });
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

/*
 * ---- Usage: it counts once per id (rules.md#usage-counts-once) ----
 *
 * 1. All of it is known (`coverage: 'whole'`): it counts as it is.
 * 2. A part is known (`partial`): the worst case of the output is added. Where no money was set
 *    aside, the sum of dollars is a lower bound from then on.
 * 3. None is known, but the request was refused or never sent, or the work has ended by itself: it
 *    costs nothing, and its id is closed.
 * 4. None is known otherwise: the id stays open, and its money set aside, until a late report.
 *
 * Without `coverage` the usage of a reply or of a phase is whole, that of a failure or of a late
 * report is a part.
 */

/** Totals with the usage of one more call. */
export const addUsage = (total: UsageTotals, usage: Usage): UsageTotals => ({
  inputTokens: total.inputTokens + usage.inputTokens,
  outputTokens: total.outputTokens + usage.outputTokens,
  cacheReadTokens: total.cacheReadTokens + usage.cacheReadTokens,
  cacheWriteTokens: total.cacheWriteTokens + usage.cacheWriteTokens,
  costUsd: total.costUsd + (usage.costUsd ?? 0),
  unpriced: total.unpriced + (usage.unpriced ?? 0) + (usage.costUsd === null ? 1 : 0),
  ...joinEstimated(total, usage),
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

/** Under a limit in dollars the worst case of a call is set aside until its cost is known. */
const hasWorstCase = (session: SessionData, id: string): boolean =>
  (findReservation(session, id)?.usd ?? 0) > 0;

/** Whether a call that broke off, with this part of its usage, may have cost more than it counts. */
const mayCostMore = (session: SessionData, id: string, usage: Usage): boolean => {
  // a free model has tokens that cost nothing; without tokens nothing may be reported yet
  const isFree = usage.costUsd === 0 && totalTokens(usage) > 0;
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
  const settled = settledUsage(session, id, usage, coverage);
  // of a request whose tokens the model has counted: request.ts estimates the next one by it
  const sent = findReservation(session, id)?.sent ?? null;
  const hasFigures = usage.costUsd !== null && totalTokens(usage) > 0;
  const isKnown = coverage === 'whole' && hasFigures && sent !== null;
  const atLeast = coverage === 'partial' && mayCostMore(session, id, usage);
  return changeSession(session, {
    unaccounted: session.unaccounted.filter((open) => open !== id),
    reserved: withoutReservations(session, [id]),
    usage: addUsage(session.usage, atLeast ? { ...settled, atLeast } : settled),
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

/** Whether a failed request that reports no usage was refused by its provider, or never sent. */
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
  // a call that has ended by itself reports what it spent
  if (!mayCost || !session.unaccounted.includes(id)) return closeId(session, id, usage);
  return findReservation(session, id) === undefined
    ? asLowerBound(closeId(session, id, null))
    : session;
};

/** The session whose sum of dollars is a lower bound from now on. */
const asLowerBound = (session: SessionData): SessionData =>
  changeSession(session, { usage: { ...session.usage, atLeast: true } });

/** Whether an open id is that of a phase of hooks for which no money was ever set aside. */
const isUnreservedHook = (session: SessionData, id: string): boolean =>
  isHookId(id) && findReservation(session, id) === undefined;

/**
 * The sums of a session as they are told: `atLeast` also while the usage of work that is over has
 * not come. A failed phase of hooks first reports what it has asked a model for; only under a limit
 * can a part of that be late, and it stays reserved.
 */
export const toldUsage = (state: State): UsageTotals => {
  const { session } = state;
  const running =
    state.name === 'ExecutingTools'
      ? state.calls.filter(isRunning).map(({ judged }) => spendingId(state.batchId, judged.callId))
      : [measuredId(state)];
  const isMissing = (id: string): boolean =>
    !running.includes(id) && !isUnreservedHook(session, id);
  const { usage, unaccounted } = session;
  return unaccounted.some(isMissing) ? { ...usage, atLeast: true } : usage;
};

/**
 * The session in another process. The work `sentId` of the old one (a request, a summary, a phase
 * of hooks) may have cost something, although it is done again under its id; so may its spending
 * calls. Their ids are closed unless they run again: no report can come any more. What was set
 * aside for them stays for `settleLost`, which counts it as spent.
 */
export const countAbandoned = (
  session: SessionData,
  sentId: string | null,
  running: readonly string[],
): SessionData => {
  const { unaccounted } = session;
  const isAbandoned = (id: string): boolean => isSpendingId(id) && !running.includes(id);
  // Under a limit a phase of hooks reserves before it asks a model.
  const askedNone = (id: string): boolean =>
    hasMoneyLimit(session) && isUnreservedHook(session, id);
  const mayHaveCost = unaccounted.some(
    (id) => (id === sentId || isAbandoned(id)) && !askedNone(id) && !hasWorstCase(session, id),
  );
  const open = unaccounted.filter((id) => !isAbandoned(id));
  const closed = changeSession(session, { unaccounted: open });
  return mayHaveCost ? asLowerBound(closed) : closed;
};

/**
 * Counts the usage in a late event, if it has any. It says nothing of the next request: the
 * conversation may have been replaced meanwhile.
 */
const countLate = (before: SessionData, event: Event): SessionData => {
  const counted = countEvent(before, event);
  return counted === before ? before : changeSession(counted, { measured: before.measured });
};

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
  const session = countLate(state.session, event);
  const why = `stale: ${event.type} answers nothing that is open`;
  return session === state.session
    ? ignore(state, why)
    : { ...go(withSession(state, session)), late: why };
};

/** UsageReported: usage that came late, or a report that could not be counted. */
export const countReported = <S extends State>(state: S, event: On<'UsageReported'>): Stay<S> => {
  const session = countLate(state.session, event);
  const { fault } = event;
  const warnings =
    fault === undefined ? [] : [{ type: 'DisplayWarning', kind: 'usage', text: fault } as const];
  if (session !== state.session) return go(withSession(state, session), ...warnings);
  if (fault !== undefined) return go(state, ...warnings);
  return ignore(state, 'this usage was counted before, or belongs to nothing we asked for');
};

/** Dollars. Differences of sums below this are rounding errors. */
const ROUNDING = 1e-9;

/** Warns of a provider that charged more than was set aside for the usage that has come now. */
const surplusWarnings = (before: SessionData, after: SessionData): readonly Action[] => {
  const { reserved, settings } = before;
  const paid = reserved.filter(({ id }) => findReservation(after, id) === undefined);
  const most = paid.reduce((sum, one) => sum + one.usd, 0);
  const usd = after.usage.costUsd - before.usage.costUsd;
  if (paid.length === 0 || usd <= most + ROUNDING) return [];
  // without a limit nothing was set aside, so nothing was foreseen
  if (most === 0 && settings.limits.usd === 'unlimited') return [];
  const foreseen =
    most === 0
      ? 'what counted as free: set the prices of its model'
      : `what could cost ${formatNumber('usd', most)} at most: a reply or prices are larger than it ` +
        'was told';
  const text = `the provider charged ${formatNumber('usd', usd)} for ${foreseen}`;
  return [{ type: 'DisplayWarning', kind: 'usage', text }];
};

/** What is to be said of the usage that one event has counted. */
export const usageWarnings = (before: SessionData, after: SessionData): readonly Action[] => [
  ...surplusWarnings(before, after),
  ...estimateWarnings(before, after),
];

/** Says once of each model that its server reports no usage, when the first estimate counts. */
const estimateWarnings = (before: SessionData, after: SessionData): readonly Action[] => {
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

// ---- The time limit of a turn: a timer that lives as long as the turn (rules.md#time-limit) ----

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
