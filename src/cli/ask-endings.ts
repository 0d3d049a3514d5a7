import type { StopReason } from '../recursive/policies.js';
import type { Outcome } from '../recursive/state.js';
import { type Ending, type ExitCode, exitCodes, exitOfFailure } from './exit-codes.js';

/** How a run ended, for a script. */

const exitOfStop: Readonly<Record<StopReason, ExitCode>> = {
  usd: exitCodes.budget,
  tokens: exitCodes.budget,
  unpriced: exitCodes.budget,
  time: exitCodes.timeLimit,
  iterations: exitCodes.roundLimit,
  repeated: exitCodes.taskFailed,
  errors: exitCodes.taskFailed,
  noProgress: exitCodes.taskFailed,
  policy: exitCodes.taskFailed,
};

const reasonOfStop: Readonly<Record<StopReason, string>> = {
  usd: 'usdLimit',
  tokens: 'tokensLimit',
  unpriced: 'unpriced',
  time: 'timeLimit',
  iterations: 'iterationsLimit',
  repeated: 'repeated',
  errors: 'errors',
  noProgress: 'noProgress',
  policy: 'policy',
};

const whyAsked: Readonly<Record<StopReason, string>> = {
  usd: 'the money was used up',
  tokens: 'the tokens were used up',
  unpriced: 'a call had no known price',
  time: 'time was up',
  iterations: 'the iterations were used up',
  repeated: 'the same program came again and again',
  errors: 'too many programs in a row failed',
  noProgress: 'nothing new came of its programs',
  policy: 'the policy said so',
};

/**
 * What a run that is over says to a script. An answer that was submitted is one, whenever it came; the words that a model
 * ends with when it is told to end are printed, but the limit gives the code.
 */
export const endingOfOutcome = (outcome: Outcome): Ending => {
  switch (outcome.status) {
    case 'answered':
      if (outcome.by !== 'limit' || outcome.closing === null)
        return { exit: exitCodes.done, reason: 'answer', message: '' };
      return {
        exit: exitOfStop[outcome.closing],
        reason: reasonOfStop[outcome.closing],
        message: `the model submitted no answer; it was asked for one because ${whyAsked[outcome.closing]}, and these are its words`,
      };
    case 'stopped':
      return {
        exit: exitOfStop[outcome.reason],
        reason: reasonOfStop[outcome.reason],
        message: outcome.message,
      };
    case 'failed':
      return {
        exit: outcome.kind === 'environment' ? exitCodes.internal : exitOfFailure[outcome.kind],
        reason: outcome.kind,
        message: outcome.message,
      };
    case 'cancelled':
      return { exit: exitCodes.interrupted, reason: 'cancelled', message: '' };
    default:
      return outcome satisfies never;
  }
};

export const answerOf = (outcome: Outcome): string => (outcome.status === 'answered' ? outcome.answer : '');
