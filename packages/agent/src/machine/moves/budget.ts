/** Limits, and the usage that counts towards them. */

import type { Action } from '../action.js';
import type { Event, On } from '../event.js';
import type { Dimension, Limits } from '../settings.js';
import {
  changeSession,
  changeTurn,
  go,
  type In,
  ignore,
  type MoveTo,
  type SessionData,
  type SessionUpdate,
  type State,
  type Stay,
  withSession,
} from '../state.js';
import {
  isReached,
  type Limit,
  type Remaining,
  readLimit,
  remainingLimit,
  totalTokens,
  type Usage,
  type UsageTotals,
} from '../usage.js';
import { appendTexts } from './request.js';
import { elapsedMs, resetClock } from './timers.js';

/** The counted dimensions, in the order of their check (docs/rules.md#limit-after-round). */
const counted = [
  'usd',
  'tokens',
  'rounds',
  'truncation',
  'repeats',
  'errors',
  'sameResults',
] as const satisfies readonly Dimension[];
/** Only its timer ends a turn's time, since times of events jump with the computer's clock. */
const dimensions: readonly Dimension[] = [...counted, 'time'];
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

/** The first limit that is reached, or null. */
const reached = <D extends Dimension>(session: SessionData, among: readonly D[]): D | null =>
  among.find((dimension) =>
    isReached(getLimit(session.settings.limits, dimension), getSpent(session, dimension, 0)),
  ) ?? null;

/**
 * The first session limit that is reached (dollars, tokens), or null. A new turn does not reset
 * these.
 */
export const sessionLimit = (session: SessionData): 'usd' | 'tokens' | null =>
  reached(session, ['usd', 'tokens']);

export const hasSessionLimit = ({ settings: { limits } }: SessionData): boolean =>
  limits.usd !== 'unlimited' || limits.tokens !== 'unlimited';

/**
 * Whether a session limit is reached: the guard before every model call
 * (docs/rules.md#limit-before-request).
 */
export const sessionIsSpent = ({ session }: State): boolean => sessionLimit(session) !== null;

export const stopBeforeCall = ({
  session,
}: In<'CallingLlm'> | In<'Compacting'>): MoveTo<'BudgetExceeded'> =>
  go({ name: 'BudgetExceeded', session, dimension: sessionLimit(session) ?? 'usd' });

/** What is left of the session's limits. */
export const remainingIn = (
  session: SessionData,
): { readonly usd: Remaining; readonly tokens: Remaining } => {
  const remaining = (dimension: 'usd' | 'tokens'): Remaining =>
    remainingLimit(getLimit(session.settings.limits, dimension), getSpent(session, dimension, 0));
  return { usd: remaining('usd'), tokens: remaining('tokens') };
};

