/**
 * The detached sessions of this user: for each a small file that its process writes, beside its
 * socket and its token.
 *
 * 1. The folder belongs to the user and is closed to others; both sides check that. So whoever
 *    listens there is the user, and so is whoever can read the token.
 * 2. The file says what the process did last. Whether the process lives is asked of its socket.
 *
 * From top to bottom: the folder; the record, and the words for what a session does; reading and
 * writing it; the status of a session, and the list.
 */

import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ServerQuestion } from '@pawl/agent/extensions/mcp/question';
import { cannotWrite } from '@pawl/agent/journal/journal-error';
import { acquireLock, isLocked, probeSocket } from '@pawl/agent/journal/lock';
import { journalPath, lockPath } from '@pawl/agent/journal/state-folder';
import { toldUsage } from '@pawl/agent/machine/moves/request';
import { knownCostUsd, type State } from '@pawl/agent/machine/state';
import { attempt, attemptNow } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import { stateFolder } from '@pawl/agent/platform/environment';
import {
  entryStatus,
  errorCode,
  readTextOrEmpty,
  withRegular,
  writePrivate,
} from '@pawl/agent/platform/files';
import { bootId, hasEnded, readProcess } from '@pawl/agent/platform/processes';
import { callTitle } from '@pawl/agent/policy/judged-call';
import { reasonText } from '@pawl/agent/session/turn';
import { formatDuration, oneLine } from '@pawl/terminal/paint';
import * as v from 'valibot';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { openStateFolder } from '../sessions/stored-sessions.js';
import type { RunFlags } from '../settings/flags.js';

const liveFolder = (): string => join(stateFolder(process.env), 'detached');

/** Why the folder can't be trusted, as the end of "it can't be used, since"; null if it can. */
const folderFault = (folder: string): string | null => {
  const status = entryStatus(folder);
  if (status === null || !status.isDirectory()) return 'it is not a folder';
  if (status.uid !== (process.geteuid?.() ?? status.uid))
    return `it belongs to another user (uid ${status.uid})`;
  return (status.mode & 0o077) === 0 ? null : 'others may use it';
};

/**
 * The folder of records and sockets, made if it is missing. Throws a `Stop` if anybody else could
 * put a socket there.
 */
export const openLiveFolder = (): string => {
  openStateFolder(process.env);
  const folder = liveFolder();
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST')
      throw new Stop(
        exitCodes.cannotWrite,
        'cannotWrite',
        `The folder for detached sessions can't be made: ${error instanceof Error ? error.message : error}`,
      );
  }
  const why = folderFault(folder);
  if (why === null) return folder;
  throw new Stop(
    exitCodes.configuration,
    'configuration',
    `Pawl does not use ${folder} for detached sessions, since ${why}: somebody else could answer ` +
      'there in your name. Move it away; Pawl makes it again.',
  );
};

type LivePaths = Readonly<Record<'record' | 'socket' | 'token' | 'log', string>>;

export const livePaths = (sessionId: string): LivePaths => {
  const path = (end: string): string => join(liveFolder(), `${sessionId}.${end}`);
  return { record: path('json'), socket: path('sock'), token: path('token'), log: path('log') };
};

const questionSchema = v.object({
  batchId: v.string(),
  callId: v.string(),
  tool: v.string(),
  title: v.string(),
});

const activitySchema = v.object({
  kind: v.picklist(['starting', 'working', 'waiting', 'resting']),
  /** What it does, in words without a time. */
  words: v.string(),
  sinceMs: v.number(),
  questions: v.array(questionSchema),
  costUsd: v.nullable(v.number()),
  /** `costUsd` is a lower bound. */
  atLeast: v.exactOptional(v.boolean()),
  rounds: v.number(),
});

/** The git worktree that was made for a session, and the commit that it began with. */
export const ownWorktreeSchema = v.object({
  /** Real path of the working tree of the repository. */
  repository: v.string(),
  path: v.string(),
  commit: v.string(),
});
export type OwnWorktree = v.InferOutput<typeof ownWorktreeSchema>;

