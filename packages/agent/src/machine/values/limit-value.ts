/**
 * A limit on spending. `unlimited` is a word of its own, so that 0 (nothing left) can't be read as no limit, and a sum
 * with a missing limit does not compile.
 */
export type Limit = number | 'unlimited';

/** The rest of a limit. It is a type of its own, so that a caller must handle "nothing left" before it sets a limit. */
export type Remaining = { readonly type: 'unlimited' } | { readonly type: 'left'; readonly amount: number };

/** Reads a limit as people and older journals write it. This is the only place where 0 means `unlimited`. */
export const readLimit = (given: Limit): Limit => (given === 0 ? 'unlimited' : given);

/** Whether the value limits anything: 0, `unlimited` and a missing value do not. */
export const isLimited = (given: Limit | undefined): given is number =>
  given !== undefined && readLimit(given) !== 'unlimited';

export const isReached = (limit: Limit, spent: number): boolean => limit !== 'unlimited' && spent >= limit;

/** The rest of a limit, at least 0. */
export const remainingOf = (limit: Limit, spent: number): Remaining =>
  limit === 'unlimited' ? { type: 'unlimited' } : { type: 'left', amount: Math.max(0, limit - spent) };
