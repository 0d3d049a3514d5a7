import type { Model } from '@pawl/agent/ports/model';
import type { Rate, Reserve } from '../run/settings.js';

/** Estimates the cost of model calls in advance, from prices and output limits of the models. */

const CHARACTERS_PER_TOKEN = 4;
/** Tokens of a typical reply. */
const REPLY_TOKENS = 500;
/** Upper bound for the tokens of the instructions. */
const INSTRUCTION_TOKENS = 4_000;
const MILLION = 1_000_000;

type TokenCosts = { readonly input: number; readonly output: number };

/** The rate of a call with a fixed number of tokens in addition to the characters of its prompt. */
const rateOf = (fixed: TokenCosts, tokensPerCharacter: number, dollars: TokenCosts): Rate => ({
  callUsd: (fixed.input * dollars.input + fixed.output * dollars.output) / MILLION,
  callTokens: fixed.input + fixed.output,
  characterUsd: (tokensPerCharacter * dollars.input) / MILLION,
  characterTokens: tokensPerCharacter,
});

/**
 * The expected and the worst-case cost of a call to the most expensive of the models. Worst case: each character is a
 * token, the whole input is written to a cache, and the reply has the maximum length.
 */
export const reserveOf = (models: readonly Model[]): Reserve => {
  const most = (read: (model: Model) => number | undefined): number =>
    Math.max(0, ...models.map((model) => read(model) ?? 0));
  const output = most(({ facts }) => facts.prices?.output);
  const input = most(({ facts }) => facts.prices?.input);
  const written = Math.max(
    input,
    most(({ facts }) => facts.prices?.cacheWrite),
  );
  const longest = most(({ facts }) => facts.outputTokensMax);
  return {
    expected: rateOf({ input: 0, output: REPLY_TOKENS }, 1 / CHARACTERS_PER_TOKEN, { input, output }),
    worst: rateOf({ input: INSTRUCTION_TOKENS, output: longest }, 1, { input: written, output }),
    basis: 'estimated',
  };
};
