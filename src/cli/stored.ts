import type { Settings } from '../agent/settings.js';
import { fileBlobs } from '../journal/blobs.js';
import { fileJournals } from '../journal/file.js';
import type { InspectableStore, StoredReplay } from '../journal/inspection.js';
import type { Blobs, SessionInfo, Watcher } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';
import { exitCodes, Stop } from './exit-codes.js';
import { stateFolder } from './state-folder.js';

/** Sessions as they lie on disk: found, looked at, folded; nothing is written. */

export const storedJournals = (): ReturnType<typeof fileJournals> =>
  fileJournals({ folder: stateFolder(process.env) });
export const storedBlobs = (): Blobs => fileBlobs(stateFolder(process.env));

export const allSessions = async (): Promise<readonly SessionInfo[]> => {
  const found: SessionInfo[] = [];
  for await (const info of storedJournals().list()) found.push(info);
  return found;
};

/** Those of one machine, newest first. */
export const sessionsOf = async (kind: SessionInfo['kind']): Promise<readonly SessionInfo[]> =>
  (await allSessions()).filter((info) => info.kind === kind);

/** The session that is meant by an id or by its unique beginning. */
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

/** The id of the session that is meant by an id or by its unique beginning. */
export const findSession = async (given: string): Promise<string> => (await findInfo(given)).sessionId;

/** Folds a stored journal up to `at`. Stops on damage before that point. */
export const foldStoredBy = async <M extends MachineTypes>(
  store: InspectableStore<M>,
  sessionId: string,
  at: number | undefined,
  visit?: Watcher<M>,
): Promise<StoredReplay<M>> => {
  const limits = { ...(at === undefined ? {} : { at }), ...(visit === undefined ? {} : { visit }) };
  const folded = await store.replay(sessionId, limits);
  if (folded.damage !== null && (at === undefined || folded.seq < at)) throw folded.damage;
  if (at !== undefined && folded.seq < at) {
    throw new Stop(
      exitCodes.usage,
      'usage',
      `--at ${at} lies beyond the end: the last entry is ${folded.seq}.`,
    );
  }
  return folded;
};

/** The same, of a session of the agent's. */
export const foldStored = (
  sessionId: string,
  at: number | undefined,
  visit?: Watcher,
): Promise<StoredReplay> => foldStoredBy(storedJournals(), sessionId, at, visit);

/** The settings of a session as they were changed last. */
export const recordedSettings = async (sessionId: string): Promise<Settings> => {
  const { header, records } = await storedJournals().inspect(sessionId);
  let settings = header.settings;
  for (const { entry } of records) {
    const { event } = entry;
    if (event.type === 'SettingsChanged') settings = { ...settings, ...event.patch };
    if (event.type === 'ApproveBudget') {
      const name = event.dimension === 'time' ? 'timeMs' : event.dimension;
      settings = { ...settings, limits: { ...settings.limits, [name]: event.limit } };
    }
  }
  return settings;
};
