/**
 * The questions that people ask of a session, answered in one line each, with the entry (the line
 * of the journal, by its number `seq`) where it happened.
 *
 * From top to bottom: `findHighlights`; what happened and how it ended; where the time went; where
 * the money went; what failed; and `turnFigures`, the same for each turn.
 */

import { type UsageTotals, usageSince } from '@pawl/agent/machine/settings';
import { turnRuns, type WaitReason } from '@pawl/agent/machine/state';
import {
  getCacheShare,
  getTurnMs,
  promptTokens,
  type RequestFigures,
  type SessionFigures,
  spanText,
  type TimeSpan,
} from '../figures/session-figures.js';
import { crashStories } from './crash-story.js';
import { oneLine, plural, type SentencePart } from './figure-text.js';
import { beginsRound } from './rounds.js';
import type { SessionHistory } from './session-history.js';
import { callName } from './session-index.js';
import { approvalStretches } from './time-axis.js';

/** The questions, in the order in which a stranger asks them. */
export const QUESTIONS = {
  happened: 'What happened',
  ended: 'How it ended',
  time: 'Where the time went',
  money: 'Where the money went',
  failed: 'What failed',
  crashed: 'What a crash did',
} as const;

export type Highlight = {
  readonly question: keyof typeof QUESTIONS;
  /** The entry where it happened; null for the whole session. */
  readonly seq: number | null;
  readonly answer: readonly SentencePart[];
};

export const findHighlights = (history: SessionHistory): readonly Highlight[] => {
  const { figures } = history;
  return [
    ...lastWords(history),
    outcome(history),
    ...workTimes(figures),
    ...longestWork(figures, 'approval', 'The longest wait for an approval'),
    ...longestWork(figures, 'tool', 'The longest call'),
    ...mostExpensiveTurn(history),
    ...mostExpensiveRequest(figures),
    ...failedRequests(figures),
    ...failedCalls(history),
    ...crashes(history),
  ];
};

/** The item with the largest size; null without items. */
const largest = <T>(items: readonly T[], sizeOf: (item: T) => number): T | null =>
  items.reduce<T | null>(
    (best, item) => (best === null || sizeOf(item) > sizeOf(best) ? item : best),
    null,
  );

// ---- What happened, and how it ended ----

