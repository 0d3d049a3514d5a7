import type { Event } from '@pawl/agent/machine/event';
import type { State } from '@pawl/agent/machine/state';
import { sumUsage, type Usage } from '@pawl/agent/machine/values/usage';
import type { RequestFigures } from './session-figures.js';
import type { Moment, OpenActivity } from './time-span-log.js';

type Row = { -readonly [K in keyof RequestFigures]: RequestFigures[K] };

/** How the event ends the request with the id, and why. */
const endingOf = (event: Event, id: string): Pick<RequestFigures, 'ending' | 'why'> => {
  if (event.type === 'LlmCompleted' && event.requestId === id)
    return { ending: 'completed', why: event.stopReason };
  if (event.type === 'LlmFailed' && event.requestId === id)
    return { ending: 'failed', why: `${event.error.kind}: ${event.error.message}` };
  if (event.type === 'CompactionCompleted' && event.compactionId === id)
    return { ending: 'completed', why: '' };
  if (event.type === 'CompactionFailed' && event.compactionId === id)
    return { ending: 'failed', why: event.message };
  return { ending: 'stopped', why: event.type === 'PolicyStopped' ? event.why : event.type };
};

const isRequest = ({ activity: { kind } }: OpenActivity): boolean =>
  kind === 'request' || kind === 'compaction';

/** The calls of the model, by their ids. */
export class RequestLog {
  readonly #rows = new Map<string, Row>();

  begin(begun: readonly OpenActivity[], state: State, at: number, { seq, atMs }: Moment): void {
    for (const { activity } of begun.filter(isRequest)) {
      const known = this.#rows.get(activity.id);
      if (known !== undefined) {
        known.sent += 1;
        known.ending = 'open';
        continue;
      }
      const calling = state.name === 'CallingLlm' ? state : { purpose: 'compaction' as const, attempt: 1 };
      const { purpose, attempt } = calling;
      const { id, name: model } = activity;
      const open = { endSeq: null, firstPieceMs: null, endMs: atMs, ending: 'open', why: '' } as const;
      this.#rows.set(id, {
        id,
        purpose,
        model,
        attempt,
        seq,
        at,
        startMs: atMs,
        sent: 1,
        usage: null,
        ...open,
      });
    }
  }

  end(ended: readonly OpenActivity[], event: Event, { seq, atMs }: Moment): void {
    for (const { activity, firstPieceMs } of ended.filter(isRequest)) {
      const row = this.#rows.get(activity.id);
      if (row === undefined) continue;
      Object.assign(row, { ...endingOf(event, activity.id), endSeq: seq, endMs: atMs, firstPieceMs });
    }
  }

  /** Counts usage for a request. Returns whether there is such a request. */
  count(id: string, usage: Usage): boolean {
    const row = this.#rows.get(id);
    if (row !== undefined) row.usage = sumUsage(row.usage, usage);
    return row !== undefined;
  }

  /** The rows; an open one reaches to `nowMs`. */
  rows(nowMs: number, firstPieceOf: (id: string) => number | null): readonly RequestFigures[] {
    return [...this.#rows.values()].map((row) =>
      row.ending === 'open' ? { ...row, endMs: nowMs, firstPieceMs: firstPieceOf(row.id) } : { ...row },
    );
  }
}
