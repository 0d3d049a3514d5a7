import type { Outcome } from '@pawl/ask/run/state';
import type { PolicyReason } from '@pawl/ask/run/stop-policies';
import type { Pieces } from '@pawl/ask/tree/count-answered-pieces';
import { type ExitCode, type ExitEnding, exitCodes, exitOfFailure } from '../../exit-codes.js';

/** Exit codes and reasons of `pawl ask`. */

const exitOfStop: Readonly<Record<PolicyReason, ExitCode>> = {
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

const reasonOfStop: Readonly<Record<PolicyReason, string>> = {
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

const whyAsked: Readonly<Record<PolicyReason, string>> = {
  usd: 'the money was used up',
  tokens: 'the tokens were used up',
  unpriced: 'a call had no known price',
  time: 'time was up',
  iterations: 'the iterations were used up',
  repeated: 'the model repeated the same program',
  errors: 'too many programs in a row failed',
  noProgress: 'its programs gave no new results',
  policy: 'the stopping policy ended it',
};

const MORE_MONEY = 'Raise the limit to continue: pawl ask --continue --max-usd, --max-tokens';

/** Ending of an answered run: a failure if any piece that a program asked about has no answer. */
const endingOfPieces = (pieces: Pieces): ExitEnding => {
  const { refused, failed, reasons } = pieces;
  const missing = refused + failed;
  if (missing === 0) return { exit: exitCodes.done, reason: 'answer', message: '' };
  const why = reasons.slice(0, 3).map(({ why, count }) => `${count} × ${why}`);
  const more = reasons.length > 3 ? ', …' : '';
  const message = `the answer lacks ${missing} ${missing === 1 ? 'piece' : 'pieces'} that a program asked about (${why.join(', ')}${more})`;
  return refused > 0
    ? { exit: exitCodes.budget, reason: 'piecesRefused', message: `${message}. ${MORE_MONEY}` }
    : { exit: exitCodes.taskFailed, reason: 'piecesFailed', message };
};

/**
 * Ending of a finished run. A submitted answer counts, even after a limit. If the model was asked for an answer at a limit
 * and submitted none, its last words are printed, but the limit decides the exit code. Missing pieces decide it likewise.
 */
export const endingOfOutcome = (outcome: Outcome, pieces: Pieces): ExitEnding => {
  switch (outcome.status) {
    case 'answered':
      if (outcome.by !== 'limit' || outcome.closing === null) return endingOfPieces(pieces);
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