/** The first paragraph of the model's last words, without marks of Markdown. */
const lastWords = ({ steps }: SessionHistory): readonly Highlight[] => {
  const reply = steps.findLast(
    ({ event }) =>
      event.type === 'LlmCompleted' && event.message?.parts.some(({ type }) => type === 'text'),
  );
  if (reply?.event.type !== 'LlmCompleted') return [];
  const text = reply.event.message?.parts.findLast((part) => part.type === 'text')?.text ?? '';
  const shown = oneLine(text.replace(/[`*#]+/g, ''), LAST_WORDS_MAX);
  return [{ question: 'happened', seq: reply.seq, answer: [shown] }];
};

const LAST_WORDS_MAX = 420;

/** How it ended, with turns, rounds and changed files. */
const outcome = (history: SessionHistory): Highlight => {
  const { turns, requests } = history.figures;
  const files = changedFiles(history);
  const changed = files === 0 ? '' : `, ${plural(files, 'file')} changed`;
  const { text } = sessionOutcome(history);
  const facts = ` ${plural(turns, 'turn')}, ${plural(countRounds(requests), 'round')}${changed}.`;
  return { question: 'ended', seq: history.seq, answer: [{ key: text }, facts] };
};

/** A round is a request with its retries; a summary is none. */
export const countRounds = (requests: readonly RequestFigures[]): number =>
  requests.filter(
    (request, place) =>
      beginsRound(request, requests[place - 1]) && request.purpose !== 'compaction',
  ).length;

/** How the session ended, or where it stands. `good`: the last turn ended with an answer. */
export const sessionOutcome = (
  history: SessionHistory,
): { readonly text: string; readonly kind: 'good' | 'bad' | 'open' } => {
  const last = history.stateAt(history.seq);
  const rest = history.steps.findLast(({ state }) => {
    return state.name === 'WaitingForUserInput' && state.reason.kind !== 'compacted';
  })?.state;
  if (turnRuns(last)) return { text: `Its last entry is in ${last.name}.`, kind: 'open' };
  if (last.name === 'ShuttingDown' || last.name === 'WaitingForUserInput') {
    const closed = last.name === 'ShuttingDown' ? ' Then the session was closed.' : '';
    if (rest?.name !== 'WaitingForUserInput')
      return { text: `Nothing was asked.${closed}`, kind: 'open' };
    return { text: `${restWords(rest.reason)}${closed}`, kind: restKind(rest.reason) };
  }
  return { text: `It is in ${last.name}.`, kind: 'open' };
};

const restKind = (reason: WaitReason): 'good' | 'bad' | 'open' => {
  const { kind } = reason;
  if (kind === 'endOfTurn') return reason.cause === 'answer' ? 'good' : 'bad';
  return kind === 'error' || kind === 'budget' || kind === 'cancelled' ? 'bad' : 'open';
};

/** Why the session waits, in words. */
const restWords = (reason: WaitReason): string => {
  switch (reason.kind) {
    case 'endOfTurn':
      return reason.cause === 'answer' ? 'The model answered.' : `The reply was ${reason.cause}.`;
    case 'cancelled':
      return reason.cause === 'user' ? 'You stopped the turn.' : `Stopped: ${reason.cause}.`;
    case 'budget':
      return `The limit of ${reason.dimension} was reached.`;
    case 'error':
      return `An error ended the turn: ${reason.error}: ${reason.message}.`;
    case 'rewound':
      return 'The session was taken back to an earlier entry.';
    default:
      return 'It waits for your input.';
  }
};

export const changedFiles = ({ index }: SessionHistory): number => {
  const paths = new Set<string>();
  for (const { files } of index.changes.values()) for (const { path } of files) paths.add(path);
  return paths.size;
};

// ---- Where the time went ----

/** The three works that took most of the time. Each call with another title is another work. */
const workTimes = (figures: SessionFigures): readonly Highlight[] => {
  const { spans } = figures;
  const spenders = new Map<string, Spender>();
  for (const span of spans) {
    const name = span.kind === 'tool' ? spanText(span) : KIND_WORDS[span.kind];
    if (name === undefined) continue;
    const known = spenders.get(name) ?? { ms: 0, count: 0, untilMs: 0 };
    known.ms += Math.max(0, span.endMs - Math.max(span.startMs, known.untilMs));
    known.untilMs = Math.max(known.untilMs, span.endMs);
    if (span.kind !== 'streaming') known.count += 1;
    spenders.set(name, known);
  }
  const first = [...spenders].sort(([, left], [, right]) => right.ms - left.ms).slice(0, 3);
  const turnMs = getTurnMs(figures);
  if (first.length === 0 || turnMs <= 0) return [];
  const parts = first.flatMap(([name, { ms, count }], at): readonly SentencePart[] => [
    at === 0 ? '' : ', ',
    `${name} `,
    { ms },
    count > 1 ? ` (${count} times)` : '',
  ]);
  const answer = ['Of ', { ms: turnMs }, ' in turns: ', ...parts, '.'];
  return [{ question: 'time', seq: null, answer }];
};

const KIND_WORDS: Partial<Record<TimeSpan['kind'], string>> = {
  waiting: 'the model',
  streaming: 'the model',
  request: 'the model',
  approval: 'waiting for your approvals',
  retry: 'waiting before retries',
  compaction: 'summaries',
  hook: 'hooks',
};

/** A kind of work: its time, parallel calls once, until when, and how often it was done. */
type Spender = { ms: number; count: number; untilMs: number };

/** The longest wait for an approval, or the longest call, if it took a part worth naming. */
const longestWork = (
  figures: SessionFigures,
  kind: 'approval' | 'tool',
  words: string,
): readonly Highlight[] => {
  const { spans, time } = figures;
  const all = spans.filter((one) => one.kind === kind);
  const span = largest(all, getLengthMs);
  if (span === null || getLengthMs(span) <= SHARE_MIN * getTurnMs(figures)) return [];
  const others: readonly SentencePart[] =
    all.length > 1 && time[kind] > getLengthMs(span)
      ? [' of ', { ms: time[kind] }, ' for all']
      : [];
  return [
    {
      question: 'time',
      seq: span.startSeq,
      answer: [`${words}: `, { ms: getLengthMs(span) }, ...others, `: ${spanText(span)}.`],
    },
  ];
};

/** A smaller part of the work explains nothing. */
const SHARE_MIN = 0.02;

const getLengthMs = ({ startMs, endMs }: Pick<TimeSpan, 'startMs' | 'endMs'>): number =>
  endMs - startMs;

// ---- Where the money went ----

const mostExpensiveTurn = (history: SessionHistory): readonly Highlight[] => {
  const turns = turnFigures(history);
  const turn = largest(turns, ({ usd }) => usd);
  const { costUsd: total, unpriced } = history.stateAt(history.seq).session.usage;
  if (turn === null || turns.length < 2 || total === 0) return [];
  const unknown = unpriced === 0 ? '' : ` and ${plural(unpriced, 'call')} of unknown price`;
  const known = unpriced === 0 ? '' : ', as far as prices are known,';
  const answer = [
    { usd: total },
    `${unknown} in all; the most expensive turn${known} was ${turn.number}: `,
    { usd: turn.usd },
    ' (',
    { share: turn.usd / total },
    ').',
  ];
  return [{ question: 'money', seq: turn.seq, answer }];
};

/** With the reason, as far as the cache of the provider explains it. */
const mostExpensiveRequest = ({ requests, spans }: SessionFigures): readonly Highlight[] => {
  const request = largest(requests, getCostUsd);
  if (request === null || request.usage === null || getCostUsd(request) === 0) return [];
  const { usage, purpose, seq } = request;
  const tokens = promptTokens(usage);
  const before = requests.findLast((one) => one.seq < seq && one.usage !== null);
  const more = tokens - (before?.usage ? promptTokens(before.usage) : tokens);
  const why: readonly SentencePart[] =
    purpose === 'compaction'
      ? ['it summarised the conversation']
      : usage.cacheReadTokens < tokens / 2
        ? whyUncached(request, before, spans)
        : ['most of its prompt came from the cache'];
  const grown: readonly SentencePart[] =
    more > tokens / 4
      ? [' It had ', { count: more }, ' tokens more than the request before it.']
      : [];
  return [
    {
      question: 'money',
      seq,
      answer: [
        'The most expensive request: ',
        { usd: usage.costUsd },
        ' for ',
        { count: tokens },
        ' tokens in (',
        { share: getCacheShare(usage) },
        ' from the cache), ',
        { count: usage.outputTokens },
        ' out; ',
        ...why,
        '.',
        ...grown,
      ],
    },
  ];
};

/** Why little of a prompt came from the cache. */
const whyUncached = (
  request: RequestFigures,
  before: RequestFigures | undefined,
  spans: readonly TimeSpan[],
): readonly SentencePart[] => {
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
    ` after the one before it${meanwhile}, and a provider keeps a prompt for about five minutes`,
  ];
};

/** The work that took most of the time between two moments, in words; empty if none did. */
const mostlyIn = (spans: readonly TimeSpan[], fromMs: number, toMs: number): string => {
  const partIn = (span: TimeSpan): number => overlap([span], fromMs, toMs);
  const span = largest(
    spans.filter(({ kind }) => kind in WAITS),
    partIn,
  );
  if (span === null || partIn(span) <= (toMs - fromMs) / 2) return '';
  const named = span.kind === 'approval' || span.kind === 'tool' ? `: ${spanText(span)}` : '';
  return ` (${WAITS[span.kind] ?? ''}${named})`;
};

const WAITS: Partial<Record<TimeSpan['kind'], string>> = {
  approval: 'an approval was waited for',
  tool: 'a tool ran',
  retry: 'a retry was waited for',
  idle: 'it waited for you',
  between: 'no process had it open',
};

const getCostUsd = ({ usage }: RequestFigures): number => usage?.costUsd ?? 0;

/** Providers keep a prompt in their caches for about so long. */
const CACHE_MS = 5 * 60_000;

// ---- What failed ----

const failedRequests = ({ requests, time }: SessionFigures): readonly Highlight[] => {
  const failed = requests.filter(({ ending }) => ending === 'failed');
  const [first] = failed;
  if (first === undefined) return [];
  const reasons = countTexts(failed.map(({ why }) => why));
  const waited: readonly SentencePart[] =
    time.retry > 0 ? [' Before the retries it waited ', { ms: time.retry }, '.'] : [];
  const answer = [
    { count: failed.length },
    ` ${failed.length === 1 ? 'request' : 'requests'} to the model: ${reasons.join('; ')}.`,
    ...waited,
  ];
  return [{ question: 'failed', seq: first.endSeq ?? first.seq, answer }];
};

const failedCalls = ({ index }: SessionHistory): readonly Highlight[] => {
  const ended = [...index.calls.values()].filter(({ end }) => end !== null);
  const failed = ended.filter(({ end }) => FAILED_CALLS.includes(end?.status ?? ''));
  const denied = ended.filter(({ end }) => end?.status === 'denied');
  const rows = [
    { calls: failed, of: ` of ${plural(ended.length, 'call')} failed: ` },
    { calls: denied, of: ` of ${plural(ended.length, 'call')} denied: ` },
  ];
  return rows.flatMap(({ calls, of }) => {
    const last = calls.at(-1);
    if (last === undefined) return [];
    const names = countTexts(calls.map(callName)).join('; ');
    return [
      {
        question: 'failed' as const,
        seq: last.end?.seq ?? null,
        answer: [{ count: calls.length }, `${of}${names}.`],
      },
    ];
  });
};

/** Endings of calls that count as failures. */
const FAILED_CALLS = ['failed', 'timedOut', 'lost', 'interrupted', 'invalid', 'noSuchTool'];

const REASONS_MAX = 3;

/** The most frequent first, as `3 × text`. */
const countTexts = (texts: readonly string[]): readonly string[] => {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  const [only] = counts.keys();
  if (only !== undefined && counts.size === 1) return [only];
  const ordered = [...counts].sort(([, left], [, right]) => right - left);
  const rest = ordered.length - REASONS_MAX;
  return [
    ...ordered
      .slice(0, REASONS_MAX)
      .map(([text, count]) => (count === 1 ? text : `${count} × ${text}`)),
    ...(rest > 0 ? [`and ${rest} more`] : []),
  ];
};

const crashes = (history: SessionHistory): readonly Highlight[] =>
  crashStories(history).map(({ seq, summary }) => ({
    question: 'crashed',
    seq,
    answer: summary,
  }));

// ---- The turns ----

export type TurnFigures = {
  /** From 1. */
  readonly number: number;
  readonly seq: number;
  readonly at: number;
  readonly prompt: string;
  readonly rounds: number;
  /** Without the time in which it waited for the user or no process had it open. */
  readonly workMs: number;
  readonly waitedMs: number;
  readonly usd: number;
  /** Calls without a known price, which `usd` lacks. */
  readonly unpriced: number;
  /** How many markers of each kind (an error, a retry, …) are in it. */
  readonly marks: ReadonlyMap<string, number>;
};

/** The part of the stretches that lies between two moments. */
const overlap = (
  stretches: readonly Pick<TimeSpan, 'startMs' | 'endMs'>[],
  fromMs: number,
  toMs: number,
): number =>
  stretches.reduce(
    (sum, { startMs, endMs }) =>
      sum + Math.max(0, Math.min(endMs, toMs) - Math.max(startMs, fromMs)),
    0,
  );

/** Computed once: two parts of the overview need them. */
const knownTurns = new WeakMap<SessionFigures, readonly TurnFigures[]>();

/** Every turn with its rounds, time, money and marks. */
export const turnFigures = (history: SessionHistory): readonly TurnFigures[] => {
  const turns = knownTurns.get(history.figures) ?? computeTurns(history);
  knownTurns.set(history.figures, turns);
  return turns;
};

const computeTurns = (history: SessionHistory): readonly TurnFigures[] => {
  const { index, figures, markers } = history;
  const waits = approvalStretches(figures.spans);
  const { gaps } = figures; // times in which no process had the session open
  let marked = 0; // markers are ordered: each turn goes on where the one before it stopped
  return index.turns.map(({ seq, at, prompt, endSeq: ended }, place) => {
    const endSeq = ended ?? history.seq;
    const nextSeq = index.turns[place + 1]?.seq ?? history.seq + 1;
    const [fromMs, toMs] = [index.msAt(seq), index.msAt(endSeq)];
    const waitedMs = overlap(waits, fromMs, toMs);
    const marks = new Map<string, number>();
    for (; (markers[marked]?.seq ?? nextSeq) < nextSeq; marked++) {
      const { seq: markSeq = 0, kind = 'prompt' } = markers[marked] ?? {};
      if (markSeq >= seq && kind !== 'prompt') marks.set(kind, (marks.get(kind) ?? 0) + 1);
    }
    // of the whole session, before the turn and up to its end
    const usageAt = (at: number): UsageTotals => history.stateAt(at).session.usage;
    const spent = usageSince(usageAt(seq - 1), usageAt(nextSeq - 1));
    return {
      number: place + 1,
      seq,
      at,
      prompt,
      rounds: history.stateAt(endSeq).session.turn.rounds,
      workMs: Math.max(0, toMs - fromMs - waitedMs - overlap(gaps, fromMs, toMs)),
      waitedMs,
      usd: spent.costUsd,
      unpriced: spent.unpriced,
      marks,
    };
  });
};
