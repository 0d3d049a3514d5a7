/**
 * The only loop of the project: an event arrives, the machine steps, the journal appends, the
 * actions are performed. It knows no agent: `pawl ask` runs its machine in it too.
 *
 * From top to bottom: `Post` and the types of what a loop needs; `JournaledSession`, the loop; the
 * observers, who see each step and can't break it; and the queues between loop and observer. An
 * action is performed only after its event is durable, so that a crash never leaves an effect that
 * the journal does not know.
 */

import { attempt, attemptNow } from '../platform/attempt.js';
import type { Clock } from '../platform/clock.js';
import type {
  AgentTypes,
  Entry,
  EntryDraft,
  Header,
  Journal,
  MachineTypes,
} from '../ports/journal.js';
import type { Stepped, Watcher } from '../ports/session.js';

type WithoutTime<E> = E extends unknown ? Omit<E, 'at'> : never;

/** An event on its way to the loop, which stamps its time. */
export type Posted<M extends MachineTypes = AgentTypes> = WithoutTime<M['event']>;

/**
 * Called when a posted event is durable and applied, with the state after it. `accepted`: it
 * changed the machine's state, and its actions are performed. They are not performed when the disk
 * is full.
 */
export type OnApplied<M extends MachineTypes = AgentTypes> = (
  accepted: boolean,
  state: M['state'],
) => void;

/** Queues an event for the session. Ignored after the session has ended. */
export type Post<M extends MachineTypes = AgentTypes> = (
  event: Posted<M>,
  onApplied?: OnApplied<M>,
) => void;

/** What the loop needs to know about a machine: its step, and how to journal its events. */
export type MachineAdapter<M extends MachineTypes> = {
  step(state: M['state'], event: M['event']): Omit<Stepped<M>, 'seq' | 'event'>;
  /** Whether the event is shown at once and not journaled immediately. */
  isVolatile(event: M['event']): boolean;
  /**
   * Merges a volatile event into `pending`, to journal both later; null if there is nothing to
   * journal.
   */
  merge(pending: M['event'] | null, event: M['event']): M['event'] | null;
  /** Whether `next` contains everything in `pending`. */
  contains(next: M['event'], pending: M['event']): boolean;
  /**
   * The id of the work that the event starts, for which a group may wait (see `prepare`); null for
   * other events.
   */
  startedId(event: Posted<M>): string | null;
};

/** The parts of a session of any machine. */
type SessionParts<M extends MachineTypes> = {
  readonly adapter: MachineAdapter<M>;
  readonly journal: Journal<M>;
  /** The state after the last journaled event. */
  readonly state: M['state'];
  readonly clock: Clock;
  /** Receives faults that do not stop the session. */
  report(fault: Error): void;
};

/** The error for calls that need an open session. */
export const notOpen = (sessionId: string): Error =>
  new Error(`session ${sessionId} is not open here: open it first`);

export type Sent = { readonly seq: number };

/** An event in the queue. Events of the runtime have no sender. */
type Item<M extends MachineTypes> = {
  readonly event: Posted<M>;
  readonly onApplied?: OnApplied<M> | undefined;
  readonly sender?: { resolve(sent: Sent): void; reject(error: Error): void };
};

/** Events that are journaled together. */
type Group<M extends MachineTypes> = {
  readonly steps: {
    readonly item: Item<M>;
    readonly stepped: Stepped<M>;
    readonly accepted: boolean;
  }[];
  readonly drafts: EntryDraft<M>[];
  /** Ids of work that `prepare` has announced and whose starting event has not arrived yet. */
  readonly starting: Set<string>;
};

/**
 * A session of any machine that is open in this process, and the only loop: event -> step ->
 * journal -> perform.
 *
 * 1. Events are stepped one by one, in the order in which they were posted. Each gets its time when
 *    it is stepped.
 * 2. Events that are queued together are journaled with one append. Only after the append has
 *    resolved are actions performed, steps shown and senders answered. If it rejects, the session
 *    ends, and the state stays as journaled.
 * 3. Volatile events are shown at once and not synced. Their text is merged and journaled before
 *    the next other event, or not at all if that event contains it.
 * 4. An event that can't be stepped has no effect, and its sender gets the error. If the event has
 *    no sender it comes from the runtime, which can't continue without it, so the session ends.
 *    Events are checked before they are posted.
 * 5. A group waits only for the events that start what it has announced. Any other event closes it.
 * 6. The session ends once: by `end`, or with the error that stopped the loop. Then all its work
 *    has stopped, and the journal is closed.
 * 7. After entries went to reserved space on a full disk, nothing is started, not even a call whose
 *    start is among them: the shutdown event follows, then the end.
 */
