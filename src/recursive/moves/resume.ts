import { Log } from '../../kernel/log.js';
import type { CodeAction, OutsideAction } from '../action.js';
import type { On } from '../event.js';
import type { Same } from '../move.js';
import { go, ignore, withRun } from '../move.js';
import type { CodeState, Run } from '../state.js';
import { CHANGED_VARIABLES, LOST_VARIABLES } from '../words.js';
import { factsOf, sendAgain } from './call.js';
import { runCell } from './cells.js';
import type { Living } from './end.js';
import { startEnvironment } from './start.js';

/** After a crash or a shutdown: what was under way follows from the state alone, and starts again under the same ids. */

/** What waits for the environment is not under way before it stands again (environmentIsThere). */
const workInFlight = (state: Living, at: number): readonly OutsideAction[] => {
  if (state.name === 'PROMPTING') return [];
  const { work, run } = state;
  switch (work.kind) {
    case 'calling':
      return [sendAgain(state, work.requestId)];
    case 'retrying':
      return [{ type: 'ScheduleTimer', timerId: work.timerId, dueAt: work.dueAt }];
    case 'asking':
      return [{ type: 'AskPolicy', policyId: work.policyId, facts: factsOf(run, at) }];
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

/** The actions that a run waits for the answers of, at the time `at`. */
export const runInFlight = (state: CodeState, at: number): readonly OutsideAction[] => {
  if (state.name === 'DONE') return [];
  const { deadline, environment } = state.run;
  return [
    ...(deadline === null || deadline.timerId === null
      ? []
      : [{ type: 'ScheduleTimer', timerId: deadline.timerId, dueAt: deadline.dueAt } as const]),
    ...(environment === 'none' ? [] : [startEnvironment(state.run)]),
    ...workInFlight(state, at),
  ];
};

/** Resumed: no environment has outlived the process. */
export const startAgain = <S extends CodeState>(state: S, event: On<'Resumed'>): Same<S> => {
  if (state.name === 'DONE') return ignore(state, 'the run is over');
  const environment = state.run.environment === 'none' ? 'none' : 'starting';
  const again = withRun(unawaited(state), { ...state.run, environment });
  return go(again, ...runInFlight(state, event.at));
};

/** The cell that runs will ask again: until then nobody waits for what it has asked. */
const unawaited = <S extends CodeState>(state: S): S => {
  if (state.name !== 'EXECUTING' || state.work.kind !== 'running') return state;
  const open = state.work.open.map((subcall) => ({ ...subcall, awaited: 'no' as const }));
  // Still EXECUTING, with the same kind of work.
  return { ...state, work: { ...state.work, open } } as S;
};

// ---- The environment stands ----

const told = (run: Run, event: On<'EnvironmentStarted'>): Run => {
  switch (event.variables) {
    case 'kept':
      return run;
    case 'changed':
      return { ...run, notes: [...run.notes, CHANGED_VARIABLES] };
    case 'lost':
      return { ...run, past: Log.empty(), notes: [...run.notes, LOST_VARIABLES] };
    default:
      return event.variables satisfies never;
  }
};

export const isUnexpected = ({ run }: Living): boolean => run.environment !== 'starting';
export const ignoreEnvironment = <S extends Living>(state: S): Same<S> =>
  ignore(state, 'stale: no environment is being started');

/** What waited for it, runs: the cell that was interrupted from its beginning. */
const waiting = ({ work, run }: Living): readonly CodeAction[] => {
  if (work.kind === 'running') return [runCell(run, work)];
  if (work.kind !== 'reading') return [];
  return [{ type: 'ReadVariable', readId: work.readId, variable: work.variable }];
};

export const environmentIsThere = <S extends Living>(state: S, event: On<'EnvironmentStarted'>): Same<S> =>
  go(withRun(state, { ...told(state.run, event), environment: 'ready' }), ...waiting(state));
