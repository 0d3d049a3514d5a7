import type { Action } from '../action.js';
import { changeCalling, changeSession } from '../change-state.js';
import type { Event, On } from '../event.js';
import type { AssistantMessage, Image } from '../message.js';
import type { MoveTo, SessionUpdate } from '../move-result.js';
import { go, ignore } from '../move-result.js';
import type { In, State } from '../state.js';
import { originOf } from '../values/failure-origin.js';
import type { CancelCause } from '../values/stop-cause.js';
import { appendPartialReply, appendTexts } from './common/append-message.js';
import { countUsage } from './common/count-usage.js';
import { stopNote } from './common/failure-and-stop-texts.js';
import { retractPartial } from './common/send-request.js';
import { isStopping, isTurnLimit, stopCauseOf } from './stop-turn.js';

/** Cleanup for each state in which a turn can be stopped, and the moves of Cancelled and Failed. */

type Calling = In<'CallingLlm'>;

export const ignoreTimer = <S extends State>(state: S) => ignore(state, 'stale: the wait was already over');
export const isOtherTimer = (state: State, event: On<'TimerFired'>): boolean => !isTurnLimit(state, event);
/** Ignores the time limit of a turn that is already being stopped. */
export const ignoreSecondLimit = <S extends State>(state: S) =>
  ignore(state, 'the turn is being stopped already');

// ---- CallingLlm ----

/**
 * Keeps partial text as the model's message, with a note for the next one; retracts blank text
 * (docs/rules.md#cancel-request).
 */
export const keepPartial = (state: Calling, cause: CancelCause | 'shutdown'): SessionUpdate => {
  const { partial, requestId, session } = state;
  if (partial.trim() === '') return { session, actions: retractPartial(requestId, partial) };
  const { model } = session.settings;
  const message: AssistantMessage = {
    role: 'assistant',
    model,
    cut: true,
    parts: [{ type: 'text', text: partial }],
  };
  const stored = appendPartialReply(session, message, partial);
  return { session: changeSession(stored, { notes: [...session.notes, stopNote(cause)] }), actions: [] };
};

export const mustDrain = (state: Calling): boolean =>
  state.session.settings.cancelMode === 'drain' && !isStopping(state);

/** The provider can't abort: waits for the reply and runs none of its calls (docs/rules.md#draining). */
export const drain = (state: Calling, event: Event): MoveTo<'CallingLlm'> =>
  go(changeCalling(state, { call: { mode: 'draining', cause: stopCauseOf(state, event) } }));

export const stopReply = (state: Calling, _event: Event, cause: CancelCause): SessionUpdate => {
  const { session, actions } = keepPartial(state, cause);
  return { session, actions: [{ type: 'AbortLlmRequest', requestId: state.requestId }, ...actions] };
};

/** A cancelled call failed: no retry, the received text is kept (docs/rules.md#draining). */
export const keepFailedDrain = (
  state: Calling,
  event: On<'LlmFailed'>,
  cause: CancelCause,
): SessionUpdate => {
  const { session, actions } = keepPartial(state, cause);
  return { session: countUsage(session, event.requestId, event.usage), actions };
};

/** The call was not sent: the conversation is unchanged, and nothing was spent. */
export const stopForPolicy = (state: Calling, event: On<'PolicyStopped'>): MoveTo<'Cancelled'> => {
  const unaccounted = state.session.unaccounted.filter((usageId) => usageId !== state.requestId);
  const session = changeSession(state.session, { unaccounted });
  return go({ name: 'Cancelled', session, cause: 'policy', text: event.why });
};

// ---- Error, PostToolsHook, Compacting ----

export const stopRetrying = ({ session }: In<'Error'>): SessionUpdate => ({ session, actions: [] });

/** Exit of Error: cancels the retry timer, unless the timer fired. */
export const cancelRetryTimer = (state: In<'Error'>, event: Event): readonly Action[] =>
  event.type === 'TimerFired' && event.timerId === state.timerId
    ? []
    : [{ type: 'CancelTimer', timerId: state.timerId }];

const hookNote = 'files may have been changed by an interrupted hook';

export const stopHook = (state: In<'PostToolsHook'>, _event: Event, cause: CancelCause): SessionUpdate => ({
  session: appendTexts(state.session, 'note', [`${stopNote(cause)} ${hookNote}`]),
  actions: [{ type: 'AbortHook', hookId: state.hookId }],
});

export const stopCompaction = ({ session, compactionId }: In<'Compacting'>): SessionUpdate => ({
  session,
  actions: [{ type: 'AbortCompaction', compactionId }],
});

// ---- Cancelled, Failed ----

const notice = ({ text }: In<'Cancelled'>): Action => ({ type: 'DisplayNotice', kind: 'cancelled', text });
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
export const returnCancelled = (state: In<'Cancelled'>): MoveTo<'WaitingForUserInput'> =>
  go(waiting(state), notice(state));
export const returnAndSendQueue = (state: In<'Cancelled'>): MoveTo<'WaitingForUserInput'> =>
  go({ ...waiting(state), next: 'sendQueue' }, notice(state));
/** Gives the queue back to the editor: nothing typed is lost, nothing is sent unasked. */
export const returnAndRestoreQueue = (state: In<'Cancelled'>): MoveTo<'WaitingForUserInput'> => {
  const session = changeSession(state.session, { queue: [] });
  return go({ ...waiting(state), session }, notice(state), restore(state.session.queue));
};

type Restored = { readonly text: string; readonly images?: readonly Image[] };

/** Gives texts and their images back to the editor. */
export const restore = (inputs: readonly Restored[]): Action => {
  const texts = inputs.map(({ text }) => text);
  const images = inputs.map((input) => input.images ?? []);
  return images.every((shown) => shown.length === 0)
    ? { type: 'RestoreQueue', texts }
    : { type: 'RestoreQueue', texts, images };
};

export const returnFailed = (state: In<'Failed'>): MoveTo<'WaitingForUserInput'> => {
  const { session, error, message } = state;
  const reason = { kind: 'error', error, origin: originOf(error), message } as const;
  return go(
    { name: 'WaitingForUserInput', session, reason, next: 'rest' },
    { type: 'DisplayError', text: message, origin: reason.origin },
  );
};
