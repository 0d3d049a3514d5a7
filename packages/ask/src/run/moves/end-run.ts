/**
 * Ends or suspends a run. Its children end before it, so a tree ends deepest first. `work` in a
 * state is what the run is doing; its kinds are listed in state.ts.
 */

import type { CodeAction, OutsideAction } from '../action.js';
import type { RunEventOf } from '../event.js';
import { go, ignore, type Next, type Same } from '../move-result.js';
import type { CodeState, Living, Outcome, Run, RunningCell } from '../state.js';
import { errorText } from '../texts-for-model.js';

type Work = Living['work'];

const stopWork = (work: Work): readonly OutsideAction[] => {
  switch (work.kind) {
    case 'calling':
      return [{ type: 'AbortModel', requestId: work.requestId }];
    case 'retrying':
      return [{ type: 'CancelTimer', timerId: work.timerId }];
    case 'new':
    case 'next':
    case 'running':
    case 'reading':
    case 'deciding':
    case 'asking':
      return [];
    default:
      return work satisfies never;
  }
};

const stopRun = ({ deadline, environment }: Run): readonly OutsideAction[] => [
  ...(deadline === null || deadline.timerId === null
    ? []
    : [{ type: 'CancelTimer', timerId: deadline.timerId } as const]),
  ...(environment === 'none' ? [] : [{ type: 'CloseEnvironment' } as const]),
];

/**
 * Ends the sub-calls of a running cell: first their children, then each call gets an answer, since
 * the cell waits.
 */
const stopCell = ({ cellId, open }: RunningCell): readonly CodeAction[] =>
  open.length === 0
    ? []
    : [
        { type: 'StopSubcalls', cellId, ordinal: null },
        ...open
          // a restarted cell has not asked for the others yet
          .filter(({ awaited }) => awaited === 'yes')
          .map(({ ordinal, slots }): OutsideAction => {
            const texts = Array.from({ length: slots }, () => errorText('the run has ended'));
            return { type: 'AnswerSubcall', cellId, ordinal, texts };
          }),
      ];

/** Ends a run and stops its work in progress. */
export const endRun = (state: Living, outcome: Outcome): Next<'DONE'> => {
  const { run, work } = state;
  const ended = { ...run, deadline: null, environment: 'none' } as const;
  return go(
    { name: 'DONE', run: ended, outcome, stoppedIn: outcome.status === 'stopped' ? state : null },
    ...(work.kind === 'running' ? stopCell(work) : []),
    ...stopWork(work),
    ...stopRun(run),
    { type: 'ReportOutcome', outcome },
  );
};

/** ShutdownRequested: stops the work outside and keeps the state for Resumed. */
export const standDown = <S extends CodeState>(state: S): Same<S> =>
  state.name === 'DONE' ? go(state) : go(state, ...stopWork(state.work), ...stopRun(state.run));

export const cancelRun = (state: Living, event: RunEventOf<'CancelRequested'>): Next<'DONE'> =>
  endRun(state, { status: 'cancelled', cause: event.cause, partial: state.run.lastText });

export const failEnvironment = (
  state: Living,
  event: RunEventOf<'EnvironmentFailed'>,
): Next<'DONE'> =>
  endRun(state, {
    status: 'failed',
    kind: 'environment',
    message: `the environment failed: ${event.message}`,
    partial: state.run.lastText,
  });

// ---- Time ----

export const isDeadline = (state: Living, event: RunEventOf<'TimerFired'>): boolean =>
  event.timerId === state.run.deadline?.timerId;

export const stopForTime = (state: Living): Next<'DONE'> =>
  endRun(state, {
    status: 'stopped',
    reason: 'time',
    message: 'the time limit is reached',
    partial: state.run.lastText,
  });

export const ignoreTimer = <S extends Living>(state: S): Same<S> =>
  ignore(state, 'stale: the wait was already over');
