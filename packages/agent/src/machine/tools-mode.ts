/**
 * Tools mode of seed 004 (a seed is the published machine of another agent): a configuration of the
 * agent machine, not a second one. Its stopping policies are limits (rounds, dollars, tokens, time,
 * the same calls again, errors in a row, the same results again) and the user's own.
 */

import { noLimits, type Settings } from './settings.js';
import type { In } from './state.js';

export const toolsMode: Partial<Settings> = {
  limits: { ...noLimits, rounds: 10, truncation: 2, repeats: 3, errors: 3, sameResults: 3 },
  atLimit: 'finish',
  autoRearm: 'off',
  hooks: 'never',
  formatter: 'off',
  autoCommit: 'off',
};

export type FinishReason = 'stop' | 'max_iterations' | 'policy_stop';

/**
 * Why a turn in tools mode ended, in the seed's words: a policy first, then the limit of
 * iterations, then the answer. Null where the seed raises an exception: a cancel, a failure, or no
 * turn yet.
 */
export const finishReasonOf = ({
  session,
  reason,
}: In<'WaitingForUserInput'>): FinishReason | null => {
  const { finishing } = session.turn;
  switch (reason.kind) {
    case 'endOfTurn':
      if (finishing === 'no') return 'stop';
      return finishing === 'rounds' ? 'max_iterations' : 'policy_stop';
    case 'budget':
      return reason.dimension === 'rounds' ? 'max_iterations' : 'policy_stop';
    case 'cancelled':
      return reason.cause === 'policy' ? 'policy_stop' : null;
    case 'start':
    case 'error':
    case 'compacted':
    case 'rewound':
    case 'resumed':
      return null;
    default:
      return reason satisfies never;
  }
};
