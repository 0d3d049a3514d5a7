/**
 * When a session is connected to one of its MCP servers: `createConnection` opens a connection
 * with the first use, opens it again after the server has ended, and shares one attempt between
 * all callers. connected-server.ts speaks with the server; this file loads it with the first
 * connection.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type {
  CallToolResult,
  ElicitRequestParams,
  GetPromptResult,
  ReadResourceResult,
  Tool as RemoteTool,
} from '@modelcontextprotocol/client';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { attempt } from '../../platform/attempt.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { cut } from '../../platform/text.js';
import { createRedactor, type Redactor } from '../../secrets/redactor.js';
import type { CallOptions, ConnectedServer, RemoteOffers } from './connected-server.js';
import { isLost, NotDelivered } from './fetch.js';
import { type AskUser, readServerQuestion, type ServerAnswer } from './question.js';
import { expandVariables, isWebUrl, type McpServer } from './server-config.js';
import { openServerLog } from './server-log.js';
import { serverSecrets } from './server-secrets.js';

/** The connection to one server. Its errors are sentences for the user and the model. */
export type Connection = {
  readonly server: McpServer;
  /** The server's tools. Rejects with the reason if it can't be reached. */
  listTools(): Promise<readonly RemoteTool[]>;
  call(tool: string, input: JsonObject, options: CallOptions): Promise<CallToolResult>;
  getPrompt(
    name: string,
    args: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<GetPromptResult>;
  readResource(uri: string, signal: AbortSignal): Promise<ReadResourceResult>;
  listOffers(signal: AbortSignal): Promise<RemoteOffers>;
  /** The members of the server's lists that can't be used, one line each. */
  leftOut(): readonly string[];
  status(): ConnectionStatus;
  close(): Promise<void>;
};

export type ConnectionStatus =
  | { readonly kind: 'off' | 'connecting' | 'connected' }
  | { readonly kind: 'failed'; readonly why: string };

type ConnectionOptions = {
  readonly environment: ProcessEnvironment;
  readonly workspace: string;
  readonly stateFolder: string;
  /** Time limit for connecting. A call has another one. */
  readonly startMs?: number;
  /**
   * Called with the tools after connecting, and whenever the server says that they have changed.
   */
  readonly onTools?: (tools: readonly RemoteTool[]) => void;
  /** Called with prompts and resources after connecting, and when they have changed. */
  readonly onOffers?: (offers: RemoteOffers) => void;
  /**
   * Asks the user a question of the server, which it may ask while a call runs. Without it,
   * questions are declined.
   */
  readonly onQuestion?: AskUser;
  /** Called with a declined question. */
  readonly onDeclined?: (message: string) => void;
  /** Asked before each start: why the server must not be started; null if it may. */
  readonly whyNot?: (server: McpServer) => Promise<string | null>;
  /** Replaces secrets in the server's log and in messages. */
  readonly redactor?: Redactor;
};

const START_MS = 30_000;
/** Time limit for the lists of prompts and resources. */
const OFFERS_MS = 20_000;
const MESSAGE_MAX = 300;
/** Requests that did not reach the server are sent again, at most so often. */
const REPEATS_MAX = 3;
/** How long a server over HTTP that has gone away is waited for, and the pauses between, in ms. */
const RETURN_MS = 10_000;
const PAUSE_MS = 50;
const PAUSE_MAX_MS = 1_000;
/** Questions of a server during one call. */
const QUESTIONS_MAX = 10;

type RunningCall = { readonly options: CallOptions; questions: number };

const errorText = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const inner =
    error.cause instanceof Error && error.message === 'fetch failed' ? error.cause : error;
  const text = inner.message || ('code' in inner ? String(inner.code) : inner.name);
  // A server chooses its words: they can be a whole web page.
  const line = text.slice(0, 4 * MESSAGE_MAX).replace(/\s+/g, ' ');
  return cut(line, MESSAGE_MAX);
};

class ServerConnection implements Connection {
  readonly server: McpServer;
  readonly #options: ConnectionOptions;
  readonly #redactor: Redactor;
  /** The attempt that is under way. */
  #opening: Promise<ConnectedServer> | null = null;
  #live: ConnectedServer | null = null;
  /** Requests that run, by their connection. One that was replaced is closed after its last. */
  readonly #running = new Map<ConnectedServer, number>();
  /** Why the last attempt failed, or the last connection ended. */
  #why: string | null = null;
  /** Aborted when the session ends. */
  #closing = new AbortController();
  readonly #calls = new Set<RunningCall>();

