import { changeTurn } from '../../change-state.js';
import type { SessionData } from '../../state.js';
import type { EndedCall } from './result-texts.js';

/** Loop detection: counts repeated batches for the limits repeats, errors and sameResults. */

/** FNV-1a over UTF-16 units, 32 bits: a fingerprint, not a cryptographic hash. */
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

/** Counts one batch, only for limits that are set. */
export const countStreaks = (session: SessionData, calls: readonly EndedCall[]): SessionData => {
  const { repeats, errors, sameResults } = session.settings.limits;
  if ([repeats, errors, sameResults].every((limit) => limit === 'unlimited')) return session;
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

/** The counts at the start of a turn. */
export const noStreaks: SessionData['turn']['streaks'] = {
  calls: '',
  results: '',
  repeats: 0,
  errors: 0,
  sameResults: 0,
};
