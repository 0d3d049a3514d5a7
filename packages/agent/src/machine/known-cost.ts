import type { State } from './state.js';

/** Dollars spent; null if the price of a call is unknown. */
export const costOf = (state: State): number | null =>
  state.session.usage.unpriced > 0 ? null : state.session.usage.costUsd;
