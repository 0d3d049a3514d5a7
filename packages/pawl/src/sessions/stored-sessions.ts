import { fileBlobs } from '@pawl/agent/journal/blobs';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { journalPath } from '@pawl/agent/journal/paths-and-durable-writes';
import type { InspectableStore, StoredReplay } from '@pawl/agent/journal/read/read-without-lock';
import type { JournalStep } from '@pawl/agent/journal/read/steps';
import { isOwn } from '@pawl/agent/journal/session-owner';
import type { Settings } from '@pawl/agent/machine/settings';
import { stateFolder } from '@pawl/agent/platform/base/user-folders';
import type { Blobs, SessionInfo } from '@pawl/agent/ports/journal';
import type { MachineTypes } from '@pawl/agent/ports/machine-types';
import type { SessionOrigin } from '@pawl/agent/session/in-process-runtime';
import { exitCodes, Stop } from '../exit-codes.js';

/** Reads stored sessions from disk: finds, lists and folds them. Writes nothing. */

/** Settings of a stored session, and whether it was created here. */
export type RecordedSettings = { readonly settings: Settings; readonly origin: SessionOrigin };

export const storedJournals = (): ReturnType<typeof fileJournals> =>
  fileJournals({ folder: stateFolder(process.env) });
export const storedBlobs = (): Blobs => fileBlobs(stateFolder(process.env));

export const allSessions = async (): Promise<readonly SessionInfo[]> => {
  const found: SessionInfo[] = [];
  for await (const info of storedJournals().list()) found.push(info);
  return found;
};

/** The sessions of the agent that a user has started, newest first: no tasks. */
export const userSessions = async (): Promise<readonly SessionInfo[]> =>
  (await allSessions()).filter(({ kind, startedBy }) => kind === 'agent' && startedBy === undefined);

const unreadableText = ({ sessionId, title }: SessionInfo, older: SessionInfo | undefined): string => {
  const path = journalPath(stateFolder(process.env), sessionId);
  const otherwise = older === undefined ? '' : `, or go on with an older one: --resume ${older.sessionId}`;
  return (
    `The session ${sessionId} can't be gone on with ${title}, and may be the last one of this folder. ` +
    `Restore ${path} from a backup. If it is not the one that you mean, move it away${otherwise}.`
  );
};

/** Tasks are gone on with by the session that started them, and sessions from elsewhere only by their id. */
const isCandidate = (info: SessionInfo, kind: SessionInfo['kind'], workspace: string): boolean =>
  info.kind === kind &&
  info.workspace === workspace &&
  info.startedBy === undefined &&
  info.isForeign === undefined;

/**
 * The id of the last session of a folder; null if there is none. Throws a `Stop` if the header of a newer session can't be
 * read: it may be the one that the user means.
 */
export const lastSession = async (kind: SessionInfo['kind'], workspace: string): Promise<string | null> => {
  const all = await allSessions();
  for (const info of all) {
    if (info.unreadable !== undefined && info.isForeign === undefined) {
      const older = all.find((one) => isCandidate(one, kind, workspace));
      throw new Stop(exitCodes.badInput, info.unreadable, unreadableText(info, older));
    }
    if (isCandidate(info, kind, workspace)) return info.sessionId;
  }
  return null;
};

/** The newest session of a folder that came from elsewhere; null if there is none. */
export const lastForeign = async (workspace: string): Promise<string | null> =>
  (await userSessions()).find((info) => info.workspace === workspace && info.isForeign === true)?.sessionId ??
  null;

/** Finds a session by its id or a unique prefix of it. Throws a `Stop` if none or several match. */
export const findInfo = async (given: string): Promise<SessionInfo> => {
  const all = await allSessions();
  const whole = all.find((info) => info.sessionId === given);
  if (whole !== undefined) return whole;
  const fitting = all.filter((info) => info.sessionId.startsWith(given));
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return only;
  throw new Stop(
    exitCodes.badInput,
    'notFound',
    only === undefined
      ? `No session '${given}' in ${stateFolder(process.env)}. pawl sessions lists them.`
      : `'${given}' fits ${fitting.length} sessions; write more of the id: ${fitting
          .slice(0, 4)
          .map((info) => info.sessionId)
          .join(', ')}.`,
  );
};

/** Finds a session's full id; see `findInfo`. */
export const findSession = async (given: string): Promise<string> => (await findInfo(given)).sessionId;

/** Folds a stored journal up to entry `at`. Throws if it is damaged before that, or ends before it. */
export const foldStoredBy = async <M extends MachineTypes>(
  store: InspectableStore<M>,
  sessionId: string,
  at: number | undefined,
  visit?: (step: JournalStep<M>) => void,
): Promise<StoredReplay<M>> => {
  const limits = { ...(at === undefined ? {} : { at }), ...(visit === undefined ? {} : { visit }) };
  const folded = await store.replay(sessionId, limits);
  if (folded.damage !== null && (at === undefined || folded.seq < at)) throw folded.damage;
  if (at !== undefined && folded.seq < at) {
    throw new Stop(exitCodes.usage, 'usage', `--at ${at} is after the end: the last entry is ${folded.seq}.`);
  }
  return folded;
};

/** Folds the stored journal of an agent session; see `foldStoredBy`. */
export const foldStored = (
  sessionId: string,
  at: number | undefined,
  visit?: (step: JournalStep) => void,
): Promise<StoredReplay> => foldStoredBy(storedJournals(), sessionId, at, visit);

/** The current settings of a stored session; of a damaged journal those before the damage. */
export const recordedSettings = async (sessionId: string): Promise<RecordedSettings> => {
  const { header, state } = await storedJournals().replay(sessionId);
  const isOurs = await isOwn(stateFolder(process.env), header);
  return { settings: state.session.settings, origin: isOurs ? 'own' : 'foreign' };
};