const recordSchema = v.object({
  version: v.literal(1),
  sessionId: v.string(),
  workspace: v.string(),
  /** Folder in which the process was started. */
  cwd: v.string(),
  title: v.string(),
  /** As they were typed, for a process that is started again. */
  flags: v.record(v.string(), v.union([v.string(), v.boolean()])),
  startedAtMs: v.number(),
  worktree: v.exactOptional(ownWorktreeSchema),
  /** By these a later process with the same number is recognised as another one. */
  process: v.object({
    pid: v.number(),
    started: v.string(),
    /** Changes with each start of the computer. */
    bootId: v.string(),
    /** The space in which process numbers mean the same, such as a container. */
    pids: v.string(),
  }),
  activity: activitySchema,
  /**
   * How its process ended by itself; null while it runs, and if it was killed. `rested`: nobody
   * read it for a time after an answer, so it was closed.
   */
  end: v.nullable(
    v.object({ kind: v.picklist(['rested', 'failed']), words: v.string(), atMs: v.number() }),
  ),
});

export type LiveRecord = v.InferOutput<typeof recordSchema>;
type Activity = LiveRecord['activity'];
export type LiveQuestion = v.InferOutput<typeof questionSchema>;

/** The flags that a record can hold. */
export const storableFlags = (flags: RunFlags): LiveRecord['flags'] =>
  Object.fromEntries(
    Object.entries(flags).flatMap(([name, value]) =>
      typeof value === 'string' || typeof value === 'boolean' ? [[name, value]] : [],
    ),
  );

const WORDS_MAX = 100;

/** The calls that wait for an answer. */
export const questionsIn = (state: State): readonly LiveQuestion[] =>
  state.name === 'ExecutingTools'
    ? state.calls.flatMap(({ status, judged }) =>
        status === 'awaitingApproval'
          ? {
              batchId: state.batchId,
              callId: judged.callId,
              tool: judged.tool,
              title: oneLine(callTitle(judged, state.session.settings.workspace), WORDS_MAX),
            }
          : [],
      )
    : [];

const restWords = (state: State): string => {
  if (state.name !== 'WaitingForUserInput') return 'waits for your message';
  const why = reasonText(state.reason);
  if (why !== '') return oneLine(why, WORDS_MAX);
  return state.reason.kind === 'endOfTurn' ? 'has answered' : 'waits for your message';
};

const workWords = (state: State): string => {
  switch (state.name) {
    case 'CallingLlm':
      return 'model answers';
    case 'Error':
      return 'waits to ask the model again';
    case 'ExecutingTools': {
      const running = state.calls.find(({ status }) => status === 'running');
      const { workspace } = state.session.settings;
      return running === undefined
        ? 'starts tools'
        : `runs ${oneLine(callTitle(running.judged, workspace), WORDS_MAX)}`;
    }
    case 'PostToolsHook':
      return 'runs hooks';
    case 'Compacting':
      return 'shortens the conversation';
    case 'Rewinding':
      return 'takes changes back';
    default:
      return 'works';
  }
};

const waitingWords = (
  [first]: readonly LiveQuestion[],
  asked: ServerQuestion | null,
): string | null => {
  if (first !== undefined) return `waits for your answer: ${first.title}`;
  if (asked === null) return null;
  return oneLine(`waits for your answer to ${asked.server}: ${asked.message}`, WORDS_MAX);
};

/**
 * What a session does. `asked`: what an MCP server asks now. `before`: the same a step earlier,
 * which may have begun it.
 */
export const describeActivity = (
  state: State,
  asked: ServerQuestion | null,
  before: Activity | null,
  nowMs: number,
): Activity => {
  const questions = questionsIn(state);
  const waits = waitingWords(questions, asked);
  const rests = state.name === 'WaitingForUserInput' || state.name === 'Ready';
  const usage = toldUsage(state);
  const kind = waits !== null ? 'waiting' : rests ? 'resting' : 'working';
  const words = waits ?? (rests ? restWords(state) : workWords(state));
  const isSame = before !== null && before.kind === kind && before.words === words;
  return {
    kind,
    words,
    sinceMs: isSame ? before.sinceMs : nowMs,
    questions: [...questions],
    costUsd: knownCostUsd(usage),
    ...(usage.atLeast ? { atLeast: true } : {}),
    rounds: state.session.counters.request,
  };
};

