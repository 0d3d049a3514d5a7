import type { Usage } from '../agent/event.js';
import type { Prices, TokenUsage } from '../needs.js';

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
