import { changeSession } from '../change-state.js';
import { openParts } from '../conversation.js';
import type { On } from '../event.js';
import type { Stay } from '../move-result.js';
import { go, ignore, withSession } from '../move-result.js';
import type { SessionData, State } from '../state.js';
import { hookNotes, hookRemarks } from '../values/hook-verdict.js';
import { appendTexts } from './common/append-message.js';
import { showObjections } from './common/hook-notices.js';

/** Hooks of the user at moments that have no other event. */

type Ran = On<'UserHooksRan'>;

/** What the model is told. Nobody can deny the start of a session, so its objections are for the user alone. */
const textsOf = ({ moment, verdicts }: Ran): readonly string[] => {
  switch (moment) {
    case 'after-batch':
      return hookRemarks(verdicts);
    case 'before-request':
    case 'session-start':
      return hookNotes(verdicts);
    case 'session-end':
    case 'ask-user':
      return [];
    default:
      return moment satisfies never;
  }
};

/** Whether the model reads the text already: in the next request, or with what is waiting for it. */
const stands = ({ notes, conversation }: SessionData, text: string): boolean =>
  notes.includes(text) ||
  openParts(conversation).some(
    (part) => part.type === 'text' && part.origin === 'note' && part.text === text,
  );

/**
 * Texts for the request that waits for the hooks, or else for the next one. The event can come twice; the model reads the
 * same text once.
 */
const told = (state: State, { requestId }: Ran, said: readonly string[]): SessionData => {
  const { session } = state;
  const texts = said.filter((text) => !stands(session, text));
  if (texts.length === 0) return session;
  const waits = state.name === 'CallingLlm' && state.requestId === requestId;
  return waits
    ? appendTexts(session, 'note', texts)
    : changeSession(session, { notes: [...session.notes, ...texts] });
};

/** Records what hooks said (docs/rules.md#user-hooks-report). */
export const hearHooks = <S extends State>(state: S, event: Ran): Stay<S> => {
  const session = told(state, event, textsOf(event));
  const shown = showObjections(event.verdicts);
  if (session === state.session && shown.length === 0) return ignore(state, 'the hooks had nothing to say');
  return go(session === state.session ? state : withSession(state, session), ...shown);
};
