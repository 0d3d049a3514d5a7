/**
 * Resumes a run after a crash or shutdown. The state alone tells the open work, which restarts
 * under the same ids.
 */

import { retryDelayMs } from '@pawl/agent/machine/moves/retry';
import { AppendList } from '@pawl/machine/kernel/append-list';
import type { CodeAction, OutsideAction } from '../action.js';
import type { RunEventOf } from '../event.js';
import { go, ignore, type Same, withRun } from '../move-result.js';
import type { CodeState, Living, Run } from '../state.js';
import { CHANGED_VARIABLES, LOST_VARIABLES } from '../texts-for-model.js';
import { getStopFacts, sendAgain } from './model-call.js';
import { runCell } from './run-cells.js';
import { startEnvironment, timeLimitMs } from './start-run.js';

/**
 * Schedules a timer for the rest of its delay, at most `longestMs`: a clock that was set back
 * meanwhile must not hold the run.
 */
const scheduleAgain = (
  timerId: string,
  dueAt: number,
  at: number,
  longestMs: number,
): OutsideAction => {
  const delayMs = Math.max(0, Math.min(dueAt - at, longestMs));
  return { type: 'ScheduleTimer', timerId, dueAt: at + delayMs, delayMs };
};

/** The state with its deadline and its retry later. */
const moveDueTimes = <S extends Living>(state: S, byMs: number): S => {
  const { run, work } = state;
  const deadline =
    run.deadline === null ? null : { ...run.deadline, dueAt: run.deadline.dueAt + byMs };
  const later = work.kind === 'retrying' ? { ...work, dueAt: work.dueAt + byMs } : work;
  // The same state, with the same kind of work.
  return { ...state, run: { ...run, deadline }, work: later } as S;
};

/**
 * Moves what is due in a run by a time in which nobody ran, and so also in the state that a raised
 * limit restores.
 */
export const postpone = <S extends CodeState>(state: S, byMs: number): S => {
  if (byMs === 0) return state;
  // Still the same state.
  if (state.name !== 'DONE') return moveDueTimes(state, byMs) as S;
  return state.stoppedIn === null
    ? state
    : { ...state, stoppedIn: moveDueTimes(state.stoppedIn, byMs) };
};

/** How long nobody ran before this event, by a clock that may have been set in between. */
export const stoppedMs = ({
  at,
  stoppedAt = at,
}: {
  readonly at: number;
  readonly stoppedAt?: number;
}): number => at - stoppedAt;

/** The longest delay before a retry: that of the schedule, or what a provider may ask for. */
const longestRetryMs = (settings: Run['settings'], attempt: number): number => {
  const error = { kind: 'overloaded', message: '', retryable: true, retryAfterMs: null } as const;
  return Math.max(retryDelayMs(settings, attempt, { error, jitter: 1 }), settings.retryAfterCapMs);
};

/**
 * Open work that needs no environment. Cells and variables wait for the environment
 * (environmentIsThere).
 */
const workInFlight = (state: Living, at: number): readonly OutsideAction[] => {
  if (state.name === 'PROMPTING') return [];
  const { work, run } = state;
  switch (work.kind) {
    case 'calling':
      return [sendAgain(state, work.requestId)];
    case 'retrying':
      return [
        scheduleAgain(work.timerId, work.dueAt, at, longestRetryMs(run.settings, work.attempt)),
      ];
    case 'asking':
      return [{ type: 'AskPolicy', policyId: work.policyId, facts: getStopFacts(run, at) }];
    case 'new':
    case 'next':
    case 'deciding':
    case 'running':
    case 'reading':
      return [];
    default:
      return work satisfies never;
  }
};

/** The actions whose answers a run awaits, at the time `at`. */
export const runInFlight = (state: CodeState, at: number): readonly OutsideAction[] => {
  if (state.name === 'DONE') return [];
  const { deadline, environment } = state.run;
  return [
    ...(deadline === null || deadline.timerId === null
      ? []
      : [scheduleAgain(deadline.timerId, deadline.dueAt, at, timeLimitMs(state.run))]),
    ...(environment === 'none' ? [] : [startEnvironment(state.run)]),
    ...workInFlight(state, at),
  ];
};

/** Resumed: restarts the open work, and the environment, which ended with the process. */
export const startAgain = <S extends CodeState>(
  state: S,
  event: RunEventOf<'Resumed'>,
): Same<S> => {
  if (state.name === 'DONE') return ignore(state, 'the run is over');
  const living = postpone(withoutAwaited(state), stoppedMs(event));
  const environment = living.run.environment === 'none' ? 'none' : 'starting';
  const again = withRun(living, { ...living.run, environment });
  return go(again, ...runInFlight(again, event.at));
};

/** Marks open sub-calls as not awaited, until the restarted cell makes them again. */
const withoutAwaited = <S extends CodeState>(state: S): S => {
  if (state.name !== 'EXECUTING' || state.work.kind !== 'running') return state;
  const open = state.work.open.map((subcall) => ({ ...subcall, awaited: 'no' as const }));
  // Still EXECUTING, with the same kind of work.
  return { ...state, work: { ...state.work, open } } as S;
};

// ---- The environment stands ----

const noteVariables = (run: Run, event: RunEventOf<'EnvironmentStarted'>): Run => {
  switch (event.variables) {
    case 'kept':
      return run;
    case 'changed':
      return { ...run, notes: [...run.notes, CHANGED_VARIABLES] };
    case 'lost':
      return { ...run, past: AppendList.empty(), notes: [...run.notes, LOST_VARIABLES] };
    default:
      return event.variables satisfies never;
  }
};

export const isUnexpected = ({ run }: Living): boolean => run.environment !== 'starting';
export const ignoreEnvironment = <S extends Living>(state: S): Same<S> =>
  ignore(state, 'stale: no environment is being started');

/**
 * Work that waited for the environment: the interrupted cell, from its beginning, or a variable
 * read.
 */
const waitingWork = ({ work, run }: Living): readonly CodeAction[] => {
  if (work.kind === 'running') return [runCell(run, work)];
  if (work.kind !== 'reading') return [];
  return [{ type: 'ReadVariable', readId: work.readId, variable: work.variable }];
};

export const environmentIsThere = <S extends Living>(
  state: S,
  event: RunEventOf<'EnvironmentStarted'>,
): Same<S> =>
  go(
    withRun(state, { ...noteVariables(state.run, event), environment: 'ready' }),
    ...waitingWork(state),
  );
