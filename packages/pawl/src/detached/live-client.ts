/** A client of the process of a detached session: the HTTP of `pawl serve`, over its socket. */

import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { socketAddress } from '@pawl/agent/journal/lock';
import type { ApprovalAnswer } from '@pawl/agent/machine/event';
import { attemptNow } from '@pawl/agent/platform/attempt';
import { entryStatus, errorCode, readRegularSync } from '@pawl/agent/platform/files';
import { EventParser } from '@pawl/agent/platform/http';
import type { Input } from '@pawl/agent/ports/session';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { livePaths, openLiveFolder, processState, readRecord } from '../sessions/live-records.js';
import type { OwnAnswer, OwnBody, OwnMethod } from './own-requests.js';

/** The process has ended, or ends. */
export class NotReached extends Error {}

/** A fault of a connection: NotReached if the process left it, otherwise the fault, ours, itself. */
const asNotReached = (error: Error): Error =>
  /^(ENOENT|ECONNREFUSED|ECONNRESET|EPIPE)$/.test(errorCode(error))
    ? new NotReached(error.message)
    : error;

/** The process refused a request; `code` is that of docs/build/serve.md. */
export class Refused extends Stop {
  readonly code: string;

  constructor(code: string, message: string) {
    super(exitCodes.badInput, code, message);
    this.code = code;
  }
}

/** Time between two looks at the process while a request waits for its answer. */
const LOOK_MS = 500;
/** With every tenth look the process is also asked, by another request, whether it lives. */
const LOOKS_TO_ASK = 10;
/** Time that it has to answer that. */
const ANSWER_MS = 5_000;
/** So often it may miss that while it uses CPU time. */
const MISSED_WHILE_BUSY = 12;

/** The process is there and does not answer. */
export class Silent extends Stop {
  constructor(sessionId: string, state: ReturnType<typeof processState>, pid?: number) {
    const what =
      state === 'stopped'
        ? `is stopped by a signal: kill -CONT ${pid} lets it go on`
        : `${pid === undefined ? '' : `(${pid}) `}does not answer`;
    super(
      exitCodes.tryAgain,
      'silent',
      `The process of ${sessionId} ${what}. To end it: pawl stop ${sessionId} --kill. What it has ` +
        `acknowledged is in its journal; pawl attach ${sessionId} brings it back then.`,
    );
  }
}

type Answer = Readonly<Record<string, unknown>>;

const TOKEN_BYTES_MAX = 1024;

const notYours = (what: string): Stop =>
  new Stop(
    exitCodes.configuration,
    'configuration',
    `${what} is not yours alone, so it is not used: somebody else could answer there. Remove it.`,
  );

/** Throws a `Stop` if socket or token are not the user's own. */
const readToken = (sessionId: string): string => {
  openLiveFolder();
  const { socket, token } = livePaths(sessionId);
  const status = entryStatus(socket);
  if (status === null) throw new NotReached(`there is no socket ${socket}`);
  const userId = process.geteuid?.() ?? status.uid;
  if (!status.isSocket() || status.uid !== userId) throw notYours(socket);
  const loaded = readRegularSync(token, TOKEN_BYTES_MAX);
  if (loaded.kind !== 'file') throw new NotReached(`there is no token ${token}`);
  if (loaded.status.uid !== userId || (loaded.status.mode & 0o077) !== 0) throw notYours(token);
  return loaded.bytes.toString('utf8').trim();
};

const readBody = (incoming: IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = '';
    incoming.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
    incoming.once('error', (error) => reject(asNotReached(error)));
    incoming.once('end', () => resolve(text));
  });

const fieldIn = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;

const readRefusal = (text: string): Refused => {
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // cut off: the message below says all that is known
  }
  const error = fieldIn(body, 'error');
  const message = fieldIn(error, 'message');
  return new Refused(
    String(fieldIn(error, 'code') ?? 'internal'),
    typeof message === 'string' ? message : 'the process of the session gave no reason',
  );
};

/** One event of the stream: its name and its content. */
export type StreamEvent = { readonly name: string; readonly content: unknown };

/** Reads events until the connection ends. Rejects with what `see` throws. */
const readEvents = (incoming: IncomingMessage, see: (event: StreamEvent) => void): Promise<void> =>
  new Promise((resolve, reject) => {
    const parser = new EventParser({
      event(text, name) {
        see({ name, content: JSON.parse(text) });
        return 'more';
      },
    });
    incoming.on('data', (bytes: Buffer) => {
      const added = attemptNow(() => parser.add(bytes));
      if (added.kind === 'done') return;
      reject(added.fault);
      incoming.destroy();
    });
    incoming.once('error', () => resolve()).once('close', () => resolve());
  });

/** A call, and the code of the question about it that the user has read. */
type AnsweredCall = { readonly batchId: string; readonly callId: string; readonly code: string };

/** One detached session, reached over its socket with its token. Only the user can read both. */
export class LiveClient {
  readonly sessionId: string;
  readonly #token: string;

