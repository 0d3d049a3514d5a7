/**
 * The time limit of the turn: one timer that begins and ends with it (docs/rules.md#time-limit).
 */

import type { Action } from '../action.js';
import type { On } from '../event.js';
import {
  changeTurn,
  go,
  type In,
  nextId,
  type SessionData,
  type SessionUpdate,
  type State,
  type Stay,
  type Timer,
  turnRuns,
} from '../state.js';

const cancelled = (session: SessionData): readonly Action[] =>
  session.turn.timeLimit === null
    ? []
    : [{ type: 'CancelTimer', timerId: session.turn.timeLimit.timerId }];

/**
 * Schedules the time limit of the turn, of which `passed` ms are over. Does nothing without a
 * limit.
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
export const elapsedMs = ({ turn, settings }: SessionData, at: number): number => {
  const { timeMs } = settings.limits;
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
  const same = before.settings.limits.timeMs === after.settings.limits.timeMs;
  if (same || !turnRuns(state)) return { session: after, actions: [] };
  const started = startClock(after, ranUntil, elapsedMs(before, ranUntil));
  return { session: started.session, actions: [...cancelled(after), ...started.actions] };
};

/**
 * Continues the time of the turn in a resumed session: the time limit with the rest of its delay.
 * The time in which nobody ran does not count (docs/rules.md#time-while-stopped).
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
  return go({ ...state, session }, ...cancelled(state.session));
};

/**
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
