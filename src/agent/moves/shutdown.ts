import type { Action } from '../action.js';
import type { Event, On } from '../event.js';
import type { Next } from '../move.js';
import { go, ignore } from '../move.js';
import type { In, RestingState, Session } from '../state.js';
import { enqueue, isBlank } from './queue.js';
import { settleForShutdown } from './settle.js';
import { keepPartial } from './stop.js';

/** Shutdown succeeds from everywhere in one step and leaves a valid conversation (R80-R82). */

type Left = { readonly session: Session; readonly actions: readonly Action[] };

/** What ends with the state that is left; timers are cancelled by its exit. */
const leave = (state: RestingState, event: Event): Left => {
  switch (state.name) {
    case 'CallingLlm': {
      const { session, actions } = keepPartial(state, 'shutdown');
      return { session, actions: [{ type: 'AbortLlmRequest', requestId: state.requestId }, ...actions] };
    }
    case 'ExecutingTools':
      return settleForShutdown(state, event.at);
    case 'PostToolsHook':
      return { session: state.session, actions: [{ type: 'AbortHook', hookId: state.hookId }] };
    case 'Compacting':
      return {
        session: state.session,
        actions: [{ type: 'AbortCompaction', compactionId: state.compactionId }],
      };
    case 'Ready':
    case 'WaitingForUserInput':
    case 'Error':
    case 'ShuttingDown':
      return { session: state.session, actions: [] };
    default:
      return state satisfies never;
  }
};

export const shutDown = (state: RestingState, event: On<'ShutdownRequested'>): Next<'ShuttingDown'> => {
  const { session, actions } = leave(state, event);
  return go({ name: 'ShuttingDown', session }, ...actions);
};

/** Rest of ShuttingDown. */
export const sayGoodbye = (state: In<'ShuttingDown'>): Next<'ShuttingDown'> =>
  go(state, { type: 'Shutdown' });

/** Typed after the end: kept for the next opening (R82). */
export const keepInput = (state: In<'ShuttingDown'>, event: On<'UserInput'>): Next<'ShuttingDown'> =>
  isBlank(state, event)
    ? ignore(state, 'the session is over')
    : {
        ...go({ ...state, session: enqueue(state.session, event) }),
        late: 'the session is over; the text stays queued',
      };
