import type { Count, NonNegative } from '@pawl/machine/kernel/shape';

/** What model calls use, and limits on it. */

/** Dollars per million tokens. */
export type Prices = {
  readonly input: NonNegative;
  readonly output: NonNegative;
  readonly cacheRead: NonNegative;
  readonly cacheWrite: NonNegative;
};

/**
 * Tokens of one model call: at most a thousand million, since a larger count is a counting error.
 */
export type TokenCount = number;

/**
 * Tokens and cost of a model call, priced by the runtime. `costUsd` is null if the price is
 * unknown.
 */
export type Usage = {
  readonly inputTokens: TokenCount;
  readonly outputTokens: TokenCount;
  readonly cacheReadTokens: TokenCount;
  readonly cacheWriteTokens: TokenCount;
  readonly costUsd: NonNegative | null;
};

/** Sums over the session. `unpriced` counts model calls with an unknown price. */
export type UsageTotals = {
  readonly inputTokens: NonNegative;
  readonly outputTokens: NonNegative;
  readonly cacheReadTokens: NonNegative;
  readonly cacheWriteTokens: NonNegative;
  readonly costUsd: NonNegative;
  readonly unpriced: Count;
};

/** All tokens, including cached ones, as token limits count them. */
export const totalTokens = (usage: Omit<Usage, 'costUsd'>): number =>
  usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;

/** The sum of two usages. Its cost is unknown if one of them is. */
export const sumUsage = (one: Usage | null, other: Usage): Usage =>
  one === null
    ? other
    : {
        inputTokens: one.inputTokens + other.inputTokens,
        outputTokens: one.outputTokens + other.outputTokens,
        cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
        cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
        costUsd:
          one.costUsd === null || other.costUsd === null ? null : one.costUsd + other.costUsd,
      };

/**
 * A limit on spending. `unlimited` is a word of its own, so that 0 (nothing left) can't be read as
 * no limit, and a sum with a missing limit does not compile.
 */
export type Limit = NonNegative | 'unlimited';
/** A limit that the user asks for. The table refuses a number below 0, so that the user is told. */
export type RequestedLimit = number | 'unlimited';

/**
 * The rest of a limit. It is a type of its own, so that a caller must handle "nothing left" before
 * it sets a limit.
 */
export type Remaining =
  | { readonly type: 'unlimited' }
  | { readonly type: 'left'; readonly amount: number };

/**
 * Reads a limit as people and older journals write it. This is the only place where 0 means
 * `unlimited`.
 */
export const readLimit = (limit: Limit): Limit => (limit === 0 ? 'unlimited' : limit);

/** Whether the value limits anything: 0, `unlimited` and a missing value do not. */
export const isLimited = (limit: Limit | undefined): limit is number =>
  limit !== undefined && readLimit(limit) !== 'unlimited';

export const isReached = (limit: Limit, spent: number): boolean =>
  limit !== 'unlimited' && spent >= limit;

/** The rest of a limit, at least 0. */
export const remainingLimit = (limit: Limit, spent: number): Remaining =>
  limit === 'unlimited'
    ? { type: 'unlimited' }
    : { type: 'left', amount: Math.max(0, limit - spent) };
