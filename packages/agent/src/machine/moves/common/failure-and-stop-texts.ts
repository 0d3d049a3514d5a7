import type { ModelErrorKind } from '../../event.js';
import { type CancelCause, type StopCause, stopCauseFacts } from '../../values/stop-cause.js';

/** Texts that several moves use. */

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
export const modelErrorText = (kind: ModelErrorKind): string => callSentences[kind];

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
  `[interrupted${cause === 'shutdown' ? ': the session was closed' : stopCauseFacts(cause).note}]`;

/** The notice for the user about a turn that ended in Cancelled. */
export const cancelledText = (cause: StopCause): string => cancelledSentences[cause];

const cancelledSentences: Readonly<Record<StopCause, string>> = {
  user: 'cancelled',
  veto: 'stopped by a hook',
  policy: 'stopped by the stopping policy',
  approval: 'stopped: a call needed approval, and nobody was there to give it',
};
