import type { Prices, Usage } from '../../agent/values/usage.js';
import type { TokenUsage } from '../../ports/model.js';

const MILLION = 1_000_000;

/** Of a call of which nothing can be said: no tokens, at an unknown price. */
export const UNKNOWN_USAGE: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: null,
};

/** Null of a sum that is no amount of money: the price is a mistake. */
const knownCost = (usd: number): number | null => (usd <= Number.MAX_SAFE_INTEGER ? usd : null);

/** Puts a price on what a call used; without prices the cost is null, which means unknown and not nothing. */
export const priceUsage = (tokens: TokenUsage, prices: Prices | null): Usage => ({
  inputTokens: tokens.inputTokens,
  outputTokens: tokens.outputTokens,
  cacheReadTokens: tokens.cacheReadTokens,
  cacheWriteTokens: tokens.cacheWriteTokens,
  costUsd:
    prices === null
      ? null
      : knownCost(
          (tokens.inputTokens * prices.input +
            tokens.outputTokens * prices.output +
            tokens.cacheReadTokens * prices.cacheRead +
            tokens.cacheWriteTokens * prices.cacheWrite) /
            MILLION,
        ),
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
