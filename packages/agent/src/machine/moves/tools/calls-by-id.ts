import type { Call } from '../../call.js';

/**
 * Finds and replaces calls of a batch by id.
 *
 * Each event of a batch finds its call several times. Without an index a reply of 5,000 calls takes quadratic time.
 * The positions never change while a batch runs, so all copies of its calls share one index. The index is only a cache:
 * calls that were not seen before are indexed at the first look.
 */
const positions = new WeakMap<readonly Call[], ReadonlyMap<string, number>>();

/** Batches up to this size are searched, since making an index costs more. */
const SEARCHED_MAX = 8;

const positionsOf = (calls: readonly Call[]): ReadonlyMap<string, number> => {
  const known = positions.get(calls);
  if (known !== undefined) return known;
  const made = new Map(calls.map(({ judged }, index) => [judged.callId, index]));
  positions.set(calls, made);
  return made;
};

/** The position of the call; -1 if the batch has no such call. */
const positionOf = (calls: readonly Call[], callId: string): number =>
  calls.length <= SEARCHED_MAX
    ? calls.findIndex(({ judged }) => judged.callId === callId)
    : (positionsOf(calls).get(callId) ?? -1);

export const callWithId = (calls: readonly Call[], callId: string): Call | undefined => {
  const position = positionOf(calls, callId);
  return position < 0 ? undefined : calls[position];
};

/** A copy whose calls may be replaced by other versions of themselves, but not moved. */
export const copyCalls = (calls: readonly Call[]): Call[] => {
  const copy = [...calls];
  const known = positions.get(calls);
  if (known !== undefined) positions.set(copy, known);
  return copy;
};

/** The calls with these versions of some of them. */
export const withCalls = (calls: readonly Call[], changed: readonly Call[]): readonly Call[] => {
  const copy = copyCalls(calls);
  for (const call of changed) {
    const position = positionOf(calls, call.judged.callId);
    if (position >= 0) copy[position] = call;
  }
  return copy;
};
