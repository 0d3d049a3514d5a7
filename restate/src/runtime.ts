/**
 * Sessions on the engine, behind the interface that sessions in one process have too: sent to,
 * followed and read.
 */

import './polyfill.js';
import {
  AsyncQueue,
  agentMachine,
  checkSettings,
  type DayCharge,
  type DayCharged,
  type Entry,
  type Event,
  type Header,
  type Input,
  type NewSession,
  newSessionId,
  type RecordStore,
  type Runtime,
  SessionFollower,
  type SessionInfo,
  type State,
  type Stepped,
  systemClock,
  type Watcher,
} from 'pawl/engine';
import type { AppliedEvent } from './apply-events.js';
import type { LiveChannel, LiveMessage } from './live.js';
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
  /** Goes on with a session that was closed, or with a fork. */
  open(sessionId: string): Promise<void>;
  /**
   * Ends what runs of the session and closes it, and its tools run on another node from now on, in
   * the folder of the same name there, which must exist. Nothing that the old node still has to do
   * for it is done when it comes back.
   */
  move(sessionId: string, node: string): Promise<void>;
  /** Whether the node works. The answer may be some seconds old. */
  answers(node: string): Promise<boolean>;
  /** The nodes' records of their sessions. */
  readonly records: RecordStore;
  /** Sets money of a key aside, or records what the key has spent, for all nodes. */
  charge(key: string, asked: DayCharge): Promise<DayCharged>;
  /** The node with the session's workspace, and whether the session is closed. */
  place(sessionId: string): Promise<{ readonly node: string; readonly isClosed: boolean }>;
  /** Lets go of all connections. The sessions go on. */
  disconnect(): Promise<void>;
};

/** How long the state of a session that nobody asks for stays in memory. */
const IDLE_MS = 60_000;
/** How long the answer of a node counts: many sessions may wait for one node. */
const ANSWER_KEPT_MS = 3_000;

/** How long the hooks about the end of a session are waited for, also if its node is away. */
const END_MS = 60_000;

class EngineSessions implements RestateRuntime {
  readonly #options: RestateRuntimeOptions;
  readonly records: RecordStore;
  readonly #store: SessionStore;
  readonly #states: SessionStates;
  readonly #followers = new Map<string, Follower>();
  readonly #queues = new Map<string, SendQueue>();
  readonly #answers = new Map<
    string,
    { readonly askedAt: number; readonly answer: Promise<boolean> }
  >();
  /** Sessions that were created here and have no follower yet: it begins with their first entry. */
  readonly #created = new Map<string, Header>();

