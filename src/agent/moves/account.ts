import { changeSession } from '../change.js';
import type { Event, On } from '../event.js';
import type { Same } from '../move.js';
import { go, ignore, withSession } from '../move.js';
import type { Session, State, UsageTotals } from '../state.js';
import type { Usage } from '../usage.js';

/** Usage counts once per id (R0b), and stale events change nothing else (R0a). */

/** Totals with the usage of one more call. */
export const addUsage = (total: UsageTotals, usage: Usage): UsageTotals => ({
  inputTokens: total.inputTokens + usage.inputTokens,
  outputTokens: total.outputTokens + usage.outputTokens,
  cacheReadTokens: total.cacheReadTokens + usage.cacheReadTokens,
  cacheWriteTokens: total.cacheWriteTokens + usage.cacheWriteTokens,
  costUsd: total.costUsd + (usage.costUsd ?? 0),
  unpriced: total.unpriced + (usage.costUsd === null ? 1 : 0),
});

/** Books the usage of a request, compaction or hook, unless its id was booked before. Without usage the id stays open: it may come late. */
export const account = (session: Session, id: string, usage: Usage | null): Session => {
  if (usage === null || !session.unaccounted.includes(id)) return session;
  const unaccounted = session.unaccounted.filter((open) => open !== id);
  return changeSession(session, { unaccounted, usage: addUsage(session.usage, usage) });
};

/** Books the last word on what was used: without usage the id is closed, since nothing can come late. */
const close = (session: Session, id: string, usage: Usage | null): Session => {
  if (usage !== null) return account(session, id, usage);
  if (!session.unaccounted.includes(id)) return session;
  return changeSession(session, { unaccounted: session.unaccounted.filter((open) => open !== id) });
};

/** Books a phase of the hooks that completed. One that failed leaves its id open. */
export const accountHook = (session: Session, { hookId, usage }: On<'HookCompleted'>): Session =>
  close(session, hookId, usage);

/** The id under which a call that spends is kept open from its start to its outcome. */
export const spendingId = (batchId: string, callId: string): string => `${batchId}/${callId}`;

/** Books a call that spends. */
export const accountTool = (session: Session, { batchId, callId, outcome }: On<'ToolCompleted'>): Session =>
  close(session, spendingId(batchId, callId), outcome.usage ?? null);

/** Books what an event says of usage, if anything. */
const book = (session: Session, event: Event): Session => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
      return account(session, event.requestId, event.usage);
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return account(session, event.compactionId, event.usage);
    case 'HookCompleted':
      return accountHook(session, event);
    case 'ToolCompleted':
      return accountTool(session, event);
    case 'UsageReported':
      return account(session, event.usageId, event.usage);
    default:
      return session;
  }
};

/** A stale event: its usage counts, nothing else changes. */
export const countStale = <S extends State>(state: S, event: Event): Same<S> => {
  const session = book(state.session, event);
  const why = `stale: ${event.type} answers nothing that is open`;
  return session === state.session ? ignore(state, why) : { ...go(withSession(state, session)), late: why };
};

/** UsageReported: late usage of something that ended without it. */
export const countReported = <S extends State>(state: S, event: Event): Same<S> => {
  const session = book(state.session, event);
  return session === state.session
    ? ignore(state, 'this usage was counted before, or belongs to nothing we asked for')
    : go(withSession(state, session));
};
