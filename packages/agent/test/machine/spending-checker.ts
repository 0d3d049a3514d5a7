import type { Action } from '../../src/machine/action.js';
import type { Event } from '../../src/machine/event.js';
import type { Usage } from '../../src/machine/settings.js';

/**
 * What may be spent, counted from events and actions alone: it knows nothing of how the machine keeps its books.
 *
 * 1. Once a limit of the session is reached nothing is bought: no request, no compaction, no call.
 * 2. What is left is handed to one call at a time, and not again before that call has said what it spent.
 * 3. In all at most the limit and one reply is spent: the reply, or the overshoot of a call, that crossed it. Only bills
 *    for what was given up (aborted, or ended by force) and those of hooks may come on top: nobody can hold them back.
 */

export const DIMENSIONS = ['usd', 'tokens'] as const;
export type Dimension = (typeof DIMENSIONS)[number];
type Amount = Readonly<Record<Dimension, number>>;
type Bought = {
  readonly kind: 'reply' | 'call' | 'hook';
  /** What was left when it was bought; infinite without a limit. */
  readonly handed: Amount;
  isGivenUp: boolean;
  hasStarted: boolean;
};

const NONE: Amount = { usd: 0, tokens: 0 };
const each = (compute: (dimension: Dimension) => number): Amount => ({
  usd: compute('usd'),
  tokens: compute('tokens'),
});
const amountOf = (usage: Usage): Amount => ({
  usd: usage.costUsd ?? 0,
  tokens: usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens,
});

export const callKey = (batchId: string, callId: string): string => `${batchId}/${callId}`;

/** The bill in an event; `usage` null leaves it open, `undefined` closes it. */
const billIn = (
  event: Event,
): { readonly id: string; readonly usage: Usage | null | undefined } | null => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
      return { id: event.requestId, usage: event.usage };
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return { id: event.compactionId, usage: event.usage };
    case 'HookCompleted':
      return { id: event.hookId, usage: event.usage ?? undefined };
    case 'ToolCompleted':
      return { id: callKey(event.batchId, event.callId), usage: event.outcome.usage };
    case 'UsageReported':
      return { id: event.usageId, usage: event.usage };
    default:
      return null;
  }
};

export class SpendingChecker {
  readonly #limits: Record<Dimension, number>;
  /** The highest limits so far: what was bought under one can't be undone when it is lowered. */
  readonly #most: Record<Dimension, number>;
  readonly #open = new Map<string, Bought>();
  #spent = NONE;
  #dearest = NONE;
  #extra = NONE;

  /** A limit that is missing is infinite. */
  constructor(limits: Amount) {
    this.#limits = { ...limits };
    this.#most = { ...limits };
  }

  /** What a call that is open was handed. */
  handedTo(id: string): Amount {
    return this.#open.get(id)?.handed ?? NONE;
  }

  /** What is wrong with a step, as sentences; empty where all is well. */
  look(event: Event, actions: readonly Action[]): readonly string[] {
    this.#setLimit(event);
    this.#pay(event);
    if (event.type === 'ToolStarted') this.#start(callKey(event.batchId, event.callId));
    for (const action of actions) for (const id of givenUp(action)) this.#giveUp(id);
    if (event.type === 'Resumed')
      this.#forget(({ hasStarted, isGivenUp }) => isGivenUp || !hasStarted);
    const faults = actions.flatMap((action) => this.#buy(action));
    for (const dimension of DIMENSIONS) {
      const allowed = this.#most[dimension] + this.#dearest[dimension] + this.#extra[dimension];
      if (this.#spent[dimension] > allowed + 1e-6)
        faults.push(`${this.#spent[dimension]} ${dimension} were spent where ${allowed} may be`);
    }
    return faults;
  }

  /** The program died: calls that never began are begun again, and of what was given up nobody is left to tell. */
  #forget(isGone: (bought: Bought) => boolean): void {
    for (const [id, bought] of this.#open)
      if (bought.kind === 'call' && isGone(bought)) this.#open.delete(id);
  }

  #start(id: string): void {
    const bought = this.#open.get(id);
    if (bought !== undefined) bought.hasStarted = true;
  }

  #setLimit(event: Event): void {
    if (event.type !== 'ApproveBudget') return;
    const { dimension, limit } = event;
    if (dimension !== 'usd' && dimension !== 'tokens') return;
    this.#limits[dimension] =
      limit === 0 || limit === 'unlimited' ? Number.POSITIVE_INFINITY : limit;
    this.#most[dimension] = Math.max(this.#most[dimension], this.#limits[dimension]);
  }

