import type { ModelErrorKind } from '../event.js';
import type { CancelCause } from '../state.js';

/** Sentences of the machine that several moves need. */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** "900 ms", "2 s", "3 min", "5 h". */
export const duration = (milliseconds: number): string => {
  if (milliseconds < second) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 2 * minute) return `${Math.round(milliseconds / second)} s`;
  if (milliseconds < 2 * hour) return `${Math.round(milliseconds / minute)} min`;
  return `${Math.round(milliseconds / hour)} h`;
};

const twoDigits = (value: number): string => String(value).padStart(2, '0');

/** When a limit of the provider resets, as a time of day in UTC. */
export const resetWords = (at: number, waitMs: number): string => {
  const due = at + waitMs;
  const clock = `${twoDigits(Math.floor(due / hour) % 24)}:${twoDigits(Math.floor(due / minute) % 60)}`;
  return `it resets in ${duration(waitMs)}, at ${clock} UTC`;
};

/** What went wrong with a model call, in plain words. */
export const callWords = (kind: ModelErrorKind): string => callSentences[kind];

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
export const stopNote = (cause: CancelCause | 'shutdown'): string => {
  switch (cause) {
    case 'user':
      return '[interrupted by the user]';
    case 'time':
      return '[interrupted: the time limit of the turn was reached]';
    case 'shutdown':
      return '[interrupted: the session was closed]';
    default:
      return cause satisfies never;
  }
};

export const by = (cause: CancelCause): string => (cause === 'user' ? 'by the user' : 'by the time limit');
