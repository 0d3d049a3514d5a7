/**
 * A node: a process that runs sessions for others over HTTP. `Node` joins the parts: the HTTP
 * server, the keys, the sessions and their streams.
 *
 * Draining loses nothing: the node takes no new sessions and inputs, waits for running turns up to
 * a deadline, interrupts the rest, closes the sessions and ends the streams with a last event.
 * Every event was in the journal before. Sessions that don't end with the node are neither
 * interrupted nor closed.
 */

import { attempt } from '@pawl/agent/platform/attempt';
import { ApiFault, RETRY_SECONDS } from './api-fault.js';
import { AuditLog } from './audit-log.js';
import { type ApiExchange, openNodeServer } from './http.js';
import { type KeySource, KeyUse, type ServeKey } from './keys.js';
import { NodeMetrics } from './metrics.js';
import { type NodeRuntime, openRecords, type RecordStore } from './node-runtime.js';
import {
  defaultStreamLimits,
  EventStream,
  OpenSessions,
  type StreamLimits,
} from './open-sessions.js';
import { ServedSessions } from './served-sessions.js';
import type { SpendingStore } from './spending.js';
import { NodeWorkspaces, type WorkspaceOptions } from './workspaces.js';

export type NodeOptions = {
  readonly runtime: NodeRuntime;
  /** Those that never change, or a source whose keys change while the node runs. */
  readonly keys: readonly ServeKey[] | KeySource;
  /** Absent: nothing is written about who did what. */
  readonly auditFile?: string;
  /** Absent: the node counts for itself. */
  readonly metrics?: NodeMetrics;
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** Listens on this Unix socket instead of a port. */
  readonly socketPath?: string;
  /** A session that is followed from the start, so that a later reader gets a reply's beginning. */
  readonly attended?: string;
  /** Further values of the header Host. */
  readonly names: readonly string[];
  /** Holds the records of the sessions, unless the runtime keeps them. */
  readonly recordsFolder: string;
  readonly workspaces: WorkspaceOptions;
  /** What keys with limits of a day have spent. Absent: such limits refuse no input. */
  readonly spending?: SpendingStore;
  readonly streams?: Partial<StreamLimits>;
  /** A clock in milliseconds that is never set. */
  readonly now?: () => number;
  readonly report: (fault: Error) => void;
};

export type ServingNode = {
  readonly address: string;
  /** Streams that are read now. */
  readonly readers: () => number;
  /**
   * Ends the node. `deadlineMs`: how long running turns may take; the signal ends the wait.
   * Resolves when every session that ends with the node is closed, and every connection has ended.
   */
  drain(deadlineMs: number, signal?: AbortSignal): Promise<void>;
};

/** A session that rests is followed for one to two of these. */
const SWEEP_MS = 30_000;
/** Requests that are being answered have this long when all sessions are closed. */
const LAST_ANSWERS_MS = 2_000;

/** The last entry that the reader of a stream has. */
const readLastSeq = ({ incoming, query }: ApiExchange): number => {
  const value = incoming.headers['last-event-id'] ?? query.after ?? '0';
  const seq = /^\d{1,15}$/.test(String(value)) ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(seq)) return seq;
  throw new ApiFault(
    'badRequest',
    'Last-Event-ID must be the seq of an entry, or 0 for all entries.',
  );
};

class Node {
  readonly #options: NodeOptions;
  readonly #metrics: NodeMetrics;
  readonly #keys: KeySource;
  readonly #use: KeyUse;
  readonly #audit: AuditLog;
  readonly #open: OpenSessions;
  readonly #sessions: ServedSessions;
  /** Each with the key that reads it. */
  readonly #streams = new Map<EventStream, ServeKey>();
  /** The node shuts down, and takes no new work. */
  #isDraining = false;
  /** All sessions are closed, and every stream ends. */
  #streamsEnd = false;

