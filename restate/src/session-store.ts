/** The sessions as the engine keeps them, asked over its HTTP interface. */

import { randomUUID } from 'node:crypto';
import * as clients from '@restatedev/restate-sdk-clients';
import {
  agentMachine,
  type DayCharge,
  type DayCharged,
  type Entry,
  type Header,
  type Input,
  type Posted,
  type SessionInfo,
} from 'pawl/engine';
import type { AppliedEvent } from './apply-events.js';
import {
  type Arrival,
  type EntriesPage,
  findShard,
  type StoredSession,
} from './session-records.js';

/** Limit of one call: the engine itself would wait for ever for a node that is gone. */
const TIMEOUT_MS = 30_000;
/** Each holds settings and rules, some kilobytes. */
const HEADERS_MAX = 256;
/** A chunk of entries is on its way from one object of the engine to another. */
const CHUNK_MS = 20;
const PAUSES_MS = [50, 100, 200, 400, 800, 1_600, 3_000, 5_000, 5_000, 5_000];

/** An answer of the engine that is an error; its message says what to do. */
export class EngineError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'EngineError';
    this.status = status;
  }
}

type Call = {
  readonly service: string;
  readonly handler: string;
  readonly key?: string;
  readonly parameter: unknown;
  readonly timeoutMs?: number;
};

/**
 * A question to a node that is gone waits in the engine until it is back, so at most one is asked
 * in this time.
 */
const PING_MS = 10_000;
const PING_ANSWER_MS = 2_000;

const messageIn = (text: string): string => {
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown };
    return typeof message === 'string' ? message : text;
  } catch {
    return text; // not JSON: the text itself is what there is to say
  }
};

/** Whether the same call may work a moment later: the engine or a node restarts. */
const isPassing = (error: unknown): boolean =>
  !(error instanceof clients.HttpCallError) || error.status >= 502 || error.status === 429;

const asEngineError = (error: unknown, { service, handler }: Call): Error => {
  if (error instanceof clients.HttpCallError)
    return new EngineError(error.status, messageIn(error.responseText));
  const why = error instanceof Error ? error.message : String(error);
  return new EngineError(503, `the engine did not answer ${service}/${handler}: ${why}`);
};

/** The engine's limit for one message, unless its operator changed it. */
const MESSAGE_BYTES_MAX = 32 * 1024 * 1024;

const isLarge = (parameter: unknown): boolean =>
  Buffer.byteLength(JSON.stringify(parameter) ?? '') > MESSAGE_BYTES_MAX;

/**
 * The engine cuts a message off that is too large, and its answer may be lost with the connection.
 */
