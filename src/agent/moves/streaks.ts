import { changeTurn } from '../change.js';
import type { Session } from '../state.js';
import type { EndedCall } from './outcomes.js';

/** What a turn does again and again: the facts of the stopping policies (limits repeats, errors, sameResults). */

/** FNV-1a over the UTF-16 units, in 32 bits: tells texts apart, protects nothing. */
const fingerprint = (text: string): string => {
  let hash = 0x81_1c_9d_c5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01_00_01_93);
  }
  return `${text.length}.${(hash >>> 0).toString(16)}`;
};

const callsOf = (calls: readonly EndedCall[]): string =>
  fingerprint(JSON.stringify(calls.map(({ judged }) => [judged.tool, judged.rawInput ?? judged.input])));

const resultsOf = (calls: readonly EndedCall[]): string =>
  fingerprint(JSON.stringify(calls.map(({ outcome }) => outcome.text)));

/** Counts one batch. What no limit asks for is not looked at. */
export const countStreaks = (session: Session, calls: readonly EndedCall[]): Session => {
  const { repeats, errors, sameResults } = session.settings.limits;
  if (!(repeats > 0 || errors > 0 || sameResults > 0)) return session;
  const before = session.turn.streaks;
  const streaks = {
    calls: callsOf(calls),
    results: resultsOf(calls),
    repeats: callsOf(calls) === before.calls ? before.repeats + 1 : 1,
    errors: calls.every(({ outcome }) => outcome.failed) ? before.errors + 1 : 0,
    sameResults: resultsOf(calls) === before.results ? before.sameResults + 1 : 1,
  };
  return changeTurn(session, { streaks });
};

/** At the start of every turn. */
export const noStreaks: Session['turn']['streaks'] = {
  calls: '',
  results: '',
  repeats: 0,
  errors: 0,
  sameResults: 0,
};
