import type { Prices, Usage } from '../../machine/values/usage.js';
import type { TokenUsage } from '../../ports/model.js';

const MILLION = 1_000_000;

/** Usage of a call about which nothing is known: no tokens, at an unknown price. */
export const UNKNOWN_USAGE: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: null,
};

/** null if the sum is not a possible amount of money, because a price is wrong. */
const knownCost = (usd: number): number | null => (usd <= Number.MAX_SAFE_INTEGER ? usd : null);

/** The cost of tokens. Without prices the cost is null, which means unknown, not free. */
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
