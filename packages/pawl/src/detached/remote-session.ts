/**
 * A session that runs in a separate process, as the terminal sees it: its journal is read from
 * disk, and then its events come over its socket. The same machine makes the steps of both.
 *
 * From top to bottom: the questions that wait; the stream of events; questions of MCP servers, and
 * jobs; the session for the terminal; and `openRemote`, which joins a running session.
 */

import type { AskUserOrNot, ServerStatus } from '@pawl/agent/extensions/mcp/session-servers';
import { journalPath } from '@pawl/agent/journal/state-folder';
import type { JournalStep } from '@pawl/agent/journal/steps';
import type { Action } from '@pawl/agent/machine/action';
import type { Event } from '@pawl/agent/machine/event';
import type { State } from '@pawl/agent/machine/state';
import { attempt } from '@pawl/agent/platform/attempt';
import type { Entry } from '@pawl/agent/ports/journal';
import type { Model } from '@pawl/agent/ports/model';
import type { Input, Stepped, Watcher } from '@pawl/agent/ports/session';
import type { Job } from '@pawl/agent/ports/tool';
import { createRedactor, findSecrets } from '@pawl/agent/secrets/redactor';
import type { Session } from '@pawl/agent/session/create-agent';
import { SessionFollower } from '@pawl/agent/session/follow';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { collectRecentTurns, type Opened, STEPS_MIN } from '../sessions/open-session.js';
import {
  foldStored,
  openStateFolder,
  storedBlobs,
  storedJournals,
} from '../sessions/stored-sessions.js';
import { openAllPrompts } from '../sessions/typed-input.js';
import { keysIn, withConfig } from '../settings/configuration.js';
import type { Warn } from '../settings/connect-model.js';
import type { RunFlags } from '../settings/flags.js';
import { LiveClient, NotReached, Refused, type StreamEvent } from './live-client.js';

/** What a terminal uses of a session, which runs in this process or in another one. */
export type UiSession = Pick<
  Session,
  | 'id'
  | 'tornTail'
  | 'send'
  | 'state'
  | 'keepPicture'
  | 'redact'
  | 'timeline'
  | 'planRewind'
  | 'rewind'
  | 'redo'
  | 'undoCompaction'
  | 'whileUserRuns'
  | 'ended'
  | 'close'
> & {
  /** `facts`: for words about it. */
  useModel(id: string): Promise<Pick<Model, 'id' | 'facts'>>;
  model(): Promise<Pick<Model, 'id' | 'facts'>>;
  jobs(): readonly Job[] | Promise<readonly Job[]>;
};

/** The questions that wait, from the steps that asked them. */
const collectQuestions = () => {
  const asked = new Map<string, Extract<Action, { readonly type: 'RequestApproval' }>>();
  return {
    see({ actions, state }: Stepped): void {
      if (state.name !== 'ExecutingTools') asked.clear();
      for (const action of actions)
        if (action.type === 'RequestApproval') asked.set(action.call.callId, action);
    },
    /** Whether all of them were seen. */
    isWhole: (state: State): boolean =>
      state.name !== 'ExecutingTools' ||
      state.calls.every(
        ({ status, judged }) => status !== 'awaitingApproval' || asked.has(judged.callId),
      ),
    waiting: (state: State) =>
      state.name === 'ExecutingTools'
        ? state.calls.flatMap(({ status, judged }) =>
            status === 'awaitingApproval' ? (asked.get(judged.callId) ?? []) : [],
          )
        : [],
  };
};

/** A stream ends if its reader fell behind, or its process ends; then it is asked for again. */
const RETRY_MS = 200;
const RETRIES_MAX = 25;

const died = (sessionId: string): Stop =>
  new Stop(
    exitCodes.unavailable,
    'died',
    `The process of ${sessionId} ended. All that was acknowledged is in its journal. pawl attach ` +
      `${sessionId} brings it back.`,
  );

/** The end of the session; a stream that ends without one is asked for again. */
type EndReason = 'closed' | 'failed';

/**
 * Follows the stream to the end of the session. Rejects if its process is gone without one, or if
 * an event can't be shown.
 */
