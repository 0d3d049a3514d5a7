/**
 * The interface `Runtime` for sessions that live on an engine. Here are kept only connections and
 * what can be read again: followers of sessions, inputs on their way, states.
 *
 * A reader ends when it sees the entry that closes the session, or when the session was closed
 * before its follower began. A session that is `over` is closed; while it is `ending`, its last
 * hooks may still add entries.
 */

import './polyfill.js'; // before the SDK, which session-store.js imports
import {
  AsyncQueue,
  attempt,
  checkSettings,
  type DayCharge,
  type DayCharged,
  type Entry,
  type Header,
  type Input,
  type NewSession,
  newSessionId,
  type RecordStore,
  type Runtime,
  reportThrough,
  type SessionInfo,
  systemClock,
  type Watcher,
} from 'pawl/engine';
import { Follower } from './follower.js';
import type { LiveChannel } from './live.js';
import { SendQueue } from './send-queue.js';
import { allShards, type BegunSession, findShard } from './session-records.js';
import { OtherMachineError, SessionStates } from './session-states.js';
import { SessionStore, StoredRecords } from './session-store.js';

export type RestateRuntimeOptions = {
  /** Where the engine takes calls, for example `http://127.0.0.1:8080`. */
  readonly ingressUrl: string;
  /** The node on which a new session gets its workspace. */
  placeOn(session: NewSession): string;
  /** The same as that of the nodes, or one that reaches all of them. */
  readonly live: LiveChannel;
  /**
   * Told of faults that stop nothing: a watcher that threw, or a session that can't be reached for
   * now.
   */
  readonly report?: (fault: Error) => void;
};

export type RestateRuntime = Runtime & {
  /** `record` is awaited with the id before anything of the session runs. */
  create(session: NewSession, record?: (sessionId: string) => Promise<void>): Promise<string>;
  /** Goes on with a session that was closed, or with a fork. An open one stays as it is. */
  open(sessionId: string): Promise<void>;
  /**
   * Closes the session, and gives it to another node. There its tools run in the folder of the same
   * name, which must exist. What the old node had not finished is dropped, also if that node comes
   * back later.
   */
  move(sessionId: string, node: string): Promise<void>;
  /** Whether the node works. The answer may be some seconds old. */
  isUp(node: string): Promise<boolean>;
  /** The nodes' records of their sessions. */
  readonly records: RecordStore;
  /** Sets money aside for a user's key to the server, or records what it spent, on all nodes. */
  charge(key: string, asked: DayCharge): Promise<DayCharged>;
  /** The node with the session's workspace, and whether the session is closed. */
  whereIs(sessionId: string): Promise<{ readonly node: string; readonly isClosed: boolean }>;
  /** Lets go of all connections. The sessions go on. */
  disconnect(): Promise<void>;
};

/** How long the state of a session that nobody asks for stays in memory. */
const IDLE_MS = 60_000;
/** How long the answer of a node counts: many sessions may wait for one node. */
const PING_KEPT_MS = 3_000;
/** How long a new session is followed from its first entry on, so that its first hooks are seen. */
const NEW_MS = 10_000;
/** How long the hooks about the end of a session are waited for, also if its node is away. */
const END_MS = 60_000;

class EngineSessions implements RestateRuntime {
  readonly #options: RestateRuntimeOptions;
  readonly records: RecordStore;
  readonly #store: SessionStore;
  readonly #states: SessionStates;
  readonly #followers = new Map<string, Follower>();
  readonly #queues = new Map<string, SendQueue>();
  /** The new entries of each reader. */
  readonly #readers = new Set<AsyncQueue<Entry>>();
  readonly #pings = new Map<
    string,
    { readonly askedAt: number; readonly isUp: Promise<boolean> }
  >();
  /** The headers of new sessions that had no input and no follower here, the oldest first. */
  readonly #created = new Map<string, { readonly header: Header; readonly at: number }>();
  readonly #report: (fault: Error) => void;
  #isDisconnected = false;

