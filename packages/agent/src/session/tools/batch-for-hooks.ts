import type { JudgedCall } from '../../machine/call.js';
import type { HookReport } from '../../ports/after-tool-hooks.js';
import type { Journal } from '../../ports/journal.js';

/** Facts about a batch for the hooks: its calls by id, and the reports of earlier phases. */
export type BatchPast = {
  readonly calls: Map<string, JudgedCall>;
  readonly reports: HookReport[];
  /** See HookContext. */
  readonly recorded: Map<string, string>;
};

export const emptyBatch = (): BatchPast => ({ calls: new Map(), reports: [], recorded: new Map() });

/** The last batch in the journal, for a session that was opened again during its hooks. */
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
