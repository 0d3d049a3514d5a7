/**
 * When a run should stop: plain functions over small facts, asked before every model call, the first one included.
 *
 * 1. Nothing here knows a machine: code mode and tools mode ask the same questions of their own numbers.
 * 2. A maximum of 0 means no limit; null means none, too.
 * 3. `stop` ends the run where it stands, because there is nothing left to spend. `finish` allows one more call, which
 *    asks for the answer. Stop is stronger than finish; among equals the first in the order of `judge` speaks.
 */

export type StopReason =
  | 'iterations'
  | 'usd'
  | 'tokens'
  | 'unpriced'
  | 'time'
  | 'repeated'
  | 'errors'
  | 'noProgress'
  | 'policy';

export type Verdict =
  | { readonly kind: 'go' }
  | { readonly kind: 'stop'; readonly reason: StopReason; readonly why: string }
  | { readonly kind: 'finish'; readonly reason: StopReason; readonly why: string };

/** Dollars and tokens. */
export type Amount = { readonly usd: number; readonly tokens: number };

/** How often in a row the same thing came, known by its digest. */
export type Repeat = { readonly digest: string; readonly times: number };

export type StopFacts = {
  readonly at: number;
  readonly deadlineAt: number | null;
  readonly iterations: number;
  readonly iterationsMax: number;
  /** What the next call is expected to cost. */
  readonly needed: Amount;
  /** What is left of each limit; null of what has none. */
  readonly left: { readonly usd: number | null; readonly tokens: number | null };
  /** Calls so far whose price is unknown. */
  readonly unpriced: number;
  /** The same code, or the same call with the same input, so many times in a row. */
  readonly repeated: number;
  readonly repeatedMax: number;
  /** Iterations in a row in which something failed. */
  readonly errors: number;
  readonly errorsMax: number;
  /** The same output so many times in a row. */
  readonly sameOutput: number;
  readonly sameOutputMax: number;
};

const GO: Verdict = { kind: 'go' };
const stop = (reason: StopReason, why: string): Verdict => ({ kind: 'stop', reason, why });
const finish = (reason: StopReason, why: string): Verdict => ({ kind: 'finish', reason, why });

/** Sums of cents are not exact: a billionth of a dollar is nothing. */
const NOTHING = 1e-9;

const isShort = (left: number | null, needed: number): boolean =>
  left !== null && (left <= NOTHING || left + NOTHING < needed);

/** Whether an amount may be spent: null, or what there is too little of. */
export const shortOf = (
  needed: Amount,
  { left, unpriced }: Pick<StopFacts, 'left' | 'unpriced'>,
): 'usd' | 'tokens' | 'unpriced' | null => {
  if (left.usd !== null && unpriced > 0) return 'unpriced';
  if (isShort(left.usd, needed.usd)) return 'usd';
  return isShort(left.tokens, needed.tokens) ? 'tokens' : null;
};

/** Why there is no money, as the model and the user read it. */
export const budgetWords = (short: 'usd' | 'tokens' | 'unpriced'): string => {
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

/** Nothing is called that can not be paid for; with a limit in dollars, neither after a call of unknown price. */
const judgeBudget = (facts: Pick<StopFacts, 'needed' | 'left' | 'unpriced'>): Verdict => {
  const short = shortOf(facts.needed, facts);
  return short === null ? GO : stop(short, budgetWords(short));
};

const judgeTime = ({ at, deadlineAt }: Pick<StopFacts, 'at' | 'deadlineAt'>): Verdict =>
  deadlineAt !== null && at >= deadlineAt ? stop('time', 'the time limit is reached') : GO;

const reached = (count: number, most: number): boolean => most > 0 && count >= most;

const judgeIterations = (facts: Pick<StopFacts, 'iterations' | 'iterationsMax'>): Verdict =>
  reached(facts.iterations, facts.iterationsMax)
    ? finish('iterations', `${facts.iterations} of ${facts.iterationsMax} iterations are used up`)
    : GO;

const judgeErrors = ({ errors, errorsMax }: Pick<StopFacts, 'errors' | 'errorsMax'>): Verdict =>
  reached(errors, errorsMax) ? finish('errors', `${errors} iterations in a row failed`) : GO;

const judgeRepeats = (facts: Pick<StopFacts, 'repeated' | 'repeatedMax'>): Verdict =>
  reached(facts.repeated, facts.repeatedMax)
    ? finish('repeated', `the same was asked for ${facts.repeated} times in a row`)
    : GO;

const judgeProgress = (facts: Pick<StopFacts, 'sameOutput' | 'sameOutputMax'>): Verdict =>
  reached(facts.sameOutput, facts.sameOutputMax)
    ? finish('noProgress', `${facts.sameOutput} iterations in a row came to the same`)
    : GO;

/** All of them: the strongest verdict, the first among equals. */
export const judge = (facts: StopFacts): Verdict => {
  const verdicts = [
    judgeBudget(facts),
    judgeTime(facts),
    judgeIterations(facts),
    judgeErrors(facts),
    judgeRepeats(facts),
    judgeProgress(facts),
  ];
  return verdicts.find(({ kind }) => kind === 'stop') ?? verdicts.find(({ kind }) => kind === 'finish') ?? GO;
};

/** Nothing yet. */
export const noRepeat: Repeat = { digest: '', times: 0 };

/** One more, the same as before or not. */
export const countRepeat = (before: Repeat, digest: string): Repeat => ({
  digest,
  times: before.times > 0 && before.digest === digest ? before.times + 1 : 1,
});
