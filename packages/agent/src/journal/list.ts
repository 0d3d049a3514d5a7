/**
 * Lists the sessions of a state folder by the beginning of each journal: header and first input.
 *
 * A session that was created here has a code beside its journal (state-folder.ts); a foreign one,
 * without a code, came from elsewhere.
 */

import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode, withRegular } from '../platform/files.js';
import { cut } from '../platform/text.js';
import type { Header, MachineTypes, SessionInfo } from '../ports/journal.js';
import type { Recorded } from './codec.js';
import { cannotRead, JournalError } from './journal-error.js';
import { JournalScan } from './reader.js';
import { machineKind } from './replay.js';
import {
  hasCode,
  isOwnJournal,
  parseDeletedName,
  parseJournalName,
  sessionsFolder,
} from './state-folder.js';

/** Small blocks, since header and title are at the beginning. */
const BLOCK_BYTES = 1 << 16;
const TITLE_LENGTH_MAX = 80;
/** Entries searched for the first input; if there is none among them, the session has no title. */
const TITLE_ENTRIES_MAX = 100;

/**
 * The sessions of these ids under a state folder, by default all, newest first; reads only header
 * and title of each.
 */
export async function* listSessions(
  stateFolder: string,
  sessionIds?: readonly string[],
): AsyncGenerator<SessionInfo, undefined> {
  if (sessionIds !== undefined) {
    yield* readSessions(stateFolder, sessionIds);
    return;
  }
  const deleted = await deletedIn(sessionsFolder(stateFolder));
  for await (const info of readSessions(stateFolder)) {
    if (!deleted.has(info.startedBy?.sessionId ?? '')) yield info; // a task starts no tasks
  }
}

/**
 * All sessions under a state folder, newest first, also tasks (sessions that a call started) of
 * sessions whose deletion is not finished.
 */
export async function* readSessions(
  stateFolder: string,
  sessionIds?: readonly string[],
): AsyncGenerator<SessionInfo, undefined> {
  for (const file of await findAll(sessionsFolder(stateFolder), sessionIds)) {
    const info = await readInfo(file).catch((error: unknown) =>
      errorCode(error) === 'ENOENT' ? null : unreadable(file, error),
    );
    if (info !== null) yield info; // else it was deleted meanwhile
  }
}

const userInput = ({ entry: { event } }: Recorded<MachineTypes>): string =>
  event.type === 'UserInput' && 'text' in event && typeof event.text === 'string' ? event.text : '';

/**
 * Where the text of a skill or command begins to which an input expands, and a text that an editor
 * attached.
 */
const EXPANDED =
  /\n[^\S\n]*(?:<(?:skill|command) name="|Attached: .*\n`{3}|Not attached: .*, which is )/;

/** What stands before a prompt whose answer must have a form. */
const ANSWER_FORMAT = /^<answer-format>\n[\s\S]*?\n<\/answer-format>\s*/;

/**
 * A text as the title of a session: one line of what the user typed, shortened; empty for a blank
 * text.
 */
export const titleFrom = (text: string): string => {
  const [typed = ''] = text.trim().replace(ANSWER_FORMAT, '').split(EXPANDED, 1);
  const words = typed.trim().replace(/\s+/g, ' ');
  return cut(words, TITLE_LENGTH_MAX);
};

/**
 * The title: the question of a run, or the first input among the first entries; undefined if there
 * is none.
 */
export const sessionTitle = (
  { settings }: Header<MachineTypes>,
  records: readonly Recorded<MachineTypes>[],
): string | undefined => {
  for (const text of [settings.question ?? '', ...records.map(userInput)]) {
    const title = titleFrom(text);
    if (title !== '') return title;
  }
  return undefined;
};

/** The row of a session in lists. */
export const summarise = (
  sessionId: string,
  header: Header<MachineTypes>,
  title: string,
  changedAt: number,
): SessionInfo => ({
  sessionId,
  kind: machineKind(header),
  workspace: header.workspace,
  createdAt: header.createdAt,
  changedAt,
  parent: header.parent,
  ...(header.startedBy === undefined ? {} : { startedBy: header.startedBy }),
  model: header.settings.model,
  title,
});

type JournalFile = {
  readonly sessionId: string;
  readonly path: string;
  readonly changedAt: number;
};

const readInfo = ({ sessionId, path, changedAt }: JournalFile): Promise<SessionInfo> =>
  withRegular(path, async (file, status) => {
    const scan = await JournalScan.begin(file, path, status.size, BLOCK_BYTES);
    let title: string | undefined;
    for await (const records of scan.records()) {
      title = sessionTitle(scan.header, records);
      if (title !== undefined || scan.seq >= TITLE_ENTRIES_MAX) break;
    }
    const damage = scan.ending.kind === 'damaged' ? `(damaged at line ${scan.line + 1}) ` : '';
    const info = summarise(sessionId, scan.header, `${damage}${title ?? ''}`.trim(), changedAt);
    return (await isOwnJournal(path, scan.header)) ? info : { ...info, isForeign: true };
  });

const explainUnreadable = (error: unknown): string => {
  if (!(error instanceof JournalError))
    return `(cannot be read: ${errorCode(error) || String(error)})`;
  return error.kind === 'newerVersion'
    ? '(written by a newer version of Pawl)'
    : '(damaged: the header is not readable)';
};

const unreadableBy = (error: unknown): Pick<SessionInfo, 'unreadable'> =>
  error instanceof JournalError && (error.kind === 'damaged' || error.kind === 'newerVersion')
    ? { unreadable: error.kind }
    : {};

/**
 * The list row of a session that can't be read; its title says why. One without a code came from
 * elsewhere.
 */
const unreadable = async (
  { sessionId, path, changedAt }: JournalFile,
  error: unknown,
): Promise<SessionInfo> => ({
  sessionId,
  kind: 'agent',
  workspace: '',
  createdAt: changedAt,
  changedAt,
  parent: null,
  model: '',
  title: explainUnreadable(error),
  ...unreadableBy(error),
  ...((await hasCode(dirname(dirname(path)), sessionId)) ? {} : { isForeign: true }),
});

const findOne = async (folder: string, fileName: string): Promise<JournalFile | undefined> => {
  const sessionId = parseJournalName(fileName);
  if (sessionId === undefined) return undefined;
  const path = join(folder, fileName);
  try {
    return { sessionId, path, changedAt: Math.floor((await stat(path)).mtimeMs) };
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined; // removed after the folder was read
    throw error;
  }
};

const findAll = async (
  folder: string,
  sessionIds?: readonly string[],
): Promise<readonly JournalFile[]> => {
  try {
    const names = sessionIds?.map((id) => `${id}.jsonl`) ?? (await readdir(folder));
    const files = await Promise.all(names.map((fileName) => findOne(folder, fileName)));
    return files
      .filter((one) => one !== undefined)
      .sort(
        (left, right) =>
          right.changedAt - left.changedAt || (left.sessionId < right.sessionId ? 1 : -1),
      );
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []; // no session yet
    throw cannotRead(folder, error);
  }
};

/** Ids of the sessions whose deletion is not finished. */
const deletedIn = async (folder: string): Promise<ReadonlySet<string>> => {
  // Without the folder there is no session, and a folder that can't be read is reported by whoever
  // lists it.
  const names = await readdir(folder).catch((): string[] => []);
  const ids = names.flatMap((name) => parseDeletedName(name) ?? []);
  return new Set(ids.filter((id) => !names.includes(`${id}.jsonl`)));
};
