import type { State } from '../agent/state.js';

/** What was spent, in dollars; null where the price of some call is unknown. */
export const costOf = (state: State): number | null =>
  state.session.usage.unpriced > 0 ? null : state.session.usage.costUsd;
