import {
  cacheShareOf,
  type RequestFigures,
  type SessionFigures,
  type TimeSpan,
} from '../../figures/session-figures.js';

/** The questions that people ask of a session, answered in one line each, with the entry where it happened. */

export type Highlight = {
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
  items.reduce<T | null>((best, item) => (best === null || sizeOf(item) > sizeOf(best) ? item : best), null);

const costOf = ({ usage }: RequestFigures): number => usage?.costUsd ?? 0;

const dearest = (requests: readonly RequestFigures[]): readonly Highlight[] => {
  const request = largest(requests, costOf);
  if (request === null || request.usage === null || costOf(request) === 0) return [];
  const { usage, purpose } = request;
  const read = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  const why =
    purpose === 'compaction'
      ? 'it summarised the conversation'
      : usage.cacheReadTokens < read / 2
        ? 'most of its prompt did not come from the cache'
        : 'most of its prompt came from the cache, yet there was much of it';
  return [
    {
      question: 'The most expensive request',
      seq: request.seq,
      answer: [
        { usd: usage.costUsd },
        ': ',
        { count: read },
        ' tokens in, ',
        { share: cacheShareOf(usage) },
        ' from the cache, ',
        { count: usage.outputTokens },
        ` out; ${why}.`,
      ],
    },
  ];
};

const lengthOf = ({ startMs, endMs }: Pick<TimeSpan, 'startMs' | 'endMs'>): number => endMs - startMs;

const longest = (
  spans: readonly TimeSpan[],
  kind: TimeSpan['kind'],
  question: string,
): readonly Highlight[] => {
  const span = largest(
    spans.filter((one) => one.kind === kind),
    lengthOf,
  );
  if (span === null || lengthOf(span) === 0) return [];
  const what = [span.name, span.about].filter((text) => text !== '').join(' ');
  return [{ question, seq: span.startSeq, answer: [{ ms: lengthOf(span) }, `: ${what}.`] }];
};

const failures = (requests: readonly RequestFigures[]): readonly Highlight[] => {
  const failed = requests.filter(({ ending }) => ending === 'failed');
  const [first] = failed;
  if (first === undefined) return [];
  const answer = [
    { count: failed.length },
    failed.length === 1 ? ' request: ' : ' requests; the first: ',
    first.why,
  ];
  return [{ question: 'Failed and tried again', seq: first.endSeq ?? first.seq, answer }];
};

const crashes = ({ gaps }: SessionFigures): readonly Highlight[] =>
  gaps
    .filter(({ cause }) => cause === 'crashed')
    .map(({ seq, state, doing }) => ({
      question: 'Crashed',
      seq: Math.max(0, seq - 1),
      answer: [
        `in ${state}${doing.length === 0 ? '' : `, doing ${doing.join(', ')}`}; opened again at `,
        `#${seq}.`,
      ],
    }));

export const highlightsOf = (figures: SessionFigures): readonly Highlight[] => [
  ...crashes(figures),
  ...failures(figures.requests),
  ...dearest(figures.requests),
  ...longest(figures.spans, 'approval', 'The longest wait for an approval'),
  ...longest(figures.spans, 'tool', 'The longest tool call'),
];
