import type { State } from '@pawl/agent/machine/state';
import { tokensOf } from '@pawl/agent/machine/values/usage';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { formatCost, formatSeconds, formatTokens } from '../paint-text.js';
import { joinSafe, type Safe, safe } from '../safe-text.js';

/** The line below an ended turn: its duration and cost. */
export type TurnSummaries = {
  /** Starts from an existing state: that of a resumed session. */
  startFrom(state: State): void;
  /** The line if this step ended a turn, otherwise null. */
  see(stepped: Stepped): Safe | null;
};

const ENDS: readonly string[] = ['EndOfTurn', 'Cancelled', 'BudgetExceeded', 'Failed'];

type TurnStart = {
  readonly turn: number;
  readonly at: number;
  readonly tokens: number;
  /** null if the price of a call is unknown. */
  readonly costUsd: number | null;
};

const turnStartIn = ({ session: { counters, turn, usage } }: State): TurnStart => ({
  turn: counters.turn,
  at: turn.startedAt,
  tokens: tokensOf(usage),
  costUsd: usage.unpriced > 0 ? null : usage.costUsd,
});

const lineOf = (begun: TurnStart, { event, state: { session } }: Stepped): Safe => {
  const { usage } = session;
  const tokens = tokensOf(usage) - begun.tokens;
  const costUsd = usage.unpriced > 0 || begun.costUsd === null ? 0 : usage.costUsd - begun.costUsd;
  const parts = [
    formatSeconds(event.at - begun.at),
    tokens > 0 ? safe`${formatTokens(tokens)} tokens` : safe``,
    costUsd > 0 ? formatCost(costUsd) : safe``,
  ].filter((part) => part !== '');
  return safe`─── ${joinSafe(parts, safe` · `)} ───`;
};

export const createTurnSummaries = (): TurnSummaries => {
  let begun: TurnStart | null = null;
  return {
    startFrom(state) {
      begun = turnStartIn(state);
    },
    see(stepped) {
      const { event, path, state } = stepped;
      const ended = path.some(({ from, to }) => to === 'WaitingForUserInput' && ENDS.includes(from));
      const line = ended && begun !== null && event.type !== 'Resumed' ? lineOf(begun, stepped) : null;
      // A step can end one turn and begin the next. The new turn has spent nothing yet.
      if (begun?.turn !== state.session.counters.turn) begun = turnStartIn(state);
      return line;
    },
  };
};
