/**
 * Limits of a session and of a turn, and what happens when one is reached. request.ts counts what
 * requests cost.
 *
 * From top to bottom: the limits; streaks (batches in a row with the same calls, without success,
 * with the same results), which three limits count; and the clock of a turn, for its limit of time.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`, or `ignore(state, why)`. The entry of a state runs when it is entered;
 * `rest` is the move with which it begins to wait. `In<N>` is the state N, `On<T>` the event T; a
 * `Stay` remains in its state, and a `SessionUpdate` is a part of a move.
 */

import type { Action } from '../action.js';
import type { EndedCall } from '../call.js';
import type { Event, On } from '../event.js';
import {
  type Dimension,
  isReached,
  type Limit,
  type Limits,
  readLimit,
  totalTokens,
} from '../settings.js';
import {
  appendTexts,
  changeSession,
  changeTurn,
  clamp,
  go,
  type In,
  ignore,
  type MoveTo,
  nextId,
  remainingTimer,
  type SessionData,
  type SessionUpdate,
  type State,
  type Stay,
  schedule,
  timerFrom,
  turnRuns,
  withSession,
} from '../state.js';

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
const reachedLimit = (session: SessionData): CheckedDimension | null =>
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
  // The guard has checked that a limit is reached: this default, as those below, is for the type.
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

/** At a limit: the model may answer in one more request, without tools. */
export const askToFinish = (
  state: In<'CheckingBudget'>,
  event: Event,
): MoveTo<'GatheringAdditionalMessages'> => {
  const { session } = state;
  const dimension = reachedLimit(session) ?? 'rounds';
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
  const dimension = reachedLimit(state.session) ?? 'usd';
  return go({ name: 'BudgetExceeded', session: state.session, dimension });
};

/**
 * The turn goes on, with one warning per limit above the warn ratio (rules.md#limit-warning). Tools
 * run again, if a limit was raised after the model had been asked for its answer.
 */
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
