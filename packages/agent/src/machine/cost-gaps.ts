/**
 * Tells whether a session may have cost more than its sum, by its steps. A call that is over may
 * have cost something that it never reported: its reply broke off, or its process ended.
 */

import type { Event } from './event.js';
import { costsNothing, findReservation, isSpendingId, measuredId } from './moves/budget.js';
import { totalTokens, type Usage } from './settings.js';
import type { SessionData, State } from './state.js';

type SeenStep = { readonly event: Event; readonly state: State };

/** Under a limit in dollars the worst case of a call counts until its cost is known. */
const hasWorstCase = (session: SessionData, id: string): boolean =>
  (findReservation(session, id)?.usd ?? 0) > 0;

export class CostGaps {
  #before: State | null = null;
  /** Requests that their provider refused or never got: they are open, and cost nothing. */
  readonly #refused = new Set<string>();
  #hasGap = false;

  /** Adds a step; call it for all, in order. */
  see({ event, state }: SeenStep): void {
    const before = this.#before ?? state;
    this.#before = state;
    switch (event.type) {
      case 'LlmFailed':
        if (event.usage === null && costsNothing(event)) this.#refused.add(event.requestId);
        this.#addPart(before, event.requestId, event.usage);
        break;
      case 'CompactionFailed':
        this.#addPart(before, event.compactionId, event.usage);
        break;
      case 'UsageReported':
        if (event.coverage !== 'whole') this.#addPart(before, event.usageId, event.usage);
        break;
      case 'Resumed':
        this.#addLost(before, state);
        break;
      default:
    }
  }

  /** Usage that is only a part of what a call has used. */
  #addPart({ session }: State, id: string, usage: Usage | null): void {
    if (usage === null || usage.costUsd === null || !session.unaccounted.includes(id)) return;
    const isFree = usage.costUsd === 0 && totalTokens(usage) > 0;
    if (!isFree && !hasWorstCase(session, id)) this.#hasGap = true;
  }

  /** What the ended process had sent: a request is sent again under its id, calls are given up. */
  #addLost(before: State, { session }: State): void {
    const isSent = before.name === 'CallingLlm' || before.name === 'Compacting';
    const sent = isSent ? measuredId(before) : null;
    this.#hasGap ||= before.session.unaccounted.some(
      (id) =>
        (id === sent || (isSpendingId(id) && !session.unaccounted.includes(id))) &&
        !hasWorstCase(before.session, id),
    );
  }

  /** Whether the sum is one of at least so much. Hooks leave ids open that cost nothing. */
  get areThere(): boolean {
    const state = this.#before;
    if (state === null || this.#hasGap) return this.#hasGap;
    const current = measuredId(state);
    const runsCalls = state.name === 'ExecutingTools';
    return state.session.unaccounted.some(
      (id) =>
        id !== current &&
        !this.#refused.has(id) &&
        !id.startsWith('hook-') &&
        !(runsCalls && isSpendingId(id)),
    );
  }
}
