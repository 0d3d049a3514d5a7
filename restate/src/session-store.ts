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
  isRecord,
  type NodeSessionRecord,
  type Posted,
  type RecordStore,
  type SessionInfo,
} from 'pawl/engine';
import type { AppliedEvent } from './apply-events.js';
import {
  type Arrival,
  type EntriesPage,
  EVERY_SHARD,
  findShard,
  type StoredSession,
} from './session-records.js';

/** Limit of one call: the engine itself would wait for ever for a node that is gone. */
const TIMEOUT_MS = 30_000;
/** Some 20,000 records take a few seconds. */
const SORTING_MS = 10 * 60_000;
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
  /**
   * The call has its effect once, however often it is repeated here. A text is a key of the caller:
   * later calls with it have no effect either, as long as the engine keeps it.
   */
  readonly once?: true | string;
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
const isTemporary = (error: unknown): boolean =>
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

  /** Repeats the call until the engine answers, for some 25 seconds. */
  async call<T>(call: Call): Promise<T> {
    const { service, handler, key, parameter, timeoutMs = TIMEOUT_MS, once } = call;
    const own = once === true ? randomUUID() : once;
    const idempotencyKey = own === undefined ? {} : { idempotencyKey: own };
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
        if (ms === undefined || !isTemporary(error)) throw asEngineError(error, call);
        await pause(ms);
      }
    }
  }

  /** Whether the node works. */
  async isUp(node: string): Promise<boolean> {
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

  charge(key: string, asked: DayCharge): Promise<DayCharged> {
    const call = { service: 'KeySpending', handler: 'charge', key, parameter: asked };
    return this.call({ ...call, once: true });
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
    return this.call({ ...call, once: clientRequestId ?? true });
  }

  /** `machineVersion`: of the session, as far as whoever posts knows. */
  post(
    sessionId: string,
    posted: readonly Posted[],
    machineVersion = agentMachine.version,
  ): Promise<readonly AppliedEvent[]> {
    const parameter: Arrival = { posted, at: Date.now(), machineVersion };
    const call = { service: 'Session', handler: 'event', key: sessionId, parameter };
    return this.call({ ...call, once: true });
  }

  /** One shard of the list, or of it only the sessions with these ids. */
  list(shard: string, ids?: readonly string[]): Promise<readonly SessionInfo[]> {
    const call = { service: 'SessionIndex', key: shard };
    if (ids === undefined) return this.call({ ...call, handler: 'list', parameter: null });
    return this.call({ ...call, handler: 'find', parameter: { ids } });
  }
}

/** The engine knows this version of what all nodes can do when no node of an earlier one works. */
const notYet = (): EngineError =>
  new EngineError(
    503,
    'the engine finds sessions by key when all nodes have this version of Pawl. Update the others.',
  );

/** The nodes' records of their sessions, as the engine has them by session and by key. */
export class StoredRecords implements RecordStore {
  readonly #store: SessionStore;
  #sorted: Promise<unknown> | null = null;

  constructor(store: SessionStore) {
    this.#store = store;
  }

  async get(sessionId: string): Promise<NodeSessionRecord | undefined> {
    const call = { service: 'SessionMetadata', handler: 'get', key: findShard(sessionId) };
    const stored = await this.#store.call({ ...call, parameter: { sessionId } });
    return isRecord(stored) ? stored : undefined;
  }

  async put(record: NodeSessionRecord): Promise<void> {
    await this.#sort();
    const { sessionId } = record;
    const parameter = { sessionId, value: record };
    const key = findShard(sessionId);
    const call = { service: 'SessionMetadata', handler: 'put', key, parameter };
    await this.#store.call({ ...call, once: true });
  }

  ofKey(key: string, before: string | null, limit: number): Promise<readonly NodeSessionRecord[]> {
    return this.#ask(key, 'list', { before, limit });
  }

  countOpen(key: string): Promise<number> {
    return this.#ask(key, 'countOpen', null);
  }

  inWorktree(key: string, path: string): Promise<readonly NodeSessionRecord[]> {
    return this.#ask(key, 'inWorktree', { path });
  }

  async createdBy(key: string, requestId: string): Promise<NodeSessionRecord | undefined> {
    const parameter = { requestId };
    return (await this.#ask<NodeSessionRecord | null>(key, 'createdBy', parameter)) ?? undefined;
  }

  async #ask<T>(key: string, handler: string, parameter: unknown): Promise<T> {
    await this.#sort();
    return this.#store.call({ service: 'SessionsByKey', handler, key, parameter });
  }

  /** Once for this process: an engine of an earlier version has its records by session only. */
  #sort(): Promise<unknown> {
    const call = { service: 'SessionMetadata', handler: 'sortOnce', key: EVERY_SHARD };
    this.#sorted ??= this.#store
      .call({ ...call, parameter: null, timeoutMs: SORTING_MS, once: true })
      .catch((error: unknown) => {
        throw error instanceof EngineError && error.status === 404 ? notYet() : error;
      });
    this.#sorted.catch(() => {
      this.#sorted = null; // the next question tries again
    });
    return this.#sorted;
  }
}
