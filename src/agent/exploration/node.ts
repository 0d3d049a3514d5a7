import type { Event } from '../event.js';
import type { Settings } from '../settings.js';
import type { State } from '../state.js';
import type { ViewCursor } from '../views/view.js';
import type { Bounds, Configuration } from './configuration.js';
import type { Reply } from './replies.js';

/** A place in an exploration: the machine's state, where the views stand, and what the world still has. */
export type Node = {
  readonly state: State;
  readonly cursors: readonly ViewCursor[];
  /** Replies and bills that may still cost much. */
  readonly costlyLeft: number;
  /** The time of the last event, in milliseconds. */
  readonly now: number;
};

/**
 * Something that can happen in a node. `world` owes it: an answer to what is in flight. The `user` may do it. `fate` is
 * everything else: late, twice, misplaced, a crash.
 */
export type Label = {
  readonly by: 'world' | 'user' | 'fate';
  readonly event: Event;
  readonly costly: boolean;
};

/** What the labels of a configuration are made from. */
export type Scenery = {
  readonly configuration: Configuration;
  readonly bounds: Bounds;
  readonly settings: Settings;
  readonly replies: readonly Reply[];
  /** Pairs of state and event for which the table has no arrow: `state/event`. */
  readonly ignored: ReadonlySet<string>;
};

export const world = (event: Event, costly = false): Label => ({ by: 'world', event, costly });
export const user = (event: Event): Label => ({ by: 'user', event, costly: false });
export const fate = (event: Event, costly = false): Label => ({ by: 'fate', event, costly });
