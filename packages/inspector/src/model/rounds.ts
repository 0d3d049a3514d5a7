/**
 * The rounds of a session for its trace: a request to the model with its retries, the calls that it
 * asked for, their approvals, and what ran after them.
 */

import type { ProcessGap, RequestFigures, TimeSpan } from '../figures/session-figures.js';
import type { SessionHistory } from './session-history.js';

export type TraceRound = {
  /** `pause`: the session waited for the user, or no process had it open. */
  readonly kind: 'round' | 'summary' | 'pause';
  /** Rounds are counted from 1; 0 for the others. */
  readonly number: number;
  /** The entry with which it began, and its time since 1970; then times on the session's axis. */
  readonly seq: number;
  readonly at: number;
  readonly startMs: number;
  readonly endMs: number;
  /** Without the time in which no process had it open. */
  readonly workMs: number;
  readonly spans: readonly TimeSpan[];
  readonly usd: number;
  /** How many requests and calls of it did not end well. */
  readonly failed: number;
};

/**
 * Whether a request is no retry: neither of the same model, nor by one that takes over, nor without
 * what was refused.
 */
export const beginsRound = (
  { attempt, seq }: RequestFigures,
  before: RequestFigures | undefined,
): boolean => attempt === 1 && !(before?.ending === 'failed' && before.endSeq === seq);

/** All rounds, summaries and pauses, by their beginning. */
export const traceRounds = (history: SessionHistory): readonly TraceRound[] => {
  const { figures, index } = history;
  const at = (seq: number): number => history.stepAt(Math.max(1, seq))?.event.at ?? 0;
  const drafts: RoundDraft[] = [];
  let number = 0;

  // A request begins a round or a summary; a retry belongs to the round before it.
  for (const [place, request] of figures.requests.entries()) {
    const { purpose, seq, startMs, usage, ending } = request;
    let round = drafts.at(-1);
    if (beginsRound(request, figures.requests[place - 1]) || round?.kind !== 'round') {
      const kind = purpose === 'compaction' ? 'summary' : 'round';
      if (kind === 'round') number += 1;
      const empty = { endMs: startMs, workMs: 0, spans: [], usd: 0, failed: 0 };
      round = { kind, number: kind === 'round' ? number : 0, seq, at: at(seq), startMs, ...empty };
      drafts.push(round);
    }
    round.usd += usage?.costUsd ?? 0;
    if (ending === 'failed') round.failed += 1;
  }

  // Both lists are ordered by time: a span belongs to the last round that began before it.
  const pauses: TraceRound[] = [];
  let roundIndex = -1;
  for (const span of figures.spans) {
    while ((drafts[roundIndex + 1]?.startMs ?? Number.POSITIVE_INFINITY) <= span.startMs)
      roundIndex += 1;
    const round = drafts[roundIndex];
    if (PAUSES.includes(span.kind) || round === undefined) {
      if (span.endMs === span.startMs) continue;
      const { startSeq: seq, startMs, endMs } = span;
      const pause = { kind: 'pause', number: 0, usd: 0, failed: 0 } as const;
      const workMs = endMs - startMs;
      pauses.push({ ...pause, seq, at: at(seq), startMs, endMs, workMs, spans: [span] });
      continue;
    }
    round.spans.push(span);
    round.endMs = Math.max(round.endMs, span.endMs);
    if (isFailed(history, span)) round.failed += 1;
  }

  for (const round of drafts) {
    round.endMs = Math.max(round.endMs, index.msAt(round.seq));
    round.workMs = round.endMs - round.startMs - gapIn(figures.gaps, round);
  }
  return [...drafts, ...pauses].sort(
    (left, right) => left.startMs - right.startMs || left.seq - right.seq,
  );
};

/** Spans in which the session did nothing. */
const PAUSES: readonly TimeSpan['kind'][] = ['idle', 'between'];

type RoundDraft = { -readonly [K in keyof TraceRound]: TraceRound[K] } & { spans: TimeSpan[] };

/** Whether the call of the span ended, but not well. */
export const isFailed = (history: SessionHistory, { kind, id, ending }: TimeSpan): boolean => {
  if (ending === 'interrupted') return false;
  if (kind !== 'tool') return false;
  const status = history.index.calls.get(id)?.end?.status;
  return status !== undefined && status !== 'ok';
};

/** The time within a round in which no process had the session open. */
const gapIn = (
  gaps: readonly ProcessGap[],
  { startMs, endMs }: Pick<TimeSpan, 'startMs' | 'endMs'>,
): number =>
  gaps
    .filter((gap) => gap.startMs >= startMs && gap.endMs <= endMs)
    .reduce((sum, gap) => sum + gap.endMs - gap.startMs, 0);
