/**
 * The values of ask that `import 'pawl'` needs at once. They have a file of their own, so that
 * nothing else in `ask/` is loaded with the library.
 */

import type { Parity } from './settings.js';

/**
 * The settings with which runs behave like the program of seed 004, a published text about them.
 */
export const seedParity: Parity = {
  answerRecord: 'off',
  finalForms: 'on',
  fences: 'searched',
  emptyAnswer: 'wholeReply',
  limitAnswer: 'text',
  afterReady: 'run',
  programs: 'all',
  tags: 'repl',
};

/** No environment that was asked for works here; the message says why, and what to do. */
export class EnvironmentUnavailable extends Error {
  override readonly name = 'EnvironmentUnavailable';
}

/** A limit in dollars can't be kept, since a model has no known price. */
export class UnknownPrice extends Error {
  override readonly name = 'UnknownPrice';
}
