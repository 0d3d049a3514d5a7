import type { State } from '../../agent/state.js';
import { tokensOf } from '../../agent/values/usage.js';
import type { Stepped } from '../../ports/session.js';
import { formatCost, formatSeconds, formatTokens } from '../print.js';
import { joinSafe, type Safe, safe } from '../safe-text.js';

/** The line below a turn that ended: how long it took and what it spent. It sets turns apart. */
export type TurnSummaries = {
  /** Goes on from a state that is there already. */
  from(state: State): void;
  /** The line, where this step ended a turn; else null. */
  see(stepped: Stepped): Safe | null;
};

const ENDS: readonly string[] = ['EndOfTurn', 'Cancelled', 'BudgetExceeded', 'Failed'];

type TurnStart = {
  readonly turn: number;
  readonly at: number;
  readonly tokens: number;
  /** null where the price of a call is unknown. */
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
    from(state) {
      begun = turnStartIn(state);
    },
    see(stepped) {
      const { event, path, state } = stepped;
      const ended = path.some(({ from, to }) => to === 'WaitingForUserInput' && ENDS.includes(from));
      const line = ended && begun !== null && event.type !== 'Resumed' ? lineOf(begun, stepped) : null;
      // A turn may begin in the step that ended the one before; nothing was spent on it by then.
      if (begun?.turn !== state.session.counters.turn) begun = turnStartIn(state);
      return line;
    },
  };
};
