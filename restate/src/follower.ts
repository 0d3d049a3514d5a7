/**
 * Follows one session for its watchers and readers in this process.
 *
 * 1. Entries are read from the engine, or come by the live channel; each is seen once and in order.
 *    A gap is read.
 * 2. Deltas are shown as they come (`SessionFollower`). A delta that comes before the entry with
 *    which its reply begins waits for that entry. A delta whose reply has ended already is not
 *    shown: the whole text is in the entry.
 */

import {
  agentMachine,
  type Entry,
  type Event,
  type Header,
  SessionFollower,
  type State,
  type Stepped,
  type Watcher,
} from 'pawl/engine';
import type { LiveChannel, LiveMessage } from './live.js';
import type { SessionStore } from './session-store.js';

/** How often the engine is asked for entries of which no word has come. */
const POLL_MS = 3_000;

type SeeEntry = (entry: Entry) => void;

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
  readonly #now: () => Promise<{ readonly seq: number; readonly state: State }>;
  /** Null again after a failure: the next use, or the next poll, begins anew. */
  #beginning: Promise<void> | null = null;
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
    const { store, live, header, report, now, missingNode } = parts;
    this.#now = now;
    this.#missingNode = missingNode;
    this.#sessionId = sessionId;
    this.#store = store;
    this.#report = report;
    if (header !== null) this.#begin({ seq: 0, state: agentMachine.initialState(header.settings) });
    this.ready().catch(() => undefined); // the poll tries again, and reports
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

  /** Resolves when it knows where it begins. */
  async ready(): Promise<void> {
    if (this.#steps !== null) return;
    this.#beginning ??= this.#now()
      .then((now) => this.#begin(now))
      .finally(() => {
        this.#beginning = null;
      });
    await this.#beginning;
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
    await this.ready();
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
