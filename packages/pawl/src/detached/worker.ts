/**
 * The process of a detached session, which runs without a terminal: opens it, listens on its
 * socket, and follows it to its end. The launcher (launch.ts) is the command that starts this
 * process. A record is the file by which the list finds the session and what it does.
 *
 * From top to bottom: the request of the launcher, and the reports to it; the record; the session
 * as a node (a server like `pawl serve`), whose only client is the user; its rest, and answers that
 * do not come; and `runWorker`.
 *
 * 1. Whoever holds the session's lock, and nobody else, writes its record and owns its socket.
 * 2. The launcher is told the id when the input is in the journal. It may be gone by then.
 * 3. A signal ends the process as a crash would: the session goes on when it is started again. Only
 *    `pawl stop` ends it in order.
 */

import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, existsSync, renameSync, rmSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { ServerQuestion } from '@pawl/agent/extensions/mcp/question';
import { socketAddress, whenFree } from '@pawl/agent/journal/lock';
import { conversationLength } from '@pawl/agent/machine/conversation';
import type { State } from '@pawl/agent/machine/state';
import { attempt } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import { identifyProcess } from '@pawl/agent/platform/processes';
import type { Input, Stepped } from '@pawl/agent/ports/session';
import { createWatchBuffer } from '@pawl/agent/session/loop';
import { presetNames } from '@pawl/agent/session/session-settings';
import { ApiFault } from '@pawl/serve/api-fault';
import { keyOfToken, type ServeKey } from '@pawl/serve/keys';
import { type ServingNode, startNode } from '@pawl/serve/node';
import type { NodeRuntime, NodeSessionRecord, RecordStore } from '@pawl/serve/node-runtime';
import { harmless, warningText } from '@pawl/terminal/paint';
import { safe } from '@pawl/terminal/safe-text';
import { writeError } from '@pawl/terminal/write';
import * as v from 'valibot';
import { inputFrom } from '../headless/headless.js';
import { type ExitCode, errorEnding, exitCodes, Stop } from '../process/exit-codes.js';
import {
  describeActivity,
  type LiveRecord,
  livePaths,
  openLiveFolder,
  ownWorktreeSchema,
  questionsIn,
  readRecord,
  refreshRecord,
  removeLive,
  storableFlags,
  storeFile,
  storeRecord,
} from '../sessions/live-records.js';
import { type Opened, openFromFlags } from '../sessions/open-session.js';
import { type RecordedSettings, storedJournals } from '../sessions/stored-sessions.js';
import { withConfig } from '../settings/configuration.js';
import { type RunFlags, SESSION_CHOICE, unchangedFlags, withoutFlags } from '../settings/flags.js';
import { createOwnRequests, WaitingServerQuestion } from './own-requests.js';

/** What the launcher asks for, as JSON on stdin. */
export const workRequestSchema = v.object({
  flags: v.record(v.string(), v.union([v.string(), v.boolean()])),
  /** null: the session goes on as it is. */
  prompt: v.nullable(v.object({ text: v.string(), typed: v.string() })),
  /** The session to resume; null for a new one. */
  resume: v.nullable(v.string()),
  /** How the list calls it. */
  title: v.string(),
  /** `afterLauncher`: when the launcher, which has the session open, has ended. */
  begins: v.picklist(['now', 'afterLauncher']),
  worktree: v.exactOptional(ownWorktreeSchema),
  /** Where stderr goes until the id is known. */
  log: v.string(),
});
export type WorkRequest = v.InferOutput<typeof workRequestSchema>;

/** What the launcher is told, as one line of JSON on descriptor 3. */
export const workReportSchema = v.variant('kind', [
  v.object({
    kind: v.literal('started'),
    sessionId: v.string(),
    workspace: v.string(),
    preset: v.exactOptional(v.picklist([...presetNames, 'full'])),
  }),
  v.object({ kind: v.literal('waits') }),
  v.object({
    kind: v.literal('failed'),
    exit: v.number(),
    reason: v.string(),
    message: v.string(),
  }),
]);
export type WorkReport = v.InferOutput<typeof workReportSchema>;

