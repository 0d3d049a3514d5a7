import { messagesOf } from '../machine/conversation.js';
import type { State, UsageTotals, WaitReason } from '../machine/state.js';
import type { Usage } from '../machine/values/usage.js';

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
const lastWords = (state: State): string => {
  const last = messagesOf(state.session.conversation).at(-1);
  if (last?.role !== 'assistant') return '';
  return last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
};

/** Tokens and cost that were added to the totals. */
export const usedBetween = (before: UsageTotals, after: UsageTotals): Usage => ({
  inputTokens: after.inputTokens - before.inputTokens,
  outputTokens: after.outputTokens - before.outputTokens,
  cacheReadTokens: after.cacheReadTokens - before.cacheReadTokens,
  cacheWriteTokens: after.cacheWriteTokens - before.cacheWriteTokens,
  costUsd: after.unpriced > before.unpriced ? null : after.costUsd - before.costUsd,
});

/** If the session was shut down during the turn, the prompt counts as cancelled. */
const reasonOf = (state: State): WaitReason =>
  state.name === 'WaitingForUserInput' ? state.reason : { kind: 'cancelled', cause: 'user' };

export const turnOf = (before: UsageTotals, state: State): Turn => {
  const reason = reasonOf(state);
  const isOver = reason.kind === 'endOfTurn';
  return {
    ok: isOver && reason.cause === 'answer',
    text: isOver ? lastWords(state) : '',
    reason,
    usage: usedBetween(before, state.session.usage),
    state,
  };
};
