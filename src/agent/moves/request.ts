import type { Action } from '../action.js';
import { changeCounter, changeSession } from '../change.js';
import { lengthOf } from '../conversation.js';
import type { Purpose } from '../purpose.js';
import type { In, Session } from '../state.js';

type Numbered = keyof Session['counters'];

/** The next id of a kind, e.g. `request-3`, and the session that has used it: replay gives the same ids. */
export const nextId = (session: Session, kind: Numbered): readonly [string, Session] => {
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

/** A model call for the conversation as it stands, under a new id. */
export const sendRequest = (
  before: Session,
  purpose: Purpose,
  attempt: number,
): { readonly state: In<'CallingLlm'>; readonly actions: readonly Action[] } => {
  const [requestId, numbered] = nextId(before, 'request');
  const session = changeSession(numbered, { unaccounted: [...numbered.unaccounted, requestId] });
  const state = {
    name: 'CallingLlm',
    session,
    purpose,
    requestId,
    attempt,
    partial: '',
    call: { mode: 'open' },
  } as const;
  const length = lengthOf(session.conversation);
  return { state, actions: [{ type: 'SendLlmRequest', requestId, purpose, length }] };
};
