import type { Dimension } from '../settings.js';

/** Why a turn ended in Cancelled: the user, a hook, a missing approval, a stopping policy. */
export type StopCause = 'user' | 'veto' | 'approval' | 'policy';

/** The consequences of a cause that stops a turn. */
type Cause = {
  /** The state in which the turn ends, with its reason. */
  readonly ends:
    | { readonly state: 'Cancelled'; readonly cause: StopCause }
    | { readonly state: 'BudgetExceeded'; readonly dimension: Dimension };
  /** Part of the note for the model, after `interrupted`. */
  readonly note: string;
  /** Part of the result of a running call. */
  readonly by: string;
  /** Part of the result of a call that had not started. */
  readonly notRun: string;
};

/** Causes that stop a turn from outside. A new cause needs one entry here and its event. */
export const stopCauses = {
  user: {
    ends: { state: 'Cancelled', cause: 'user' },
    note: ' by the user',
    by: 'by the user',
    notRun: 'cancelled by user',
  },
  time: {
    ends: { state: 'BudgetExceeded', dimension: 'time' },
    note: ': the time limit of the turn was reached',
    by: 'by the time limit',
    notRun: 'the time limit of the turn was reached',
  },
} as const satisfies Readonly<Record<string, Cause>>;

export type CancelCause = keyof typeof stopCauses;

export const stopCauseFacts = (cause: CancelCause): Cause => stopCauses[cause];
