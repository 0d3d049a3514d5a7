import { messagesOf } from '../agent/conversation.js';
import type { State, UsageTotals, WaitReason } from '../agent/state.js';
import type { Usage } from '../agent/usage.js';

/** What became of a prompt, when the session rests again. */
export type Turn = {
  /** Whether the model answered: the reason is the end of a turn, with an answer. */
  readonly ok: boolean;
  /** The model's last words; empty where it ended without an answer. */
  readonly text: string;
  /** Why the session waits: `endOfTurn`, `cancelled`, `budget`, `error`, … . */
  readonly reason: WaitReason;
  /** What was used since the prompt; the cost is null where the price of some call is unknown. */
  readonly usage: Usage;
  readonly state: State;
};

/** The model's last words, where the turn ended with words. */
const lastWords = (state: State): string => {
  const last = messagesOf(state.session.conversation).at(-1);
  if (last?.role !== 'assistant') return '';
  return last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
};

const usedBetween = (before: UsageTotals, after: UsageTotals): Usage => ({
  inputTokens: after.inputTokens - before.inputTokens,
  outputTokens: after.outputTokens - before.outputTokens,
  cacheReadTokens: after.cacheReadTokens - before.cacheReadTokens,
  cacheWriteTokens: after.cacheWriteTokens - before.cacheWriteTokens,
  costUsd: after.unpriced > before.unpriced ? null : after.costUsd - before.costUsd,
});

/** A session that was shut down in the middle is cancelled, as far as the prompt is concerned. */
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
