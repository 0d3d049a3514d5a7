/** The result of a prompt, and texts for the reasons that end a turn. */

import { messagesOf } from '../machine/conversation.js';
import { toldUsage } from '../machine/moves/request.js';
import { type Dimension, type Usage, type UsageTotals, usageSince } from '../machine/settings.js';
import type { CancelledCause, State, WaitReason } from '../machine/state.js';
import type { UnapprovedCall } from './approvals.js';

/** The result of a prompt, available when the session is idle again. */
export type Turn = {
  /** True if the turn ended with the model's answer. */
  readonly ok: boolean;
  /** The model's final text; empty if the turn ended without an answer. */
  readonly text: string;
  /** Why the turn ended: `endOfTurn`, `cancelled`, `budget`, `error`, … */
  readonly reason: TurnReason;
  /**
   * Tokens and cost since the prompt; the cost is null if the price of any call is unknown.
   * `atLeast`: it is a lower bound, since a call broke off.
   */
  readonly usage: Usage;
  readonly state: State;
};

/** Why a turn ended. `unapproved`: calls that needed an approval, without a user to ask. */
export type TurnReason =
  | WaitReason
  | {
      readonly kind: 'cancelled';
      readonly cause: 'approval';
      readonly unapproved: readonly UnapprovedCall[];
    };

/** The text of the last message if the model wrote it; empty otherwise. */
const finalText = (state: State): string => {
  const last = messagesOf(state.session.conversation).at(-1);
  if (last?.role !== 'assistant') return '';
  return last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
};

/** Tokens and cost that were added to the totals. */
export const usageBetween = (before: UsageTotals, after: UsageTotals): Usage => {
  const { unpriced, ...usage } = usageSince(before, after);
  return unpriced > 0 ? { ...usage, costUsd: null } : usage;
};

/** Where no turn has ended, as after a shutdown during it, the prompt counts as cancelled. */
const turnReason = (state: State): WaitReason =>
  state.name === 'WaitingForUserInput' ? state.reason : { kind: 'cancelled', cause: 'user' };

/** The turn that ended with this state. `before`: the usage before its prompt. */
export const toTurn = (
  before: UsageTotals,
  state: State,
  unapproved: readonly UnapprovedCall[],
): Turn => {
  const reason = turnReason(state);
  const endedByModel = reason.kind === 'endOfTurn';
  return {
    ok: endedByModel && reason.cause === 'answer',
    text: endedByModel ? finalText(state) : '',
    reason:
      reason.kind === 'cancelled' && unapproved.length > 0
        ? { kind: 'cancelled', cause: 'approval', unapproved: [...unapproved] }
        : reason,
    usage: usageBetween(before, toldUsage(state)),
    state,
  };
};

type EndCause = Extract<WaitReason, { readonly kind: 'endOfTurn' }>['cause'];

const limitTexts: Readonly<Record<Dimension, string>> = {
  usd: 'The limit in dollars is reached, or the next request could exceed it.',
  tokens: 'The limit in tokens is reached.',
  time: 'The time limit was reached.',
  rounds: 'The limit in rounds was reached.',
  truncation: 'The reply was cut off at the output limit of the model several times.',
  repeats: 'The model repeated the same calls, so the turn was stopped.',
  errors: 'All calls of the model failed several times in a row, so the turn was stopped.',
  sameResults:
    'The calls of the model gave the same results several times, so the turn was stopped.',
};

const endTexts: Readonly<Record<EndCause, string>> = {
  answer: '',
  empty: 'The model gave an empty reply.',
  refused: 'The model, or a filter of its provider, stopped the answer.',
  truncated: 'The answer was cut off at the output limit of the model.',
};

const stopTexts: Readonly<Record<CancelledCause, string>> = {
  user: 'The turn was cancelled.',
  veto: 'A hook stopped the turn.',
  approval: 'A call needed approval, but there was no user to ask.',
  policy: 'The stopping policy ended the turn.',
};

/**
 * Why a turn ended, as sentences; empty if it ended with the model's answer, or has not started.
 */
export const reasonText = (reason: WaitReason): string => {
  switch (reason.kind) {
    case 'endOfTurn':
      return endTexts[reason.cause];
    case 'cancelled':
      return stopTexts[reason.cause];
    case 'budget':
      return limitTexts[reason.dimension];
    case 'error':
      return reason.message;
    case 'start':
    case 'compacted':
    case 'rewound':
    case 'resumed':
      return '';
    default:
      return reason satisfies never;
  }
};
