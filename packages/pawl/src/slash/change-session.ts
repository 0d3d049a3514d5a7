import { liveRights } from '@pawl/agent/api/session-settings';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import { formatWhen, oneLine } from '@pawl/terminal/paint-text';
import { isBusy } from '@pawl/terminal/status-row';
import { cutLine } from '@pawl/terminal/width';
import { readSeq } from '../flags.js';
import { forkId } from '../sessions/fork-session.js';
import { findSession, foldStored, storedJournals, userSessions } from '../sessions/stored-sessions.js';
import { type Command, type CommandContext, NotNow } from './command-context.js';

/** `/resume`, `/fork`, `/clear`, and editing the last input: change to another session in the same terminal. */

const SESSIONS_MAX = 100;

const restOnly = ({ view }: CommandContext): void => {
  if (isBusy(view.state)) throw new NotNow('A turn is running. Stop it with Escape, then try again.');
};

const othersHere = async ({ session, workspace }: CommandContext): Promise<readonly SessionInfo[]> =>
  (await userSessions())
    .filter((info) => info.workspace === workspace && info.sessionId !== session.id)
    .slice(0, SESSIONS_MAX);

export const resume: Command = async (context, words) => {
  restOnly(context);
  const { look } = context;
  if (words !== '') {
    const id = await findSession(words);
    if (id === context.session.id) throw new NotNow('That is this session.');
    return context.move({ resume: id, said: '' });
  }
  const others = await othersHere(context);
  if (others.length === 0) throw new NotNow('There is no other session in this folder.');
  // Date and id are never cut; the title takes the remaining columns.
  const idColumns = Math.max(...others.map(({ sessionId }) => sessionId.length));
  const titleColumns = Math.min(60, Math.max(8, look.columns - idColumns - 24));
  const choices = others.map(({ sessionId, changedAt, title }) => ({
    text: `${formatWhen(changedAt)}  ${cutLine(oneLine(title, Number.POSITIVE_INFINITY), titleColumns) || '(nothing was said)'}`,
    about: sessionId,
  }));
  const chosen = others[(await context.view.pick('Go on with:', choices)) ?? -1];
  if (chosen !== undefined) await context.move({ resume: chosen.sessionId, said: '' });
};

/** Forks this session after line `seq` of its journal. Returns the id of the fork. */
const copy = async ({ session }: CommandContext, seq: number): Promise<string> => {
  const id = forkId(session.id);
  await storedJournals().fork(session.id, seq, id, Date.now());
  return id;
};

const forkText = (from: string, seq: number): string =>
  `a fork of ${from} at ${seq}; the files are as they are now · back: /resume ${from}`;

export const fork: Command = async (context, words) => {
  restOnly(context);
  const last = (await storedJournals().peek(context.session.id)).seq;
  const seq = words === '' ? last : readSeq('/fork', words);
  if (seq > last) throw new NotNow(`The journal ends at ${last}.`);
  const id = await copy(context, seq);
  await context.move({
    resume: id,
    rights: liveRights(context.view.state),
    said: forkText(context.session.id, seq),
  });
};

export const clear: Command = async (context) => {
  restOnly(context);
  const { model } = context.view.state.session.settings;
  await context.move({
    resume: null,
    model,
    said: `a new session · the one before: /resume ${context.session.id}`,
  });
};

/** The user's inputs of the last turn, and the journal line before them; null if there was no input yet. */
const lastSaid = async (
  sessionId: string,
): Promise<{ readonly before: number; readonly texts: readonly string[] } | null> => {
  let found: { before: number; texts: string[] } | null = null;
  let resting = true;
  let last = 0;
  await foldStored(sessionId, undefined, ({ event, state, seq }) => {
    if (event.type === 'UserInput') {
      if (resting || found === null) found = { before: last, texts: [] };
      found.texts.push(event.text);
    }
    resting = !isBusy(state);
    last = seq ?? last;
  });
  return found;
};

/** Escape twice: forks the session before the last input, and puts that input into the line to edit. */
export const editLast = async (context: CommandContext, typedOf: (text: string) => string): Promise<void> => {
  restOnly(context);
  const said = await lastSaid(context.session.id);
  if (said === null) throw new NotNow('This session has no message yet.');
  const id = await copy(context, said.before);
  const text = said.texts.map(typedOf).join('\n');
  const rights = liveRights(context.view.state);
  await context.move({ resume: id, rights, said: forkText(context.session.id, said.before), text });
};
