/**
 * Stored sessions, from top to bottom: how they are listed and found; copied and folded (their
 * state is computed from the entries); chosen by the user; and the state folder where they are.
 */

import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { isLocked, readHolder } from '@pawl/agent/journal/lock';
import type { InspectableStore, StoredReplay } from '@pawl/agent/journal/reader';
import {
  fileBlobs,
  isOwnJournal,
  journalPath,
  lockPath,
  sessionsFolder,
} from '@pawl/agent/journal/state-folder';
import type { JournalStep } from '@pawl/agent/journal/steps';
import type { Settings } from '@pawl/agent/machine/settings';
import { stateFolder } from '@pawl/agent/platform/environment';
import { otherWriters } from '@pawl/agent/platform/trusted-folders';
import type { Blobs, MachineTypes, SessionInfo } from '@pawl/agent/ports/journal';
import type { SessionOrigin } from '@pawl/agent/session/session-settings';
import { formatWhen, oneLine } from '@pawl/terminal/paint';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { type RunFlags, usageStop } from '../settings/flags.js';

/** Settings of a stored session, and whether it was created here. */
export type RecordedSettings = { readonly settings: Settings; readonly origin: SessionOrigin };

/** Of a session that was not created here, and whose last rewind was cut off. */
export const CUT_FOREIGN_REWIND =
  'A program ended while the session took files back, and no start here takes the rest back: some ' +
  'files are as they were before the calls, others as after them. Files named .pawl-rewind-… in ' +
  'the workspace are left of it: they hold what one of its files held.';

const stores = new Map<string, ReturnType<typeof fileJournals>>();

/** One store of a folder in this process: a new one looks through all sessions for leftovers. */
export const storedJournals = (
  folder = stateFolder(process.env),
): ReturnType<typeof fileJournals> => {
  const store = stores.get(folder) ?? fileJournals({ folder });
  stores.set(folder, store);
  return store;
};
export const storedBlobs = (): Blobs => fileBlobs(stateFolder(process.env));

export const allSessions = async (): Promise<readonly SessionInfo[]> => {
  const all: SessionInfo[] = [];
  for await (const info of storedJournals().list()) all.push(info);
  return all;
};

/** The sessions of the agent that a user has started, newest first: no tasks. */
export const userSessions = async (): Promise<readonly SessionInfo[]> =>
  (await allSessions()).filter(
    ({ kind, startedBy }) => kind === 'agent' && startedBy === undefined,
  );

const unreadableText = (
  { sessionId, title }: SessionInfo,
  older: SessionInfo | undefined,
): string => {
  const path = journalPath(stateFolder(process.env), sessionId);
  const otherwise =
    older === undefined ? '' : `, or go on with an older one: --resume ${older.sessionId}`;
  return (
    `The session ${sessionId} can't be continued: ${title}. It may be the last one of ` +
    'this folder. ' +
    `Restore ${path} from a backup. If it is not the one that you mean, move it away${otherwise}.`
  );
};

/**
 * Tasks (`startedBy`) are gone on with by the session that started them, and sessions from
 * elsewhere (`isForeign`: imported or copied) only by their id.
 */
const isCandidate = (info: SessionInfo, kind: SessionInfo['kind'], workspace: string): boolean =>
  info.kind === kind &&
  info.workspace === workspace &&
  info.startedBy === undefined &&
  info.isForeign === undefined;

/**
 * The id of the last session of a folder; null if there is none. Throws a `Stop` if the header of a
 * newer session can't be read: it may be the one that the user means.
 */