const tooLarge = (): EngineError =>
  new EngineError(
    413,
    'the engine has cut the message off: it takes 32 MB unless its operator changed it',
  );

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export class SessionStore {
  readonly #ingress: clients.Ingress;
  readonly #headers = new Map<string, Header>();

  constructor(ingressUrl: string) {
    this.#ingress = clients.connect({ url: ingressUrl });
  }

  /**
   * Repeats the call until the engine answers. Its key makes sure that it has its effect once; a
   * key of the caller does so for later calls too, as long as the engine keeps it.
   */
  async call<T>(call: Call, once: boolean | string = false): Promise<T> {
    const { service, handler, key, parameter, timeoutMs = TIMEOUT_MS } = call;
    const own = once === true ? randomUUID() : once;
    const idempotencyKey = own === false ? {} : { idempotencyKey: own };
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#ingress.call<unknown, T>({
          service,
          handler,
          parameter,
          ...(key === undefined ? {} : { key }),
          opts: clients.rpc.opts({ timeout: timeoutMs, ...idempotencyKey }) as never,
        });
      } catch (error) {
        if (!(error instanceof clients.HttpCallError) && isLarge(parameter)) throw tooLarge();
        const ms = PAUSES_MS[attempt];
        if (ms === undefined || !isPassing(error)) throw asEngineError(error, call);
        await pause(ms);
      }
    }
  }

  /** Whether the node works. */
  async answers(node: string): Promise<boolean> {
    const idempotencyKey = `ping-${Math.floor(Date.now() / PING_MS)}`;
    try {
      return await this.#ingress.call<unknown, boolean>({
        service: `Tools-${node}`,
        handler: 'ping',
        parameter: null,
        opts: clients.rpc.opts({ timeout: PING_ANSWER_MS, idempotencyKey }) as never,
      });
    } catch {
      return false; // it is gone, was never there, or is as good as gone
    }
  }

  setMetadata(sessionId: string, value: unknown): Promise<void> {
    const parameter = { sessionId, value };
    return this.call(
      { service: 'SessionMetadata', handler: 'put', key: findShard(sessionId), parameter },
      true,
    );
  }

  metadata(sessionId: string): Promise<unknown> {
    const parameter = { sessionId };
    return this.call({
      service: 'SessionMetadata',
      handler: 'get',
      key: findShard(sessionId),
      parameter,
    });
  }

  /** Of one shard. */
  allMetadata(shard: string): Promise<readonly unknown[]> {
    return this.call({ service: 'SessionMetadata', handler: 'all', key: shard, parameter: null });
  }

  charge(key: string, asked: DayCharge): Promise<DayCharged> {
    return this.call({ service: 'KeySpending', handler: 'charge', key, parameter: asked }, true);
  }

  async session(sessionId: string): Promise<StoredSession> {
    const session = await this.call<StoredSession>({
      service: 'Session',
      handler: 'session',
      key: sessionId,
      parameter: null,
    });
    this.#remember(sessionId, session.header);
    return session;
  }

  /** A header never changes, so it is asked for once. */
  async header(sessionId: string): Promise<Header> {
    return this.#headers.get(sessionId) ?? (await this.session(sessionId)).header;
  }

  /** The next use asks the engine for it again. */
  forgetHeader(sessionId: string): void {
    this.#headers.delete(sessionId);
  }

  #remember(sessionId: string, header: Header): void {
    this.#headers.set(sessionId, header);
    const [oldest] = this.#headers.keys();
    if (this.#headers.size > HEADERS_MAX && oldest !== undefined) this.#headers.delete(oldest);
  }

  /** The session's own entries from `from` on, at most one page. */
  #page(sessionId: string, from: number): Promise<EntriesPage> {
    return this.call({
      service: 'Session',
      handler: 'entries',
      key: sessionId,
      parameter: { from },
    });
  }

  /** The entries from `from` to `to`. Those before a fork are read from its parent. */
  async *entries(
    sessionId: string,
    from: number,
    to = Number.POSITIVE_INFINITY,
  ): AsyncGenerator<Entry> {
    const { parent } = await this.header(sessionId);
    let next = from;
    if (parent !== null && next <= parent.seq) {
      yield* this.entries(parent.sessionId, next, Math.min(to, parent.seq));
      next = parent.seq + 1;
    }
    while (next <= to) {
      const page = await this.#page(sessionId, next);
      for (const entry of page.entries) {
        if (entry.seq > to) return;
        yield entry;
        next = entry.seq + 1;
      }
      if (next > page.seq) return;
      if (page.entries.length === 0) await pause(CHUNK_MS);
    }
  }

  input(sessionId: string, inputs: readonly Input[]): Promise<readonly AppliedEvent[]> {
    const parameter = { inputs, at: Date.now() };
    const [{ clientRequestId } = {}] = inputs; // an input that has one comes alone
    const call = { service: 'Session', handler: 'input', key: sessionId, parameter };
    return this.call(call, clientRequestId ?? true);
  }

  /** `machineVersion`: of the session, as far as whoever posts knows. */
  post(
    sessionId: string,
    posted: readonly Posted[],
    machineVersion = agentMachine.version,
  ): Promise<readonly AppliedEvent[]> {
    const parameter: Arrival = { posted, at: Date.now(), machineVersion };
    return this.call({ service: 'Session', handler: 'event', key: sessionId, parameter }, true);
  }

  /** One shard of the list. */
  list(shard: string): Promise<readonly SessionInfo[]> {
    return this.call({ service: 'SessionIndex', handler: 'list', key: shard, parameter: null });
  }
}