/** The descriptor that reports are written to. */
const REPORT = 3;

/** Once the descriptor is closed, its number may be that of another file. */
let isReportOpen = true;

const report = (message: WorkReport): void => {
  if (!isReportOpen) return;
  try {
    writeSync(REPORT, `${JSON.stringify(message)}\n`);
    if (message.kind === 'waits') return;
    isReportOpen = false;
    closeSync(REPORT);
  } catch {
    // the launcher was killed: pawl sessions --live tells what became of its session
  }
};

const readRequest = async (): Promise<WorkRequest> => {
  let text = '';
  for await (const piece of process.stdin.setEncoding('utf8')) text += piece;
  return v.parse(workRequestSchema, JSON.parse(text));
};

const warn = (text: string): void => writeError(safe`${warningText(text)}\n`);

/** A record is written at most this often while the session works. */
const REFRESH_MS = 200;

/** Keeps the record of the session up to date. */
class RecordKeeper {
  #record: LiveRecord;
  /** Whether the last change is written, or is being written. */
  #isWritten = true;
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(record: LiveRecord) {
    this.#record = record;
  }

  /** `asked`: what an MCP server asks the user now. */
  see(state: State, asked: ServerQuestion | null): void {
    const { activity } = this.#record;
    const now = describeActivity(state, asked, activity, systemClock.now());
    if (JSON.stringify(now) === JSON.stringify(activity)) return;
    this.#record = { ...this.#record, activity: now };
    this.#isWritten = false;
    this.#timer ??= setTimeout(() => this.#refresh(), REFRESH_MS);
  }

  #refresh(): void {
    this.#timer = null;
    if (this.#isWritten) return;
    this.#isWritten = true;
    const record = this.#record;
    // only the list of sessions is behind until the next change
    this.#writing = this.#writing.then(() => refreshRecord(record)).catch(() => undefined);
  }

  /** Durable; the last word about the session. */
  async end(end: LiveRecord['end']): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#writing;
    this.#record = { ...this.#record, end };
    await storeRecord(this.#record);
  }
}

// The session as a node: a server like `pawl serve`, on a socket and for one session.

const OWNER = 'owner';

/** The key of the user, whose requests have no limits. */
const ownerKey = (token: string): ServeKey => {
  const read = keyOfToken(token);
  const [key] = read.kind === 'ok' ? read.keys : [];
  if (key === undefined) throw new Error('the token of the session is no token');
  const limits = { ...key.limits, requestsPerMinute: 1_000_000, streams: 1_000 };
  return { ...key, name: OWNER, limits, isOwner: 'yes' }; // may send all requests
};

/** The one record of the node: its session belongs to the user. */
const singleRecordStore = (sessionId: string, workspace: string): RecordStore => {
  let record: NodeSessionRecord = {
    version: 1,
    sessionId,
    key: OWNER,
    workspace: { kind: 'folder', path: workspace },
    isOpen: true,
    notice: '',
  };
  return {
    get: async (id) => (id === sessionId ? record : undefined),
    ofKey: async () => [record],
    countOpen: async () => Number(record.isOpen),
    inWorktree: async () => [],
    createdBy: async () => undefined,
    put: async (changed) => {
      record = changed;
    },
  };
};

type TypedAnswer = Extract<Input, { readonly type: 'ApprovalAnswered' }>;

/** Whether the call waits for this answer. */
const isAsked = (state: State, { batchId, callId }: TypedAnswer): boolean =>
  state.name === 'ExecutingTools' &&
  state.batchId === batchId &&
  state.calls.some(
    ({ status, judged }) => status === 'awaitingApproval' && judged.callId === callId,
  );

/** Answers that are remembered, to tell whether a late one came second. */
const ANSWERS_KEPT = 1_000;

