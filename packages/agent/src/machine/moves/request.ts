/**
 * A request to the model, and what it costs.
 *
 * From top to bottom: its sending; the money that is set aside before it is sent; its usage (tokens
 * and dollars), which counts once, whenever it comes; what a process that has ended had sent; and
 * what the user is told. A limit in dollars holds although usage comes late, because the worst case
 * is set aside first, as a reservation (without such a limit, or without prices, one of $0).
 *
 * The same holds for all that may cost something: a request of a turn, a compaction (it asks for a
 * summary), a phase of hooks, and a tool call that asks models itself (a spending call). Each has
 * an id. The id stands in `unaccounted`, and is called open, until its usage is counted or can't
 * come any more. Hooks that ask no model, and calls without a limit, have no reservation.
 */

import type { Action, RequestPurpose } from '../action.js';
import { conversationLength } from '../conversation.js';
import type { Event, ModelErrorKind, On } from '../event.js';
import {
  joinEstimated,
  type Prices,
  type Remaining,
  remainingLimit,
  totalTokens,
  type Usage,
  type UsageCoverage,
  type UsageTotals,
} from '../settings.js';
import {
  changeCalling,
  changeSession,
  findReservation,
  go,
  type In,
  ignore,
  type MoveTo,
  measuredId,
  nextId,
  reservedUsd,
  type SessionData,
  type SessionUpdate,
  type State,
  type Stay,
  withoutReservations,
  withSession,
} from '../state.js';
import { isRunning } from './batch-calls.js';
import { formatLimit, formatNumber, hasMoneyLimit } from './budget.js';

// ---- Sending ----

/**
 * The state of a model call with the current conversation. `sendCall` sends it when the state comes
 * to rest.
 */
export const newCallingLlm = (
  session: SessionData,
  purpose: RequestPurpose,
  attempt: number,
): In<'CallingLlm'> => ({
  name: 'CallingLlm',
  session,
  purpose,
  requestId: '',
  attempt,
  partial: '',
  call: { mode: 'open' },
});

/**
 * Rest of CallingLlm (the move with which the state begins to wait): the only place that sends a
 * request. The request gets a new id; a resumed session keeps the id it has.
 */
export const sendCall = (state: In<'CallingLlm'>): MoveTo<'CallingLlm'> => {
  const { purpose } = state;
  const length = conversationLength(state.session.conversation);
  if (state.requestId !== '')
    return go(state, { type: 'SendLlmRequest', requestId: state.requestId, purpose, length });
  const [requestId, session] = nextId(state.session, 'request');
  const unaccounted = [...session.unaccounted, requestId];
  return go(changeCalling(state, { requestId, session: changeSession(session, { unaccounted }) }), {
    type: 'SendLlmRequest',
    requestId,
    purpose,
    length,
  });
};

/** Retracts the streamed text of a reply that is not stored (rules.md#streamed-text). */
export const retractPartial = (requestId: string, shown: string): readonly Action[] =>
  shown === '' ? [] : [{ type: 'RetractPartial', requestId }];

// ---- Money is set aside before a request is sent (rules.md#reserve-before-request) ----

/*
 * The worst case: each byte of its text is a token, each image IMAGE_TOKENS_MAX, all of it is
 * written to the cache, and the reply is as long as it may be. What the model counted of the
 * same conversation replaces its bytes.
 *
 * "Measured" has two meanings: RequestMeasured tells the size of the next request, before it is
 * sent; `session.measured` is the last request whose tokens the model has counted.
 */

/** More than any provider counts for a picture. */
export const IMAGE_TOKENS_MAX = 6_000;
/** What a provider adds to a request by itself, such as its instructions about tools. */
export const HIDDEN_TOKENS_MAX = 1_000;
/** Text has a token for each 8 bytes at least: a smaller count is not believed. */
const BYTES_PER_TOKEN_MAX = 8;
/** The largest output under a limit in dollars: what a lost request costs stays bearable. */
export const OUTPUT_TOKENS_MAX = 32_000;
/** A reply that may not be that long is not worth its request. */
export const OUTPUT_TOKENS_MIN = 1_024;
const MILLION = 1_000_000;
/** Sums of prices are not exact: this share of a limit stays free, and so much is no difference. */
const ROUNDING = 1e-9;

/** A request that the runtime is about to send, with its size. */
type NextRequest = On<'RequestMeasured'>;

/**
 * The most tokens that the next request can have. After a counted request only further bytes count
 * one token each: `freshBytes` of a request for a summary, the growth of a request of the turn. A
 * hook's request continues nothing, so all its bytes count. If 20,000 bytes were 5,000 tokens, a
 * request of 21,000 has 7,000 at most: 5,000, one for each further byte, and HIDDEN_TOKENS_MAX. The
 * 5,000 include the reply, whose bytes are further ones, too: an upper bound.
 */
