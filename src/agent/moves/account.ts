import type { Event, Usage } from '../event.js';
import type { Same } from '../move.js';
import { go, ignore, withSession } from '../move.js';
import type { Session, State } from '../state.js';

/** Usage counts once per id (R0b), and stale events change nothing else (R0a). */

/** Books the usage of a request, compaction or hook, unless its id was booked before. Without usage the id stays open: it may come late. */
export const account = (session: Session, id: string, usage: Usage | null): Session => {
  if (usage === null || !session.unaccounted.includes(id)) return session;
  const unaccounted = session.unaccounted.filter((open) => open !== id);
  const total = session.usage;
  return {
    ...session,
    unaccounted,
    usage: {
      inputTokens: total.inputTokens + usage.inputTokens,
      outputTokens: total.outputTokens + usage.outputTokens,
      cacheReadTokens: total.cacheReadTokens + usage.cacheReadTokens,
      cacheWriteTokens: total.cacheWriteTokens + usage.cacheWriteTokens,
      costUsd: total.costUsd + (usage.costUsd ?? 0),
      unpriced: total.unpriced + (usage.costUsd === null ? 1 : 0),
    },
  };
};

/** The id whose usage an event carries, and the usage. */
const usageIn = (event: Event): { readonly id: string; readonly usage: Usage | null } | null => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
      return { id: event.requestId, usage: event.usage };
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return { id: event.compactionId, usage: event.usage };
    case 'HookCompleted':
      return { id: event.hookId, usage: event.usage };
    case 'UsageReported':
      return { id: event.usageId, usage: event.usage };
    default:
      return null;
  }
};

/** A stale event: its usage counts, nothing else changes. */
export const countStale = <S extends State>(state: S, event: Event): Same<S> => {
  const found = usageIn(event);
  const session = found === null ? state.session : account(state.session, found.id, found.usage);
  const why = `stale: ${event.type} answers nothing that is open`;
  return session === state.session ? ignore(state, why) : { ...go(withSession(state, session)), late: why };
};

/** UsageReported: late usage of something that ended without it. */
export const countReported = <S extends State>(state: S, event: Event): Same<S> => {
  const found = usageIn(event);
  const session = found === null ? state.session : account(state.session, found.id, found.usage);
  return session === state.session
    ? ignore(state, 'this usage was counted before, or belongs to nothing we asked for')
    : go(withSession(state, session));
};
