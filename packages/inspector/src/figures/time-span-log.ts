import type { TimeSpan, TimeSpanKind } from './session-figures.js';
import type { Activity, ActivityKind } from './state-activities.js';

/** A moment of a step: its journal line and its place on the axis. */
export type Moment = { readonly seq: number; readonly atMs: number };

/** Work that goes on, since `from`. */
export type OpenActivity = {
  readonly activity: Activity;
  readonly from: Moment;
  /** When the first piece of a request's reply came, if that is known. */
  firstPieceMs: number | null;
};

type Closing = Pick<TimeSpan, 'ending'> & { readonly seq: number | null; readonly atMs: number };

const keyOf = ({ kind, id }: Pick<Activity, 'kind' | 'id'>): string => `${kind} ${id}`;

/** The spans of some work that ended or goes on; two for a request of which the first piece is known. */
const spansFrom = ({ activity, from, firstPieceMs }: OpenActivity, to: Closing): readonly TimeSpan[] => {
  const { kind, ...named } = activity;
  const whole = { ...named, startMs: from.atMs, startSeq: from.seq, endMs: to.atMs, endSeq: to.seq };
  if (firstPieceMs === null) return [{ kind, ...whole, ending: to.ending }];
  const split = Math.min(Math.max(firstPieceMs, from.atMs), to.atMs);
  return [
    { ...whole, kind: 'waiting', endMs: split, ending: 'done' },
    { ...whole, kind: 'streaming', startMs: split, ending: to.ending },
  ];
};

/** The spans of a session: work opens and closes as the states say. */
export class SpanLog {
  readonly #closed: TimeSpan[] = [];
  readonly #open = new Map<string, OpenActivity>();

  /** Work of the kind with the id, if it is going on. */
  find(kind: ActivityKind, id: string): OpenActivity | undefined {
    return this.#open.get(keyOf({ kind, id }));
  }

  get open(): readonly OpenActivity[] {
    return [...this.#open.values()];
  }

  /** Closes what no longer goes on, and opens what has begun. Returns both. */
  change(
    now: readonly Activity[],
    at: Moment,
  ): { readonly begun: readonly OpenActivity[]; readonly ended: readonly OpenActivity[] } {
    const keys = new Set(now.map(keyOf));
    const ended = this.open.filter(({ activity }) => !keys.has(keyOf(activity)));
    for (const one of ended) this.#close(one, { ...at, ending: 'done' });
    const begun = now
      .filter((activity) => !this.#open.has(keyOf(activity)))
      .map((activity) => ({ activity, from: at, firstPieceMs: null }));
    for (const one of begun) this.#open.set(keyOf(one.activity), one);
    return { begun, ended };
  }

  /** Closes everything, since the process has ended at `at`, and adds the time until the next one. Returns what it closed. */
  interrupt(at: Moment, next: Moment, about: string): readonly OpenActivity[] {
    const interrupted = this.open;
    for (const one of interrupted) this.#close(one, { ...at, ending: 'interrupted' });
    this.#closed.push({
      kind: 'between',
      id: '',
      name: 'processes',
      about,
      startMs: at.atMs,
      startSeq: at.seq,
      endMs: next.atMs,
      endSeq: next.seq,
      ending: 'done',
    });
    return interrupted;
  }

  /** All spans by their start; what goes on reaches to `nowMs`. */
  spans(nowMs: number): readonly TimeSpan[] {
    const going = this.open.flatMap((one) => spansFrom(one, { seq: null, atMs: nowMs, ending: 'open' }));
    return [...this.#closed, ...going].sort((left, right) => left.startMs - right.startMs);
  }

  #close(one: OpenActivity, to: Closing): void {
    this.#open.delete(keyOf(one.activity));
    this.#closed.push(...spansFrom(one, to));
  }
}

const NO_TIME: Readonly<Record<TimeSpanKind, number>> = {
  waiting: 0,
  streaming: 0,
  request: 0,
  retry: 0,
  compaction: 0,
  approval: 0,
  tool: 0,
  hook: 0,
  idle: 0,
  between: 0,
};

/** The axis divided among the kinds, each moment counted once. `batches`: that of tools and approvals. */
export const divideTime = (
  spans: readonly TimeSpan[],
  elapsedMs: number,
  batches: { readonly tool: number; readonly approval: number },
): Readonly<Record<TimeSpanKind | 'other', number>> => {
  const time = { ...NO_TIME, ...batches };
  for (const { kind, startMs, endMs } of spans)
    if (kind !== 'tool' && kind !== 'approval') time[kind] += endMs - startMs;
  const known = Object.values(time).reduce((sum, one) => sum + one, 0);
  return { ...time, other: Math.max(0, elapsedMs - known) };
};