/**
 * Takes answers one after another. One that comes too late is refused and is not journaled, so its
 * sender is never told that it counts.
 */
const createAnswerQueue = (runtime: Opened['runtime'], sessionId: string) => {
  /** The answers that counted, with the ids of their requests. */
  let answered = new Map<string, string | undefined>();
  /** The entry of the last answer that the machine ignored. */
  let ignoredSeq: number | null = null;
  let last: Promise<unknown> = Promise.resolve();
  const keyIn = ({ batchId, callId }: Pick<TypedAnswer, 'batchId' | 'callId'>): string =>
    `${batchId} ${callId}`;
  runtime.watch(sessionId, ({ seq, event, diagnostics }) => {
    if (event.type !== 'ApprovalAnswered') return;
    if (diagnostics.length > 0) ignoredSeq = seq;
    else
      answered = new Map([
        ...[...answered].slice(-ANSWERS_KEPT),
        [keyIn(event), event.clientRequestId],
      ]);
  });
  const refused = (input: TypedAnswer): ApiFault => {
    const why = answered.has(keyIn(input))
      ? 'was answered before'
      : 'is not asked any more, or takes no such answer';
    return new ApiFault('conflict', `The question ${why}: this answer changed nothing.`);
  };
  const take = async (input: TypedAnswer) => {
    const { clientRequestId: id } = input;
    // the answer that counted, sent again: the session knows its entry
    const isAgain = id !== undefined && answered.get(keyIn(input)) === id;
    const { state } = await runtime.state(sessionId);
    if (!isAgain && !isAsked(state, input)) throw refused(input);
    const sent = await runtime.send(sessionId, input);
    if (ignoredSeq === sent.seq) throw refused(input); // its turn ended just now
    return sent;
  };
  return (input: TypedAnswer) => {
    const taken = last.then(() => take(input));
    last = taken.catch(() => undefined); // its sender is told
    return taken;
  };
};

/** The session as the node sees it. */
const ownRuntime = (
  { session, runtime, settings, servers }: Opened,
  serverQuestion: WaitingServerQuestion,
): NodeRuntime => {
  const own = createOwnRequests({ session, servers, serverQuestion });
  const answer = createAnswerQueue(runtime, session.id);
  return {
    endsWithNode: false,
    records: singleRecordStore(session.id, settings.workspace),
    create: () => {
      throw new ApiFault(
        'notAllowed',
        'This process runs one session only: pawl -p "PROMPT" --detach.',
      );
    },
    open: async () => undefined, // it is open as long as the process runs
    send: (sessionId, input) =>
      input.type === 'ApprovalAnswered' ? answer(input) : runtime.send(sessionId, input),
    read: (sessionId, from) => runtime.read(sessionId, from),
    watch: (sessionId, watcher) => runtime.watch(sessionId, watcher),
    state: (sessionId) => runtime.state(sessionId),
    fork: (sessionId, seq) => runtime.fork(sessionId, seq),
    list: (sessionIds) => runtime.list(sessionIds),
    own: (_sessionId, body) => own(body),
    close: (sessionId) => runtime.close(sessionId),
  };
};

/** Listens on the session's socket. The session's lock is held: an older socket is a dead one. */
const listen = async (
  opened: Opened,
  serverQuestion: WaitingServerQuestion,
): Promise<ServingNode> => {
  const { session } = opened;
  openLiveFolder();
  const { socket, token: tokenFile } = livePaths(session.id);
  const token = randomBytes(24).toString('base64url');
  await storeFile(tokenFile, token);
  rmSync(socket, { force: true });
  const address = socketAddress(socket);
  const node = await startNode({
    runtime: ownRuntime(opened, serverQuestion),
    keys: [ownerKey(token)],
    host: '127.0.0.1',
    port: 0,
    socketPath: address.path,
    attended: session.id, // a reader who comes in the middle of a reply gets its beginning
    names: ['localhost'],
    recordsFolder: '', // not used: the runtime has the record
    // Not used either: the node opens no other session.
    workspaces: {
      folders: [opened.settings.workspace],
      repositories: new Map(),
      dataFolder: '',
      environment: process.env,
      signal: new AbortController().signal,
    },
    report: (fault) => warn(fault.message),
  });
  chmodSync(socket, 0o600);
  return node;
};

