import type { Action } from '../agent/action.js';
import type { Event, On } from '../agent/event.js';
import { step } from '../agent/machine.js';
import type { State } from '../agent/state.js';
import type { Clock, Draft, Entry, Journal, Stepped } from '../needs.js';
import type { Applied, Posted } from './posted.js';
import { attempt } from './wall.js';

/**
 * The only loop: event -> step -> journal -> perform. One per session.
 *
 * 1. Events are stepped one after the other, in the order they were posted; each gets its time when it is stepped.
 * 2. What was queued together is journaled with one append. Nothing is performed, shown or resolved before that append
 *    has resolved; if it rejects, the session ends, and the state stays what the journal holds.
 * 3. Deltas are shown at once and not synced. Text is journaled merged, before the next other event, and not at all
 *    if that is the completion of the same reply (2.13).
 * 4. A group waits for the ToolStarted of the calls it starts, but for nothing else: any other event closes it.
 */

type Item = {
  readonly event: Posted;
  readonly applied?: Applied | undefined;
  readonly sender?: { resolve(sent: { readonly seq: number }): void; reject(error: Error): void };
};

type Taken = { readonly item: Item; readonly stepped: Stepped; readonly accepted: boolean };
type Group = {
  readonly taken: Taken[];
  readonly drafts: Draft[];
  /** Calls that the group starts and whose ToolStarted has not come yet. */
  readonly starting: Set<string>;
};

export type LoopNeeds = {
  readonly journal: Journal;
  readonly state: State;
  readonly clock: Clock;
  /**
   * Called for each action before its event is durable: may post and look, nothing else. Returns the ids of calls whose
   * ToolStarted will be posted later.
   */
  prepare(action: Action): readonly string[];
  perform(action: Action, state: State): void;
  /** Called in order, after the event is durable. */
  show(stepped: Stepped): void;
  /** Called with what was journaled, once it is durable. */
  entered(entry: Entry): void;
  /** The journal can't be written, or the machine threw: nothing more happens in this loop. */
  failed(error: Error): void;
};

const isVolatile = (event: Event): boolean =>
  event.type === 'TextDelta' ||
  event.type === 'ReasoningDelta' ||
  event.type === 'ToolCallDelta' ||
  event.type === 'ToolProgress';

export class Loop {
  readonly #needs: LoopNeeds;
  #state: State;
  #inbox: Item[] = [];
  /** Text that was stepped and is not in the journal yet. */
  #partial: On<'TextDelta'> | null = null;
  #draining: Promise<void> | null = null;
  #arrived: (() => void) | null = null;
  #over: Error | null = null;

  constructor(needs: LoopNeeds) {
    this.#needs = needs;
    this.#state = needs.state;
  }

  /** As far as it is durable, with the deltas that came since. */
  get state(): State {
    return this.#state;
  }

  post(event: Posted, applied?: Applied): void {
    if (this.#over === null) this.#enqueue({ event, applied });
  }

  /** Resolves when the event is durable and applied; rejects with the journal's error, or if the session has ended. */
  send(event: Posted, applied?: Applied): Promise<{ readonly seq: number }> {
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

  #enqueue(item: Item): void {
    this.#inbox.push(item);
    this.#arrived?.();
    if (this.#draining !== null) return;
    this.#draining = Promise.resolve().then(() => this.#drain());
  }

  async #drain(): Promise<void> {
    while (this.#inbox.length > 0 && this.#over === null) {
      const group: Group = { taken: [], drafts: [], starting: new Set() };
      const turned = await attempt(() => this.#turn(group));
      if (turned.kind === 'fault') this.#fail(turned.fault, group);
    }
    this.#draining = null;
  }

  /** Rule 2. */
  async #turn(group: Group): Promise<void> {
    this.#take(group);
    if (group.starting.size > 0) await this.#join(group);
    if (group.drafts.length > 0) await this.#needs.journal.append(group.drafts);
    this.#commit(group);
  }

  /** Rule 4. */
  async #join(group: Group): Promise<void> {
    let onlyStarts = true;
    while (onlyStarts && group.starting.size > 0) {
      await this.#arrival();
      onlyStarts = this.#inbox.every(({ event }) => event.type === 'ToolStarted');
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

  #take(group: Group): void {
    while (this.#inbox.length > 0) {
      const items = this.#inbox;
      this.#inbox = [];
      for (const item of items) this.#step(item, group);
    }
  }

  #step(item: Item, group: Group): void {
    const { journal, clock } = this.#needs;
    const event: Event = { ...item.event, at: clock.now() };
    const before = group.taken.at(-1)?.stepped.state ?? this.#state;
    const { state, actions, path, diagnostics } = step(before, event);
    const accepted = state !== before;
    if (isVolatile(event)) this.#merge(event, accepted);
    else {
      this.#flush(event, before, group);
      group.drafts.push({ event, state });
    }
    const seq = isVolatile(event) ? null : journal.seq + group.drafts.length;
    group.taken.push({ item, stepped: { seq, event, state, actions, path, diagnostics }, accepted });
    if (event.type === 'ToolStarted') group.starting.delete(event.callId);
    for (const action of actions)
      for (const callId of this.#needs.prepare(action)) group.starting.add(callId);
  }

  /** Rule 3: text that changed nothing (it came late) is not kept. */
  #merge(event: Event, accepted: boolean): void {
    if (event.type !== 'TextDelta' || !accepted) return;
    const text = (this.#partial?.text ?? '') + event.text;
    this.#partial = { ...event, text };
  }

  /** Rule 3. Between two requests there is always another event, so that the kept text is of one reply. */
  #flush(next: Event, state: State, { drafts }: Group): void {
    const partial = this.#partial;
    if (partial === null) return;
    this.#partial = null;
    const isWhole = next.type === 'LlmCompleted' && next.requestId === partial.requestId;
    if (!isWhole) drafts.push({ event: partial, state });
  }

  #commit({ taken, drafts }: Group): void {
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

  #fail(fault: Error, group: Group): void {
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
