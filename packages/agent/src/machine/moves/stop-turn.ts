import type { Event } from '../event.js';
import type { MoveTo, SessionUpdate } from '../move-result.js';
import { go } from '../move-result.js';
import type { State } from '../state.js';
import { type CancelCause, stopCauseFacts } from '../values/stop-cause.js';
import { cancelledText } from './common/failure-and-stop-texts.js';

/**
 * Stops a turn from outside, with one move for each state that is left. The table names the next state; the cause decides
 * which guard applies.
 */

/** Whether a timer is the turn's own time limit. */
export const isTurnLimit = ({ session }: State, event: Event): boolean =>
  event.type === 'TimerFired' && session.turn.timeLimit?.timerId === event.timerId;

/** The cause that is already stored in the state: the first cause stands. */
const causeHeld = (state: State): CancelCause | null => {
  switch (state.name) {
    case 'CallingLlm':
      return state.call.mode === 'draining' ? state.call.cause : null;
    case 'ExecutingTools':
      return state.phase.mode === 'cancelling' ? state.phase.cause : null;
    case 'CheckingForCancellation':
      return state.reply.draining;
    default:
      return null;
  }
};

/** Why the turn is being stopped. */
export const stopCauseOf = (state: State, event: Event): CancelCause =>
  causeHeld(state) ?? (isTurnLimit(state, event) ? 'time' : 'user');

/** Whether the turn is being stopped already. */
export const isStopping = (state: State): boolean => causeHeld(state) !== null;
/** Whether the turn is being stopped because of a limit. */
export const isStoppingAtLimit = (state: State): boolean => {
  const cause = causeHeld(state);
  return cause !== null && stopCauseFacts(cause).ends.state === 'BudgetExceeded';
};

type LeaveState<S extends State, E extends Event> = (state: S, event: E, cause: CancelCause) => SessionUpdate;

/** Names the move after its cleanup, as diagrams show it. */
const named = <F extends object>(name: string, move: F): F =>
  Object.defineProperty(move, 'name', { value: name });

/** Makes the move to Cancelled from the cleanup of a state. */
export const cancelled = <S extends State, E extends Event>(leave: LeaveState<S, E>) =>
  named(leave.name, (state: S, event: E): MoveTo<'Cancelled'> => {
    const stop = stopCauseOf(state, event);
    const { session, actions } = leave(state, event, stop);
    const { ends } = stopCauseFacts(stop);
    const cause = ends.state === 'Cancelled' ? ends.cause : 'user';
    return go({ name: 'Cancelled', session, cause, text: cancelledText(cause) }, ...actions);
  });

/** Makes the move to BudgetExceeded from the cleanup of a state. */
export const exceeded = <S extends State, E extends Event>(leave: LeaveState<S, E>) =>
  named(leave.name, (state: S, event: E): MoveTo<'BudgetExceeded'> => {
    const stop = stopCauseOf(state, event);
    const { session, actions } = leave(state, event, stop);
    const { ends } = stopCauseFacts(stop);
    const dimension = ends.state === 'BudgetExceeded' ? ends.dimension : 'time';
    return go({ name: 'BudgetExceeded', session, dimension }, ...actions);
  });
