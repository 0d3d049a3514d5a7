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
