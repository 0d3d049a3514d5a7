import { changeSession } from '../../change-state.js';
import type { Event, On } from '../../event.js';
import type { Stay } from '../../move-result.js';
import { go, ignore, withSession } from '../../move-result.js';
import type { SessionData, State, UsageTotals } from '../../state.js';
import type { Usage } from '../../values/usage.js';

/**
 * Usage counts once per id (docs/rules.md#usage-counts-once), and stale events change nothing else
 * (docs/rules.md#stale-events).
 */

/** Totals with the usage of one more call. */
export const addUsage = (total: UsageTotals, usage: Usage): UsageTotals => ({
  inputTokens: total.inputTokens + usage.inputTokens,
  outputTokens: total.outputTokens + usage.outputTokens,
  cacheReadTokens: total.cacheReadTokens + usage.cacheReadTokens,
  cacheWriteTokens: total.cacheWriteTokens + usage.cacheWriteTokens,
  costUsd: total.costUsd + (usage.costUsd ?? 0),
  unpriced: total.unpriced + (usage.costUsd === null ? 1 : 0),
});

/** Counts usage once per id. Without usage the id stays open, since usage may come late. */
export const countUsage = (session: SessionData, id: string, usage: Usage | null): SessionData => {
  if (usage === null || !session.unaccounted.includes(id)) return session;
  const unaccounted = session.unaccounted.filter((open) => open !== id);
  return changeSession(session, { unaccounted, usage: addUsage(session.usage, usage) });
};

/** Counts the final report of an id. Without usage the id is closed, since nothing can come late. */
const close = (session: SessionData, id: string, usage: Usage | null): SessionData => {
  if (usage !== null) return countUsage(session, id, usage);
  if (!session.unaccounted.includes(id)) return session;
  return changeSession(session, { unaccounted: session.unaccounted.filter((open) => open !== id) });
};

/** Counts a completed hook phase. A failed phase leaves its id open. */
export const countHookUsage = (session: SessionData, { hookId, usage }: On<'HookCompleted'>): SessionData =>
  close(session, hookId, usage);

/** The usage id of a spending call, open from its start to its outcome. */
export const spendingId = (batchId: string, callId: string): string => `${batchId}/${callId}`;
export const isSpendingId = (id: string): boolean => id.includes('/');

/** Counts the outcome of a spending call. */
export const countToolUsage = (
  session: SessionData,
  { batchId, callId, outcome }: On<'ToolCompleted'>,
): SessionData => close(session, spendingId(batchId, callId), outcome.usage ?? null);

/** Counts the usage in an event, if it has any. */
const book = (session: SessionData, event: Event): SessionData => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
      return countUsage(session, event.requestId, event.usage);
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return countUsage(session, event.compactionId, event.usage);
    case 'HookCompleted':
      return countHookUsage(session, event);
    case 'ToolCompleted':
      return countToolUsage(session, event);
    case 'UsageReported':
      return countUsage(session, event.usageId, event.usage);
    default:
      return session;
  }
};

/** A stale event changes nothing but usage. */
export const countStale = <S extends State>(state: S, event: Event): Stay<S> => {
  const session = book(state.session, event);
  const why = `stale: ${event.type} answers nothing that is open`;
  return session === state.session ? ignore(state, why) : { ...go(withSession(state, session)), late: why };
};

/** UsageReported: usage that came late, or a report that could not be counted. */
export const countReported = <S extends State>(state: S, event: On<'UsageReported'>): Stay<S> => {
  const session = book(state.session, event);
  const { fault } = event;
  const told = fault === undefined ? [] : [{ type: 'DisplayWarning', kind: 'usage', text: fault } as const];
  if (session !== state.session) return go(withSession(state, session), ...told);
  if (fault !== undefined) return go(state, ...told);
  return ignore(state, 'this usage was counted before, or belongs to nothing we asked for');
};