/** `earlier`: the record of the session's last process, whose worktree stays its own. */
const newRecord = (
  earlier: LiveRecord | null,
  { flags, title, worktree = earlier?.worktree }: WorkRequest,
  sessionId: string,
  state: State,
): LiveRecord => ({
  version: 1,
  sessionId,
  workspace: state.session.settings.workspace,
  cwd: process.cwd(),
  title,
  flags: storableFlags(flags),
  startedAtMs: systemClock.now(),
  ...(worktree === undefined ? {} : { worktree }),
  process: identifyProcess(),
  activity: {
    ...describeActivity(state, null, null, systemClock.now()),
    kind: 'starting',
    words: 'starts',
  },
  end: null,
});

// Its rest, and answers that do not come

/** When garbage is collected after a turn, which V8 would keep until the next one needs room. */
const COLLECT_AFTER_MS = 2_000;

/**
 * How long a session that has answered rests before it is closed. Nobody looks at it, and it costs
 * memory: attach opens it again.
 */
const REST_MS = 10 * 60_000;

/**
 * Collects garbage soon after a turn, and closes a session that rests for `restMs` while nobody
 * reads it, nothing waits for an answer, and no job runs.
 */
const watchRest = (
  opened: Opened,
  node: ServingNode,
  serverQuestion: WaitingServerQuestion,
  restMs: number,
): { see(state: State): void; stop(): void; readonly hasRested: () => boolean } => {
  let timer: NodeJS.Timeout | null = null;
  let collection: NodeJS.Timeout | null = null;
  let hasRested = false;
  const stop = (): void => {
    for (const one of [timer, collection]) if (one !== null) clearTimeout(one);
    timer = null;
    collection = null;
  };
  const arm = (): void => {
    timer = setTimeout(() => {
      const isAsked = serverQuestion.now.question !== null;
      if (isAsked || node.readers() > 0 || opened.session.jobs().length > 0) return arm();
      hasRested = true;
      opened.session.close().catch(() => undefined); // `ended` rejects with the same fault
    }, restMs).unref();
  };
  return {
    see: ({ name }) => {
      stop();
      if (name !== 'WaitingForUserInput') return;
      arm();
      collection = setTimeout(() => {
        // some builds of Node lack the inspector, and their garbage stays
        if (node.readers() === 0) collectGarbage().catch(() => undefined);
      }, COLLECT_AFTER_MS).unref();
    },
    stop,
    hasRested: () => hasRested,
  };
};

const MINUTE_MS = 60_000;

/** The user's time limit for answers in milliseconds; null: a question waits for ever. */
const readAnswerLimit = async (flags: RunFlags, workspace: string): Promise<number | null> => {
  // The configuration adds to the flags what was not typed.
  const { answerMinutes } = await withConfig(flags, workspace, {
    command: 'run',
    resumed: true,
    warn: () => undefined, // opening the session has warned
  });
  return answerMinutes === undefined ? null : Number(answerMinutes) * MINUTE_MS;
};

