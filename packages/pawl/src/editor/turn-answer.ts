import type { StopReason } from '@agentclientprotocol/sdk';
import { usedBetween } from '@pawl/agent/api/turn-result';
import type { State, UsageTotals, WaitReason } from '@pawl/agent/machine/state';
import { tokensOf } from '@pawl/agent/machine/values/usage';

/** How a turn ended, as the answer to its prompt. */

export type TurnAnswer =
  | { readonly kind: 'stopped'; readonly stopReason: StopReason }
  | { readonly kind: 'failed'; readonly error: string; readonly message: string };

/** The draft field `usage` of the response to a prompt. How many of the tokens are thoughts is not known. */
export type PromptUsage = {
  readonly totalTokens: number;
  /** Without those of the cache. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedReadTokens: number;
  readonly cachedWriteTokens: number;
};

export const promptUsage = (before: UsageTotals, after: UsageTotals): PromptUsage => {
  const used = usedBetween(before, after);
  return {
    totalTokens: tokensOf(used),
    inputTokens: used.inputTokens,
    outputTokens: used.outputTokens,
    cachedReadTokens: used.cacheReadTokens,
    cachedWriteTokens: used.cacheWriteTokens,
  };
};

const stopped = (stopReason: StopReason): TurnAnswer => ({ kind: 'stopped', stopReason });

const answerOfReason = (reason: WaitReason): TurnAnswer => {
  switch (reason.kind) {
    // A client drops a prompt that was refused from its history. The session keeps it, so it is no `refusal`: the text says it.
    case 'endOfTurn':
      return stopped(reason.cause === 'truncated' ? 'max_tokens' : 'end_turn');
    case 'budget':
      return stopped(reason.dimension === 'rounds' ? 'max_turn_requests' : 'end_turn');
    case 'cancelled':
      return stopped('cancelled');
    case 'error':
      return { kind: 'failed', error: reason.error, message: reason.message };
    case 'start':
    case 'compacted':
    case 'resumed':
      return stopped('end_turn');
    default:
      return reason satisfies never;
  }
};

/** The answer for a session that came to rest. One that shuts down was closed by the client. */
export const answerOf = (state: State): TurnAnswer => {
  if (state.name === 'WaitingForUserInput') return answerOfReason(state.reason);
  return stopped(state.name === 'Ready' ? 'end_turn' : 'cancelled');
};

/** A turn that ended with an error. `error` is its kind. */
export class TurnFailed extends Error {
  readonly error: string;

  constructor(error: string, message: string) {
    super(message);
    this.error = error;
  }
}
