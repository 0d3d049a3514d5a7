import type { On } from '../event.js';
import type { MoveTo, SessionUpdate } from '../move-result.js';
import { go, ignore } from '../move-result.js';
import type { In, RestingState } from '../state.js';
import { enqueue, isBlank } from './message-queue.js';
import { keepPartial } from './stop-cleanup.js';
import { settleForShutdown } from './tools/finish-batch.js';

/** Shutdown works from every state in one step and leaves a valid conversation. */

/** Ends the work of the state that is left. Its exit cancels the timers. */
const leave = (state: RestingState, event: On<'ShutdownRequested'>): SessionUpdate => {
  switch (state.name) {
    case 'CallingLlm': {
      const { session, actions } = keepPartial(state, 'shutdown');
      return { session, actions: [{ type: 'AbortLlmRequest', requestId: state.requestId }, ...actions] };
    }
    case 'ExecutingTools':
      return settleForShutdown(state, event);
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

export const shutDown = (state: RestingState, event: On<'ShutdownRequested'>): MoveTo<'ShuttingDown'> => {
  const { session, actions } = leave(state, event);
  return go({ name: 'ShuttingDown', session }, ...actions);
};

/** Rest of ShuttingDown. */
export const sayGoodbye = (state: In<'ShuttingDown'>): MoveTo<'ShuttingDown'> =>
  go(state, { type: 'Shutdown' });

/** Keeps input after the end for the next opening (docs/rules.md#after-shutdown). */
export const keepInput = (state: In<'ShuttingDown'>, event: On<'UserInput'>): MoveTo<'ShuttingDown'> =>
  isBlank(state, event)
    ? ignore(state, 'the session is over')
    : {
        ...go({ ...state, session: enqueue(state.session, event) }),
        late: 'the session is over; the text stays queued',
      };
