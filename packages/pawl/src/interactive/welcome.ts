import { homedir } from 'node:os';
import type { State } from '@pawl/agent/machine/state';
import { formatWhen, type Look, oneLine, paint } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { wrapWords } from '@pawl/terminal/width';
import type { Opened } from '../sessions/open-session.js';
import { tornText } from '../sessions/show/torn-journal-text.js';
import { storedJournals } from '../sessions/stored-sessions.js';
import { grantText } from './read-approval-answer.js';

/** Dimmed, and wrapped between words. */
const dimWords = (look: Look, text: Safe): Safe =>
  joinSafe(
    wrapWords(text, look.columns - 1).map((row) => paint(look, 'dim', row)),
    safe`\n`,
  );

/** A path with ~ for the home folder. Its start is cut if there is no room. */
const shortPath = (path: string, columns: number): Safe => {
  const home = process.env.HOME || homedir();
  const shown = makeSafe(path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path);
  return shown.length <= columns ? shown : safe`…${shown.slice(1 - Math.max(2, columns))}`;
};

const LABEL = safe`session `;

/** Two rows that fit the window: model and preset; folder and the whole session id. */
const headRows = (look: Look, { session, settings }: Opened): readonly Safe[] => {
  const id = makeSafe(session.id);
  const columns = look.columns - 1;
  // Older journals have no preset.
  const preset = settings.preset === undefined ? safe`` : safe` · ${makeSafe(settings.preset)}`;
  const model = oneLine(settings.model, columns - 7 - preset.length);
  const room = columns - LABEL.length - id.length - 3;
  const place = safe`${shortPath(settings.workspace, Math.max(4, room))} · `;
  return [
    safe`${paint(look, 'bold', safe`pawl`)}${paint(look, 'dim', safe` · ${model}${preset}`)}`,
    ...(room < 4
      ? [shortPath(settings.workspace, columns), id].map((row) => paint(look, 'dim', row))
      : [paint(look, 'dim', safe`${place}${LABEL}${id}`)]),
  ];
};

const TEACHING = safe`Enter sends, also while it works · Escape stops · @ names files · /help`;

/** Banner: model, preset, folder, session id; for a new session also the main keys. */
export const banner = (look: Look, opened: Opened): Safe => {
  const taught = look.plain === 'yes' ? safe`/help lists the commands` : TEACHING;
  const teaching = opened.resumed ? [] : [dimWords(look, taught)];
  const { tornTail } = opened.session;
  const torn = tornTail === null ? [] : [paint(look, 'yellow', tornText(tornTail))];
  return joinSafe([...headRows(look, opened), ...teaching, ...torn], safe`\n`);
};

/** Queued texts and grants of a resumed session; empty if there are none. */
export const resumedNotes = (look: Look, { session: { queue, grants } }: State): Safe => {
  const rows = [
    ...(queue.length === 0
      ? []
      : [
          safe`${queue.length} of your texts ${queue.length === 1 ? safe`waits` : safe`wait`}; your next message sends them too`,
        ]),
    ...(grants.length === 0
      ? []
      : [
          makeSafe(
            `permissions still in force: ${grants.map((grant) => grantText(grant)).join(', ')} (/permissions revokes them)`,
          ),
        ]),
  ];
  return joinSafe(
    rows.map((row) => paint(look, 'dim', row)),
    safe`\n`,
  );
};

/** Number of recent sessions to search. `/resume` finds older ones. */
const LOOKED_AT = 50;

/** For a new session: the last one in this folder, and how to resume it. */
export const lastSessionNote = async (look: Look, workspace: string, sessionId: string): Promise<Safe> => {
  let left = LOOKED_AT;
  for await (const info of storedJournals().list()) {
    const { kind, title, changedAt } = info;
    const isOther = info.sessionId !== sessionId && kind === 'agent' && title !== '';
    if (isOther && info.workspace === workspace)
      return dimWords(
        look,
        safe`last here: "${oneLine(title, 30)}", ${formatWhen(changedAt)} · /resume continues it`,
      );
    if (--left === 0) return safe``;
  }
  return safe``;
};
