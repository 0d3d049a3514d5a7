import type { Action } from '@pawl/agent/machine/action';
import { addUsage } from '@pawl/agent/machine/moves/common/count-usage';
import type { UsageTotals } from '@pawl/agent/machine/state';
import type { CallSpending, TimeSpan, ToolFigures } from './session-figures.js';

export const NO_USAGE: UsageTotals = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0,
  unpriced: 0,
};

type Counted = { calls: number; readonly endings: Map<string, number> };

/** How the calls of each tool ended. */
export class ToolLog {
  readonly #tools = new Map<string, Counted>();
  /** Calls that were counted, as `batch/call`. */
  readonly #ended = new Set<string>();

  see(actions: readonly Action[]): void {
    for (const action of actions) {
      if (action.type !== 'DisplayToolResult') continue;
      const id = `${action.batchId}/${action.callId}`;
      if (this.#ended.has(id)) continue;
      this.#ended.add(id);
      const counted = this.#of(action.tool);
      counted.calls += 1;
      counted.endings.set(action.status, (counted.endings.get(action.status) ?? 0) + 1);
    }
  }

  #of(tool: string): Counted {
    const known = this.#tools.get(tool) ?? { calls: 0, endings: new Map<string, number>() };
    this.#tools.set(tool, known);
    return known;
  }

  rows(spans: readonly TimeSpan[], spending: readonly CallSpending[]): readonly ToolFigures[] {
    const times = new Map<string, Map<string, number>>();
    const approvals = new Map<string, number>();
    for (const { kind, id, name, startMs, endMs } of spans) {
      if (kind === 'approval') approvals.set(name, (approvals.get(name) ?? 0) + endMs - startMs);
      if (kind !== 'tool') continue;
      const calls = times.get(name) ?? new Map<string, number>();
      calls.set(id, (calls.get(id) ?? 0) + endMs - startMs);
      times.set(name, calls);
    }
    const names = new Set([...this.#tools.keys(), ...times.keys(), ...approvals.keys()]);
    const rows = [...names].map((tool) => {
      const { calls, endings } = this.#tools.get(tool) ?? { calls: 0, endings: new Map<string, number>() };
      const each = [...(times.get(tool)?.values() ?? [])];
      return {
        tool,
        calls,
        endings: Object.fromEntries(endings),
        totalMs: each.reduce((sum, one) => sum + one, 0),
        longestMs: each.reduce((longest, one) => Math.max(longest, one), 0),
        approvalMs: approvals.get(tool) ?? 0,
        usage: spending
          .filter((one) => one.tool === tool)
          .reduce((sum, { usage }) => addUsage(sum, usage), NO_USAGE),
      };
    });
    return rows.sort((left, right) => right.totalMs - left.totalMs || (left.tool < right.tool ? -1 : 1));
  }
}
