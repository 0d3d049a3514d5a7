import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Header, SessionInfo } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';
import type { Recorded } from './codec.js';
import { cannotRead, codeOf, JournalError } from './error.js';
import { sessionIdOf, sessionsFolder } from './layout.js';
import { kindOf } from './machine.js';
import { Scan } from './scan.js';

/** Small reads: header and title stand at the beginning. */
const BLOCK_BYTES = 1 << 16;
const TITLE_LENGTH_MAX = 80;
/** A first input comes early or not at all. */
const TITLE_ENTRIES_MAX = 100;

const inputOf = ({ entry: { event } }: Recorded<MachineTypes>): string =>
  event.type === 'UserInput' && 'text' in event && typeof event.text === 'string' ? event.text : '';

/** The first words of the user: the question of a run, or the first input among the first entries; or undefined. */
export const titleOf = (
  { settings }: Header<MachineTypes>,
  records: readonly Recorded<MachineTypes>[],
): string | undefined => {
  for (const text of [settings.question ?? '', ...records.map(inputOf)]) {
    const words = text.trim().replace(/\s+/g, ' ');
    if (words === '') continue;
    return words.length > TITLE_LENGTH_MAX ? `${words.slice(0, TITLE_LENGTH_MAX - 1)}…` : words;
  }
  return undefined;
};

export const summarise = (
  sessionId: string,
  header: Header<MachineTypes>,
  title: string,
  changedAt: number,
): SessionInfo => ({
  sessionId,
  kind: kindOf(header),
  workspace: header.workspace,
  createdAt: header.createdAt,
  changedAt,
  parent: header.parent,
  model: header.settings.model,
  title,
});

type Found = { readonly sessionId: string; readonly path: string; readonly changedAt: number };

const readInfo = async ({ sessionId, path, changedAt }: Found): Promise<SessionInfo> => {
  const handle = await open(path, 'r');
  try {
    const scan = await Scan.begin(handle, path, (await handle.stat()).size, BLOCK_BYTES);
    let title: string | undefined;
    for await (const records of scan.records()) {
      title = titleOf(scan.header, records);
      if (title !== undefined || scan.seq >= TITLE_ENTRIES_MAX) break;
    }
    const damage = scan.ending.kind === 'damaged' ? `(damaged at line ${scan.line + 1}) ` : '';
    return summarise(sessionId, scan.header, `${damage}${title ?? ''}`.trim(), changedAt);
  } finally {
    await handle.close();
  }
};

const saysOf = (error: unknown): string => {
  if (!(error instanceof JournalError)) return `(cannot be read: ${codeOf(error) || String(error)})`;
  return error.kind === 'newerVersion'
    ? '(written by a newer version of Pawl)'
    : '(damaged: the header is not readable)';
};

/** A session that can't be read is listed too, with a title that says why. */
const unreadable = ({ sessionId, changedAt }: Found, error: unknown): SessionInfo => ({
  sessionId,
  kind: 'agent',
  workspace: '',
  createdAt: changedAt,
  changedAt,
  parent: null,
  model: '',
  title: saysOf(error),
});

const findOne = async (folder: string, fileName: string): Promise<Found | undefined> => {
  const sessionId = sessionIdOf(fileName);
  if (sessionId === undefined) return undefined;
  const path = join(folder, fileName);
  try {
    return { sessionId, path, changedAt: Math.floor((await stat(path)).mtimeMs) };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined; // removed since the folder was read
    throw error;
  }
};

const findAll = async (folder: string): Promise<readonly Found[]> => {
  try {
    const found = await Promise.all((await readdir(folder)).map((fileName) => findOne(folder, fileName)));
    return found
      .filter((one) => one !== undefined)
      .sort((left, right) => right.changedAt - left.changedAt || (left.sessionId < right.sessionId ? 1 : -1));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []; // no session was ever made here
    throw cannotRead(folder, error);
  }
};

/** All sessions under a state folder, newest first; reads of each no more than header and title. */
export async function* listSessions(stateFolder: string): AsyncGenerator<SessionInfo, undefined> {
  for (const found of await findAll(sessionsFolder(stateFolder))) {
    yield await readInfo(found).catch((error: unknown) => unreadable(found, error));
  }
}