  constructor(options: RestateRuntimeOptions) {
    this.#options = options;
    this.#store = new SessionStore(options.ingressUrl);
    this.records = new StoredRecords(this.#store);
    this.#states = new SessionStates(this.#store, IDLE_MS);
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
    });
    // before its first hooks, which ask whose session it is
    await record?.(sessionId);
    await this.#store.call(
      {
        service: 'Session',
        handler: 'create',
        key: sessionId,
        parameter: { ...created, node, title: null },
      },
      true,
    );
    this.#created.set(sessionId, created.header);
    return sessionId;
  }

  async send(sessionId: string, input: Input): ReturnType<Runtime['send']> {
    const follower = this.#followers.get(sessionId);
    await follower?.ready;
    const queue =
      this.#queues.get(sessionId) ??
      new SendQueue((inputs) => this.#store.input(sessionId, inputs));
    this.#queues.set(sessionId, queue);
    const sent = await queue.add(input).finally(() => {
      if (queue.isIdle) this.#queues.delete(sessionId);
    });
    this.#created.delete(sessionId);
    await this.#followers.get(sessionId)?.catchUp(sent.seq);
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
    if ((await this.#store.session(sessionId)).over)
      return yield* this.#store.entries(sessionId, from);
    const follower = this.#follow(sessionId);
    const unread = follower.read((entry) => {
      live.push(entry);
      if (entry.event.type === 'ShutdownRequested') void this.#endReader(sessionId, live);
    });
    try {
      await follower.ready;
      // closed before the follower began, which then does not see it
      if ((await this.#store.session(sessionId)).over) void this.#endReader(sessionId, live);
      let last = from - 1;
      for await (const entry of this.#store.entries(sessionId, from)) {
        last = entry.seq;
        yield entry;
      }
      for await (const entry of live) if (entry.seq > last) yield entry;
    } finally {
      unread();
      this.#forget(sessionId);
    }
  }

  /** Ends the reader of a closed session when its last hooks have ended, with their verdicts. */
  async #endReader(sessionId: string, live: AsyncQueue<Entry>): Promise<void> {
    try {
      await this.#followers.get(sessionId)?.catchUp(await this.#whenEnded(sessionId));
    } catch {
      // the node or the engine is away: the reader ends without them
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
    const { header, seq, state } = await this.#now(sessionId);
    await this.#followers.get(sessionId)?.catchUp(seq); // its watchers have seen what is returned
    return { header, seq, state };
  }

  /** Throws if a turn runs that this machine does not follow: the session would seem to rest. */
  async #now(sessionId: string): ReturnType<SessionStates['exact']> {
    const { seq, inTurn } = await this.#store.session(sessionId);
    const exact = await this.#states.exact(sessionId, seq, []);
    if (!inTurn || exact.upgrade?.session === undefined) return exact;
    throw new OtherMachineError(
      `a turn of session ${sessionId} runs that an earlier Pawl has begun: wait for its end`,
    );
  }

  async fork(sessionId: string, seq: number): Promise<string> {
    const parameter = { newSessionId: newSessionId(systemClock), seq, at: Date.now() };
    return this.#store.call(
      { service: 'Session', handler: 'fork', key: sessionId, parameter },
      true,
    );
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
    if (!over) await this.send(sessionId, { type: 'ShutdownRequested' });
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
    await this.#store.call(
      { service: 'Session', handler: 'open', key: sessionId, parameter },
      true,
    );
  }

  async move(sessionId: string, node: string): Promise<void> {
    const parameter = { node, at: Date.now() };
    await this.#store.call(
      { service: 'Session', handler: 'move', key: sessionId, parameter },
      true,
    );
  }

  async answers(node: string): Promise<boolean> {
    const known = this.#answers.get(node);
    if (known !== undefined && Date.now() - known.askedAt < ANSWER_KEPT_MS) return known.answer;
    const answer = this.#store.answers(node);
    this.#answers.set(node, { askedAt: Date.now(), answer });
    return answer;
  }

  async charge(key: string, asked: DayCharge): Promise<DayCharged> {
    return this.#store.charge(key, asked);
  }

  async place(sessionId: string): ReturnType<RestateRuntime['place']> {
    const { node, over } = await this.#store.session(sessionId);
    return { node, isClosed: over };
  }

  async disconnect(): Promise<void> {
    for (const follower of this.#followers.values()) follower.stop();
    this.#followers.clear();
    this.#states.stop();
  }

  #follow(sessionId: string): Follower {
    const following = this.#followers.get(sessionId);
    if (following !== undefined) return following;
    const header = this.#created.get(sessionId) ?? null;
    this.#created.delete(sessionId);
    const follower = new Follower(sessionId, {
      store: this.#store,
      live: this.#options.live,
      header,
      now: () => this.#now(sessionId),
      missingNode: async () => {
        const { node } = await this.#store.session(sessionId);
        return (await this.answers(node)) ? null : node;
      },
      report: this.#options.report ?? ((fault) => process.emitWarning(fault)),
    });
    this.#followers.set(sessionId, follower);
    return follower;
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

/** How often the engine is asked for entries of which no word has come. */
const POLL_MS = 3_000;

type SeeEntry = (entry: Entry) => void;

/**
 * Follows one session for its watchers and readers in this process.
 *
 * 1. Entries are read from the engine, or come by the live channel; each is seen once and in order.
 *    A gap is read.
 * 2. Deltas are shown as they come (`SessionFollower`). A delta that comes before the entry with
 *    which its reply begins waits for that entry. A delta whose reply has ended already is not
 *    shown: the whole text is in the entry.
 */
export class Follower {
  readonly #sessionId: string;
  readonly #store: Pick<SessionStore, 'entries'>;
  readonly #report: (fault: Error) => void;
  readonly #missingNode: () => Promise<string | null>;
  /** The last entry at the last poll. */
  #polledSeq = -1;
  /** The missing node that watchers know of. */
  #toldMissing: string | null = null;
  readonly #watchers = new Set<Watcher>();
  readonly #readers = new Set<SeeEntry>();
  readonly #unsubscribe: () => void;
  readonly #polling: NodeJS.Timeout;
  /** Resolves when it knows where it begins. */
  readonly ready: Promise<void>;
  /** Makes steps, once it is known where it begins; null before. */
  #steps: SessionFollower | null = null;
  /**
   * Deltas that came before the entry that explains them, or too late; they wait until what is
   * stored now is read.
   */
  #early: Event[] = [];
  #reading: Promise<void> | null = null;
  #isLost = false;
  #isStopped = false;

  /**
   * `header`: of a session that was created here, which is followed from its first entry on. Null:
   * it is followed from its current state on.
   */
  constructor(
    sessionId: string,
    parts: {
      readonly store: Pick<SessionStore, 'entries'>;
      readonly live: LiveChannel;
      readonly header: Header | null;
      now(): Promise<{ readonly seq: number; readonly state: State }>;
      /** The node with the session's workspace, if it does not answer. */
      missingNode(): Promise<string | null>;
      report(fault: Error): void;
    },
  ) {
    const { store, live, header, report, missingNode } = parts;
    this.#missingNode = missingNode;
    this.#sessionId = sessionId;
    this.#store = store;
    this.#report = report;
    if (header !== null) this.#begin({ seq: 0, state: agentMachine.initialState(header.settings) });
    this.ready = header === null ? parts.now().then((now) => this.#begin(now)) : Promise.resolve();
    this.ready.catch(() => undefined); // whoever waits for it gets the error
    this.#unsubscribe = live.subscribe(sessionId, (message) => this.#hear(message));
    this.#polling = setInterval(() => this.#poll(), POLL_MS);
    this.#polling.unref();
  }

  get seq(): number {
    return this.#steps?.seq ?? 0;
  }

  get isNeeded(): boolean {
    return this.#watchers.size + this.#readers.size > 0;
  }

  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  read(see: SeeEntry): () => void {
    this.#readers.add(see);
    return () => void this.#readers.delete(see);
  }

  /** Resolves when everything up to `seq` was seen. Without it: everything up to now. */
  async catchUp(seq = Number.POSITIVE_INFINITY): Promise<void> {
    await this.ready;
    while (this.seq < seq) {
      if (this.#reading === null) {
        this.#reading = this.#read().finally(() => {
          this.#reading = null;
        });
        if (seq === Number.POSITIVE_INFINITY) return this.#reading;
      }
      await this.#reading;
    }
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#polling);
    this.#unsubscribe();
  }

  /** Reports that the session can't be reached, once until it can be reached again. */
  #poll(): void {
    const look = async (): Promise<void> => {
      await this.catchUp();
      await this.#lookForNode();
      this.#isLost = false;
    };
    look().catch((fault: Error) => {
      if (!this.#isLost && !this.#isStopped) this.#report(fault);
      this.#isLost = true;
    });
  }

  /**
   * Tells watchers once that a session with calls to do, of which nothing new has come, waits for a
   * node that is gone.
   */
  async #lookForNode(): Promise<void> {
    const isQuiet = this.seq === this.#polledSeq;
    this.#polledSeq = this.seq;
    if (!isQuiet || this.#steps?.state.name !== 'ExecutingTools') return;
    const node = await this.#missingNode();
    const isNew = node !== null && node !== this.#toldMissing;
    this.#toldMissing = node;
    const { state } = this.#steps;
    if (!isNew || this.#isStopped || state.name !== 'ExecutingTools') return;
    const text =
      `The node ${node} has the workspace and does not answer. The session waits for it, or ` +
      'can be moved to another node.';
    this.#report(new Error(`session ${this.#sessionId}: ${text}`));
    const { batchId, calls } = state;
    const call = calls.find(({ status }) => status === 'running');
    if (call === undefined) return;
    const { callId } = call.judged;
    this.#steps.delta({
      type: 'ToolProgress',
      batchId,
      callId,
      text: `[${text}]\n`,
      at: Date.now(),
    });
  }

  #begin({ seq, state }: { readonly seq: number; readonly state: State }): void {
    this.#steps = new SessionFollower(state, seq, (stepped) => this.#tell(stepped));
  }

  async #read(): Promise<void> {
    for await (const entry of this.#store.entries(this.#sessionId, this.seq + 1)) this.#see(entry);
  }

  #hear(message: LiveMessage): void {
    if (this.#steps === null) return;
    if (message.kind === 'delta') {
      this.#takeDelta(message.event);
      return;
    }
    const [first] = message.entries;
    if (first === undefined) return;
    if (first.seq > this.seq + 1)
      void this.catchUp().catch(() => undefined); // the poll tries again
    else for (const entry of message.entries) this.#see(entry);
  }

  #see(entry: Entry): void {
    if (entry.seq !== this.seq + 1) return;
    for (const reader of this.#readers) reader(entry);
    this.#steps?.entry(entry);
    this.#early = this.#early.filter((event) => !this.#steps?.delta(event)); // shows it if it can
  }

  #takeDelta(event: Event): void {
    if (this.#early.length === 0 && this.#steps?.delta(event)) return;
    this.#early.push(event);
    const drop = (): void => {
      this.#early = this.#early.filter((other) => other !== event);
    };
    this.catchUp().then(drop, drop);
  }

  #tell(stepped: Stepped): void {
    for (const watcher of this.#watchers) {
      const drop = (thrown: unknown): void => {
        this.#watchers.delete(watcher);
        this.#report(thrown instanceof Error ? thrown : new Error(String(thrown)));
      };
      try {
        const returned: unknown = watcher(stepped);
        if (returned instanceof Promise) returned.catch(drop);
      } catch (thrown) {
        drop(thrown); // the session goes on without it
      }
    }
  }
}