const RECORD_BYTES_MAX = 256 * 1024;

const parseRecord = (text: string, sessionId: string): LiveRecord | null => {
  try {
    const parsed = v.safeParse(recordSchema, JSON.parse(text));
    return parsed.success && parsed.output.sessionId === sessionId ? parsed.output : null;
  } catch {
    return null; // cut short by a power loss: the journal has the session
  }
};

/** null without a readable record. */
export const readRecord = async (sessionId: string): Promise<LiveRecord | null> =>
  parseRecord(await readTextOrEmpty(livePaths(sessionId).record, RECORD_BYTES_MAX), sessionId);

/** Writes a file of the folder durably. Rejects with `cannotWrite`, which says what to do. */
export const storeFile = async (path: string, text: string): Promise<void> => {
  try {
    await writePrivate(path, `${text}\n`);
  } catch (error) {
    throw cannotWrite(path, error);
  }
};

/** Writes a record durably, for its beginning and its end. */
export const storeRecord = (record: LiveRecord): Promise<void> =>
  storeFile(livePaths(record.sessionId).record, JSON.stringify(record));

/** Writes a record for readers of this moment: what a power loss takes of it, the journal has. */
export const refreshRecord = async (record: LiveRecord): Promise<void> => {
  const { record: path } = livePaths(record.sessionId);
  await writeFile(`${path}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
};

/** Removes what lies in the folder about a session: all, or only what belongs to a process. */
export const removeLive = async (sessionId: string, what: 'socket' | 'record'): Promise<void> => {
  const { record, socket, token, log } = livePaths(sessionId);
  const files = what === 'record' ? [socket, token, `${record}.new`, log, record] : [socket, token];
  for (const file of files) await rm(file, { force: true });
};

/**
 * How it is with a session. `elsewhere`: another process, such as a terminal, has it open. Of a
 * session that no process has open: `closed` if it was deleted; `rested` or `failed` if its process
 * ended by itself (`end` of the record), also where that closed the journal; `closed` if another
 * process has ended it in order; else `died`.
 */
export type LiveStatus =
  | 'runs'
  | 'starting'
  | 'died'
  | 'rested'
  | 'failed'
  | 'elsewhere'
  | 'closed';

export type LiveSession = { readonly record: LiveRecord; readonly status: LiveStatus };

/** Whether a command of it may still run: the death of a process ends none. */
export const leftCommands = ({ record, status }: LiveSession): boolean =>
  status === 'died' && record.process.bootId === bootId();

/** More than the outcomes of cancelled calls, which follow the request to end in a journal. */
const TAIL_BYTES = 4 * 1024 * 1024;

const openingOrEnd = v.object({
  event: v.object({ type: v.picklist(['ShutdownRequested', 'Resumed']) }),
});

/** Whether the journal's last lines say that the session was ended in order. */
const isClosed = async (journal: string): Promise<boolean> => {
  const text = await withRegular(journal, async (file, { size }) => {
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
    await file.read(bytes, 0, bytes.length, size - bytes.length);
    return bytes.toString('utf8');
  });
  for (const line of text.split('\n').reverse()) {
    if (!/"(ShutdownRequested|Resumed)"/.test(line)) continue;
    const parsed = attemptNow(() => v.parse(openingOrEnd, JSON.parse(line)));
    if (parsed.kind === 'done') return parsed.value.event.type === 'ShutdownRequested';
  }
  return false;
};

/** What the process of a session is seen to do. */
export const processState = ({ process: known }: LiveRecord): 'stopped' | 'working' | 'other' => {
  if (hasEnded(known)) return 'other';
  const { state } = readProcess(known.pid); // empty where there is no /proc
  if (state === 'T' || state === 't') return 'stopped';
  return state === 'R' || state === 'D' ? 'working' : 'other';
};

const checkStatus = async (record: LiveRecord): Promise<LiveStatus> => {
  const { sessionId, end } = record;
  const isThisBoot = record.process.bootId === bootId();
  if (isThisBoot && (await probeSocket(livePaths(sessionId).socket)) === 'alive') return 'runs';
  if (end === null && isThisBoot && !hasEnded(record.process)) return 'starting';
  if (await isLocked(lockPath(stateFolder(process.env), sessionId))) return 'elsewhere';
  const journal = journalFile(record);
  if (!existsSync(journal)) return 'closed';
  if (end !== null) return end.kind;
  const closed = await attempt(() => isClosed(journal));
  return closed.kind === 'done' && closed.value ? 'closed' : 'died';
};

/** One detached session; null if there is none. */
export const findLive = async (sessionId: string): Promise<LiveSession | null> => {
  const record = await readRecord(sessionId);
  return record === null ? null : { record, status: await checkStatus(record) };
};

/** Age of a log whose start is over: a process reports within two minutes, or never. */
const START_LOG_MS = 10 * 60_000;

/** Removes logs of starts whose launcher was killed before their process knew its session. */
const removeStartLogs = (folder: string, names: readonly string[]): void => {
  for (const name of names) {
    const status = name.startsWith('start-') ? entryStatus(join(folder, name)) : null;
    if (status !== null && systemClock.now() - status.mtimeMs > START_LOG_MS)
      rmSync(join(folder, name), { force: true });
  }
};

const journalFile = ({ sessionId }: LiveRecord): string =>
  journalPath(stateFolder(process.env), sessionId);

/** Whether the session is stored and has a worktree of its own, which `pawl stop` releases. */
const hasWorktree = (record: LiveRecord): boolean =>
  record.worktree !== undefined &&
  existsSync(record.worktree.path) &&
  existsSync(journalFile(record));

/** Removes the record of a closed session, unless another process has begun with it since. */
const removeClosed = async ({ sessionId, process: known }: LiveRecord): Promise<void> => {
  const lock = await attempt(() => acquireLock(lockPath(stateFolder(process.env), sessionId)));
  if (lock.kind === 'fault') return; // the session is open again
  try {
    const now = (await readRecord(sessionId))?.process;
    if (isDeepStrictEqual(now, known)) await removeLive(sessionId, 'record');
  } finally {
    await lock.value.release();
  }
};

/** All detached sessions, the last started first. What belongs to none any more is removed. */
export const listLive = async (): Promise<readonly LiveSession[]> => {
  const folder = liveFolder();
  const status = entryStatus(folder);
  if (status === null) return [];
  const all = readdirSync(openLiveFolder());
  removeStartLogs(folder, all);
  const names = all.filter((name) => name.endsWith('.json'));
  const found = await Promise.all(names.map((name) => findLive(name.slice(0, -'.json'.length))));
  const listed = found.filter((one) => one !== null);
  const isOver = ({ record, status: now }: LiveSession): boolean =>
    now === 'closed' && !hasWorktree(record);
  for (const live of listed) if (isOver(live)) await removeClosed(live.record);
  return listed
    .filter((live) => !isOver(live))
    .sort((left, right) => right.record.startedAtMs - left.record.startedAtMs);
};

/** The state of a session in words, with the way on where it needs one. */
export const statusWords = ({ record, status }: LiveSession, nowMs: number): string => {
  const { activity, end } = record;
  switch (status) {
    case 'runs':
      return processState(record) === 'stopped'
        ? `is stopped by a signal: kill -CONT ${record.process.pid} lets it go on`
        : `${activity.words} ${formatDuration(Math.max(0, nowMs - activity.sinceMs))}`;
    case 'starting':
      return 'starts, or ends just now';
    case 'elsewhere':
      return 'is open in another process';
    case 'died':
      return `died (last change ${formatDuration(Math.max(0, nowMs - activity.sinceMs))} ago): pawl attach brings it back`;
    case 'failed':
      return `stopped: ${end?.words ?? ''}: pawl attach brings it back`;
    case 'rested':
      return `${activity.words} ${formatDuration(Math.max(0, nowMs - activity.sinceMs))} ago: pawl attach goes on`;
    case 'closed':
      return 'was ended: pawl stop releases its worktree';
    default:
      return status satisfies never;
  }
};
