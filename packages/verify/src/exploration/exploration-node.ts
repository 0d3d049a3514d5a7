/** A node of an exploration, and the events that lead from one node to the next. */

import type { Event } from '@pawl/agent/machine/event';
import type { Settings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import type { ProjectionCursor } from '../projections/projection.js';
import type { Bounds, Configuration, ModelReply } from './configuration.js';

/** Money that was charged for a request or call whose usage was not reported yet. */
export type Charge = {
  readonly id: string;
  /** All that was charged under the id. */
  readonly usd: number;
  /** The part of it that is known before a reply ends. */
  readonly inputUsd: number;
};

/** What the provider has charged, which the machine does not see: charges.ts. */
export type Charges = {
  readonly open: readonly Charge[];
  /** The last one that was reported. */
  readonly reported: Charge | null;
};

/** How much of its worst case a request or a call that spends is charged. */
export type ChargeShare = 'nothing' | 'all';

/**
 * A node of an exploration: the machine's state, the states in which the machines of other agents
 * would now be (cursors of the projections, which follow each step), the costly replies that may
 * still come, the true charges.
 */
export type ExplorationNode = {
  readonly state: State;
  readonly cursors: readonly ProjectionCursor[];
  /** Costly replies and usage reports that may still come. */
  readonly costlyLeft: number;
  readonly charges: Charges;
  /** The time of the last event, in milliseconds. */
  readonly now: number;
};

/**
 * An event that can happen in a node. `world`: a response to work in flight. `user`: an act of the
 * user. `fate`: adversarial, that is late, duplicate, misplaced, or a crash.
 */
export type ExplorationEvent = {
  readonly by: 'world' | 'user' | 'fate';
  readonly event: Event;
  /** It counts against the bound `budgetStops`. */
  readonly costly: boolean;
  /** Charged if the event lets a request or a call that spends go; absent: nothing is charged. */
  readonly charge?: ChargeShare;
};

/** The data of the events of a configuration. */
export type ExplorationContext = {
  readonly configuration: Configuration;
  readonly bounds: Bounds;
  readonly settings: Settings;
  readonly replies: readonly ModelReply[];
  /** Pairs of state and event without an edge: `state/event`. */
  readonly ignored: ReadonlySet<string>;
};

export const world = (event: Event, costly = false): ExplorationEvent => ({
  by: 'world',
  event,
  costly,
});
export const user = (event: Event): ExplorationEvent => ({ by: 'user', event, costly: false });
export const fate = (event: Event, costly = false): ExplorationEvent => ({
  by: 'fate',
  event,
  costly,
});