export abstract class JournaledSession<M extends MachineTypes> {
  readonly #adapter: MachineAdapter<M>;
  readonly #journal: Journal<M>;
  readonly #clock: Clock;
  readonly #observers: Observers<M>;
  readonly #settle: { resolve(): void; reject(error: Error): void };
  #state: M['state'];
  #inbox: Item<M>[] = [];
  /** Merged text of volatile events that are not in the journal yet. */
  #pendingText: M['event'] | null = null;
  #draining: Promise<void> | null = null;
  /** Wakes a group that waits for the start of its calls. */
  #wake: (() => void) | null = null;
  #ending = false;
  #fault: Error | null = null;
  /** Why no more events are accepted; null while they are. */
  #refusal: Error | null = null;
  /** Resolves after a normal end. Rejects with the error that stopped the session. */
  readonly ended: Promise<void>;

  constructor({ adapter, journal, state, clock, report }: SessionParts<M>) {
    this.#adapter = adapter;
    this.#journal = journal;
    this.#clock = clock;
    this.#state = state;
    this.#observers = new Observers(report);
    let settle = { resolve: (): void => undefined, reject: (_error: Error): void => undefined };
    this.ended = new Promise<void>((resolve, reject) => {
      settle = { resolve, reject };
    });
    this.#settle = settle;
    // Without this handler, an error in a session that is not awaited would end the process.
    this.ended.catch(() => undefined);
  }

  /**
   * Called for each action before its event is durable. May only read and post. Returns the ids of
   * work whose starting event will be posted later.
   */
  protected abstract prepare(action: M['action'], state: M['state']): readonly string[];

  /**
   * Performs an action after its event is durable. Never throws, never waits; results are posted.
   */
  protected abstract perform(action: M['action'], state: M['state']): void;

  /** Ends all work of the actions. Resolves when it has stopped, or after the grace period. */
  protected abstract stopAll(): Promise<void>;

  /** The event that ends a session in order when the disk is full. Null: it ends as in a crash. */
  protected async shutdownEvent(): Promise<Posted<M> | null> {
    return null;
  }

  get header(): Header<M> {
    return this.#journal.header;
  }

  /** The durable state with the later volatile events applied. */
  get current(): M['state'] {
    return this.#state;
  }

  /** Sequence number of the last durable entry. */
  get seq(): number {
    return this.#journal.seq;
  }

  /** Whether the session has ended or is about to end. */
  get isOver(): boolean {
    return this.#ending;
  }

  /** The error that stopped the session; null while it runs and after a normal end. */
  get fault(): Error | null {
    return this.#fault;
  }

  /**
   * Calls the watcher for every step from now on, including deltas. The returned function removes
   * it.
   */
  readonly watch = (watcher: Watcher<M>): (() => void) => {
    return this.#observers.watch(watcher);
  };

  /** The entries from `from` on, then new ones until the session ends. */
  readonly events = (from = 1): AsyncIterable<Entry<M>> => {
    return this.#observers.read(() => this.#journal.read(from), from);
  };

  /** Queues an event of the runtime. Ignored after the end. */
  protected post(event: Posted<M>, onApplied?: OnApplied<M>): void {
    if (this.#refusal === null) this.#enqueue({ event, onApplied });
  }

  /**
   * Resolves when the event is durable and applied. Rejects with the journal's error, or if the
   * session has ended.
   */
  protected submit(event: Posted<M>, onApplied?: OnApplied<M>): Promise<Sent> {
    return new Promise((resolve, reject) => {
      if (this.#refusal === null) this.#enqueue({ event, onApplied, sender: { resolve, reject } });
      else reject(this.#refusal);
    });
  }

  #enqueue(item: Item<M>): void {
    this.#inbox.push(item);
    this.#wake?.();
    // It begins after the present task, so that events that are posted together form one group.
    this.#draining ??= Promise.resolve().then(() => this.#drain());
  }

  async #drain(): Promise<void> {
    while (this.#inbox.length > 0 && this.#refusal === null) {
      const group: Group<M> = { steps: [], drafts: [], starting: new Set() };
      const journaled = await attempt(() => this.#journalGroup(group));
      if (journaled.kind === 'fault') this.#fail(journaled.fault, group);
    }
    this.#draining = null;
  }

  async #journalGroup(group: Group<M>): Promise<void> {
    this.#stepQueued(group);
    if (group.starting.size > 0) await this.#awaitStarts(group);
    if (group.drafts.length > 0) await this.#journal.append(group.drafts);
    // Set once the disk is full (rule 7).
    const full = this.#journal.full ?? null;
    this.#commit(group, full === null ? 'perform' : 'skip');
    if (full !== null) await this.#endOnFullDisk(full);
  }

  #stepQueued(group: Group<M>): void {
    // an item that can't be stepped stays, with those behind it, to be refused
    for (let [item] = this.#inbox; item !== undefined; [item] = this.#inbox) {
      this.#step(item, group);
      this.#inbox.shift();
    }
  }