  constructor(server: McpServer, options: ConnectionOptions) {
    this.server = server;
    this.#options = options;
    this.#redactor = options.redactor ?? createRedactor(serverSecrets(server, options.environment));
  }

  readonly #clean = (text: string): string => this.#redactor.clean(text);

  async listTools(): Promise<readonly RemoteTool[]> {
    return (await this.#open()).tools;
  }

  async call(tool: string, input: JsonObject, options: CallOptions): Promise<CallToolResult> {
    const running = { options, questions: 0 };
    this.#calls.add(running);
    try {
      return await this.#ask(
        (live) => live.call(tool, input, options),
        options.signal,
        'Whether the call took effect is not known; look before you repeat it',
        options.onSend,
      );
    } finally {
      this.#calls.delete(running);
    }
  }

  getPrompt(
    name: string,
    args: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<GetPromptResult> {
    return this.#ask((live) => live.getPrompt(name, args, signal), signal, 'Try again');
  }

  readResource(uri: string, signal: AbortSignal): Promise<ReadResourceResult> {
    return this.#ask((live) => live.readResource(uri, signal), signal, 'Try again');
  }

  listOffers(signal: AbortSignal): Promise<RemoteOffers> {
    return this.#ask((live) => live.listOffers(signal), signal, 'Try again');
  }

  leftOut(): readonly string[] {
    return this.#live?.leftOut() ?? [];
  }

  status(): ConnectionStatus {
    if (this.#live !== null) return { kind: 'connected' };
    if (this.#opening !== null) return { kind: 'connecting' };
    return this.#why === null ? { kind: 'off' } : { kind: 'failed', why: this.#why };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#opening !== null) await attempt(() => this.#opening); // it fails, or is closed below
    // nothing is lost: they are not used any more
    for (const live of new Set([...this.#running.keys(), ...(this.#live ? [this.#live] : [])]))
      await attempt(() => live.close());
  }

  /**
   * Asks the user what the server wants to know. A server may ask only while a call runs, and at
   * most QUESTIONS_MAX times during one call. The question belongs to the call that was started
   * last: the end of that call withdraws it. While it is open, no call times out.
   */
  async #answer(params: ElicitRequestParams, asking: AbortSignal): Promise<ServerAnswer> {
    const { onQuestion, onDeclined } = this.#options;
    const question = readServerQuestion(this.server.name, params, this.#clean);
    const calls = [...this.#calls];
    const last = calls.at(-1);
    if (
      onQuestion === undefined ||
      question === null ||
      last === undefined ||
      last.questions >= QUESTIONS_MAX
    ) {
      onDeclined?.(this.#clean(params.message));
      return { action: 'decline' };
    }
    last.questions += 1;
    const signal = AbortSignal.any([asking, last.options.signal, this.#closing.signal]);
    const asked = attempt(() => onQuestion(question, signal));
    // The time limits of all running calls stand still until the answer.
    for (const { options } of calls) void options.whileAsking?.(asked);
    const answered = await asked;
    return answered.kind === 'done' ? answered.value : { action: 'cancel' };
  }

  /**
   * Connects if necessary, and asks. `ifGone`: the advice if the server ends before it has
   * answered. `onSend`: called once it is connected.
   *
   * A request that did not reach the server is sent again over a new connection: the server has
   * forgotten the session, or was started again. One that it may have begun is not.
   */
  async #ask<T>(
    ask: (live: ConnectedServer) => Promise<T>,
    signal: AbortSignal,
    ifGone: string,
    onSend: () => void = () => undefined,
  ): Promise<T> {
    const { name } = this.server;
    for (let repeats = 0; ; repeats++) {
      const opening = repeats === 0 ? this.#open() : this.#openAgain(signal);
      const live = await Promise.race([opening, rejectOnAbort(signal)]);
      onSend();
      this.#running.set(live, 1 + (this.#running.get(live) ?? 0));
      const asked = await attempt(() => ask(live));
      this.#running.set(live, (this.#running.get(live) ?? 1) - 1);
      this.#closeUnused(live);
      if (asked.kind === 'done') return asked.value;
      const { fault } = asked;
      const wasReached = !(fault instanceof NotDelivered);
      // Lost: the connection ended before the answer came.
      if (isLost(fault) && !signal.aborted) this.#drop(live, fault.message);
      if (!wasReached && !signal.aborted && repeats < REPEATS_MAX) continue;
      const why = this.#live === live ? null : (live.why() ?? this.#why ?? 'the connection ended');
      if (why === null)
        throw new Error(`the MCP server ${name} answered: ${this.#clean(fault.message)}`);
      const advice = wasReached ? ifGone : 'It has not begun';
      throw new Error(`the MCP server ${name} is gone: ${this.#clean(why)}. ${advice}`);
    }
  }

  /** Connects again. A server over HTTP that is being started again is waited for. */
  async #openAgain(signal: AbortSignal): Promise<ConnectedServer> {
    const until = performance.now() + RETURN_MS;
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MAX_MS)) {
      const opened = await attempt(() => this.#open());
      if (opened.kind === 'done') return opened.value;
      const isOver = performance.now() + pauseMs > until || signal.aborted;
      if (isOver || !isUnreached(opened.fault)) throw opened.fault;
      await pause(pauseMs, undefined, { signal });
    }
  }

  /** Forgets a connection that broke, so that the next use makes a new one. */
  #drop(live: ConnectedServer, why: string): void {
    if (this.#live !== live) return;
    this.#live = null;
    this.#why = this.#clean(why);
    this.#closeUnused(live);
  }

  #closeUnused(live: ConnectedServer): void {
    if (this.#live === live || (this.#running.get(live) ?? 0) > 0) return;
    this.#running.delete(live);
    void attempt(() => live.close()); // it is not used any more
  }

  /** Learns the prompts and resources. A session does not depend on them, so faults are ignored. */
  async #learnOffers(live: ConnectedServer): Promise<void> {
    const { onOffers } = this.#options;
    if (onOffers === undefined) return;
    const signal = AbortSignal.any([AbortSignal.timeout(OFFERS_MS), this.#closing.signal]);
    const listed = await attempt(() => live.listOffers(signal));
    if (listed.kind === 'done') onOffers(listed.value);
  }

  #open(): Promise<ConnectedServer> {
    if (this.#live !== null) return Promise.resolve(this.#live);
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async #connect(): Promise<ConnectedServer> {
    const {
      environment,
      workspace,
      stateFolder,
      startMs = START_MS,
      onTools = () => undefined,
      whyNot = async () => null,
    } = this.#options;
    const { name } = this.server;
    const log = openServerLog(stateFolder, name, this.#redactor.stream());
    const timeIsUp = AbortSignal.timeout(startMs);
    const fail = (reason: string, cause?: Error): Error => {
      const why = this.#clean(reason);
      this.#why = why;
      return new Error(`the MCP server ${name} can't be used: ${why}`, { cause });
    };

    const refused = await whyNot(this.server);
    if (refused !== null) throw fail(refused);
    const expanded = expandVariables(this.server, environment);
    if (expanded.kind === 'missing')
      throw fail(`${expanded.names.join(', ')} is not set in the environment`);
    const { server } = expanded;
    if (server.kind === 'http' && !isWebUrl(server.url))
      throw fail('its url, with the variables in it, is no http or https URL');
    const { connectServer } = await import('./connected-server.js');
    let live: ConnectedServer | null = null;
    const connected = await attempt(() =>
      connectServer(server, {
        environment,
        workspace,
        stateFolder,
        log,
        onTools,
        signal: AbortSignal.any([timeIsUp, this.#closing.signal]),
        onOffersChanged: () => void (live === null ? undefined : this.#learnOffers(live)),
        onQuestion: (params, asking) => this.#answer(params, asking),
        onClose: () => {
          if (live === null || this.#live !== live) return;
          this.#why = this.#clean(live.why() ?? 'the connection ended');
          this.#live = null;
        },
      }),
    );

    if (connected.kind === 'fault') {
      if (this.#closing.signal.aborted) throw fail('the session has ended');
      const seconds = `${startMs / 1_000} s`;
      const why = timeIsUp.aborted
        ? `it did not answer within ${seconds}`
        : errorText(connected.fault);
      const lastWords = log.last();
      throw fail(
        lastWords === '' || this.server.kind === 'http'
          ? why
          : `${why}. Its last words: ${lastWords}`,
        connected.fault,
      );
    }

    live = connected.value;
    this.#live = live;
    this.#why = null;
    onTools(live.tools);
    void this.#learnOffers(live);
    return live;
  }
}

/** Whether an attempt to connect has failed since no server listens at the address. */
const isUnreached = (error: unknown): boolean =>
  error instanceof NotDelivered || (error instanceof Error && isUnreached(error.cause));

/** Rejects when the signal is aborted. */
const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    const stop = (): void => reject(new Error('stopped before the server was connected'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
  });

export const createConnection = (server: McpServer, options: ConnectionOptions): Connection =>
  new ServerConnection(server, options);
