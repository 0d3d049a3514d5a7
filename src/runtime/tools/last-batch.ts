import type { JudgedCall } from '../../agent/call.js';
import type { HookReport } from '../../ports/hooks.js';
import type { Journal } from '../../ports/journal.js';

/** What the hooks are told of a batch: its calls by id, and what the phases so far reported of it. */
export type BatchPast = {
  readonly calls: Map<string, JudgedCall>;
  readonly reports: HookReport[];
  /** See HookContext. */
  readonly recorded: Map<string, string>;
};

export const emptyBatch = (): BatchPast => ({ calls: new Map(), reports: [], recorded: new Map() });

/** The last batch that the journal tells of: for a session that was opened in the middle of its hooks. */
export const readLastBatch = async (journal: Pick<Journal, 'read'>): Promise<BatchPast> => {
  let batch = emptyBatch();
  for await (const { event } of journal.read()) {
    if (event.type === 'LlmCompleted' && event.calls.length > 0) {
      batch = { ...emptyBatch(), calls: new Map(event.calls.map((call) => [call.callId, call])) };
    }
    if (event.type === 'ToolStarted' && event.before !== undefined) {
      batch.recorded.set(event.callId, event.before);
    }
    if (event.type === 'HookCompleted') batch.reports.push(event);
  }
  return batch;
};