  #pay(event: Event): void {
    const bill = billIn(event);
    const bought = bill === null ? undefined : this.#open.get(bill.id);
    if (bill === null || bought === undefined || bill.usage === null) return;
    this.#open.delete(bill.id);
    if (bill.usage === undefined) return;
    const amount = amountOf(bill.usage);
    this.#spent = each((dimension) => this.#spent[dimension] + amount[dimension]);
    if (bought.isGivenUp || bought.kind === 'hook') {
      this.#extra = each((dimension) => this.#extra[dimension] + amount[dimension]);
      return;
    }
    const over = (dimension: Dimension): number =>
      bought.kind === 'reply'
        ? amount[dimension]
        : Math.max(0, amount[dimension] - bought.handed[dimension]);
    this.#dearest = each((dimension) => Math.max(this.#dearest[dimension], over(dimension)));
  }

  #buy(action: Action): readonly string[] {
    switch (action.type) {
      case 'SendLlmRequest':
        return this.#open.has(action.requestId)
          ? this.#atLimit(action)
          : this.#note(action, action.requestId, 'reply');
      case 'StartCompaction':
        return this.#note(action, action.compactionId, 'reply');
      case 'RunHook':
        this.#note(action, action.hookId, 'hook');
        return [];
      case 'ExecuteTools': {
        const spending = action.calls.filter(({ traits }) => traits.spends === 'yes');
        return [
          ...this.#atLimit(action),
          ...spending.flatMap(({ callId }) => this.#hand(action, callKey(action.batchId, callId))),
        ];
      }
      default:
        return [];
    }
  }

  #hand(action: Action, id: string): readonly string[] {
    const others = [...this.#open].filter(([other, { kind }]) => kind === 'call' && other !== id);
    const isLimited = DIMENSIONS.some((dimension) => Number.isFinite(this.#limits[dimension]));
    const faults =
      isLimited && others.length > 0 ? [`what is left is handed out twice, to ${id} too`] : [];
    return [...faults, ...this.#note(action, id, 'call')];
  }

  #note(action: Action, id: string, kind: Bought['kind']): readonly string[] {
    const handed = each((dimension) =>
      Math.max(0, this.#limits[dimension] - this.#spent[dimension]),
    );
    this.#open.set(id, { kind, handed, isGivenUp: false, hasStarted: false });
    return kind === 'hook' ? [] : this.#atLimit(action);
  }

  #atLimit({ type }: Action): readonly string[] {
    return DIMENSIONS.filter((dimension) => this.#spent[dimension] >= this.#limits[dimension]).map(
      (dimension) =>
        `${type} at ${this.#spent[dimension]} of ${this.#limits[dimension]} ${dimension}`,
    );
  }

  #giveUp(id: string): void {
    const bought = this.#open.get(id);
    if (bought !== undefined) bought.isGivenUp = true;
  }
}

const givenUp = (action: Action): readonly string[] => {
  switch (action.type) {
    case 'AbortLlmRequest':
      return [action.requestId];
    case 'AbortCompaction':
      return [action.compactionId];
    case 'AbortHook':
      return [action.hookId];
    case 'CancelTools':
      return action.force ? action.callIds.map((callId) => callKey(action.batchId, callId)) : [];
    default:
      return [];
  }
};
