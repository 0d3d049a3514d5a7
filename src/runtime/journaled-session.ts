import type { Clock } from '../ports/clock.js';
import type { Entry, EntryDraft, Header, Journal } from '../ports/journal.js';
import type { MachineTypes } from '../ports/machine-types.js';
import type { Stepped, Watcher } from '../ports/session.js';
import { attempt, attemptNow } from './attempt.js';
import { Observers } from './observers.js';
import type { Applied, Posted } from './posted-event.js';

/** A machine as the loop needs it: its step, and what its events mean for the journal. */
export type MachineAdapter<M extends MachineTypes> = {
  step(state: M['state'], event: M['event']): Omit<Stepped<M>, 'seq' | 'event'>;
  /** Whether the event is shown at once and not journaled as it comes. */
  isVolatile(event: M['event']): boolean;
  /** What is to be journaled of `kept` and a volatile event that comes after it; null for nothing. */
  keep(kept: M['event'] | null, event: M['event']): M['event'] | null;
  /** Whether all that `kept` says is in `next`. */
  holds(next: M['event'], kept: M['event']): boolean;
  /** The id of what is started by the event, for which a group may wait (see `prepare`); null of other events. */
  startOf(event: Posted<M>): string | null;
};

/** What a session of any machine is made from. */
export type SessionParts<M extends MachineTypes> = {
  readonly adapter: MachineAdapter<M>;
  readonly journal: Journal<M>;
  /** The state that the journal holds. */
  readonly state: M['state'];
  readonly clock: Clock;
  /** Receives faults that stop nothing. */
  report(fault: Error): void;
};

/** An event in the queue. */
type Item<M extends MachineTypes> = {
  readonly event: Posted<M>;
  readonly applied?: Applied<M> | undefined;
  readonly sender?: { resolve(sent: { readonly seq: number }): void; reject(error: Error): void };
};

type Taken<M extends MachineTypes> = {
  readonly item: Item<M>;
  readonly stepped: Stepped<M>;
  readonly accepted: boolean;
};

/** Events that are journaled with one append. */
type Group<M extends MachineTypes> = {
  readonly taken: Taken<M>[];
  readonly drafts: EntryDraft<M>[];
  /** Ids of what the group starts and whose starting event has not come yet. */
  readonly starting: Set<string>;
};

/** The error of everything that needs an open session. */
export const notOpen = (sessionId: string): Error =>
  new Error(`session ${sessionId} is not open here: open it first`);

/** Rule 4. */
const refuse = <M extends MachineTypes>({ sender }: Item<M>, why: Error): void => {
  if (sender === undefined) throw why;
  sender.reject(why);
};

/**
 * A session of any machine while it is open in this process, and the only loop: event -> step -> journal -> perform.
 *
 * 1. Events are stepped one after the other, in the order they were posted; each gets its time when it is stepped.
 * 2. Events that were queued together are journaled with one append. Nothing is performed, shown or resolved before that
 *    append has resolved; if it rejects, the session ends, and the state stays what the journal holds.
 * 3. Volatile events are shown at once and not synced. Their text is journaled merged, before the next other event, and
 *    not at all if that event holds it.
 * 4. An event that the machine refuses as malformed, or can't be stepped with, is as if it had never come: its sender
 *    gets the error. An event without a sender comes from the runtime itself, which can't go on without it: the session
 *    ends.
 * 5. A group waits for the events that start what it has announced, but for nothing else: any other event closes it.
 * 6. The session ends once: by `end`, or with the error that stopped the loop. Then nothing of it runs any more, and the
 *    journal is closed.
 */
export abstract class JournaledSession<M extends MachineTypes> {
  readonly #adapter: MachineAdapter<M>;
  readonly #journal: Journal<M>;
  readonly #clock: Clock;
  readonly #observers: Observers<M>;
  readonly #settle: { resolve(): void; reject(error: Error): void };
  #state: M['state'];
  #inbox: Item<M>[] = [];
  /** The merged text of volatile events that were stepped and are not in the journal yet. */
  #kept: M['event'] | null = null;
  #draining: Promise<void> | null = null;
  #arrived: (() => void) | null = null;
  #ending = false;
  #fault: Error | null = null;
  /** Why no event is taken any more. */
  #over: Error | null = null;
  /** Resolves when the session was ended; rejects with what stopped it otherwise. */
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
    // those who wait for the end get the error; a session that nobody waits for must not end the process
    this.ended.catch(() => undefined);
  }

  /**
   * Called for each action before its event is durable: may post and look, nothing else. Returns the ids of what will be
   * started by an event that is posted later.
   */
  protected abstract prepare(action: M['action'], state: M['state']): readonly string[];

  /** Performs an action after its event is durable. Never throws, never waits: outcomes are posted. */
  protected abstract perform(action: M['action'], state: M['state']): void;

  /** Ends everything that actions began; resolves when nothing of it runs any more, or nobody can wait longer. */
  protected abstract stopAll(): Promise<void>;

  get header(): Header<M> {
    return this.#journal.header;
  }

  /** As far as it is durable, with the volatile events that came since. */
  get state(): M['state'] {
    return this.#state;
  }

  /** The number of the last durable entry. */
  get seq(): number {
    return this.#journal.seq;
  }

  /** Whether it has ended, or is about to. */
  get isOver(): boolean {
    return this.#ending;
  }

  /** The error that stopped the session; null while it runs, and after a clean end. */
  get fault(): Error | null {
    return this.#fault;
  }

  /** Calls the watcher with every step from now on, deltas too; the returned function ends that. */
  watch(watcher: Watcher<M>): () => void {
    return this.#observers.watch(watcher);
  }

  /** The entries from `from` on, then those that come, until the session ends. */
  read(from = 1): AsyncIterable<Entry<M>> {
    return this.#observers.read(() => this.#journal.read(from), from);
  }

  /** Queues an event of the runtime's own. Ignored after the end. */
  protected post(event: Posted<M>, applied?: Applied<M>): void {
    if (this.#over === null) this.#enqueue({ event, applied });
  }

  /** Resolves when the event is durable and applied; rejects with the journal's error, or if the session has ended. */
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
    this.#commit(group);
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
    } else if (accepted) this.#kept = this.#adapter.keep(this.#kept, event); // rule 3: late text is not kept
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

  #commit({ taken, drafts }: Group<M>): void {
    this.#state = taken.at(-1)?.stepped.state ?? this.#state;
    const first = this.seq - drafts.length + 1;
    for (const [index, { event }] of drafts.entries())
      this.#observers.journaled({ seq: first + index, event });
    for (const { item, stepped, accepted } of taken) {
      item.sender?.resolve({ seq: stepped.seq ?? this.seq });
      this.#observers.stepped(stepped);
      for (const action of stepped.actions) this.perform(action, stepped.state);
      item.applied?.(stepped, accepted);
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