  constructor(options: NodeOptions, records: RecordStore) {
    const { runtime, report, now = () => performance.now() } = options;
    this.#options = options;
    const { keys, metrics = new NodeMetrics(), auditFile = null } = options;
    this.#audit = new AuditLog(auditFile, report);
    this.#metrics = metrics;
    this.#keys = 'now' in keys ? keys : { now: () => keys, onChange: () => undefined };
    this.#use = new KeyUse(now);
    const findKeyName = async (sessionId: string) => (await records.get(sessionId))?.key ?? '';
    this.#open = new OpenSessions({ runtime, metrics, findKeyName, report });
    const workspaces = new NodeWorkspaces(options.workspaces);
    this.#sessions = new ServedSessions({
      runtime,
      records,
      workspaces,
      open: this.#open,
      use: this.#use,
      audit: this.#audit,
      spending: options.spending,
    });
  }

  async start(): Promise<ServingNode> {
    const { attended, report } = this.#options;
    const audit = this.#audit;
    if (attended !== undefined) await this.#open.attend(attended);
    const server = await openNodeServer({
      ...this.#options,
      keys: () => this.#keys.now(),
      audit,
      use: this.#use,
      isDraining: () => this.#isDraining,
      ended: (...request) => this.#metrics.requestEnded(...request),
      routes: {
        sessions: this.#sessions,
        refuseWhileDraining: () => this.#refuseWhileDraining(),
        stream: (exchange) => this.#stream(exchange),
        metrics: () =>
          this.#metrics.text({
            sessions: this.#open.count,
            streams: this.#streams.size,
            requests: server.active(),
            bufferedBytes: [...this.#streams.keys()].reduce(
              (sum, stream) => sum + stream.bufferedBytes,
              0,
            ),
            residentBytes: process.memoryUsage.rss(),
          }),
      },
    });
    this.#keys.onChange(() => {
      this.#endRevoked();
      const keys = this.#keys.now().map(({ name }) => name);
      audit.append({ action: 'keys', keys }).catch(report);
    });
    const sweeping = setInterval(() => this.#open.sweep(), SWEEP_MS).unref();
    return {
      address: server.address,
      readers: () => this.#streams.size,
      drain: async (deadlineMs, signal) => {
        this.#isDraining = true;
        clearInterval(sweeping);
        await this.#drain(deadlineMs, signal);
        await server.close(LAST_ANSWERS_MS);
        await this.#closeSessions(); // those that requests opened meanwhile
      },
    };
  }

  #refuseWhileDraining(): void {
    if (!this.#isDraining) return;
    const why =
      'This node shuts down and takes no new work. Send the request again, to this node or ' +
      'another one.';
    throw new ApiFault('draining', why, RETRY_SECONDS);
  }

  /** Sends the events of a session until the stream ends. */
  async #stream(exchange: ApiExchange): Promise<void> {
    const { key, sessionId, outgoing } = exchange;
    const after = readLastSeq(exchange);
    const source = await this.#sessions.source(key, sessionId, after);
    const leave = this.#use.openStream(key);
    const limits = { ...defaultStreamLimits, ...this.#options.streams };
    const stream = new EventStream(outgoing, source, after, limits);
    this.#streams.set(stream, key);
    try {
      if (this.#isDraining) stream.expectDrain();
      if (this.#streamsEnd) stream.end('draining');
      this.#endRevoked(); // the key may have been removed since the request was admitted
      this.#metrics.streamEnded(await stream.run());
    } finally {
      this.#streams.delete(stream);
      leave();
    }
  }

  /** Ends the streams of keys that are there no more. */
  #endRevoked(): void {
    const keys = this.#keys.now();
    for (const [stream, { digest }] of this.#streams)
      if (!keys.some((key) => key.digest.equals(digest))) stream.end('revoked');
  }

  /** Waits for running turns, closes the sessions, and ends the streams. */
  async #drain(deadlineMs: number, signal: AbortSignal | undefined): Promise<void> {
    for (const stream of this.#streams.keys()) stream.expectDrain();
    await this.#awaitTurns(deadlineMs, signal);
    await this.#closeSessions();
    this.#streamsEnd = true;
    for (const stream of this.#streams.keys()) stream.end('draining');
  }

  async #closeSessions(): Promise<void> {
    if (!this.#options.runtime.endsWithNode) return;
    await Promise.all(
      this.#open.ids().map(async (sessionId) => {
        const closed = await attempt(() => this.#open.close(sessionId));
        // The error that stopped it was reported, and its steps are in its journal.
        if (closed.kind === 'fault') this.#options.report(closed.fault);
      }),
    );
  }

  /** Resolves when no turn runs any more, at the deadline, or when the signal aborts. */
  async #awaitTurns(deadlineMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) return;
    let giveUp = (): void => undefined;
    const deadline = new Promise<void>((resolve) => {
      giveUp = resolve;
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });
    const timer = setTimeout(giveUp, deadlineMs);
    const rests = this.#open.ids().map((sessionId) => this.#open.feed(sessionId)?.rest());
    await Promise.race([Promise.all(rests), deadline]);
    clearTimeout(timer);
  }
}

/** Starts a node. Rejects if it can't listen. */
export const startNode = async (options: NodeOptions): Promise<ServingNode> => {
  const records =
    options.runtime.records ?? (await openRecords(options.recordsFolder, options.report));
  return new Node(options, records).start();
};
