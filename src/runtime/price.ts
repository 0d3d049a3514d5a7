import type { Prices, Usage } from '../agent/usage.js';
import type { TokenUsage } from '../needs.js';

const MILLION = 1_000_000;

/** Puts a price on what a call used; without prices the cost is null, which means unknown and not nothing. */
export const priceUsage = (tokens: TokenUsage, prices: Prices | null): Usage => ({
  inputTokens: tokens.inputTokens,
  outputTokens: tokens.outputTokens,
  cacheReadTokens: tokens.cacheReadTokens,
  cacheWriteTokens: tokens.cacheWriteTokens,
  costUsd:
    prices === null
      ? null
      : (tokens.inputTokens * prices.input +
          tokens.outputTokens * prices.output +
          tokens.cacheReadTokens * prices.cacheRead +
          tokens.cacheWriteTokens * prices.cacheWrite) /
        MILLION,
});

/** The sum of two; its cost is unknown if one is. */
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