const inputTokensMax = (
  { name, session }: State,
  { model, bytes, images, freshBytes }: NextRequest,
): number => {
  const { measured: last } = session;
  const growth = name === 'CallingLlm' ? bytes - last.bytes : -1;
  const more = freshBytes ?? growth;
  const continuesLast = more >= 0 && last.model === model;
  const tokens = continuesLast
    ? Math.max(last.tokens, last.bytes / BYTES_PER_TOKEN_MAX) + more
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

/** Whether what is left pays for the request; also if no limit is set, or no price is known. */
export const isPaid = (state: State, event: NextRequest): boolean => worstCase(state, event).fits;

export const isStaleMeasure = (state: State, event: NextRequest): boolean =>
  event.usageId !== measuredId(state);
export const ignoreMeasure = <S extends State>(state: S): Stay<S> =>
  ignore(state, 'stale: nobody waits for this request');

/**
 * Sets the worst case aside. The runtime sends the request when it sees the reservation
 * (`admitRequest` in model-call.ts), with a reply of `outputTokens` at most.
 */
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
    `and ${usedMoneyText(session)}: raise the limit with /budget DOLLARS, or with --max-usd`;
  const abort: Action =
    state.name === 'CallingLlm'
      ? { type: 'AbortLlmRequest', requestId: usageId }
      : { type: 'AbortCompaction', compactionId: usageId };
  const changed = changeSession(session, { unaccounted });
  return go({ name: 'BudgetExceeded', session: changed, dimension: 'usd', unpaid }, abort);
};

/** "$1.80 of $2.00 is used, $1.30 of it reserved until its cost is known". */
const usedMoneyText = (session: SessionData): string => {
  const reserved = reservedUsd(session);
  const used = formatNumber('usd', session.usage.costUsd + reserved);
  const ofLimit = `${used} of ${formatLimit('usd', session.settings.limits.usd)} is used`;
  return reserved === 0
    ? ofLimit
    : `${ofLimit}, ${formatNumber('usd', reserved)} of it reserved until its cost is known`;
};

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

/**
 * Reserves the rest of the limit for a spending call, until its outcome reports its usage. `ids`:
 * at most one, since under a limit such calls run one at a time.
 */
export const reserveForCalls = (session: SessionData, ids: readonly string[]): SessionData => {
  const remaining = remainingIn(session).usd;
  const [id] = ids;
  if (remaining.type === 'unlimited' || id === undefined) return session;
  const usd = remaining.amount;
  const reservation = { id, usd, outputUsd: usd, outputTokens: 0, sent: null };
  return changeSession(session, { reserved: [...session.reserved, reservation] });
};

/*
 * ---- Usage: it counts once per id (rules.md#usage-counts-once) ----
 *
 * 1. All of it is known (`coverage: 'whole'`): it counts as it is; without a price at its
 *    reservation.
 * 2. A part is known (`partial`): the worst case of the output is added. Where no money was set
 *    aside, the sum of dollars is a lower bound from then on, unless the model is free.
 * 3. None is known, but the request was refused or never sent, or the work has ended by itself: it
 *    costs nothing, and its id is closed.
 * 4. None is known otherwise: the id stays open, and its money set aside, until a late report. A
 *    spending call without a reservation is closed, and makes the sum a lower bound.
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
  // `measured`: a request whose tokens the model itself has counted (an estimate has no price)
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

// ---- What a process that has ended had sent ----

/** What goes on or is done again in the process that resumes a session, by its ids. */
type Resumed = {
  /** Spending calls that run: they will report. */
  readonly running: readonly string[];
  /** A request, summary or phase of hooks that is done again under its id, which stays open. */
  readonly again: string | null;
};

/**
 * The session in another process, to which no report of the old one can come. What was set aside
 * counts as spent. Where nothing was, the sum of dollars is a lower bound: what is done again, too,
 * may have cost something before.
 */
export const closeOldProcess = (session: SessionData, resumed: Resumed): SessionUpdate =>
  spendReservations(closeCalls(session, resumed), resumed);

/** Closes the ids of spending calls that do not go on. */
const closeCalls = (session: SessionData, { running, again }: Resumed): SessionData => {
  const { unaccounted } = session;
  const isAbandoned = (id: string): boolean => isSpendingId(id) && !running.includes(id);
  // Under a limit a phase of hooks reserves before it asks a model.
  const askedNone = (id: string): boolean =>
    hasMoneyLimit(session) && isUnreservedHook(session, id);
  const mayHaveCost = unaccounted.some(
    (id) => (id === again || isAbandoned(id)) && !askedNone(id) && !hasWorstCase(session, id),
  );
  const open = unaccounted.filter((id) => !isAbandoned(id));
  const closed = changeSession(session, { unaccounted: open });
  return mayHaveCost ? asLowerBound(closed) : closed;
};

/**
 * Counts reservations as spent, and closes their ids. One of $0 says nothing of the cost: its id
 * stays open, so that the sum is told as a lower bound (`toldUsage`).
 */
const spendReservations = (session: SessionData, { running, again }: Resumed): SessionUpdate => {
  const { reserved } = session;
  const lost = reserved.filter(({ id }) => !running.includes(id));
  const usd = lost.reduce((sum, one) => sum + one.usd, 0);
  if (lost.length === 0) return { session, actions: [] };
  const isSpent = (id: string): boolean =>
    id !== again && lost.some((one) => one.id === id && one.usd > 0);
  const spent = changeSession(session, {
    unaccounted: session.unaccounted.filter((id) => !isSpent(id)),
    reserved: reserved.filter(({ id }) => running.includes(id)),
    usage: { ...session.usage, costUsd: session.usage.costUsd + usd },
  });
  if (usd === 0) return { session: spent, actions: [] };
  const text =
    'what the requests of the ended process have cost is unknown: ' +
    `${formatNumber('usd', usd)}, the most that it can be, counts as spent`;
  return { session: spent, actions: [{ type: 'DisplayNotice', kind: 'budget', text }] };
};

// ---- What is said of usage ----

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
