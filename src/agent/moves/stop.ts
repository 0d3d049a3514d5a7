import type { Action } from '../action.js';
import { changeCalling, changeSession } from '../change.js';
import type { Event, On } from '../event.js';
import type { AssistantMessage } from '../message.js';
import type { Next } from '../move.js';
import { go, ignore } from '../move.js';
import type { CancelCause, In, Session, State, StopCause } from '../state.js';
import { account } from './account.js';
import { retract } from './partial.js';
import { storePartial, tell } from './tell.js';
import { stopNote } from './words.js';

/** How a turn is stopped from outside, and what Cancelled and Failed do (R60-R63, R67, R69, R77). */

type Calling = In<'CallingLlm'>;

/** Whether a timer is the turn's own time limit. */
export const isTurnLimit = (state: State, event: On<'TimerFired'>): boolean =>
  state.session.turn.timeLimit?.timerId === event.timerId;

export const ignoreTimer = <S extends State>(state: S) => ignore(state, 'stale: the wait was already over');

// ---- CallingLlm ----

/** Partial text is kept as the model's message, with a note for the next one; blank text is taken back (R61). */
export const keepPartial = (
  state: Calling,
  cause: CancelCause | 'shutdown',
): { readonly session: Session; readonly actions: readonly Action[] } => {
  const { partial, requestId, session } = state;
  if (partial.trim() === '') return { session, actions: retract(requestId, partial) };
  const { model } = session.settings;
  const message: AssistantMessage = {
    role: 'assistant',
    model,
    cut: true,
    parts: [{ type: 'text', text: partial }],
  };
  const stored = storePartial(session, message, partial);
  return { session: changeSession(stored, { notes: [...session.notes, stopNote(cause)] }), actions: [] };
};

const abortCall = (state: Calling): Action => ({ type: 'AbortLlmRequest', requestId: state.requestId });

export const isDraining = (state: Calling): boolean => state.call.mode === 'draining';
export const mustDrain = (state: Calling): boolean =>
  state.session.settings.cancelMode === 'drain' && state.call.mode === 'open';
export const isDrainingByTime = (state: Calling): boolean =>
  state.call.mode === 'draining' && state.call.cause === 'time';
export const drainedByLimit = (state: Calling, event: On<'TimerFired'>): boolean =>
  isTurnLimit(state, event) && isDraining(state);
export const limitMustDrain = (state: Calling, event: On<'TimerFired'>): boolean =>
  isTurnLimit(state, event) && mustDrain(state);

/** The provider cannot abort: the reply is awaited, and nothing of it is run (R62). */
export const drainForUser = (state: Calling): Next<'CallingLlm'> =>
  go(changeCalling(state, { call: { mode: 'draining', cause: 'user' } }));
export const drainForTime = (state: Calling): Next<'CallingLlm'> =>
  go(changeCalling(state, { call: { mode: 'draining', cause: 'time' } }));

export const stopReply = (state: Calling): Next<'Cancelled'> => {
  const { session, actions } = keepPartial(state, 'user');
  return go({ name: 'Cancelled', session, cause: 'user' }, abortCall(state), ...actions);
};
export const stopReplyForTime = (state: Calling): Next<'BudgetExceeded'> => {
  const { session, actions } = keepPartial(state, 'time');
  return go({ name: 'BudgetExceeded', session, dimension: 'time' }, abortCall(state), ...actions);
};

/** A cancelled call fails: no retry, what had come is kept (R21). */
export const keepFailedDrain = (state: Calling, event: On<'LlmFailed'>): Next<'Cancelled'> => {
  const { session, actions } = keepPartial(state, 'user');
  return go(
    { name: 'Cancelled', session: account(session, event.requestId, event.usage), cause: 'user' },
    ...actions,
  );
};
export const keepFailedDrainForTime = (state: Calling, event: On<'LlmFailed'>): Next<'BudgetExceeded'> => {
  const { session, actions } = keepPartial(state, 'time');
  const booked = account(session, event.requestId, event.usage);
  return go({ name: 'BudgetExceeded', session: booked, dimension: 'time' }, ...actions);
};

