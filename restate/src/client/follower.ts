import {
  agentMachine,
  type Entry,
  type Event,
  type Header,
  type State,
  type Stepped,
  type Watcher,
} from 'pawl/engine';
import type { LiveChannel, LiveMessage } from '../live/live-channel.js';
import type { SessionStore } from '../session/session-store.js';

/**
 * Follows one session for its watchers and readers in this process.
 *
 * 1. Entries are read from the engine, or come by the live channel; each is seen once and in order. A gap is read.
 * 2. Deltas are shown as they come, by a state that is dropped with the next entry. One that is faster than the entry that
 *    its work began with waits for it. A delta whose reply has ended already is not shown: the whole text is in the entry.
 */

/** How often the engine is asked for entries of which no word has come. */
const POLL_MS = 3_000;

export type SeeEntry = (entry: Entry) => void;

const TEXTS: ReadonlySet<Event['type']> = new Set(['TextDelta']);

const isOfOtherReply = (event: Event, state: State): boolean =>
  'requestId' in event && 'requestId' in state && event.requestId !== state.requestId;

export class Follower {
  readonly #sessionId: string;
  readonly #store: Pick<SessionStore, 'entries'>;
  readonly #report: (fault: Error) => void;
  readonly #missingNode: () => Promise<string | null>;
  /** The last entry at the last poll. */
  #polledSeq = -1;
  /** The node that watchers were told is missing. */
  #toldMissing: string | null = null;
  readonly #watchers = new Set<Watcher>();
  readonly #readers = new Set<SeeEntry>();
  readonly #unsubscribe: () => void;
  readonly #polling: NodeJS.Timeout;
  /** Resolves when it knows where it begins. */
  readonly ready: Promise<void>;
  #seq: number;
  #state: State;
  /** The state with the deltas since the last entry. */
  #shown: State;
  #showed = false;
  /** Deltas that came before the entry that explains them, or too late; they wait until what is stored now is read. */
  #early: Event[] = [];
  #reading: Promise<void> | null = null;
  #isReady = false;
  #isLost = false;
  #isStopped = false;

  /** `begun`: the state that is known already; otherwise it begins with the session's current one. */
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
    this.#seq = 0;
    this.#state = agentMachine.initialState((header?.settings ?? {}) as Header['settings']); // replaced before use if unknown
    this.#shown = this.#state;
    this.#isReady = header !== null;
    this.ready = header === null ? this.#begin(parts.now) : Promise.resolve();
    this.ready.catch(() => undefined); // whoever waits for it is told
    this.#unsubscribe = live.subscribe(sessionId, (message) => this.#hear(message));
    this.#polling = setInterval(() => this.#poll(), POLL_MS);
    this.#polling.unref();
  }

  get seq(): number {
    return this.#seq;
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
    while (this.#seq < seq) {
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
    this.catchUp().then(
      () => {
        this.#isLost = false;
        return this.#lookForNode();
      },
      (fault: Error) => {
        if (!this.#isLost && !this.#isStopped) this.#report(fault);
        this.#isLost = true;
      },
    );
  }

  /** Tells watchers once that a session with calls to do, of which nothing new has come, waits for a node that is gone. */
  async #lookForNode(): Promise<void> {
    const isQuiet = this.#seq === this.#polledSeq;
    this.#polledSeq = this.#seq;
    if (!isQuiet || this.#state.name !== 'ExecutingTools') return;
    const node = await this.#missingNode();
    const isNew = node !== null && node !== this.#toldMissing;
    this.#toldMissing = node;
    if (!isNew || this.#isStopped || this.#state.name !== 'ExecutingTools') return;
    const text = `The node ${node} has the workspace and does not answer. The session waits for it, or can be moved to another node.`;
    this.#report(new Error(`session ${this.#sessionId}: ${text}`));
    const { batchId, calls } = this.#state;
    const call = calls.find(({ status }) => status === 'running');
    if (call === undefined) return;
    const { callId } = call.judged;
    this.#showDelta({ type: 'ToolProgress', batchId, callId, text: `[${text}]\n`, at: Date.now() });
  }

  async #begin(now: () => Promise<{ readonly seq: number; readonly state: State }>): Promise<void> {
    const { seq, state } = await now();
    this.#seq = seq;
    this.#state = state;
    this.#shown = state;
    this.#isReady = true;
  }

  async #read(): Promise<void> {
    for await (const entry of this.#store.entries(this.#sessionId, this.#seq + 1)) this.#see(entry);
  }

  #hear(message: LiveMessage): void {
    if (!this.#isReady) return;
    if (message.kind === 'delta') {
      this.#takeDelta(message.event);
      return;
    }
    const [first] = message.entries;
    if (first === undefined) return;
    if (first.seq > this.#seq + 1)
      void this.catchUp().catch(() => undefined); // the poll tries again
    else for (const entry of message.entries) this.#see(entry);
  }

  #see(entry: Entry): void {
    if (entry.seq !== this.#seq + 1) return;
    const stepped = agentMachine.step(this.#state, entry.event);
    this.#seq = entry.seq;
    this.#state = stepped.state;
    for (const reader of this.#readers) reader(entry);
    const isText = TEXTS.has(entry.event.type);
    // The text before an interruption was shown piece by piece; a watcher that missed the pieces sees it as one.
    if (!isText) this.#tell({ seq: entry.seq, event: entry.event, ...stepped });
    else if (!this.#showed) this.#tell({ seq: null, event: entry.event, ...stepped });
    this.#showed = false;
    this.#shown = this.#state;
    this.#early = this.#early.filter((event) => !this.#showDelta(event));
  }

  #takeDelta(event: Event): void {
    if (this.#early.length === 0 && this.#showDelta(event)) return;
    this.#early.push(event);
    const drop = (): void => {
      this.#early = this.#early.filter((other) => other !== event);
    };
    this.catchUp().then(drop, drop);
  }

  /** Whether the delta belongs to what runs now. */
  #showDelta(event: Event): boolean {
    if (isOfOtherReply(event, this.#shown)) return false;
    const stepped = agentMachine.step(this.#shown, event);
    if (stepped.state === this.#shown && stepped.actions.length === 0 && stepped.path.length === 0)
      return false;
    if (event.type === 'TextDelta') this.#showed = true;
    this.#shown = stepped.state;
    this.#tell({ seq: null, event, ...stepped });
    return true;
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