export const lastSession = async (
  kind: SessionInfo['kind'],
  workspace: string,
): Promise<string | null> => {
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
  (await userSessions()).find((info) => info.workspace === workspace && info.isForeign === true)
    ?.sessionId ?? null;

/** Sessions but this one that another process has open, each with its process id. */
export const openElsewhere = async (sessionId: string): Promise<ReadonlyMap<string, number>> => {
  const folder = stateFolder(process.env);
  const pids = new Map<string, number>();
  for (const name of await readdir(sessionsFolder(folder))) {
    const id = name.endsWith('.lock') ? name.slice(0, -'.lock'.length) : sessionId;
    const path = lockPath(folder, id);
    if (id === sessionId || !(await isLocked(path))) continue;
    const holder = await readHolder(path);
    if (holder !== undefined) pids.set(id, holder.pid);
  }
  return pids;
};

/** The last session of the current folder. Tells the user which one it is. */
const lastInfo = async (all: readonly SessionInfo[]): Promise<SessionInfo> => {
  const workspace = realpathSync(process.cwd());
  const last = all.find((info) => isCandidate(info, 'agent', workspace));
  if (last === undefined)
    throw new Stop(
      exitCodes.badInput,
      'notFound',
      'No session was run in this folder. Name one by its id: pawl sessions lists all.',
    );
  writeError(safe`The last session of this folder: ${makeSafe(last.sessionId)}\n`);
  return last;
};

/**
 * Finds a session by its id or a unique prefix of it; without one, the last of this folder. Throws
 * a `Stop` if none or several match.
 */
export const findInfo = async (prefix: string): Promise<SessionInfo> => {
  const all = await allSessions();
  if (prefix === '') return lastInfo(all);
  const whole = all.find((info) => info.sessionId === prefix);
  if (whole !== undefined) return whole;
  const fitting = all.filter((info) => info.sessionId.startsWith(prefix));
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return only;
  throw new Stop(
    exitCodes.badInput,
    'notFound',
    only === undefined
      ? `No session '${prefix}' in ${stateFolder(process.env)}. pawl sessions lists them.`
      : `'${prefix}' fits ${fitting.length} sessions; write more of the id: ${fitting
          .slice(0, 4)
          .map((info) => info.sessionId)
          .join(', ')}.`,
  );
};

/** Finds a session's full id; see `findInfo`. */
export const findSession = async (prefix: string): Promise<string> =>
  (await findInfo(prefix)).sessionId;

/** The line up to which a fork copies: one after which the conversation is whole. */
export const findForkSeq = async (
  { sessionId, kind }: Pick<SessionInfo, 'sessionId' | 'kind'>,
  at: number,
): Promise<number> => {
  if (kind !== 'agent') return at;
  const { header } = await storedJournals().replay(sessionId, { at: 0 });
  const entries = () => storedJournals().read(sessionId);
  const { findWhole } = await import('@pawl/agent/session/rewind');
  // without such a line the fork is refused
  return (await findWhole({ header, entries }, at))?.seq ?? at;
};

/**
 * Copies a session up to line `seq` of its journal. Returns the copy's id, which sorts after the
 * original's.
 */
export const forkStored = async (sessionId: string, seq: number): Promise<string> => {
  const forkId = `${sessionId.slice(0, 100)}-${randomBytes(2).toString('hex')}`;
  await storedJournals().fork(sessionId, seq, forkId, Date.now());
  return forkId;
};

/**
 * Folds a stored journal up to entry `at`. Throws if it is damaged before that, or ends before it.
 */
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
    throw new Stop(
      exitCodes.usage,
      'usage',
      `--at ${at} is after the end: the last entry is ${folded.seq}.`,
    );
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
  const { path, header, state } = await storedJournals().replay(sessionId);
  const isOurs = await isOwnJournal(path, header);
  return { settings: state.session.settings, origin: isOurs ? 'own' : 'foreign' };
};

/**
 * Where the user of a stored session is. The folder of a foreign session was named by somebody
 * else, so the current folder counts; that of any other session the user has chosen.
 */
export const placeOfUser = (foreignUntil: number, workspace: string): string =>
  Number.isFinite(foreignUntil) ? workspace : realpathSync(process.cwd());

