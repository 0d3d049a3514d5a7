/** A finished turn: its text, its usage, and why it ended. */

import { messagesOf } from '../machine/conversation.js';
import type { Dimension } from '../machine/settings.js';
import type { State, StopCause, WaitReason } from '../machine/state.js';
import type { Usage, UsageTotals } from '../machine/usage.js';

/** The result of a prompt, available when the session is idle again. */
export type Turn = {
  /** True if the turn ended with the model's answer. */
  readonly ok: boolean;
  /** The model's final text; empty if the turn ended without an answer. */
  readonly text: string;
  /** Why the turn ended: `endOfTurn`, `cancelled`, `budget`, `error`, … */
  readonly reason: WaitReason;
  /** Tokens and cost since the prompt; the cost is null if the price of any call is unknown. */
  readonly usage: Usage;
  readonly state: State;
};

/** The text of the last message if the model wrote it; empty otherwise. */
const finalText = (state: State): string => {
  const last = messagesOf(state.session.conversation).at(-1);
  if (last?.role !== 'assistant') return '';
  return last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
};

/** Tokens and cost that were added to the totals. */
export const usageBetween = (before: UsageTotals, after: UsageTotals): Usage => ({
  inputTokens: after.inputTokens - before.inputTokens,
  outputTokens: after.outputTokens - before.outputTokens,
  cacheReadTokens: after.cacheReadTokens - before.cacheReadTokens,
  cacheWriteTokens: after.cacheWriteTokens - before.cacheWriteTokens,
  costUsd: after.unpriced > before.unpriced ? null : after.costUsd - before.costUsd,
});

/** If the session was shut down during the turn, the prompt counts as cancelled. */
const turnReason = (state: State): WaitReason =>
  state.name === 'WaitingForUserInput' ? state.reason : { kind: 'cancelled', cause: 'user' };

export const createTurn = (before: UsageTotals, state: State): Turn => {
  const reason = turnReason(state);
  const isOver = reason.kind === 'endOfTurn';
  return {
    ok: isOver && reason.cause === 'answer',
    text: isOver ? finalText(state) : '',
    reason,
    usage: usageBetween(before, state.session.usage),
    state,
  };
};

type EndCause = Extract<WaitReason, { readonly kind: 'endOfTurn' }>['cause'];

const limitTexts: Readonly<Record<Dimension, string>> = {
  usd: 'The limit in dollars was reached.',
  tokens: 'The limit in tokens was reached.',
  time: 'The time limit was reached.',
  rounds: 'The limit in rounds was reached.',
  truncation: 'The reply was cut off at the output limit of the model several times.',
  repeats: 'The model repeated the same calls, so the turn was stopped.',
  errors: 'All calls of the model failed several times in a row, so the turn was stopped.',
  sameResults: 'The calls of the model gave the same results several times, so the turn was stopped.',
};

const endTexts: Readonly<Record<EndCause, string>> = {
  answer: '',
  empty: 'The model gave an empty reply.',
  refused: 'The model refused to answer.',
  truncated: 'The answer was cut off at the output limit of the model.',
};

const stopTexts: Readonly<Record<StopCause, string>> = {
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
    case 'resumed':
      return '';
    default:
      return reason satisfies never;
  }
};
