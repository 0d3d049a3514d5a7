/**
 * The values of ask that `import 'pawl'` has at once. They stand apart, so that nothing in `ask/`
 * is loaded for them.
 */

import type { Parity } from './settings.js';

/** The rules of the seed's program. */
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