/** Reads a line in the terminal's own line mode. Ctrl-C ends the program. */
export const askLine = async (question: Safe): Promise<string> => {
  writeOut(question);
  const asking = createInterface({ input: process.stdin, terminal: false });
  try {
    return await new Promise<string>((resolve, reject) => {
      asking.on('line', resolve);
      asking.on('close', () => {
        writeOut(safe`\n`);
        reject(new Stop(exitCodes.usage, 'cancelled', 'Nothing was chosen.'));
      });
    });
  } finally {
    asking.removeAllListeners().close();
  }
};

/** `--resume` without an id: lists the sessions and lets the user choose one. */
export const chooseSession = async (flags: RunFlags): Promise<RunFlags> => {
  if (flags.resume !== true) return flags;
  const sessions = (await userSessions()).slice(0, 20);
  if (sessions.length === 0) throw usageStop('There is no session to resume yet.');
  for (const [index, info] of sessions.entries()) {
    const number = safe`${index + 1}`.padStart(3);
    writeOut(
      safe`${number}  ${formatWhen(info.changedAt)}  ${oneLine(info.workspace, Number.POSITIVE_INFINITY)}  ${oneLine(info.title, 60)}\n`,
    );
  }
  const answer = await askLine(safe`Which one? `);
  const info = sessions[Number(answer) - 1];
  if (info === undefined)
    throw usageStop(`'${answer}' is not a number from 1 to ${sessions.length}.`);
  return { ...flags, resume: info.sessionId };
};

/**
 * Makes the state folder if it is missing, private to the user. Throws a `Stop` if it can't be
 * written.
 */
export const openStateFolder = (environment: NodeJS.ProcessEnv): string => {
  const folder = stateFolder(environment);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new Stop(exitCodes.cannotWrite, 'cannotWrite', cannotKeep(folder, error));
  }
  for (const place of [folder, sessionsFolder(folder)]) refuseShared(place);
  return folder;
};

/**
 * Throws a `Stop` if somebody else can put sessions there: who opens one goes on with what was
 * pending in it. A folder that is not there yet is going to be private.
 */
const refuseShared = (folder: string): void => {
  const status = statSync(folder, { throwIfNoEntry: false });
  if (status === undefined) return;
  const userId = process.geteuid?.() ?? status.uid;
  // `sticky`: others may add files, and so sessions, though not replace those of the user
  const writers = otherWriters(status);
  const why =
    status.uid !== userId
      ? [
          `it belongs to another user (uid ${status.uid}, and you are ${userId})`,
          `chown -R ${userId} ${folder}`,
        ]
      : writers === 'others' || writers === 'sticky'
        ? ['others may write there', `chmod go-w ${folder}`]
        : null;
  if (why === null) return;
  throw new Stop(
    exitCodes.configuration,
    'configuration',
    `Pawl does not use ${folder}, since ${why[0]}: they could put sessions there that go on ` +
      'in your name. ' +
      `If all in it is yours: ${why[1]}. Or set XDG_STATE_HOME to a folder of your own.`,
  );
};

/**
 * The real reason why a folder can't be made. Node may report ENOENT, so the nearest existing
 * parent is tried.
 */
const explainUnwritable = (folder: string, error: unknown): string => {
  let above = folder;
  while (!existsSync(above) && above !== dirname(above)) above = dirname(above);
  try {
    accessSync(above, constants.W_OK);
  } catch (closer) {
    return closer instanceof Error ? closer.message : String(closer);
  }
  return error instanceof Error ? error.message : String(error);
};

const cannotKeep = (folder: string, error: unknown): string => {
  const why = explainUnwritable(folder, error);
  const parent = dirname(folder);
  return [
    `Pawl can't write its journal below ${parent}: ${why}.`,
    'A session without a journal could not be resumed, so none was started.',
    'Set XDG_STATE_HOME to a writable folder, for example XDG_STATE_HOME=/tmp/state.',
  ].join('\n');
};