  #step(item: Item<M>, group: Group<M>): void {
    const event: M['event'] = { ...item.event, at: this.#clock.now() };
    const before = group.steps.at(-1)?.stepped.state ?? this.#state;
    const tried = attemptNow(() => {
      // A journal with another time could not be read again.
      if (!Number.isFinite(event.at)) throw new TypeError(`the clock gives no time: ${event.at}`);
      return this.#adapter.step(before, event);
    });
    if (tried.kind === 'fault') {
      if (item.sender === undefined) throw tried.fault;
      item.sender.reject(tried.fault);
      return;
    }
    const { state, actions, path, diagnostics } = tried.value;
    const accepted = state !== before;
    const isVolatile = this.#adapter.isVolatile(event);
    if (!isVolatile) {
      const text = this.#pendingText;
      this.#pendingText = null;
      if (text !== null && !this.#adapter.contains(event, text))
        group.drafts.push({ event: text, state: before });
      group.drafts.push({ event, state });
    } else if (accepted) {
      // otherwise it is text of a reply that is over, and is dropped
      this.#pendingText = this.#adapter.merge(this.#pendingText, event);
    }
    const seq = isVolatile ? null : this.seq + group.drafts.length;
    group.steps.push({
      item,
      stepped: { seq, event, state, actions, path, diagnostics },
      accepted,
    });
    const startedId = this.#adapter.startedId(item.event);
    if (startedId !== null) group.starting.delete(startedId);
    for (const action of actions)
      for (const id of this.prepare(action, state)) group.starting.add(id);
  }

  /**
   * Waits for the starts that the group has announced, and steps them. Any other event closes the
   * group.
   */
  async #awaitStarts(group: Group<M>): Promise<void> {
    let onlyStarts = true;
    while (onlyStarts && group.starting.size > 0) {
      await this.#arrival();
      onlyStarts = this.#inbox.every(({ event }) => this.#adapter.startedId(event) !== null);
      this.#stepQueued(group);
    }
  }

  async #arrival(): Promise<void> {
    if (this.#inbox.length > 0) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = null;
  }

