import type { Clock } from '../ports/clock.js';
import type { Entry, Header, Journal } from '../ports/journal.js';
import type { MachineTypes } from '../ports/machine-types.js';
import type { Watcher } from '../ports/session-input-output.js';
import { attempt, attemptNow } from './attempt.js';
import type { Group, Item } from './event-group-types.js';
import type { MachineAdapter } from './machine-adapter-type.js';
import { Observers } from './observers.js';
import type { Applied, Posted, Told } from './posted-event-types.js';

/** The parts of a session of any machine. */
export type SessionParts<M extends MachineTypes> = {
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

/** Applies rule 4. */
const refuse = <M extends MachineTypes>({ sender }: Item<M>, why: Error): void => {
  if (sender === undefined) throw why;
  sender.reject(why);
};

/**
 * A session of any machine that is open in this process, and the only loop: event -> step -> journal -> perform.
 *
 * 1. Events are stepped one by one, in the order in which they were posted. Each gets its time when it is stepped.
 * 2. Events that are queued together are journaled with one append. Only after the append has resolved are actions
 *    performed, steps shown and senders answered. If it rejects, the session ends, and the state stays as journaled.
 * 3. Volatile events are shown at once and not synced. Their text is merged and journaled before the next other event, or
 *    not at all if that event contains it.
 * 4. A malformed event, or one that can't be stepped, has no effect, and its sender gets the error. If the event has no
 *    sender it comes from the runtime, which can't continue without it, so the session ends.
 * 5. A group waits only for the events that start what it has announced. Any other event closes it.
 * 6. The session ends once: by `end`, or with the error that stopped the loop. Then all its work has stopped, and the
 *    journal is closed.
 * 7. After entries went to reserved space on a full disk, nothing is started, not even a call whose start is among them:
 *    the shutdown event follows, then the end.
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
  #kept: M['event'] | null = null;
  #draining: Promise<void> | null = null;
  #arrived: (() => void) | null = null;
  #ending = false;
  #fault: Error | null = null;
  /** Why no more events are accepted; null while they are. */
  #over: Error | null = null;
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
    // Without this handler, an error in a session that nobody awaits would end the process.
    this.ended.catch(() => undefined);
  }

  /**
   * Called for each action before its event is durable. May only read and post. Returns the ids of work whose starting
   * event will be posted later.
   */
  protected abstract prepare(action: M['action'], state: M['state']): readonly string[];

  /** Performs an action after its event is durable. Never throws, never waits; results are posted. */
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
  get state(): M['state'] {
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

  /** Calls the watcher for every step from now on, including deltas. The returned function removes it. */
  watch(watcher: Watcher<M>): () => void {
    return this.#observers.watch(watcher);
  }

  /** The entries from `from` on, then new ones until the session ends. */
  read(from = 1): AsyncIterable<Entry<M>> {
    return this.#observers.read(() => this.#journal.read(from), from);
  }

  /** Queues an event of the runtime. Ignored after the end. */
  protected post(event: Posted<M>, told?: Told<M>): void {
    if (this.#over !== null) return;
    this.#enqueue({ event, ...(told && { applied: ({ state }, accepted) => told(accepted, state) }) });
  }

  /** Resolves when the event is durable and applied. Rejects with the journal's error, or if the session has ended. */
  protected submit(event: Posted<M>, applied?: Applied<M>): Promise<{ readonly seq: number }> {
    return new Promise((resolve, reject) => {
      if (this.#over === null) this.#enqueue({ event, applied, sender: { resolve, reject } });
      else reject(this.#over);
    });
  }

  #enqueue(item: Item<M>): void {
    this.#inbox.push(item);
    this.#arrived?.();
    if (this.#draining !== null) return;
    this.#draining = Promise.resolve().then(() => this.#drain());
  }

  async #drain(): Promise<void> {
    while (this.#inbox.length > 0 && this.#over === null) {
      const group: Group<M> = { taken: [], drafts: [], starting: new Set() };
      const turned = await attempt(() => this.#journalGroup(group));
      if (turned.kind === 'fault') this.#fail(turned.fault, group);
    }
    this.#draining = null;
  }

  /** Rule 2. */
  async #journalGroup(group: Group<M>): Promise<void> {
    this.#take(group);
    if (group.starting.size > 0) await this.#awaitStarts(group);
    if (group.drafts.length > 0) await this.#journal.append(group.drafts);
    const full = this.#journal.full ?? null;
    this.#commit(group, full === null ? 'perform' : 'skip');
    if (full !== null) await this.#endOnFullDisk(full);
  }

  /** Rule 7. */
  async #endOnFullDisk(full: Error): Promise<void> {
    const shutdown = await this.shutdownEvent();
    const event: M['event'] | null = shutdown === null ? null : { ...shutdown, at: this.#clock.now() };
    const drafts = event === null ? [] : [{ event, state: this.#adapter.step(this.#state, event).state }];
    await attempt(() => this.#journal.append(drafts)); // without it, the next opening finds a session as after a crash
    this.#refuseAll(full);
    void this.end(full);
  }

  /** Rule 5. */
  async #awaitStarts(group: Group<M>): Promise<void> {
    let onlyStarts = true;
    while (onlyStarts && group.starting.size > 0) {
      await this.#arrival();
      onlyStarts = this.#inbox.every(({ event }) => this.#adapter.startOf(event) !== null);
      this.#take(group);
    }
  }

  async #arrival(): Promise<void> {
    if (this.#inbox.length > 0) return;
    await new Promise<void>((resolve) => {
      this.#arrived = resolve;
    });
    this.#arrived = null;
  }

  #take(group: Group<M>): void {
    while (this.#inbox.length > 0) {
      const items = this.#inbox;
      this.#inbox = [];
      for (const item of items) this.#step(item, group);
    }
  }

  #step(item: Item<M>, group: Group<M>): void {
    const event: M['event'] = { ...item.event, at: this.#clock.now() };
    const before = group.taken.at(-1)?.stepped.state ?? this.#state;
    const tried = attemptNow(() => this.#stepChecked(before, event));
    if (tried.kind === 'fault') {
      refuse(item, tried.fault);
      return;
    }
    const { state, actions, path, diagnostics } = tried.value;
    const accepted = state !== before;
    const isVolatile = this.#adapter.isVolatile(event);
    if (!isVolatile) {
      this.#flush(event, before, group);
      group.drafts.push({ event, state });
    } else if (accepted) this.#kept = this.#adapter.keep(this.#kept, event); // rule 3: drops text that arrives late
    const seq = isVolatile ? null : this.seq + group.drafts.length;
    group.taken.push({ item, stepped: { seq, event, state, actions, path, diagnostics }, accepted });
    const started = this.#adapter.startOf(item.event);
    if (started !== null) group.starting.delete(started);
    for (const action of actions) for (const id of this.prepare(action, state)) group.starting.add(id);
  }

  /** Throws what the machine throws, and a TypeError for an event that it refuses as malformed. */
  #stepChecked(state: M['state'], event: M['event']): ReturnType<MachineAdapter<M>['step']> {
    const stepped = this.#adapter.step(state, event);
    const malformed = stepped.diagnostics.find(({ kind }) => kind === 'malformed');
    if (malformed === undefined) return stepped;
    throw new TypeError(`${event.type} is refused, and nothing has changed: ${malformed.why}`);
  }

  /** Rule 3. */
  #flush(next: M['event'], state: M['state'], { drafts }: Group<M>): void {
    const kept = this.#kept;
    if (kept === null) return;
    this.#kept = null;
    if (!this.#adapter.holds(next, kept)) drafts.push({ event: kept, state });
  }

  #commit({ taken, drafts }: Group<M>, actions: 'perform' | 'skip'): void {
    this.#state = taken.at(-1)?.stepped.state ?? this.#state;
    const first = this.seq - drafts.length + 1;
    for (const [index, { event }] of drafts.entries())
      this.#observers.journaled({ seq: first + index, event });
    for (const { item, stepped, accepted } of taken) {
      item.sender?.resolve({ seq: stepped.seq ?? this.seq });
      this.#observers.stepped(stepped);
      if (actions === 'perform') for (const action of stepped.actions) this.perform(action, stepped.state);
      item.applied?.(stepped, accepted && actions === 'perform');
    }
  }

  #fail(fault: Error, group: Group<M>): void {
    for (const { item } of group.taken) item.sender?.reject(fault);
    this.#refuseAll(fault);
    void this.end(fault);
  }

  #refuseAll(why: Error): void {
    this.#over ??= why;
    for (const { sender } of this.#inbox) sender?.reject(why);
    this.#inbox = [];
  }

  /** Rule 6. Later events are refused with `error`, or because the session is not open. */
  protected async end(error: Error | null): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    this.#fault = error;
    await this.stopAll();
    await this.#draining;
    this.#refuseAll(error ?? notOpen(this.header.sessionId));
    const closed = await attempt(() => this.#journal.close());
    if (closed.kind === 'fault') this.#fault ??= closed.fault;
    this.#observers.end(this.#fault);
    if (this.#fault === null) this.#settle.resolve();
    else this.#settle.reject(this.#fault);
  }
}