/** The call was not sent; the conversation stays as it is, and nothing was spent. */
export const stopForPolicy = (state: Calling, event: On<'PolicyStopped'>): Next<'Cancelled'> => {
  const { session, requestId } = state;
  const unaccounted = session.unaccounted.filter((usageId) => usageId !== requestId);
  return go(
    { name: 'Cancelled', session: changeSession(session, { unaccounted }), cause: 'policy' },
    { type: 'DisplayNotice', kind: 'cancelled', text: event.why },
  );
};

// ---- Error, PostToolsHook ----

export const stopRetrying = (state: In<'Error'>): Next<'Cancelled'> =>
  go({ name: 'Cancelled', session: state.session, cause: 'user' });
export const stopRetryingForTime = (state: In<'Error'>): Next<'BudgetExceeded'> =>
  go({ name: 'BudgetExceeded', session: state.session, dimension: 'time' });

/** Exit of Error: its timer ends with it, unless it is what ended it. */
export const cancelRetryTimer = (state: In<'Error'>, event: Event): readonly Action[] =>
  event.type === 'TimerFired' && event.timerId === state.timerId
    ? []
    : [{ type: 'CancelTimer', timerId: state.timerId }];

const hookNote = 'files may have been changed by an interrupted hook';
const abortHook = (state: In<'PostToolsHook'>): Action => ({ type: 'AbortHook', hookId: state.hookId });

export const stopHook = (state: In<'PostToolsHook'>): Next<'Cancelled'> => {
  const session = tell(state.session, 'note', [`${stopNote('user')} ${hookNote}`]);
  return go({ name: 'Cancelled', session, cause: 'user' }, abortHook(state));
};
export const stopHookForTime = (state: In<'PostToolsHook'>): Next<'BudgetExceeded'> => {
  const session = tell(state.session, 'note', [`${stopNote('time')} ${hookNote}`]);
  return go({ name: 'BudgetExceeded', session, dimension: 'time' }, abortHook(state));
};

// ---- Cancelled, Failed ----

const causeText: Readonly<Record<StopCause, string>> = {
  user: 'cancelled',
  veto: 'stopped by a hook',
  policy: 'stopped by the stopping policy',
  approval: 'stopped: a call needed approval, and nobody was there to give it',
};
const notice = (state: In<'Cancelled'>): Action => ({
  type: 'DisplayNotice',
  kind: 'cancelled',
  text: causeText[state.cause],
});
const queueWaits = (state: In<'Cancelled'>): boolean => state.session.queue.length > 0;
export const queueGoesOn = (state: In<'Cancelled'>): boolean =>
  queueWaits(state) && state.session.settings.queueOnCancel === 'send';
export const queueGoesBack = (state: In<'Cancelled'>): boolean =>
  queueWaits(state) && state.session.settings.queueOnCancel === 'restore';

const waiting = (state: In<'Cancelled'>): In<'WaitingForUserInput'> => ({
  name: 'WaitingForUserInput',
  session: state.session,
  reason: { kind: 'cancelled', cause: state.cause },
  next: 'rest',
});
export const returnCancelled = (state: In<'Cancelled'>): Next<'WaitingForUserInput'> =>
  go(waiting(state), notice(state));
export const returnAndSendQueue = (state: In<'Cancelled'>): Next<'WaitingForUserInput'> =>
  go({ ...waiting(state), next: 'sendQueue' }, notice(state));
/** The queue goes back into the editor: nothing typed is lost, nothing is sent unasked. */
export const returnAndRestoreQueue = (state: In<'Cancelled'>): Next<'WaitingForUserInput'> => {
  const texts = state.session.queue.map((item) => item.text);
  const session = changeSession(state.session, { queue: [] });
  return go({ ...waiting(state), session }, notice(state), { type: 'RestoreQueue', texts });
};

export const returnFailed = (state: In<'Failed'>): Next<'WaitingForUserInput'> => {
  const { session, error, message } = state;
  return go(
    { name: 'WaitingForUserInput', session, reason: { kind: 'error', error, message }, next: 'rest' },
    { type: 'DisplayError', text: message },
  );
};
