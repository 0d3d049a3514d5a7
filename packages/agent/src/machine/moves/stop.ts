/**
 * Stops a turn, from each state in which it can be stopped, and says so.
 *
 * From top to bottom: the cause, of which the first one stands; the move for each state that a
 * stop leaves; the moves of Cancelled and Failed; and the texts.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`, or `ignore(state, why)`. `rest` in the table is the move with which a
 * state begins to wait. `In<N>` is the state N, `On<T>` the event T.
 */

import type { Action } from '../action.js';
import {
  type Event,
  failureOrigin,
  type ModelError,
  type ModelErrorKind,
  type On,
} from '../event.js';
import type { AssistantMessage, Image } from '../message.js';
import {
  appendPartialReply,
  appendTexts,
  type CancelCause,
  type CancelledCause,
  cancelFacts,
  changeCalling,
  changeSession,
  go,
  type In,
  ignore,
  type MoveTo,
  type SessionUpdate,
  type State,
} from '../state.js';
import { countFailure, retractPartial } from './request.js';

/*
 * ---- The cause ----
 *
 * The table names the next state; the cause decides which guard applies.
 */

/** Whether a timer is the turn's own time limit. */
export const isTurnLimit = ({ session }: State, event: Event): boolean =>
  event.type === 'TimerFired' && session.turn.timeLimit?.timerId === event.timerId;

/** The cause that is already stored in the state: the first cause stands. */
const findStoredCause = (state: State): CancelCause | null => {
  switch (state.name) {
    case 'CallingLlm':
      return state.call.mode === 'draining' ? state.call.cause : null;
    case 'ExecutingTools':
      return state.phase.mode === 'cancelling' ? state.phase.cause : null;
    case 'CheckingForCancellation':
      return state.reply.draining;
    // Stryker disable next-line ConditionalExpression: nothing comes after the last case
    default:
      return null;
  }
};

/** Why the turn is being stopped. */
export const getStopCause = (state: State, event: Event): CancelCause =>
  findStoredCause(state) ?? (isTurnLimit(state, event) ? 'time' : 'user');

/** Whether the turn is being stopped already. */
export const isStopping = (state: State): boolean => findStoredCause(state) !== null;
/** Whether the turn is being stopped because of a limit. */
export const isStoppingAtLimit = (state: State): boolean => {
  const cause = findStoredCause(state);
  return cause !== null && cancelFacts(cause).ends.state === 'BudgetExceeded';
};

/** The cleanup of a state that a stop leaves. */
type LeaveState<S extends State, E extends Event> = (
  state: S,
  event: E,
  cause: CancelCause,
) => SessionUpdate;

/** Names the move after its cleanup, as diagrams show it. */
const named = <F extends object>(name: string, move: F): F =>
  Object.defineProperty(move, 'name', { value: name });

/** Makes the move to Cancelled from the cleanup of a state. */
export const cancelled = <S extends State, E extends Event>(leave: LeaveState<S, E>) =>
  named(leave.name, (state: S, event: E): MoveTo<'Cancelled'> => {
    const stop = getStopCause(state, event);
    const { session, actions } = leave(state, event, stop);
    const { ends } = cancelFacts(stop);
    // A branch of the table has chosen this move by the same cause, so it always ends in Cancelled.
    // Stryker disable next-line ConditionalExpression,EqualityOperator: the row has one cause
    const cause = ends.state === 'Cancelled' ? ends.cause : 'user';
    return go({ name: 'Cancelled', session, cause, text: cancelledText(cause) }, ...actions);
  });

/** Makes the move to BudgetExceeded from the cleanup of a state. */
export const exceeded = <S extends State, E extends Event>(leave: LeaveState<S, E>) =>
  named(leave.name, (state: S, event: E): MoveTo<'BudgetExceeded'> => {
    const stop = getStopCause(state, event);
    const { session, actions } = leave(state, event, stop);
    const { ends } = cancelFacts(stop);
    // As above: the cause always ends in BudgetExceeded.
    // Stryker disable next-line ConditionalExpression,EqualityOperator: the row has one cause
    const dimension = ends.state === 'BudgetExceeded' ? ends.dimension : 'time';
    return go({ name: 'BudgetExceeded', session, dimension }, ...actions);
  });

// ---- The cleanup of each state ----

type Calling = In<'CallingLlm'>;

export const ignoreTimer = <S extends State>(state: S) =>
  ignore(state, 'stale: the wait was already over');
export const isOtherTimer = (state: State, event: On<'TimerFired'>): boolean =>
  !isTurnLimit(state, event);
