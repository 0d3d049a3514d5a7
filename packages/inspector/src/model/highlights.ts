/**
 * The questions that people ask of a session, answered in one line each, with the entry where it
 * happened.
 */

import type { Usage } from '@pawl/agent/machine/usage';
import {
  getCacheShare,
  type RequestFigures,
  type SessionFigures,
  type TimeSpan,
} from '../figures/session-figures.js';

type Highlight = {
  readonly question: string;
  readonly seq: number;
  /** Parts of the answer: text, milliseconds, dollars, shares, counts. */
  readonly answer: readonly HighlightPart[];
};

export type HighlightPart =
  | string
  | { readonly ms: number }
  | { readonly usd: number | null }
  | { readonly share: number | null }
  | { readonly count: number };

const largest = <T>(items: readonly T[], sizeOf: (item: T) => number): T | null =>
  items.reduce<T | null>(
    (best, item) => (best === null || sizeOf(item) > sizeOf(best) ? item : best),
    null,
  );

const getCostUsd = ({ usage }: RequestFigures): number => usage?.costUsd ?? 0;

const tokensIn = ({ inputTokens, cacheReadTokens, cacheWriteTokens }: Usage): number =>
  inputTokens + cacheReadTokens + cacheWriteTokens;

/** Providers keep a prompt in their caches for about so long. */
const CACHE_MS = 5 * 60_000;

const WAITS: Partial<Record<TimeSpan['kind'], string>> = {
  approval: 'an approval was waited for',
  tool: 'a tool ran',
  retry: 'a retry was waited for',
  idle: 'it waited for you',
  between: 'no process had it open',
};

/** The work that took most of the time between two moments, in words; empty if none did. */
const mostlyIn = (spans: readonly TimeSpan[], fromMs: number, toMs: number): string => {
  const span = largest(
    spans.filter(({ kind, startMs, endMs }) => kind in WAITS && startMs < toMs && endMs > fromMs),
    ({ startMs, endMs }) => Math.min(endMs, toMs) - Math.max(startMs, fromMs),
  );
  if (span === null) return '';
  const about = [span.name, span.about].filter((text) => text !== '').join(' ');
  const named = span.kind === 'approval' || span.kind === 'tool' ? ` (${about})` : '';
  return `; meanwhile ${WAITS[span.kind] ?? ''}${named}`;
};

/** Why little of a prompt came from the cache. */
const whyUncached = (
  request: RequestFigures,
  before: RequestFigures | undefined,
  spans: readonly TimeSpan[],
): readonly HighlightPart[] => {
  if (before?.usage === undefined || before.usage === null)
    return ['it was the first request, so nothing of it was in the cache yet'];
  if (before.purpose === 'compaction')
    return ['the conversation had just been summarised, so its beginning was new'];
  if (before.model !== request.model)
    return ['the request before it went to another model, which has a cache of its own'];
  const pauseMs = request.startMs - before.endMs;
  if (pauseMs <= CACHE_MS) return ['most of its prompt did not come from the cache'];
  const meanwhile = mostlyIn(spans, before.endMs, request.startMs);
  return [
    'it was sent ',
    { ms: pauseMs },
    ' after the request before it, and providers keep a prompt in the cache for about five ' +
      `minutes${meanwhile}`,
  ];
};

const dearest = ({ requests, spans }: SessionFigures): readonly Highlight[] => {
  const request = largest(requests, getCostUsd);
  if (request === null || request.usage === null || getCostUsd(request) === 0) return [];
  const { usage, purpose, seq } = request;
  const read = tokensIn(usage);
  const before = requests.findLast((one) => one.seq < seq && one.usage !== null);
  const more = read - (before?.usage ? tokensIn(before.usage) : read);
  const why: readonly HighlightPart[] =
    purpose === 'compaction'
      ? ['it summarised the conversation']
      : usage.cacheReadTokens < read / 2
        ? whyUncached(request, before, spans)
        : ['most of its prompt came from the cache, yet there was much of it'];
  const grown: readonly HighlightPart[] =
    more > read / 4
      ? [' It had ', { count: more }, ' tokens more than the request before it.']
      : [];
  return [
    {
      question: 'The most expensive request',
      seq,
      answer: [
        { usd: usage.costUsd },
        ': ',
        { count: read },
        ' tokens in, ',
        { share: getCacheShare(usage) },
        ' from the cache, ',
        { count: usage.outputTokens },
        ' out; ',
        ...why,
        '.',
        ...grown,
      ],
    },
  ];
};

const getLengthMs = ({ startMs, endMs }: Pick<TimeSpan, 'startMs' | 'endMs'>): number =>
  endMs - startMs;

const longest = (
  { spans, time }: SessionFigures,
  kind: 'approval' | 'tool',
  question: string,
): readonly Highlight[] => {
  const all = spans.filter((one) => one.kind === kind);
  const span = largest(all, getLengthMs);
  if (span === null || getLengthMs(span) === 0) return [];
  const what = [span.name, span.about].filter((text) => text !== '').join(' ');
  const others: readonly HighlightPart[] =
    all.length > 1 && time[kind] > getLengthMs(span)
      ? [' of ', { ms: time[kind] }, ' for all of them']
      : [];
  return [
    { question, seq: span.startSeq, answer: [{ ms: getLengthMs(span) }, ...others, `: ${what}.`] },
  ];
};

const REASONS_MAX = 3;

const failures = ({ requests, time }: SessionFigures): readonly Highlight[] => {
  const failed = requests.filter(({ ending }) => ending === 'failed');
  const [first] = failed;
  if (first === undefined) return [];
  const counts = new Map<string, number>();
  for (const { why } of failed) counts.set(why, (counts.get(why) ?? 0) + 1);
  const reasons = [...counts].map(([why, count]) => (count === 1 ? why : `${count} × ${why}`));
  const rest = reasons.length - REASONS_MAX;
  const listed = [
    ...reasons.slice(0, REASONS_MAX),
    ...(rest > 0 ? [`and ${rest} more reasons`] : []),
  ];
  const waited: readonly HighlightPart[] =
    time.retry > 0 ? [' Before the retries it waited ', { ms: time.retry }, '.'] : [];
  const answer = [
    { count: failed.length },
    `${failed.length === 1 ? ' request' : ' requests'}: ${listed.join('; ')}.`,
    ...waited,
  ];
  return [{ question: 'Failed and tried again', seq: first.endSeq ?? first.seq, answer }];
};

const crashes = ({ gaps }: SessionFigures): readonly Highlight[] =>
  gaps
    .filter(({ cause }) => cause === 'crashed')
    .map(({ seq, state, doing, startMs, endMs }) => ({
      question: 'Crashed',
      seq: Math.max(0, seq - 1),
      answer: [
        `in ${state}${doing.length === 0 ? '' : `, doing ${doing.join(', ')}`}; opened again `,
        { ms: endMs - startMs },
        ` later, at #${seq}.`,
      ],
    }));

export const findHighlights = (figures: SessionFigures): readonly Highlight[] => [
  ...crashes(figures),
  ...failures(figures),
  ...dearest(figures),
  ...longest(figures, 'approval', 'The longest wait for an approval'),
  ...longest(figures, 'tool', 'The longest tool call'),
];