/** Refuses calls that nobody has answered in time. */
const limitAnswers = ({ session }: Opened, limitMs: number | null) => {
  const cancels = new Map<string, () => void>();
  const refuse = (batchId: string, callId: string): void => {
    const reason = `nobody answered within ${(limitMs ?? 0) / MINUTE_MS} minutes`;
    const answer = { kind: 'deny', reason } as const;
    session
      .send({ type: 'ApprovalAnswered', batchId, callId, answer, scope: 'once' })
      .catch(() => undefined); // the session has ended, and with it the question
  };
  return (state: State): void => {
    if (limitMs === null) return;
    const waiting = questionsIn(state);
    for (const [key, cancel] of cancels) {
      if (waiting.some(({ batchId, callId }) => `${batchId} ${callId}` === key)) continue;
      cancel();
      cancels.delete(key);
    }
    for (const { batchId, callId } of waiting)
      if (!cancels.has(`${batchId} ${callId}`))
        cancels.set(
          `${batchId} ${callId}`,
          systemClock.after(limitMs, () => refuse(batchId, callId)),
        );
  };
};

/** Gives the memory of garbage back to the system, also the room for new objects. */
const collectGarbage = async (): Promise<void> => {
  const { Session } = await import('node:inspector/promises');
  const inspector = new Session();
  inspector.connect();
  await inspector.post('HeapProfiler.collectGarbage');
  inspector.disconnect();
};

/** Whether nothing was ever typed into the session. */
const isUntouched = ({ session: { conversation, queue } }: State): boolean =>
  conversationLength(conversation) + queue.length === 0;

type Steps = ReturnType<typeof createWatchBuffer<Stepped>>;

/** Stores the record, listens, and sends the prompt. `earlier`: see `newRecord`. */
const startServing = async (
  request: WorkRequest,
  opened: Opened,
  serverQuestion: WaitingServerQuestion,
  earlier: LiveRecord | null,
) => {
  const { session } = opened;
  const { prompt, log } = request;
  const state = await session.state();
  if (request.resume !== null && prompt === null && isUntouched(state))
    throw new Stop(exitCodes.badInput, 'empty', `Nothing was ever asked in ${session.id}.`);
  const record = newRecord(earlier, request, session.id, state);
  await storeRecord(record);
  const node = await listen(opened, serverQuestion);
  if (existsSync(log)) renameSync(log, livePaths(session.id).log);
  if (state.name === 'Ready') await session.send({ type: 'Start' });
  if (prompt !== null) await session.send(await inputFrom(opened, prompt, null));
  return { node, keeper: new RecordKeeper(record) };
};

/** How the session waits for the user's answers. `limitMs` null: for ever. */
type AnswerRules = {
  readonly limitMs: number | null;
  readonly serverQuestion: WaitingServerQuestion;
};

/** Follows the session to its end; resolves with the exit code. */
const follow = async (
  opened: Opened,
  { limitMs, serverQuestion }: AnswerRules,
  { node, keeper }: Awaited<ReturnType<typeof startServing>>,
  steps: Steps,
): Promise<ExitCode> => {
  const { session } = opened;
  const rest = watchRest(opened, node, serverQuestion, REST_MS);
  const refuseLate = limitAnswers(opened, limitMs);
  let last = await session.state();
  const see = (state: State): void => {
    last = state;
    keeper.see(state, serverQuestion.now.question);
    rest.see(state);
    refuseLate(state);
  };
  see(last);
  serverQuestion.listen(() => keeper.see(last, serverQuestion.now.question));
  steps.subscribe(({ seq, state }) => {
    if (seq !== null) see(state);
  });
  const ended = await attempt(() => session.ended);
  rest.stop();
  const atMs = systemClock.now();
  if (ended.kind === 'fault') {
    const { message, exit } = errorEnding(ended.fault);
    writeError(safe`pawl: ${harmless(message)}\n`);
    // on a full disk the record stays as it was: then the session counts as one that died
    await attempt(() => keeper.end({ kind: 'failed', words: message, atMs }));
    await node.drain(0);
    return exit;
  }
  await keeper.end(rest.hasRested() ? { kind: 'rested', words: '', atMs } : null);
  await node.drain(0);
  await removeLive(session.id, rest.hasRested() ? 'socket' : 'record');
  return exitCodes.done;
};

/** The journal's lock is free only a moment after the end of the process that held it. */
const LOCK_WAIT_MS = 10_000;

