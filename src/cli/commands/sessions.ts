import type { SessionInfo } from '../../needs.js';
import { formatWhen, oneLine } from '../../terminal/print.js';
import { isBusy } from '../../terminal/status.js';
import { readSeq } from '../flags.js';
import { forkId } from '../fork.js';
import { findSession, foldStored, sessionsOf, storedJournals } from '../stored.js';
import { type Command, NotNow, type Room } from './room.js';

/** Other sessions, in the same window. */

const SESSIONS_MAX = 100;

const restOnly = ({ desk }: Room): void => {
  if (isBusy(desk.state)) throw new NotNow('A turn is running: Escape stops it, then say that again.');
};

const othersHere = async ({ session, workspace }: Room): Promise<readonly SessionInfo[]> =>
  (await sessionsOf('agent'))
    .filter((info) => info.workspace === workspace && info.sessionId !== session.id)
    .slice(0, SESSIONS_MAX);

export const resume: Command = async (room, words) => {
  restOnly(room);
  if (words !== '') {
    const id = await findSession(words);
    if (id === room.session.id) throw new NotNow('That is this session.');
    return room.move({ resume: id, said: '' });
  }
  const others = await othersHere(room);
  if (others.length === 0) throw new NotNow('There is no other session of this folder.');
  const choices = others.map(({ sessionId, changedAt, title }) => ({
    text: `${formatWhen(changedAt)}  ${oneLine(title, 60) || '(nothing was said)'}`,
    about: sessionId,
  }));
  const chosen = others[(await room.desk.pick('Go on with:', choices)) ?? -1];
  if (chosen !== undefined) await room.move({ resume: chosen.sessionId, said: '' });
};

/** A copy of this session up to a line; its id. */
const copy = async ({ session }: Room, seq: number): Promise<string> => {
  const id = forkId(session.id);
  await storedJournals().fork(session.id, seq, id, Date.now());
  return id;
};

const forkText = (from: string, seq: number): string =>
  `a fork of ${from} at ${seq}; the files are as they are now · back: /resume ${from}`;

export const fork: Command = async (room, words) => {
  restOnly(room);
  const last = (await storedJournals().peek(room.session.id)).seq;
  const seq = words === '' ? last : readSeq('/fork', words);
  if (seq > last) throw new NotNow(`The journal ends at ${last}.`);
  const id = await copy(room, seq);
  await room.move({ resume: id, said: forkText(room.session.id, seq) });
};

export const clear: Command = async (room) => {
  restOnly(room);
  const { model } = room.desk.state.session.settings;
  await room.move({
    resume: null,
    model,
    said: `a new session · the one before: /resume ${room.session.id}`,
  });
};

/** What was said since the user last could, and the line before it; null of a session in which nothing was said. */
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

/** Escape twice: the last input is edited, in a copy of the session that ends before it. */
export const editLast = async (room: Room, typedOf: (text: string) => string): Promise<void> => {
  restOnly(room);
  const said = await lastSaid(room.session.id);
  if (said === null) throw new NotNow('Nothing was said in this session yet.');
  const id = await copy(room, said.before);
  const text = said.texts.map(typedOf).join('\n');
  await room.move({ resume: id, said: forkText(room.session.id, said.before), text });
};