  constructor(options: RestateRuntimeOptions) {
    this.#options = options;
    this.#store = new SessionStore(options.ingressUrl);
    this.records = new StoredRecords(this.#store);
    this.#states = new SessionStates(this.#store, IDLE_MS);
    this.#report = reportThrough(options.report ?? ((fault) => process.emitWarning(fault)));
  }

  async create(
    session: NewSession,
    record?: (sessionId: string) => Promise<void>,
  ): Promise<string> {
    checkSettings(session.settings);
    const sessionId = newSessionId(systemClock);
    const node = this.#options.placeOn(session);
    const created = await this.#store.call<BegunSession>({
      service: `Tools-${node}`,
      handler: 'begin',
      parameter: { ...session, sessionId },
      once: true,
    });
    // before its first hooks, which ask whose session it is
    await record?.(sessionId);
    await this.#store.call({
      service: 'Session',
      handler: 'create',
      key: sessionId,
      parameter: { ...created, node, title: null },
      once: true,
    });
    this.#dropOld();
    this.#created.set(sessionId, { header: created.header, at: performance.now() });
    return sessionId;
  }

  async send(sessionId: string, input: Input): ReturnType<Runtime['send']> {
    const queue =
      this.#queues.get(sessionId) ??
      new SendQueue(async (inputs) => {
        // A watcher sees the step of the input. One that can't be followed now takes inputs, too:
        // its follower reports why.
        await attempt(async () => this.#followers.get(sessionId)?.ready());
        return this.#store.input(sessionId, inputs);
      });
    this.#queues.set(sessionId, queue);
    const sent = await queue.add(input).finally(() => {
      if (queue.isIdle) this.#queues.delete(sessionId);
    });
    this.#created.delete(sessionId);
    await attempt(async () => this.#followers.get(sessionId)?.catchUp(sent.seq));
    return sent;
  }

  read(sessionId: string, from = 1): ReturnType<Runtime['read']> {
    const live = new AsyncQueue<Entry>();
    const entries = this.#read(sessionId, from, live);
    const end = async (): Promise<IteratorResult<Entry>> => {
      live.end(null); // `return` waits for a pending `next`, which this ends
      return entries.return(undefined);
    };
    return { [Symbol.asyncIterator]: () => ({ next: () => entries.next(), return: end }) };
  }

  async *#read(sessionId: string, from: number, live: AsyncQueue<Entry>): AsyncGenerator<Entry> {
    const { over, ending, seq } = await this.#store.session(sessionId);
    if (this.#isDisconnected) return;
    // closed, and its last hooks have ended: nothing is to come
    if (over && !ending) return yield* this.#store.entries(sessionId, from);
    const follower = this.#follow(sessionId);
    const unread = follower.read((entry) => {
      live.push(entry);
      // an earlier one is of a session that was opened again
      const ends = entry.event.type === 'ShutdownRequested' && entry.seq > seq;
      if (ends) void this.#endReader(sessionId, live);
    });
    this.#readers.add(live);
    try {
      await follower.ready();
      // closed before the follower began, which then does not see it
      if ((await this.#store.session(sessionId)).over) void this.#endReader(sessionId, live);
      let last = from - 1;
      for await (const entry of this.#store.entries(sessionId, from)) {
        last = entry.seq;
        yield entry;
      }
      for await (const entry of live) if (entry.seq > last) yield entry;
    } finally {
      this.#readers.delete(live);
      unread();
      this.#forget(sessionId);
    }
  }

  /** Ends the reader of a closed session once it has the entries of the last hooks. */
  async #endReader(sessionId: string, live: AsyncQueue<Entry>): Promise<void> {
    try {
      await this.#followers.get(sessionId)?.catchUp(await this.#whenEnded(sessionId));
    } catch {
      // the entries can't be had, for example since the engine is away: it ends without them
    }
    live.end(null);
  }

  watch(sessionId: string, watcher: Watcher): () => void {
    const unwatch = this.#follow(sessionId).watch(watcher);
    return () => {
      unwatch();
      this.#forget(sessionId);
    };
  }

  async state(sessionId: string): ReturnType<Runtime['state']> {
    const follower = this.#followers.get(sessionId);
    // what comes before a follower begins is told to nobody, so the state is read after that
    await attempt(async () => follower?.ready());
    const { header, seq, state } = await this.#now(sessionId);
    await follower?.catchUp(seq); // its watchers have seen what is returned
    return { header, seq, state };
  }

  /**
   * Throws if a turn runs that an earlier version of Pawl's state machine has begun: this version
   * does not know its state, so the session would seem to rest.
   */
  async #now(sessionId: string): ReturnType<SessionStates['exact']> {
    const { seq, inTurn } = await this.#store.session(sessionId);
    const exact = await this.#states.exact(sessionId, seq);
    // what this version can't read from the entries
    const isUnreadable = exact.upgrade?.session !== undefined;
    if (!inTurn || !isUnreadable) return exact;
    throw new OtherMachineError(
      `a turn of session ${sessionId} runs that an earlier Pawl has begun: wait for its end`,
    );
  }

  async fork(sessionId: string, seq: number): Promise<string> {
    const parameter = { newSessionId: newSessionId(systemClock), seq, at: Date.now() };
    const call = { service: 'Session', handler: 'fork', key: sessionId, parameter };
    return this.#store.call({ ...call, once: true });
  }

  async *list(sessionIds?: readonly string[]): ReturnType<Runtime['list']> {
    const shards = sessionIds === undefined ? allShards : new Set(sessionIds.map(findShard));
    const lists = [...shards].map((shard) =>
      this.#store.list(
        shard,
        sessionIds?.filter((id) => findShard(id) === shard),
      ),
    );
    const infos: SessionInfo[] = (await Promise.all(lists)).flat();
    yield* infos.sort((left, right) => right.changedAt - left.changedAt);
  }

  async close(sessionId: string): Promise<void> {
    const { over } = await this.#store.session(sessionId);
    if (!over) {
      const sent = await attempt(() => this.send(sessionId, { type: 'ShutdownRequested' }));
      // another caller may have closed it meanwhile
      if (sent.kind === 'fault' && !(await this.#store.session(sessionId)).over) throw sent.fault;
    }
    await this.#whenEnded(sessionId);
  }

  /**
   * Resolves with the last entry's number when the hooks about the end of a closed session have
   * ended.
   */
  async #whenEnded(sessionId: string): Promise<number> {
    const until = performance.now() + END_MS;
    for (let pauseMs = 5; ; pauseMs = Math.min(2 * pauseMs, 500)) {
      const { seq, ending } = await this.#store.session(sessionId);
      if (!ending) return seq;
      if (performance.now() > until)
        throw new Error(
          `session ${sessionId} is closed, but its node has not said that its last hooks ended`,
        );
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async open(sessionId: string): Promise<void> {
    const parameter = { at: Date.now() };
    const call = { service: 'Session', handler: 'open', key: sessionId, parameter };
    await this.#store.call({ ...call, once: true });
  }

  async move(sessionId: string, node: string): Promise<void> {
    const parameter = { node, at: Date.now() };
    const call = { service: 'Session', handler: 'move', key: sessionId, parameter };
    await this.#store.call({ ...call, once: true });
  }

  async isUp(node: string): Promise<boolean> {
    const known = this.#pings.get(node);
    const now = performance.now(); // an answer stays no longer because the clock was set back
    if (known !== undefined && now - known.askedAt < PING_KEPT_MS) return known.isUp;
    const isUp = this.#store.isUp(node);
    this.#pings.set(node, { askedAt: now, isUp });
    return isUp;
  }

  async charge(key: string, asked: DayCharge): Promise<DayCharged> {
    return this.#store.charge(key, asked);
  }

  async whereIs(sessionId: string): ReturnType<RestateRuntime['whereIs']> {
    const { node, over } = await this.#store.session(sessionId);
    return { node, isClosed: over };
  }

  async disconnect(): Promise<void> {
    this.#isDisconnected = true;
    this.#created.clear();
    for (const follower of this.#followers.values()) follower.stop();
    this.#followers.clear();
    for (const reader of this.#readers) reader.end(null);
    this.#states.stop();
  }

  #follow(sessionId: string): Follower {
    const following = this.#followers.get(sessionId);
    if (following !== undefined) return following;
    if (this.#isDisconnected) throw new Error('the runtime has let go of its connections');
    this.#dropOld();
    const header = this.#created.get(sessionId)?.header ?? null;
    this.#created.delete(sessionId);
    const follower = new Follower(sessionId, {
      store: this.#store,
      live: this.#options.live,
      header,
      now: () => this.#now(sessionId),
      missingNode: async () => {
        const { node } = await this.#store.session(sessionId);
        return (await this.isUp(node)) ? null : node;
      },
      report: this.#report,
    });
    this.#followers.set(sessionId, follower);
    return follower;
  }

  #dropOld(): void {
    for (const [sessionId, { at }] of this.#created) {
      if (performance.now() - at < NEW_MS) return;
      this.#created.delete(sessionId);
    }
  }

  #forget(sessionId: string): void {
    const follower = this.#followers.get(sessionId);
    if (follower === undefined || follower.isNeeded) return;
    follower.stop();
    this.#followers.delete(sessionId);
  }
}

/** A runtime whose sessions live on an engine: any process that reaches the engine may use them. */
export const createRestateRuntime = (options: RestateRuntimeOptions): RestateRuntime =>
  new EngineSessions(options);