type Waiting = {
  readonly input: Input;
  resolve(sent: { readonly seq: number }): void;
  reject(error: Error): void;
};

const TOGETHER_MAX = 64;
/**
 * Characters of texts that go together. The engine has a limit for one message, and each input
 * below it must pass.
 */
const TOGETHER_LENGTH_MAX = 1_000_000;

const textLength = (input: Input): number => (input.type === 'UserInput' ? input.text.length : 0);

/**
 * Sends the inputs of one session in the order in which they came: those that wait for an answer go
 * together.
 */
export class SendQueue {
  readonly #send: (inputs: readonly Input[]) => Promise<readonly AppliedEvent[]>;
  readonly #waiting: Waiting[] = [];
  #isSending = false;

  constructor(send: (inputs: readonly Input[]) => Promise<readonly AppliedEvent[]>) {
    this.#send = send;
  }

  get isIdle(): boolean {
    return !this.#isSending;
  }

  add(input: Input): Promise<{ readonly seq: number }> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ input, resolve, reject });
      if (!this.#isSending) void this.#drain();
    });
  }

  /** At least one. An input that its sender may send again goes alone, with a key of its own. */
  #countTogether(): number {
    let length = 0;
    const tooMany = this.#waiting.findIndex(({ input }, index) => {
      length += textLength(input);
      const isAlone =
        input.clientRequestId !== undefined ||
        this.#waiting[index - 1]?.input.clientRequestId !== undefined;
      return index > 0 && (isAlone || index >= TOGETHER_MAX || length > TOGETHER_LENGTH_MAX);
    });
    return tooMany === -1 ? this.#waiting.length : tooMany;
  }

  async #drain(): Promise<void> {
    this.#isSending = true;
    await Promise.resolve(); // inputs of the same moment go together
    while (this.#waiting.length > 0) {
      const together = this.#waiting.splice(0, this.#countTogether());
      try {
        const results = await this.#send(together.map(({ input }) => input));
        for (const [index, one] of together.entries()) settle(one, results[index]);
      } catch (thrown) {
        const error = thrown instanceof Error ? thrown : new Error(String(thrown));
        for (const { reject } of together) reject(error); // each sender gets the error
      }
    }
    this.#isSending = false;
  }
}

const settle = ({ resolve, reject }: Waiting, result: AppliedEvent | undefined): void => {
  if (result === undefined) reject(new Error('the session has ended, and the input had no effect'));
  else if ('refused' in result) reject(new TypeError(result.refused));
  else resolve({ seq: result.seq });
};
