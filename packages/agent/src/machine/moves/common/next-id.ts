import { changeCounter } from '../../change-state.js';
import type { SessionData } from '../../state.js';

type Numbered = keyof SessionData['counters'];

/** The next id of a kind, e.g. `req-3`, and the session with the counter raised. Replay gives the same ids. */
export const nextId = (session: SessionData, kind: Numbered): readonly [string, SessionData] => {
  const count = session.counters[kind] + 1;
  return [`${idWords[kind]}-${count}`, changeCounter(session, kind, count)];
};

const idWords: Readonly<Record<Numbered, string>> = {
  request: 'req',
  batch: 'batch',
  timer: 'timer',
  hook: 'hook',
  compaction: 'compaction',
  input: 'input',
  turn: 'turn',
};