  /** Throws a `Stop` or NotReached. */
  constructor(sessionId: string) {
    this.sessionId = sessionId;
    this.#token = readToken(sessionId);
  }

  /** The answer's head. Rejects with NotReached, or a fault of this process. `signal` ends it. */
  #start(
    method: string,
    path: string,
    body: object | null,
    signal?: AbortSignal,
  ): Promise<IncomingMessage> {
    const { path: socketPath, release } = socketAddress(livePaths(this.sessionId).socket);
    return new Promise<IncomingMessage>((resolve, reject) => {
      const sent: ClientRequest = request({
        socketPath,
        method,
        path: `/v1/sessions/${this.sessionId}${path}`,
        agent: false,
        headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
        ...(signal === undefined ? {} : { signal }),
      });
      sent.once('response', resolve);
      sent.once('error', (error) => reject(asNotReached(error)));
      sent.end(body === null ? undefined : JSON.stringify(body));
    }).finally(release);
  }

  /** Whether the process answers at all. */
  async #answers(): Promise<boolean> {
    const late = AbortSignal.timeout(ANSWER_MS);
    try {
      (await this.#start('GET', '', null, late)).resume();
      return true;
    } catch {
      return !late.aborted; // without a connection the request that waits fails by itself
    }
  }

  /**
   * Waits for an answer as long as the process lives: it may take its time for one request, while
   * it answers another. Rejects with Silent if a signal has stopped it, or if it answers no other
   * one: at once if it is idle, and after some tries if it works.
   */
  async #awaitAnswer<T>(
    start: (signal: AbortSignal) => Promise<T>,
    leave?: AbortSignal,
  ): Promise<T> {
    const stop = new AbortController();
    const answered = new AbortController();
    const work = start(leave === undefined ? stop.signal : AbortSignal.any([stop.signal, leave]));
    const watch = async (): Promise<never> => {
      let missed = 0;
      for (let looked = 1; ; looked += 1) {
        await pause(LOOK_MS, undefined, { signal: answered.signal });
        const record = await readRecord(this.sessionId);
        const state = record === null ? 'other' : processState(record);
        if (state !== 'stopped' && (looked % LOOKS_TO_ASK > 0 || (await this.#answers()))) continue;
        missed += 1;
        if (state === 'working' && missed <= MISSED_WHILE_BUSY) continue;
        throw new Silent(this.sessionId, state, record?.process.pid);
      }
    };
    const watched = watch();
    watched.catch(() => undefined); // ends with the answer
    try {
      return await Promise.race([work, watched]);
    } catch (fault) {
      work.catch(() => undefined); // it ends with this
      stop.abort();
      throw fault;
    } finally {
      answered.abort();
    }
  }

  /** Rejects with Refused, NotReached, Silent, or a fault of this process. */
  async ask(method: 'GET' | 'POST', path: string, body: object | null = null): Promise<Answer> {
    const { incoming, text } = await this.#awaitAnswer(async (signal) => {
      const incoming = await this.#start(method, path, body, signal);
      return { incoming, text: await readBody(incoming) };
    });
    if ((incoming.statusCode ?? 500) >= 300) throw readRefusal(text);
    const answer: unknown = JSON.parse(text);
    return typeof answer === 'object' && answer !== null ? { ...answer } : {};
  }

  /** Asks the process of the session by one of its methods (own-requests.ts). */
  async call<N extends OwnMethod>(what: N, body: OwnBody<N>): Promise<OwnAnswer<N>> {
    const { result } = await this.ask('POST', '/own', { what, ...body });
    return result as OwnAnswer<N>; // Safe: the same method answers there.
  }

  describe(): Promise<Answer> {
    return this.ask('GET', '');
  }

  /** Resolves when the input is durable, with its number in the journal. */
  async send(input: Input): Promise<{ readonly seq: number }> {
    return { seq: Number((await this.ask('POST', '/inputs', input)).seq) };
  }

  /**
   * Answers a question that was shown. Rejects with Refused if it is another one by now, or was
   * answered.
   */
  answer({ batchId, callId, code }: AnsweredCall, answer: ApprovalAnswer): Promise<unknown> {
    const event = { type: 'ApprovalAnswered', batchId, callId, answer, scope: 'once' };
    return this.ask('POST', '/inputs', { ...event, code });
  }

  close(): Promise<Answer> {
    return this.ask('POST', '/close');
  }

  /**
   * Reads the events after an entry. Resolves when the stream has ended, for whatever reason.
   * Rejects with what `see` throws. A process that is stopped meanwhile is not noticed here.
   */
  async events(
    after: number,
    see: (event: StreamEvent) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    const incoming = await this.#awaitAnswer(
      (stop) => this.#start('GET', `/events?after=${after}`, null, stop),
      signal ?? new AbortController().signal,
    );
    if (incoming.statusCode !== 200) throw readRefusal(await readBody(incoming));
    await readEvents(incoming, see);
  }
}
