/**
 * Decides when a run stops: pure functions, called before every model call, including the first.
 *
 * 1. The functions depend on no machine: callers pass their numbers.
 * 2. A maximum of 0 or null means no limit.
 * 3. `stop` ends the run at once, because the budget or the time is used up. `finish` allows one
 *    more call, which asks for the answer. `stop` wins over `finish`; among equals the first in the
 *    order of `judge` wins.
 */

export type PolicyReason =
  | 'iterations'
  | 'usd'
  | 'tokens'
  | 'unpriced'
  | 'time'
  | 'repeated'
  | 'errors'
  | 'noProgress'
  | 'policy';

export type StopVerdict =
  | { readonly kind: 'go' }
  | { readonly kind: 'stop'; readonly reason: PolicyReason; readonly why: string }
  | { readonly kind: 'finish'; readonly reason: PolicyReason; readonly why: string };

/** Dollars and tokens. */
export type Amount = { readonly usd: number; readonly tokens: number };

/** A repeated thing, known by its digest, and its number of times in a row. */
export type Repeat = { readonly digest: string; readonly times: number };

export type StopFacts = {
  readonly at: number;
  readonly deadlineAt: number | null;
  readonly iterations: number;
  readonly iterationsMax: number;
  /** The expected cost of the next call. */
  readonly needed: Amount;
  /** The remaining amount of each limit; null if there is no limit. */
  readonly left: { readonly usd: number | null; readonly tokens: number | null };
  /** Calls so far whose price is unknown. */
  readonly unpriced: number;
  /** How often in a row the same code, or the same call with the same input, came. */
  readonly repeated: number;
  readonly repeatedMax: number;
  /** Iterations in a row in which something failed. */
  readonly errors: number;
  readonly errorsMax: number;
  /** How often in a row the same output came. */
  readonly sameOutput: number;
  readonly sameOutputMax: number;
};

const GO: StopVerdict = { kind: 'go' };
const stop = (reason: PolicyReason, why: string): StopVerdict => ({ kind: 'stop', reason, why });
const finish = (reason: PolicyReason, why: string): StopVerdict => ({
  kind: 'finish',
  reason,
  why,
});

/** Tolerance for rounding errors in sums: a billionth of a dollar. */
const NOTHING = 1e-9;

/**
 * Why an amount can't be paid. `unpriced`: there is a limit in dollars, and a call had no known
 * price.
 */
export type Short = 'usd' | 'tokens' | 'unpriced';

/** True if too little remains; `remaining` is null without a limit. */
export const isShort = (remaining: number | null, needed: number): boolean =>
  remaining !== null && (remaining <= NOTHING || remaining + NOTHING < needed);

/** Why an amount can't be spent; null if it can. */
export const findShortage = (
  needed: Amount,
  { left: remaining, unpriced }: Pick<StopFacts, 'left' | 'unpriced'>,
): Short | null => {
  if (remaining.usd !== null && unpriced > 0) return 'unpriced';
  if (isShort(remaining.usd, needed.usd)) return 'usd';
  return isShort(remaining.tokens, needed.tokens) ? 'tokens' : null;
};

/** The reason in words, for the model and the user. */
export const budgetWords = (short: Short): string => {
  switch (short) {
    case 'usd':
      return 'the budget is used up (dollars)';
    case 'tokens':
      return 'the budget is used up (tokens)';
    case 'unpriced':
      return 'a call had no known price, so the budget in dollars can not be kept';
    default:
      return short satisfies never;
  }
};

const isReached = (count: number, most: number): boolean => most > 0 && count >= most;

/** The strongest verdict of all policies; the first among equals. */
export const judge = (facts: StopFacts): StopVerdict => {
  const { at, deadlineAt, iterations, iterationsMax, errors, repeated, sameOutput } = facts;
  const short = findShortage(facts.needed, facts);
  if (short !== null) return stop(short, budgetWords(short));
  if (deadlineAt !== null && at >= deadlineAt) return stop('time', 'the time limit is reached');
  if (isReached(iterations, iterationsMax))
    return finish('iterations', `${iterations} of ${iterationsMax} iterations are used up`);
  if (isReached(errors, facts.errorsMax))
    return finish('errors', `${errors} iterations in a row failed`);
  if (isReached(repeated, facts.repeatedMax))
    return finish('repeated', `the same was asked for ${repeated} times in a row`);
  if (isReached(sameOutput, facts.sameOutputMax))
    return finish('noProgress', `${sameOutput} iterations in a row came to the same`);
  return GO;
};

export const noRepeat: Repeat = { digest: '', times: 0 };

/** Counts another occurrence; a different digest starts again at 1. */
export const countRepeat = (before: Repeat, digest: string): Repeat => ({
  digest,
  times: before.times > 0 && before.digest === digest ? before.times + 1 : 1,
});
