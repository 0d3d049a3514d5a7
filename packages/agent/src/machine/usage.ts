/** What model calls use, and limits on it. */

/** Dollars per million tokens. */
export type Prices = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
};

/** Tokens and cost of a model call, priced by the runtime. `costUsd` is null if the price is unknown. */
export type Usage = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly costUsd: number | null;
};

/** All tokens, including cached ones, as token limits count them. */
export const tokensOf = (usage: Omit<Usage, 'costUsd'>): number =>
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
        costUsd: one.costUsd === null || other.costUsd === null ? null : one.costUsd + other.costUsd,
      };

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