/** Ignores the time limit of a turn that is already being stopped. */
export const ignoreSecondLimit = <S extends State>(state: S) =>
  ignore(state, 'the turn is being stopped already');

// ---- CallingLlm ----

/**
 * Keeps partial text as the model's message, with a note for the next one; retracts blank text
 * (rules.md#cancel-request).
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
  return {
    session: changeSession(stored, { notes: [...session.notes, stopNote(cause)] }),
    actions: [],
  };
};

/** Whether the provider can't abort, so that the reply must be awaited. */
export const mustDrain = (state: Calling): boolean =>
  state.session.settings.cancelMode === 'drain' && !isStopping(state);

/**
 * The provider can't abort: waits for the reply and runs none of its calls
 * (rules.md#draining).
 */
export const drain = (state: Calling, event: Event): MoveTo<'CallingLlm'> =>
  go(changeCalling(state, { call: { mode: 'draining', cause: getStopCause(state, event) } }));

export const stopReply = (state: Calling, _event: Event, cause: CancelCause): SessionUpdate => {
  const { session, actions } = keepPartial(state, cause);
  return {
    session,
    actions: [{ type: 'AbortLlmRequest', requestId: state.requestId }, ...actions],
  };
};

/** A cancelled call failed: no retry, the received text is kept (rules.md#draining). */
export const keepFailedDrain = (
  state: Calling,
  event: On<'LlmFailed'>,
  cause: CancelCause,
): SessionUpdate => {
  const { session, actions } = keepPartial(state, cause);
  return { session: countFailure(session, event), actions };
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

export const stopHook = (
  state: In<'PostToolsHook'>,
  _event: Event,
  cause: CancelCause,
): SessionUpdate => ({
  session: appendTexts(state.session, 'note', [`${stopNote(cause)} ${hookNote}`]),
  actions: [{ type: 'AbortHook', hookId: state.hookId }],
});

export const stopCompaction = ({ session, compactionId }: In<'Compacting'>): SessionUpdate => ({
  session,
  actions: [{ type: 'AbortCompaction', compactionId }],
});

// ---- Cancelled, Failed ----

const notice = ({ text }: In<'Cancelled'>): Action => ({
  type: 'DisplayNotice',
  kind: 'cancelled',
  text,
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
  const reason = { kind: 'error', error, origin: failureOrigin(error), message } as const;
  return go(
    { name: 'WaitingForUserInput', session, reason, next: 'rest' },
    { type: 'DisplayError', text: message, origin: reason.origin },
  );
};

// ---- Texts ----

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** "900 ms", "2 s", "3 min", "5 h". */
export const durationText = (milliseconds: number): string => {
  if (milliseconds < second) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 2 * minute) return `${Math.round(milliseconds / second)} s`;
  if (milliseconds < 2 * hour) return `${Math.round(milliseconds / minute)} min`;
  return `${Math.round(milliseconds / hour)} h`;
};

const twoDigits = (value: number): string => String(value).padStart(2, '0');

/** The time at which a provider's limit resets, in UTC. */
export const resetText = (at: number, waitMs: number): string => {
  const due = at + waitMs;
  const clock = `${twoDigits(Math.floor(due / hour) % 24)}:${twoDigits(Math.floor(due / minute) % 60)}`;
  return `it resets in ${durationText(waitMs)}, at ${clock} UTC`;
};

/** A failed model call in plain words. */
export const modelErrorText = ({ kind, answered }: ModelError): string =>
  kind === 'unreachable' && answered === 'yes' ? 'the provider failed' : callSentences[kind];

const callSentences: Readonly<Record<ModelErrorKind, string>> = {
  rateLimited: 'the provider limits the rate',
  overloaded: 'the provider is overloaded',
  unreachable: 'the provider cannot be reached',
  timeout: 'the provider fell silent',
  contextOverflow: 'the conversation is too long for the model',
  auth: 'the provider refused the key',
  badRequest: 'the provider refused the request',
  quotaExhausted: 'the quota is used up',
  refused: 'the model refused',
  malformed: 'the reply could not be understood',
};

/** The note for the model about a turn that was stopped. */
export const stopNote = (cause: CancelCause | 'shutdown'): string =>
  `[interrupted${cause === 'shutdown' ? ': the session was closed' : cancelFacts(cause).note}]`;

/** The notice for the user about a turn that ended in Cancelled. */
export const cancelledText = (cause: CancelledCause): string => cancelledSentences[cause];

const cancelledSentences: Readonly<Record<CancelledCause, string>> = {
  user: 'cancelled',
  veto: 'stopped by a hook',
  policy: 'stopped by the stopping policy',
  approval: 'stopped: a call needed approval, and nobody was there to give it',
};
