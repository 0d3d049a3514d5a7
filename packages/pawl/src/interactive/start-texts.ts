/**
 * The texts of a start: the banner, and below it the queue and the grants of a resumed session, and
 * other sessions of the folder.
 */

import { homedir } from 'node:os';
import type { State } from '@pawl/agent/machine/state';
import { modelName } from '@pawl/terminal/live-area';
import { formatWhen, type Look, oneLine, paint, wrapWords } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { heldText } from '@pawl/terminal/step-lines';
import type { OpenedForUi } from '../detached/remote-session.js';
import { tornText } from '../sessions/session-text.js';
import { openElsewhere, storedJournals } from '../sessions/stored-sessions.js';
import { grantText } from './view.js';

/** Dimmed, and wrapped between words. */
const dimWords = (look: Look, text: Safe): Safe =>
  joinSafe(
    wrapWords(text, look.columns - 1).map((row) => paint(look, 'dim', row)),
    safe`\n`,
  );

/** A path with ~ for the home folder. Its start is cut if there is no room. */
const shortPath = (path: string, columns: number): Safe => {
  const home = process.env.HOME || homedir();
  const shown = makeSafe(
    path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path,
  );
  return shown.length <= columns ? shown : safe`…${shown.slice(1 - Math.max(2, columns))}`;
};

const SESSION_LABEL = safe`session `;

type BannerFacts = Omit<OpenedForUi, 'remote'>;

/** Two rows that fit the window: model; folder and the whole session id. */
const headRows = (look: Look, { session, settings }: BannerFacts): readonly Safe[] => {
  const sessionId = makeSafe(session.id);
  const columns = look.columns - 1;
  // The preset can change, and the row below the input line shows the present one. Only a plain
  // terminal has no such row, and `full` is a warning. Older journals have no preset.
  const isFull = settings.preset === 'full' && columns >= 60;
  const name = isFull ? 'full: no sandbox, nothing is asked' : settings.preset;
  const namesPreset = settings.preset === 'full' || look.plain === 'yes';
  const preset = name === undefined || !namesPreset ? safe`` : safe` · ${makeSafe(name)}`;
  const [provider = ''] = settings.model.split('/');
  // `scripted/PATH` plays a file instead of a model: the file's folder is of no use here.
  const id = provider === 'scripted' ? `scripted/${modelName(settings.model)}` : settings.model;
  const model = oneLine(id, columns - 'pawl · '.length - preset.length);
  const room = columns - SESSION_LABEL.length - sessionId.length - 3;
  const place = safe`${shortPath(settings.workspace, Math.max(4, room))} · `;
  return [
    safe`${paint(look, 'bold', safe`pawl`)}${paint(look, 'dim', safe` · ${model}${preset}`)}`,
    ...(room < 4
      ? [shortPath(settings.workspace, columns), sessionId].map((row) => paint(look, 'dim', row))
      : [paint(look, 'dim', safe`${place}${SESSION_LABEL}${sessionId}`)]),
  ];
};

const MAIN_KEYS = safe`Enter sends, also while it works · Escape stops · @ names files · /help`;

/**
 * Banner: model, folder, session id; for a new session also the main keys. It warns of a journal
 * whose last line was cut off by a crash (`tornTail`).
 */
export const banner = (look: Look, opened: BannerFacts): Safe => {
  const taught = look.plain === 'yes' ? safe`/help lists the commands` : MAIN_KEYS;
  const teaching = opened.resumed ? [] : [dimWords(look, taught)];
  const { tornTail } = opened.session;
  const torn = tornTail === null ? [] : [paint(look, 'yellow', tornText(tornTail))];
  return joinSafe([...headRows(look, opened), ...teaching, ...torn], safe`\n`);
};

/** Queued texts and grants of a resumed session; empty if there are none. */
export const resumedNotes = (look: Look, state: State): Safe => {
  const { grants } = state.session;
  const held = heldText(state);
  const rows = [
    ...(held === '' ? [] : [makeSafe(held)]),
    ...(grants.length === 0
      ? []
      : [
          makeSafe(
            'permissions still in force: ' +
              `${grants.map((grant) => grantText(grant)).join(', ')} (/permissions revokes ` +
              'them)',
          ),
        ]),
  ];
  return joinSafe(
    rows.map((row) => paint(look, 'dim', row)),
    safe`\n`,
  );
};

/** Number of recent sessions to search. `/resume` finds older ones. */
const SESSIONS_SEARCHED = 50;

/**
 * A session of this folder that another process has open; else, for a new session, the last one
 * here, and how to resume it.
 */
export const otherSessionNote = async (
  look: Look,
  workspace: string,
  sessionId: string,
  isNew: boolean,
): Promise<Safe> => {
  const holders = await openElsewhere(sessionId);
  let last: Safe | null = isNew ? null : safe``;
  let remaining = SESSIONS_SEARCHED;
  for await (const info of storedJournals().list()) {
    if ((last !== null && holders.size === 0) || remaining-- === 0) break;
    // Runs of `pawl ask` are of another kind. Without a title nothing was ever asked.
    const { kind, title, changedAt } = info;
    const isOther = info.sessionId !== sessionId && kind === 'agent' && title !== '';
    if (!isOther || info.workspace !== workspace) continue;
    const name = oneLine(title, 30);
    const pid = holders.get(info.sessionId);
    if (pid !== undefined)
      return dimWords(
        look,
        safe`another session is open in this folder: "${name}" (process ${pid})`,
      );
    last ??= dimWords(
      look,
      safe`last here: "${name}", ${formatWhen(changedAt)} · Alt+R or /resume`,
    );
  }
  return last ?? safe``;
};
