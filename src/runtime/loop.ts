import type { Clock, Draft, Entry, Journal, Stepped } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';
import type { Flow } from './flow.js';
import type { Applied, Posted } from './posted.js';
import { attempt } from './wall.js';

/**
 * The only loop: event -> step -> journal -> perform. One per session, of whatever machine.
 *
 * 1. Events are stepped one after the other, in the order they were posted; each gets its time when it is stepped.
 * 2. What was queued together is journaled with one append. Nothing is performed, shown or resolved before that append
 *    has resolved; if it rejects, the session ends, and the state stays what the journal holds.
 * 3. Volatile events are shown at once and not synced. What is kept of them is journaled merged, before the next other
 *    event, and not at all if that holds it.
 * 4. A group waits for the events that start what it has announced, but for nothing else: any other event closes it.
 */

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
type Group<M extends MachineTypes> = {
  readonly taken: Taken<M>[];
  readonly drafts: Draft<M>[];
  /** What the group starts and whose starting event has not come yet. */
  readonly starting: Set<string>;
};

export type LoopNeeds<M extends MachineTypes> = {
  readonly flow: Flow<M>;
  readonly journal: Journal<M>;
  readonly state: M['state'];
  readonly clock: Clock;
  /**
   * Called for each action before its event is durable: may post and look, nothing else. Returns the ids of what will be
   * started by an event that is posted later.
   */
  prepare(action: M['action']): readonly string[];
  perform(action: M['action'], state: M['state']): void;
  /** Called in order, after the event is durable. */
  show(stepped: Stepped<M>): void;
  /** Called with what was journaled, once it is durable. */
  entered(entry: Entry<M>): void;
  /** The journal can't be written, or the machine threw: nothing more happens in this loop. */
  failed(error: Error): void;
};

export class Loop<M extends MachineTypes> {
  readonly #needs: LoopNeeds<M>;
  #state: M['state'];
  #inbox: Item<M>[] = [];
  /** What is kept of volatile events that were stepped, and is not in the journal yet. */
  #kept: M['event'] | null = null;
  #draining: Promise<void> | null = null;
  #arrived: (() => void) | null = null;
  #over: Error | null = null;

  constructor(needs: LoopNeeds<M>) {
    this.#needs = needs;
    this.#state = needs.state;
  }

  /** As far as it is durable, with the volatile events that came since. */
  get state(): M['state'] {
    return this.#state;
  }

  post(event: Posted<M>, applied?: Applied<M>): void {
    if (this.#over === null) this.#enqueue({ event, applied });
  }

  /** Resolves when the event is durable and applied; rejects with the journal's error, or if the session has ended. */
  send(event: Posted<M>, applied?: Applied<M>): Promise<{ readonly seq: number }> {
    return new Promise((resolve, reject) => {
      if (this.#over === null) this.#enqueue({ event, applied, sender: { resolve, reject } });
      else reject(this.#over);
    });
  }

  /** Takes no more events; resolves when what was queued is done. */
  async finish(why: Error): Promise<void> {
    await this.#draining;
    this.#end(why);
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
      const turned = await attempt(() => this.#turn(group));
      if (turned.kind === 'fault') this.#fail(turned.fault, group);
    }
    this.#draining = null;
  }

  /** Rule 2. */
  async #turn(group: Group<M>): Promise<void> {
    this.#take(group);
    if (group.starting.size > 0) await this.#join(group);
    if (group.drafts.length > 0) await this.#needs.journal.append(group.drafts);
    this.#commit(group);
  }

  /** Rule 4. */
  async #join(group: Group<M>): Promise<void> {
    const { flow } = this.#needs;
    let onlyStarts = true;
    while (onlyStarts && group.starting.size > 0) {
      await this.#arrival();
      onlyStarts = this.#inbox.every(({ event }) => flow.startOf(event) !== null);
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
    const { flow, journal, clock } = this.#needs;
    const event: M['event'] = { ...item.event, at: clock.now() };
    const before = group.taken.at(-1)?.stepped.state ?? this.#state;
    const { state, actions, path, diagnostics } = flow.step(before, event);
    const accepted = state !== before;
    const isVolatile = flow.isVolatile(event);
    if (!isVolatile) {
      this.#flush(event, before, group);
      group.drafts.push({ event, state });
    } else if (accepted) this.#kept = flow.keep(this.#kept, event); // rule 3: what came late is not kept
    const seq = isVolatile ? null : journal.seq + group.drafts.length;
    group.taken.push({ item, stepped: { seq, event, state, actions, path, diagnostics }, accepted });
    const started = flow.startOf(item.event);
    if (started !== null) group.starting.delete(started);
    for (const action of actions) for (const id of this.#needs.prepare(action)) group.starting.add(id);
  }

  /** Rule 3. */
  #flush(next: M['event'], state: M['state'], { drafts }: Group<M>): void {
    const kept = this.#kept;
    if (kept === null) return;
    this.#kept = null;
    if (!this.#needs.flow.holds(next, kept)) drafts.push({ event: kept, state });
  }

  #commit({ taken, drafts }: Group<M>): void {
    this.#state = taken.at(-1)?.stepped.state ?? this.#state;
    const first = this.#needs.journal.seq - drafts.length + 1;
    for (const [index, { event }] of drafts.entries()) this.#needs.entered({ seq: first + index, event });
    for (const { item, stepped, accepted } of taken) {
      item.sender?.resolve({ seq: stepped.seq ?? this.#needs.journal.seq });
      this.#needs.show(stepped);
      for (const action of stepped.actions) this.#needs.perform(action, stepped.state);
      item.applied?.(stepped, accepted);
    }
  }

  #fail(fault: Error, group: Group<M>): void {
    for (const { item } of group.taken) item.sender?.reject(fault);
    this.#end(fault);
    this.#needs.failed(fault);
  }

  #end(why: Error): void {
    this.#over ??= why;
    for (const { sender } of this.#inbox) sender?.reject(why);
    this.#inbox = [];
  }
}
