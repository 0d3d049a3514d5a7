import type { Action } from '../action.js';
import { changeBatch, changeCalling, changeSession } from '../change.js';
import { lengthOf } from '../conversation.js';
import type { On } from '../event.js';
import type { Next, Same } from '../move.js';
import { go, ignore, withSession } from '../move.js';
import type { In, RestingState, Session } from '../state.js';
import { type Batch, isRunning, pumpAgain, put, showEnd } from './batch.js';
import { forceBatch } from './cancel.js';
import { hookAction } from './hooks.js';
import { endRunning, unknownText } from './outcomes.js';
import { retract } from './partial.js';
import { keepPartial } from './stop.js';

/**
 * The session was opened again (R83a-d). What was in flight follows from the state alone.
 *
 * Calls that were running are left to the runtime: it settles each by its effect class, as ordinary events.
 */

const opened = (session: Session, event: On<'Resumed'>): Session =>
  changeSession(session, { epoch: event.epoch });

const clockOf = (session: Session): readonly Action[] =>
  session.turn.timeLimit === null ? [] : [{ type: 'ScheduleTimer', ...session.turn.timeLimit }];

/** What a state waits for, as the actions that start it again under the same ids. */
const inFlight = (state: RestingState): readonly Action[] => {
  switch (state.name) {
    case 'Error':
      return [{ type: 'ScheduleTimer', timerId: state.timerId, dueAt: state.dueAt }];
    case 'Compacting': {
      const { compactionId, length, instructions } = state;
      const kept = instructions === undefined ? {} : { instructions };
      return [{ type: 'StartCompaction', compactionId, length, ...kept }];
    }
    case 'PostToolsHook':
      // A commit is not safe to repeat: the runtime reports that phase as interrupted.
      return state.phase === 'AutoCommitting' ? [] : [hookAction(state)];
    case 'CallingLlm':
    case 'ExecutingTools':
    case 'Ready':
    case 'WaitingForUserInput':
    case 'ShuttingDown':
      return [];
    default:
      return state satisfies never;
  }
};

/** Every opening counts one up: a Resumed of an epoch that was seen is a duplicate. */
export const isOldEpoch = (state: RestingState, event: On<'Resumed'>): boolean =>
  event.epoch <= state.session.epoch;
export const ignoreEpoch = <S extends RestingState>(state: S): Same<S> =>
  ignore(state, 'stale: the session was opened since');

/** Default: the state stays, what was in flight starts again (R83d). */
export const goOn = <S extends RestingState>(state: S, event: On<'Resumed'>): Same<S> =>
  isOldEpoch(state, event)
    ? ignoreEpoch(state)
    : go(withSession(state, opened(state.session, event)), ...clockOf(state.session), ...inFlight(state));

/** Waiting: the user is asked again. */
export const goOnWaiting = (
  state: In<'WaitingForUserInput'>,
  event: On<'Resumed'>,
): Next<'WaitingForUserInput'> =>
  go(withSession(state, opened(state.session, event)), { type: 'PromptForInput' });

/** After a clean end (R83a). */
export const openAgain = (state: In<'ShuttingDown'>, event: On<'Resumed'>): Next<'WaitingForUserInput'> => {
  const session = opened(state.session, event);
  return go({ name: 'WaitingForUserInput', session, reason: { kind: 'resumed' }, next: 'rest' });
};

// ---- CallingLlm (R83b) ----

/** The same request under the same id. */
export const sendSame = (state: In<'CallingLlm'>, event: On<'Resumed'>): Next<'CallingLlm'> => {
  const { requestId, purpose } = state;
  const session = opened(state.session, event);
  const length = lengthOf(session.conversation);
  return go(
    changeCalling(state, { session, partial: '' }),
    ...retract(requestId, state.partial),
    ...clockOf(session),
    {
      type: 'SendLlmRequest',
      requestId,
      purpose,
      length,
    },
  );
};
/** It was cancelled already: nothing is sent. */
export const endDrain = (state: In<'CallingLlm'>, event: On<'Resumed'>): Next<'Cancelled'> => {
  const { session, actions } = keepPartial(state, 'user');
  return go({ name: 'Cancelled', session: opened(session, event), cause: 'user' }, ...actions);
};
export const endDrainForTime = (state: In<'CallingLlm'>, event: On<'Resumed'>): Next<'BudgetExceeded'> => {
  const { session, actions } = keepPartial(state, 'time');
  return go({ name: 'BudgetExceeded', session: opened(session, event), dimension: 'time' }, ...actions);
};

// ---- ExecutingTools (R83c) ----

/** It was being cancelled: as if the grace were over; nothing starts. */
export const endBatch = (state: Batch, event: On<'Resumed'>): Next<'ExecutingTools'> =>
  forceBatch(changeBatch(state, { session: opened(state.session, event) }), event);

/** What has not run is decided anew; a call that was being cancelled ends. */
export const goOnWithBatch = (state: Batch, event: On<'Resumed'>): Next<'ExecutingTools'> => {
  const session = opened(state.session, event);
  const { batchId } = state;
  const cancelled = state.calls
    .filter(isRunning)
    .filter((call) => call.graceTimerId !== null)
    .map((call) => endRunning(call, event.at, 'cancelled', unknownText('user')));
  const left = put(changeBatch(state, { session }), ...cancelled);
  const pumped = pumpAgain(left, event.at);
  const shown = cancelled.map((call) => showEnd(batchId, call));
  return go(pumped.state, ...clockOf(session), ...shown, ...pumped.actions);
};