export const followStream = async (
  client: Pick<LiveClient, 'events' | 'sessionId'>,
  follower: SessionFollower,
  signal: AbortSignal,
): Promise<EndReason | null> => {
  let tries = 0;
  let end: unknown = null;
  const see = ({ name, content }: StreamEvent): void => {
    tries = 0;
    // The process of the session has written and checked it: its owner alone listens there.
    if (name === 'entry')
      follower.entry(content as Entry); // checked there
    else if (name === 'delta')
      follower.delta(content as Event); // checked there
    else if (name === 'pending')
      follower.pending(content as Parameters<SessionFollower['pending']>[0]); // checked there
    else if (name === 'end') end = Reflect.get(content as object, 'reason');
  };
  while (!signal.aborted) {
    const read = await attempt(() => client.events(follower.seq, see, signal));
    if (signal.aborted) return null;
    if (end === 'closed' || end === 'failed') return end;
    tries += 1;
    const isGone = read.kind === 'fault' && read.fault instanceof NotReached;
    if (isGone || tries > RETRIES_MAX) throw died(client.sessionId);
    // refused: an entry is on disk a moment before its process says so
    if (read.kind === 'fault' && !(read.fault instanceof Refused)) throw read.fault;
    end = null;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return null;
};

/**
 * Asks the user here what a server asks, until somebody has answered. `serverQuestion` is answered
 * when the number of the question is another than `after`, or after some time; `ended` says how the
 * question before it ended (own-requests.ts).
 */
const followServerQuestions = async (
  client: LiveClient,
  askUser: AskUserOrNot,
  tell: (text: string) => void,
  leaving: AbortSignal,
): Promise<void> => {
  let after = 0;
  let asking = new AbortController();
  while (!leaving.aborted) {
    const reply = await attempt(() => client.call('serverQuestion', { after }));
    if (reply.kind === 'fault') {
      // a process that is gone ends the session, and then this
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      continue;
    }
    const { number, question, code, ended } = reply.value;
    if (number === after) continue;
    after = number;
    asking.abort(ended);
    if (question === null) continue;
    asking = new AbortController();
    const { signal } = asking;
    askUser(question, signal)
      .then(async (answer) => {
        if (!signal.aborted && answer !== null) await client.call('answerServer', { code, answer });
      })
      .catch((error: Error) =>
        tell(`${question.server} did not get this answer. ${error.message}`),
      );
  }
};

const listJobs = async (client: LiveClient): Promise<readonly Job[]> =>
  (await client.call('jobs', {})).map((job) => {
    let { status } = job;
    return {
      jobId: job.jobId,
      command: job.command,
      status: () => status,
      output: () => job.output,
      kill: async () => {
        await client.call('killJob', { jobId: job.jobId });
        const now = (await listJobs(client)).find(({ jobId }) => jobId === job.jobId);
        status = now?.status() ?? 'gone';
      },
    };
  });

// The session for the terminal

type RemoteParts = {
  readonly client: LiveClient;
  readonly follower: SessionFollower;
  readonly ended: Promise<void>;
  readonly ownInputs: ReturnType<typeof createOwnInputs>;
  redact(text: string): string;
  leave(): void;
};

/** The content by which a message or an answer is recognised; null for other events. */
const inputKey = (event: Event | Input): string | null => {
  if (event.type === 'UserInput') return event.text;
  if (event.type !== 'ApprovalAnswered') return null;
  const { batchId, callId, answer, scope } = event;
  return JSON.stringify([batchId, callId, answer, scope]);
};

/** Tells the messages and answers of this window from those of others. */
export const createOwnInputs = (client: Pick<LiveClient, 'send'>) => {
  const sent: string[] = [];
  return {
    async send(input: Input): Promise<{ readonly seq: number }> {
      const key = inputKey(input);
      if (key !== null) sent.push(key);
      try {
        return await client.send(input);
      } catch (fault) {
        // It never comes as a step: the same input of another window must not pass for it.
        const at = key === null ? -1 : sent.lastIndexOf(key); // -1: it has already passed for it
        if (at >= 0 && fault instanceof Refused) sent.splice(at, 1);
        throw fault;
      }
    },
    isFromElsewhere({ event, diagnostics }: Stepped): boolean {
      const key = inputKey(event);
      if (key === null) return false;
      // An answer that came too late changed nothing, so it is not shown.
      const isLate = event.type === 'ApprovalAnswered' && diagnostics.length > 0;
      const at = sent.indexOf(key);
      if (at >= 0) sent.splice(at, 1);
      return at < 0 && !isLate;
    },
  };
};

const createRemoteSession = (parts: RemoteParts): UiSession => {
  const { client, follower, ended, redact, leave, ownInputs } = parts;
  return {
    id: client.sessionId,
    tornTail: null, // its process warned of an unfinished last line when it opened the journal
    ended,
    redact,
    send: (input) => ownInputs.send(input),
    state: async () => follower.state,
    useModel: (id) => client.call('useModel', { id }),
    model: () => client.call('model', {}),
    jobs: () => listJobs(client),
    timeline: () => client.call('timeline', {}),
    planRewind: (request) => client.call('planRewind', { request }),
    rewind: (request) => client.call('rewind', { request }),
    redo: () => client.call('redo', {}),
    undoCompaction: () => client.call('undoCompaction', {}),
    // its process stores the files before the first and after the last such command
    async whileUserRuns(command) {
      await client.call('userBegins', {});
      try {
        return await command();
      } finally {
        await client.call('userEnds', {});
      }
    },
    async keepPicture(bytes) {
      const picture = await import('@pawl/agent/tools/picture');
      const kept = await picture.keepPicture(Buffer.from(bytes), storedBlobs());
      if (kept.kind === 'stored') return kept.image;
      const why = kept.kind === 'none' ? 'it is no PNG, JPEG, GIF or WebP' : kept.why;
      throw new Error(`the picture can't be shown to a model: ${why}`);
    },
    /** The session goes on without this terminal. */
    close: async () => leave(),
  };
};

/** The MCP servers of a session in a terminal. Without any the status is null. */
export type UiServers = {
  status(): Promise<readonly ServerStatus[] | null>;
  reconnect(): Promise<void>;
  /** Who asks the user what servers ask. `tell`: an answer did not count, and why. */
  answerWith(ask: AskUserOrNot, tell: (text: string) => void): void;
};

/** A session that a terminal shows: open in this process, or in another one. */
export type OpenedForUi = Omit<Opened, 'session' | 'runtime'> & {
  readonly session: UiSession;
  /** null: the session is open in this process, and ends with it. */
  readonly remote: {
    /** Questions that were asked before. */
    readonly questions: readonly Extract<Action, { readonly type: 'RequestApproval' }>[];
    /** Whether a step is a message or an answer that this window has not sent. */
    isFromElsewhere(stepped: Stepped): boolean;
    readonly servers: UiServers;
  } | null;
};

const openClient = (sessionId: string): LiveClient => {
  try {
    return new LiveClient(sessionId);
  } catch (error) {
    throw error instanceof NotReached ? died(sessionId) : error;
  }
};

/** The session so far, from its last snapshot on where that is enough. */
const foldRecent = async (sessionId: string) => {
  const [recent, questions] = [collectRecentTurns(), collectQuestions()];
  const visit = (stepped: JournalStep): void => {
    recent.see(stepped);
    questions.see(stepped);
  };
  const folded = await storedJournals().replay(sessionId, { visit, visitLast: STEPS_MIN });
  if (folded.damage !== null) throw folded.damage;
  // A question that waits may have been asked before the steps that were read: then all are, and both
  // collectors may see a step twice.
  const { seq, state } = questions.isWhole(folded.state)
    ? folded
    : await foldStored(sessionId, undefined, visit);
  return { recent, questions, seq, state };
};

/** Joins a session that runs. Throws a `Stop` if its process can't be reached. */
export const openRemote = async (
  sessionId: string,
  flags: RunFlags,
  { watcher, warn }: { readonly watcher: Watcher; readonly warn: Warn },
): Promise<OpenedForUi> => {
  const client = openClient(sessionId);
  await client.describe(); // throws if the process does not answer
  const { recent, questions, seq, state } = await foldRecent(sessionId);
  const { settings } = state.session;
  const { workspace } = settings;
  const configured = await withConfig(flags, workspace, {
    command: 'run',
    resumed: true,
    warn: () => undefined, // the process of the session has warned
  });
  const prompts = await openAllPrompts(
    { workspace, flags: configured, isResumed: true, warn },
    null,
  );
  const follower = new SessionFollower(state, seq, watcher);
  const leaving = new AbortController();
  const ended = followStream(client, follower, leaving.signal).then((end) => {
    if (end === 'failed') throw died(sessionId);
  });
  ended.catch(() => undefined); // the terminal awaits it when it is drawn
  const redactor = createRedactor(findSecrets(process.env, keysIn(configured.variables ?? {})));
  const ownInputs = createOwnInputs(client);
  return {
    session: createRemoteSession({
      client,
      ownInputs,
      follower,
      ended,
      redact: (text) => redactor.clean(text),
      leave: () => leaving.abort(),
    }),
    settings,
    notifies: configured.notifications !== 'off',
    journal: journalPath(openStateFolder(process.env), sessionId),
    prompts,
    servers: null,
    resumed: { recent: recent.past() },
    remote: {
      questions: questions.waiting(state),
      isFromElsewhere: ownInputs.isFromElsewhere,
      servers: {
        status: () => client.call('servers', {}),
        reconnect: () => client.call('reconnectServers', {}),
        answerWith: (askUser, tell) =>
          void followServerQuestions(client, askUser, tell, leaving.signal),
      },
    },
  };
};
