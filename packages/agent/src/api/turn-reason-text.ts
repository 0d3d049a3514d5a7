import type { Dimension } from '../machine/settings.js';
import type { WaitReason } from '../machine/state.js';
import type { StopCause } from '../machine/values/stop-cause.js';

type EndCause = Extract<WaitReason, { readonly kind: 'endOfTurn' }>['cause'];

const ofLimit: Readonly<Record<Dimension, string>> = {
  usd: 'The limit in dollars was reached.',
  tokens: 'The limit in tokens was reached.',
  time: 'The time limit was reached.',
  rounds: 'The limit in rounds was reached.',
  truncation: 'The reply was cut off at the output limit of the model several times.',
  repeats: 'The model repeated the same calls, so the turn was stopped.',
  errors: 'All calls of the model failed several times in a row, so the turn was stopped.',
  sameResults: 'The calls of the model gave the same results several times, so the turn was stopped.',
};

const ofEnd: Readonly<Record<EndCause, string>> = {
  answer: '',
  empty: 'The model gave an empty reply.',
  refused: 'The model refused to answer.',
  truncated: 'The answer was cut off at the output limit of the model.',
};

const ofStop: Readonly<Record<StopCause, string>> = {
  user: 'The turn was cancelled.',
  veto: 'A hook stopped the turn.',
  approval: 'A call needed approval, but there was no user to ask.',
  policy: 'The stopping policy ended the turn.',
};

/** Why a turn ended, as sentences; empty if it ended with the model's answer, or has not begun. */
export const reasonText = (reason: WaitReason): string => {
  switch (reason.kind) {
    case 'endOfTurn':
      return ofEnd[reason.cause];
    case 'cancelled':
      return ofStop[reason.cause];
    case 'budget':
      return ofLimit[reason.dimension];
    case 'error':
      return reason.message;
    case 'start':
    case 'compacted':
    case 'resumed':
      return '';
    default:
      return reason satisfies never;
  }
};