/** Formats a number without its unit. */
const bare = (dimension: Dimension, value: number): string => {
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

const amount = (dimension: Dimension, value: Limit): string => {
  if (value === 'unlimited') return 'no limit';
  const [one, many] = units[dimension];
  return `${bare(dimension, value)}${value === 1 ? one : many}`;
};

/** Text for notices: "$1.10 of $1.00 used", "100 of 100 rounds used". */
export const spentText = (session: SessionData, dimension: Dimension, at: number): string => {
  const spent = bare(dimension, getSpent(session, dimension, at));
  return `${spent} of ${amount(dimension, getLimit(session.settings.limits, dimension))} used`;
};

export const setLimit = (session: SessionData, dimension: Dimension, limit: Limit): SessionData => {
  const key = dimension === 'time' ? 'timeMs' : dimension;
  const limits = { ...session.settings.limits, [key]: limit };
  const warned = session.turn.warned.filter((other) => other !== dimension);
  const changed = changeSession(session, { settings: { ...session.settings, limits } });
  // The first limit that is set also becomes its slice of autoRearm.
  const isFirst =
    (dimension === 'usd' || dimension === 'tokens') && session.slices[dimension] === 'unlimited';
  const slices = isFirst ? { ...session.slices, [dimension]: limit } : session.slices;
  return changeTurn(changeSession(changed, { slices }), { warned });
};

/** autoRearm: raises a reached dollar or token limit by its slice, with a notice. */
export const rearm = (session: SessionData, dimension: Dimension): SessionUpdate => {
  if (session.settings.autoRearm === 'off' || (dimension !== 'usd' && dimension !== 'tokens'))
    return { session, actions: [] };
  const slice = session.slices[dimension];
  if (slice === 'unlimited') return { session, actions: [] };
  const limit = getSpent(session, dimension, 0) + slice;
  const text = `the limit was raised to ${amount(dimension, limit)} by itself (autoRearm)`;
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
  reached(state.session, counted) !== null;

/** Whether one more call without tools may ask the model for its answer. */
export const mayFinish = (state: In<'CheckingBudget'>): boolean => {
  const { settings, turn } = state.session;
  const dimension = reached(state.session, counted);
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
  const dimension = reached(session, counted) ?? 'rounds';
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
  const dimension = reached(state.session, counted) ?? 'usd';
  return go({ name: 'BudgetExceeded', session: state.session, dimension });
};

/** Warns once per limit above the warn ratio (docs/rules.md#limit-warning). */
export const warnOfBudget = (
  state: In<'CheckingBudget'>,
  event: Event,
): MoveTo<'GatheringAdditionalMessages'> => {
  const { session } = state;
  const { limits, budgetWarnRatio } = session.settings;
  const near = dimensions.filter((dimension) => {
    const limit = getLimit(limits, dimension);
    if (limit === 'unlimited' || session.turn.warned.includes(dimension)) return false;
    return getSpent(session, dimension, event.at) >= limit * budgetWarnRatio;
  });
  const warnings = near.map((dimension): Action => {
    return {
      type: 'DisplayWarning',
      kind: 'budget',
      text: spentText(session, dimension, event.at),
    };
  });
  // A limit that was raised meanwhile lets tools run again.
  const warned = changeTurn(session, {
    finishing: 'no',
    warned: [...session.turn.warned, ...near],
  });
  return go({ name: 'GatheringAdditionalMessages', session: warned }, ...warnings);
};

/** BudgetExceeded -> WaitingForUserInput; the queue stays held (docs/rules.md#queue-after-stop). */
export const stopForBudget = (
  state: In<'BudgetExceeded'>,
  event: Event,
): MoveTo<'WaitingForUserInput'> => {
  const { dimension } = state;
  const text = `stopped: ${spentText(state.session, dimension, event.at)}`;
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

/** ApproveBudget: sets the limit and nothing else. */
export const raiseLimit = <S extends State>(state: S, event: On<'ApproveBudget'>): Stay<S> => {
  if (!isLimit(event.limit)) return ignore(state, 'a limit is a number from 0 up');
  const limit = readLimit(event.limit);
  const raised = setLimit(state.session, event.dimension, limit);
  const { session, actions } = resetClock(state, state.session, raised, event.at);
  const text =
    limit === 'unlimited'
      ? 'the limit is lifted'
      : `the limit is now ${amount(event.dimension, limit)}`;
  return go(withSession(state, session), ...actions, {
    type: 'DisplayNotice',
    kind: 'budget',
    text,
  });
};

/**
 * Usage counts once per id (docs/rules.md#usage-counts-once), and stale events change nothing else
 * (docs/rules.md#stale-events).
 */

/** Totals with the usage of one more call. */
export const addUsage = (total: UsageTotals, usage: Usage): UsageTotals => ({
  inputTokens: total.inputTokens + usage.inputTokens,
  outputTokens: total.outputTokens + usage.outputTokens,
  cacheReadTokens: total.cacheReadTokens + usage.cacheReadTokens,
  cacheWriteTokens: total.cacheWriteTokens + usage.cacheWriteTokens,
  costUsd: total.costUsd + (usage.costUsd ?? 0),
  unpriced: total.unpriced + (usage.costUsd === null ? 1 : 0),
});

/** Counts usage once per id. Without usage the id stays open, since usage may come late. */
export const countUsage = (session: SessionData, id: string, usage: Usage | null): SessionData => {
  if (usage === null || !session.unaccounted.includes(id)) return session;
  const unaccounted = session.unaccounted.filter((open) => open !== id);
  return changeSession(session, { unaccounted, usage: addUsage(session.usage, usage) });
};

/**
 * Counts the final report of an id. Without usage the id is closed, since nothing can come late.
 */
const close = (session: SessionData, id: string, usage: Usage | null): SessionData => {
  if (usage !== null) return countUsage(session, id, usage);
  if (!session.unaccounted.includes(id)) return session;
  return changeSession(session, { unaccounted: session.unaccounted.filter((open) => open !== id) });
};

/** Counts a completed hook phase. A failed phase leaves its id open. */
export const countHookUsage = (
  session: SessionData,
  { hookId, usage }: On<'HookCompleted'>,
): SessionData => close(session, hookId, usage);

/** The usage id of a spending call, open from its start to its outcome. */
export const spendingId = (batchId: string, callId: string): string => `${batchId}/${callId}`;
export const isSpendingId = (id: string): boolean => id.includes('/');

/** Counts the outcome of a spending call. */
export const countToolUsage = (
  session: SessionData,
  { batchId, callId, outcome }: On<'ToolCompleted'>,
): SessionData => close(session, spendingId(batchId, callId), outcome.usage ?? null);

/** Counts the usage in an event, if it has any. */
const book = (session: SessionData, event: Event): SessionData => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
      return countUsage(session, event.requestId, event.usage);
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return countUsage(session, event.compactionId, event.usage);
    case 'HookCompleted':
      return countHookUsage(session, event);
    case 'ToolCompleted':
      return countToolUsage(session, event);
    case 'UsageReported':
      return countUsage(session, event.usageId, event.usage);
    default:
      return session;
  }
};

/** A stale event changes nothing but usage. */
export const countStale = <S extends State>(state: S, event: Event): Stay<S> => {
  const session = book(state.session, event);
  const why = `stale: ${event.type} answers nothing that is open`;
  return session === state.session
    ? ignore(state, why)
    : { ...go(withSession(state, session)), late: why };
};

/** UsageReported: usage that came late, or a report that could not be counted. */
export const countReported = <S extends State>(state: S, event: On<'UsageReported'>): Stay<S> => {
  const session = book(state.session, event);
  const { fault } = event;
  const warnings =
    fault === undefined ? [] : [{ type: 'DisplayWarning', kind: 'usage', text: fault } as const];
  if (session !== state.session) return go(withSession(state, session), ...warnings);
  if (fault !== undefined) return go(state, ...warnings);
  return ignore(state, 'this usage was counted before, or belongs to nothing we asked for');
};