/** Waits for the end of the launcher. From then on the session is found in the list. */
const awaitLauncher = async (request: WorkRequest, sessionId: string): Promise<LiveRecord> => {
  const { state } = await storedJournals().peek(sessionId);
  const record = newRecord(await readRecord(sessionId), request, sessionId, state);
  await storeRecord(record);
  report({ kind: 'waits' });
  // From here on the socket below owns the descriptor. It closes when the launcher has ended.
  isReportOpen = false;
  const channel = new Socket({ fd: REPORT });
  await new Promise((resolve) =>
    channel
      .on('error', () => undefined)
      .once('close', resolve)
      .resume(),
  );
  return record;
};

const openRequested = async (
  { flags: stored, resume, begins }: WorkRequest,
  steps: Steps,
): Promise<Opened> => {
  // They were flags when they were typed.
  const typed = stored as RunFlags;
  const flags = resume === null ? typed : withoutFlags(typed, SESSION_CHOICE);
  const flagsFor = async ({ settings }: RecordedSettings) => unchangedFlags(flags, settings);
  const more = { watcher: steps.push, warn, ...(resume === null ? {} : { resume, flagsFor }) };
  const open = (): Promise<Opened> => openFromFlags(flags, 'detached', more);
  return begins === 'now' ? open() : whenFree(open, LOCK_WAIT_MS);
};

/** What a failed start leaves: a session that was detached before stays in the list. */
const forgetStart = async (
  sessionId: string,
  earlier: LiveRecord | null,
  fault: unknown,
): Promise<void> => {
  if (earlier !== null) await storeRecord({ ...earlier, end: failedEnd(fault) });
  await removeLive(sessionId, earlier === null ? 'record' : 'socket');
};

const failedEnd = (fault: unknown): NonNullable<LiveRecord['end']> => ({
  kind: 'failed',
  words: errorEnding(fault).message,
  atMs: systemClock.now(),
});

/** Runs the session that stdin asks for. Returns the exit code, which nobody reads. */
export const runWorker = async (): Promise<number> => {
  let waitRecord: LiveRecord | null = null;
  try {
    const request = await readRequest();
    const steps = createWatchBuffer<Stepped>();
    openLiveFolder();
    if (request.begins === 'afterLauncher' && request.resume !== null)
      waitRecord = await awaitLauncher(request, request.resume);
    const opened = await openRequested(request, steps);
    const { workspace, preset } = opened.settings;
    // Read below: MCP servers may ask before.
    let limitMs: number | null = null;
    const serverQuestion = new WaitingServerQuestion(() => limitMs);
    opened.servers?.answerWith((question, signal) => serverQuestion.ask(question, signal));
    const earlier = await readRecord(opened.session.id);
    const serving = await attempt(async () => {
      // They were flags when they were typed.
      const flags = request.flags as RunFlags;
      limitMs = await readAnswerLimit(flags, workspace);
      return startServing(request, opened, serverQuestion, earlier);
    });
    if (serving.kind === 'fault') {
      // the first failure is the one to report
      await attempt(() => forgetStart(opened.session.id, earlier, serving.fault));
      // A resumed session ends as by a crash: the next start goes on with what waits in it.
      if (opened.resumed === null) await attempt(() => opened.session.close());
      throw serving.fault;
    }
    const { id: sessionId } = opened.session;
    const named = preset === undefined ? {} : { preset };
    report({ kind: 'started', sessionId, workspace, ...named });
    return await follow(opened, { limitMs, serverQuestion }, serving.value, steps);
  } catch (error) {
    const { exit, reason, message } = errorEnding(error);
    report({ kind: 'failed', exit, reason, message });
    // The launcher has ended: the list tells why the session does not go on.
    const record = waitRecord;
    if (record !== null) await attempt(() => storeRecord({ ...record, end: failedEnd(error) }));
    return exit;
  }
};