  #commit(group: Group<M>, actions: 'perform' | 'skip'): void {
    this.#publish(group);
    for (const { item, stepped, accepted } of group.steps) {
      item.sender?.resolve({ seq: stepped.seq ?? this.seq });
      this.#observers.stepped(stepped);
      if (actions === 'perform')
        for (const action of stepped.actions) this.perform(action, stepped.state);
      item.onApplied?.(accepted && actions === 'perform', stepped.state);
    }
  }

  /** Takes over the state of a durable group, and passes its entries to the readers. */
  #publish({ steps, drafts }: Group<M>): void {
    this.#state = steps.at(-1)?.stepped.state ?? this.#state;
    const first = this.seq - drafts.length + 1;
    for (const [index, { event }] of drafts.entries())
      this.#observers.journaled({ seq: first + index, event });
  }

  /**
   * Journals the event that ends the session in order, then ends it. Nothing is started any more.
   */
  async #endOnFullDisk(full: Error): Promise<void> {
    const event = await this.shutdownEvent();
    const group: Group<M> = { steps: [], drafts: [], starting: new Set() };
    // without it, the next opening finds a session as after a crash
    if (event !== null)
      await attempt(async () => {
        this.#step({ event }, group);
        await this.#journal.append(group.drafts);
        this.#publish(group); // not shown: the session ends with the error, not by a shutdown
      });
    this.#refuseAll(full);
    void this.end(full);
  }

  #fail(fault: Error, group: Group<M>): void {
    for (const { item } of group.steps) item.sender?.reject(fault);
    this.#refuseAll(fault);
    void this.end(fault);
  }

  #refuseAll(why: Error): void {
    this.#refusal ??= why;
    for (const { sender } of this.#inbox) sender?.reject(why);
    this.#inbox = [];
  }

  /**
   * Ends the session once. Later events are refused with `error`, or because the session is not
   * open.
   */
  protected async end(error: Error | null): Promise<void> {
    this.#fault ??= error;
    if (this.#ending) return;
    this.#ending = true;
    const stopped = await attempt(() => this.stopAll());
    if (stopped.kind === 'fault') this.#fault ??= stopped.fault;
    await this.#draining;
    this.#refuseAll(error ?? notOpen(this.header.sessionId));
    const closed = await attempt(() => this.#journal.close());
    if (closed.kind === 'fault') this.#fault ??= closed.fault;
    this.#observers.end(this.#fault);
    if (this.#fault === null) this.#settle.resolve();
    else this.#settle.reject(this.#fault);
  }
}

/**
 * The observers of a session: watchers of its steps, readers of its entries. A watcher can neither
 * block nor break the session: if it throws or rejects, the error is reported and the watcher is
 * not called again.
 */
class Observers<M extends MachineTypes> {
  readonly #report: (fault: Error) => void;
  readonly #watchers = new Set<Watcher<M>>();
  readonly #readers = new Set<AsyncQueue<Entry<M>>>();
  #ended = false;

  constructor(report: (fault: Error) => void) {
    this.#report = report;
  }

  watch(watcher: Watcher<M>): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /**
   * The stored entries from `from` on, then new ones until the session ends. The reader is
   * registered before `readStored` is called, so that no entry is missed between the two.
   */
  async *read(readStored: () => AsyncIterable<Entry<M>>, from: number): AsyncGenerator<Entry<M>> {
    const live = new AsyncQueue<Entry<M>>();
    if (this.#ended) live.end(null);
    this.#readers.add(live);
    try {
      let last = from - 1;
      for await (const entry of readStored()) {
        last = entry.seq;
        yield entry;
      }
      for await (const entry of live) if (entry.seq > last) yield entry;
    } finally {
      this.#readers.delete(live);
    }
  }

  /** Passes a durable entry to the readers. */
  journaled(entry: Entry<M>): void {
    for (const reader of this.#readers) reader.push(entry);
  }

  /** Passes a step to the watchers. */
  stepped(stepped: Stepped<M>): void {
    for (const watcher of this.#watchers) {
      const watched = attemptNow<unknown>(() => watcher(stepped));
      if (watched.kind === 'fault') this.#drop(watcher, watched.fault);
      else if (typeof watched.value === 'object') void this.#await(watcher, watched.value);
    }
  }

  /** Ends all readers, with the error that stopped the session if there is one. */
  end(fault: Error | null): void {
    this.#ended = true;
    for (const reader of this.#readers) reader.end(fault);
  }

  /** Catches the rejection of a watcher that is an async function. */
  async #await(watcher: Watcher<M>, returned: unknown): Promise<void> {
    const watched = await attempt(() => returned);
    if (watched.kind === 'fault') this.#drop(watcher, watched.fault);
  }

  #drop(watcher: Watcher<M>, fault: Error): void {
    if (this.#watchers.delete(watcher)) this.#report(fault);
  }
}

/** An unbounded queue between a producer and one reader. It holds references, not copies. */
export class AsyncQueue<T> {
  #held: T[] = [];
  #over: { readonly error: Error | null } | null = null;
  #wake: (() => void) | null = null;

  push(item: T): void {
    this.#held.push(item);
    this.#wake?.();
  }

  /** The reader gets the queued values, then the error if there is one. */
  end(error: Error | null): void {
    this.#over ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const items = this.#held;
      this.#held = [];
      yield* items;
      if (this.#held.length > 0) continue;
      if (this.#over !== null) break;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
    if (this.#over?.error) throw this.#over.error;
  }
}

/** Stores items in order until the first subscription. No item may be undefined. */
export type WatchBuffer<T extends object | string> = {
  push(item: T): void;
  /**
   * Delivers the stored items, then each new one. The returned function ends the subscription. A
   * later subscription replaces it.
   */
  subscribe(listener: (item: T) => void): () => void;
};

/** A buffer for what a watcher is told before its listener is there. */
export const createWatchBuffer = <T extends object | string>(): WatchBuffer<T> => {
  const early: T[] = [];
  let deliver: ((item: T) => void) | null = null;
  return {
    push(item) {
      if (deliver === null) early.push(item);
      else deliver(item);
    },
    subscribe(listener) {
      for (let item = early.shift(); item !== undefined; item = early.shift()) listener(item);
      deliver = listener;
      return () => {
        if (deliver === listener) deliver = () => undefined;
      };
    },
  };
};
