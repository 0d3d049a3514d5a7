import type { Action } from '../action.js';
import { changeTurn } from '../change.js';
import type { Same } from '../move.js';
import { go } from '../move.js';
import type { In, Session, State, StateName } from '../state.js';
import { nextId } from './request.js';

/** The time limit of the turn: one timer that begins and ends with it (R0f, R0g, R75). */

type Clocked = { readonly session: Session; readonly actions: readonly Action[] };

const cancelled = (session: Session): readonly Action[] =>
  session.turn.timeLimit === null ? [] : [{ type: 'CancelTimer', timerId: session.turn.timeLimit.timerId }];

/** Schedules the limit that the settings give, counted from the turn's start; none where there is no limit. */
export const startClock = (before: Session): Clocked => {
  const { timeMs } = before.settings.limits;
  if (timeMs === 0) return { session: changeTurn(before, { timeLimit: null }), actions: [] };
  const [timerId, session] = nextId(before, 'timer');
  const timeLimit = { timerId, dueAt: session.turn.startedAt + timeMs };
  return {
    session: changeTurn(session, { timeLimit }),
    actions: [{ type: 'ScheduleTimer', ...timeLimit }],
  };
};

const midTurn: ReadonlySet<StateName> = new Set(['CallingLlm', 'Error', 'ExecutingTools', 'PostToolsHook']);

const turnRuns = (state: State): boolean =>
  state.name === 'Compacting' ? state.mode.kind !== 'idle' : midTurn.has(state.name);

/** After a change of limits: a turn that runs gets the new time limit in place of the old one. */
export const resetClock = (state: State, before: Session, after: Session): Clocked => {
  const same = before.settings.limits.timeMs === after.settings.limits.timeMs;
  if (same || !turnRuns(state)) return { session: after, actions: [] };
  const started = startClock(after);
  return { session: started.session, actions: [...cancelled(after), ...started.actions] };
};

/** Entry of WaitingForUserInput and ShuttingDown: the time limit ends with the turn. */
export const stopClock = <S extends In<'WaitingForUserInput'> | In<'ShuttingDown'>>(state: S): Same<S> => {
  const session = changeTurn(state.session, { timeLimit: null });
  return go({ ...state, session }, ...cancelled(state.session));
};
