/**
 * Text that tools return and models stream, on its way into the journal.
 *
 * From top to bottom: `redact…`, which replaces secrets by placeholders; `cutText` and the cut of a
 * log, which keeps lines that look like errors; and `BatchRoom` with `cutOutcome`, the limit for
 * the results of one reply.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { CallOutcome, CallPreview } from '../machine/call.js';
import { defaultSettings } from '../machine/settings.js';
import { attempt } from '../platform/attempt.js';
import type { Joiner } from '../platform/clock.js';
import { firstCharacters, groupDigits } from '../platform/text.js';
import type { HookReport } from '../ports/hooks.js';
import type { Blobs } from '../ports/journal.js';
import type { Job, Jobs, Judgement, ToolOutcome } from '../ports/tool.js';
import {
  createRedactor,
  type Redacted,
  type Redactor,
  redactionNote,
} from '../secrets/redactor.js';

/** For a session without secrets. */
export const NO_REDACTOR: Redactor = createRedactor([]);

const sumRedactions = (all: readonly Redacted[]): Pick<Redacted, 'count' | 'names'> => ({
  count: all.reduce((sum, { count }) => sum + count, 0),
  names: [...new Set(all.flatMap(({ names }) => names))],
});

/** The outcome without secrets, with a note after its text if there were any. */
export const redactOutcome = (redactor: Redactor, outcome: ToolOutcome): ToolOutcome => {
  if (redactor.isIdle) return outcome;
  const text = redactor.redact(outcome.text);
  const diff = outcome.diff === undefined ? null : redactor.redact(outcome.diff);
  const summary = outcome.summary === undefined ? null : redactor.redact(outcome.summary);
  const both = sumRedactions([text, diff, summary].filter((part) => part !== null));
  if (both.count === 0) return outcome;
  const noted = `${text.text}${text.text === '' || text.text.endsWith('\n') ? '' : '\n'}${redactionNote(both)}`;
  return {
    ...outcome,
    text: noted,
    ...(diff === null ? {} : { diff: diff.text }),
    ...(summary === null ? {} : { summary: summary.text }),
  };
};

export const redactPreview = (redactor: Redactor, preview: CallPreview): CallPreview => {
  if (redactor.isIdle) return preview;
  switch (preview.kind) {
    case 'change':
      return { ...preview, diff: redactor.clean(preview.diff) };
    case 'refused':
      return { ...preview, text: redactor.clean(preview.text) };
    case 'none':
      return preview;
    default:
      return preview satisfies never;
  }
};

export const redactReport = (redactor: Redactor, report: HookReport): HookReport => {
  if (redactor.isIdle) return report;
  const commits = report.commits.map((one) => ({ ...one, subject: redactor.clean(one.subject) }));
  return {
    ...report,
    commits,
    note: redactor.clean(report.note),
    warning: redactor.clean(report.warning),
  };
};

/** Blobs from tools, without secrets. */
export const redactBlobs = (redactor: Redactor, blobs: Blobs): Blobs =>
  redactor.isIdle
    ? blobs
    : { put: (text) => blobs.put(redactor.clean(text)), get: (sha256) => blobs.get(sha256) };

/** Background jobs whose output is read without secrets. */
export const redactJobs = (redactor: Redactor, jobs: Jobs): Jobs => {
  if (redactor.isIdle) return jobs;
  const redacted = (job: Job): Job => ({
    jobId: job.jobId,
    command: job.command,
    status: () => job.status(),
    output: () => redactor.clean(job.output()),
    droppedBytes: () => job.droppedBytes?.() ?? 0,
    kill: () => job.kill(),
  });
  return {
    add: (start) => redacted(jobs.add(start)),
    restore: (job) => jobs.restore(job),
    get(jobId) {
      const job = jobs.get(jobId);
      return job === undefined ? undefined : redacted(job);
    },
    list: () => jobs.list().map(redacted),
  };
};

/** Streamed text under one key. Also finds a secret that is split between two pieces. */
export const redactJoined = (redactor: Redactor, joiner: Joiner, key: string): Joiner => {
  if (redactor.isIdle) return joiner;
  const stream = redactor.stream();
  const give = (text: string): void => {
    if (text !== '') joiner.add(key, text);
  };
  return {
    add: (_key, text) => give(stream.add(text)),
    flush() {
      give(stream.end());
      joiner.flush();
    },
    drop: () => joiner.drop(),
  };
};

/** Removes secrets from titles and refusals, which may quote files. */
export const redactJudgement = (redactor: Redactor, judgement: Judgement): Judgement => {
  if (redactor.isIdle) return judgement;
  if (judgement.kind === 'invalid') return { ...judgement, why: redactor.clean(judgement.why) };
  return judgement.title === undefined
    ? judgement
    : { ...judgement, title: redactor.clean(judgement.title) };
};

/**
 * Refuses an input that contains one of our placeholders; null for any other input. The file has
 * the secret instead of the placeholder, so an edit would not find it, and a write would store the
 * placeholder.
 */
export const refusePlaceholder = (redactor: Redactor, input: JsonObject): Judgement | null => {
  if (redactor.isIdle) return null;
  for (const [field, value] of Object.entries(input)) {
    const placeholder = redactor.placeholderIn(
      typeof value === 'string' ? value : JSON.stringify(value),
    );
    if (placeholder === null) continue;
    const why =
      `it has ${placeholder}, which stands in results for a secret that is not shown: the file ` +
      'has something else there. Leave that line as it is and change only others, or read the ' +
      'value from where it is kept when the program runs.';
    return { kind: 'invalid', field, why };
  }
  return null;
};

// ---- The cut: head and tail stay, and a line between them counts the missing part. ----

const isContinuation = (byte: number | undefined): boolean =>
  byte !== undefined && (byte & 0xc0) === 0x80;

/** The nearest start of a character at or before `index`. */
const beforeCharacter = (bytes: Buffer, index: number): number => {
  let at = index;
  while (at > 0 && isContinuation(bytes[at])) at -= 1;
  return at;
};

/** The nearest start of a character at or after `index`. */
const afterCharacter = (bytes: Buffer, index: number): number => {
  let at = index;
  while (at < bytes.length && isContinuation(bytes[at])) at += 1;
  return at;
};

/** `between` stands for the missing part, beside the line that counts it. */
type Cut = {
  readonly head: string;
  readonly tail: string;
  readonly leftOutBytes: number;
  readonly between?: Between;
};

/**
 * Head and tail of about half the limit each, split between characters; null if the text is within
 * the limit.
 */
export const cutText = (text: string, limitBytes: number): Cut | null =>
  isWithin(text, limitBytes) ? null : cutEnds(text, limitBytes / 2, limitBytes / 2);

const isWithin = (text: string, limitBytes: number): boolean =>
  text.length * 3 <= limitBytes || Buffer.byteLength(text) <= limitBytes;

const cutEnds = (text: string, headBytes: number, tailBytes: number): Cut => {
  const bytes = Buffer.from(text);
  const headEnd = beforeCharacter(bytes, Math.ceil(headBytes));
  const tailStart = afterCharacter(bytes, bytes.length - Math.floor(tailBytes));
  return {
    head: bytes.toString('utf8', 0, headEnd),
    tail: bytes.toString('utf8', tailStart),
    leftOutBytes: tailStart - headEnd,
  };
};

/** Shares of the limit, in a long output of a command; the rest is for lines from between. */
const LOG_HEAD_SHARE = 2 / 15;
const LOG_TAIL_SHARE = 2 / 3;
const ERROR_LINE_CHARACTERS = 300;
/** Lines that differ in numbers alone are shown so many times at most. */
const ALIKE_MAX = 3;

const ERROR_SIGN =
  /\b(?:err(?:or)?s?|fail(?:s|ed|ures?)?|fatal|panic(?:ked)?|exceptions?|traceback|assert(?:ion)?|abort(?:ed)?|unhandled|uncaught|undefined reference|segmentation fault|core dumped|not ok|denied|timed out)\b|[a-z](?:Error|Exception)\b|\bERR!|[\u2717\u2718\u2716\u00d7]/i;
/** Lines that report a success, whatever a test in them is called. */
const SUCCESS = /^\s*(?:ok\b|[\u2713\u2714\u221a]|(?:--- )?PASS\b|# Subtest)|\.\.\. ok$|\bPASSED\b/;
/** Words that count no error. */
const NO_ERRORS = /\b(?:no|0|without) (?:err|fail|exc)\w*|\b(?:err|fail)\w*[:=]? *0\b/gi;

const looksLikeError = (line: string): boolean =>
  ERROR_SIGN.test(line) && !SUCCESS.test(line) && ERROR_SIGN.test(line.replace(NO_ERRORS, ''));

/** A place in a source file, such as `src/a.ts:12` or `a.py", line 12`. */
const PLACE = /[\w)\]-]\.[a-z]\w{0,5}(?::\d|\(\d|", line \d)/i;
/** In code that is not the project's. */
const FOREIGN_PLACE = /\bnode:|node_modules|site-packages/;
/**
 * Below a line that looks like an error: how many lines are searched; how many of the first ones
 * are shown, since they have the message, and how many places.
 */
const SEARCHED_LINES = 12;
const MESSAGE_LINES = 2;
const PLACES_MAX = 2;

type Between = {
  /** Number of its first line, and of the first one after it. */
  readonly firstLine: number;
  readonly tailLine: number;
  /** Those that look like errors, and what is below them, with their numbers. */
  readonly errors: readonly string[];
  /** How many other lines look like errors: there was no room for them. */
  readonly moreErrors: number;
};

/** What may still be shown below the last error, and the line at which the search ends. */
type Below = { readonly messages: number; readonly places: number; readonly end: number };

const NOTHING_BELOW: Below = { messages: 0, places: 0, end: 0 };

/** What is left after a line below an error; null if the line is not shown. */
const takeBelow = (line: string, below: Below): Below | null => {
  if (line.trim() === '' || FOREIGN_PLACE.test(line)) return null;
  const isPlace = PLACE.test(line);
  if (below.messages === 0 && !(isPlace && below.places > 0)) return null;
  const messages = Math.max(0, below.messages - 1);
  return { ...below, messages, places: Math.max(0, below.places - (isPlace ? 1 : 0)) };
};

/** Lines that look like errors, the first ones, with lines below them, in at most `limitBytes`. */
const findErrors = (
  lines: readonly string[],
  firstLine: number,
  limitBytes: number,
): Pick<Between, 'errors' | 'moreErrors'> => {
  const errors: string[] = [];
  const alike = new Map<string, number>();
  let bytes = 0;
  let moreErrors = 0;
  let below = NOTHING_BELOW;
  const show = (line: string, start: string, index: number): boolean => {
    const shown = `${firstLine + index}: ${start}${start.length < line.length ? '…' : ''}`;
    const size = Buffer.byteLength(shown) + 1;
    if (bytes + size > limitBytes) return false;
    errors.push(shown);
    bytes += size;
    return true;
  };
  for (const [index, line] of lines.entries()) {
    const start = firstCharacters(line, ERROR_LINE_CHARACTERS);
    if (!looksLikeError(start)) {
      if (index >= below.end) continue;
      if (SUCCESS.test(start)) below = NOTHING_BELOW;
      const after = takeBelow(start, below);
      if (after !== null && show(line, start, index)) below = after;
      continue;
    }
    const shape = start.replace(/\d+/g, '0');
    const times = (alike.get(shape) ?? 0) + 1;
    alike.set(shape, times);
    const isShown = times <= ALIKE_MAX && show(line, start, index);
    if (!isShown) moreErrors += 1;
    below = isShown
      ? { messages: MESSAGE_LINES, places: PLACES_MAX, end: index + 1 + SEARCHED_LINES }
      : NOTHING_BELOW;
  }
  return { errors, moreErrors };
};

/** A cut moves by so many characters at most to stand between two lines. */
const LINE_CUT_MAX = 2_000;

/** In the output of a command that ended well, such lines are text like any other. */
const NO_ERRORS_SOUGHT = { errors: [], moreErrors: 0 } as const;

/**
 * Cuts the output of a command: more of its end than of its beginning, and between them the lines
 * that look like errors, unless it ended well. It cuts between lines, unless they are long.
 */
const cutLog = (text: string, limitBytes: number, endedWell: boolean): Cut | null => {
  if (isWithin(text, limitBytes)) return null;
  const ends = cutEnds(text, limitBytes * LOG_HEAD_SHARE, limitBytes * LOG_TAIL_SHARE);
  // Both cuts move to a line break; 0: there is none near, since the line is long.
  const headEnd = ends.head.indexOf('\n', ends.head.length - LINE_CUT_MAX) + 1;
  const tailStart = ends.tail.slice(0, LINE_CUT_MAX).indexOf('\n') + 1;
  const head = headEnd === 0 ? ends.head : ends.head.slice(0, ends.head.lastIndexOf('\n') + 1);
  const tail = ends.tail.slice(tailStart);
  const missing = text.slice(head.length, text.length - tail.length);
  const firstLine = countLines(head);
  const roomBytes = limitBytes * (1 - LOG_HEAD_SHARE - LOG_TAIL_SHARE);
  return {
    head: head.replace(/\n$/, ''),
    tail,
    leftOutBytes: Buffer.byteLength(missing),
    between: {
      firstLine,
      tailLine: firstLine + countLines(missing) - 1,
      ...(endedWell ? NO_ERRORS_SOUGHT : findErrors(missing.split('\n'), firstLine, roomBytes)),
    },
  };
};

/** Number of the line in which the text ends. */
const countLines = (text: string): number => text.split('\n').length;

/** What was left out, and where it can be read. */
const showCut = ({ head, tail, leftOutBytes, between }: Cut, stored: string): string => {
  const size = `${groupDigits(leftOutBytes)} bytes left out`;
  if (between === undefined) return `${head}\n… ${size}; ${stored} …\n${tail}`;
  const { firstLine, tailLine, errors, moreErrors } = between;
  const count = `${size} (from line ${firstLine} to line ${tailLine}); ${stored}`;
  if (errors.length === 0) return `${head}\n… ${count} …\n${tail}`;
  const more = moreErrors === 0 ? '' : `${groupDigits(moreErrors)} more lines look like errors; `;
  return [
    `${head}\n… ${count}; lines that look like errors:`,
    ...errors,
    `… ${more}the end, from line ${tailLine} on:`,
    tail,
  ].join('\n');
};

const blobNote = (blob: string, droppedBytes = 0): string =>
  droppedBytes === 0
    ? `read or search blob:${blob} for the whole output`
    : `${groupDigits(droppedBytes)} more are gone, since the output was too long to be kept; ` +
      `read or search blob:${blob} for its beginning and its end`;

/** All results of a batch together are about so long, since they come with one request. */
const BATCH_BYTES = 100_000;
/** A result of a full batch still shows its ends. */
const SMALLEST_RESULT_BYTES = 1_000;

type Room = { readonly limitBytes: number; readonly why: string };

/** Counts the bytes of a batch's results. One per session. */
export class BatchRoom {
  #batchId = '';
  #bytes = 0;

  /** Counts a result; returns its limit. `ended`: the batch's results from before a resume. */
  take(
    batchId: string,
    { text, cutBytes = 0 }: ToolOutcome,
    outputCutBytes: number,
    ended: () => readonly string[],
  ): Room {
    if (batchId !== this.#batchId) {
      this.#batchId = batchId;
      this.#bytes = ended().reduce((sum, one) => sum + Buffer.byteLength(one), 0);
    }
    // A limit below the default counts for every tool. Otherwise a tool that bounds its text itself
    // (`cutBytes`) may have more.
    const usual =
      outputCutBytes < defaultSettings.outputCutBytes
        ? outputCutBytes
        : Math.max(outputCutBytes, cutBytes);
    const left = Math.max(SMALLEST_RESULT_BYTES, BATCH_BYTES - this.#bytes);
    const size = Buffer.byteLength(text);
    this.#bytes += Math.min(size, usual, left);
    if (size <= left || usual <= left) return { limitBytes: usual, why: '' };
    return { limitBytes: left, why: 'the results of one reply are bounded together; ' };
  }
}

/**
 * The outcome with its text cut to the limit. The whole text becomes a blob before the event names
 * it.
 */
export const cutOutcome = async (
  { droppedBytes, isLog = false, endedWell = false, cutBytes: _, ...outcome }: ToolOutcome,
  limitBytes: number,
  blobs: Blobs,
  why = '',
): Promise<CallOutcome> => {
  const diffCut = outcome.diff === undefined ? null : cutText(outcome.diff, limitBytes);
  const diff = diffCut === null ? {} : { diff: showCut(diffCut, 'this is for display only') };
  const cut = isLog
    ? cutLog(outcome.text, limitBytes, endedWell)
    : cutText(outcome.text, limitBytes);
  if (cut === null) return { ...outcome, ...diff };
  const stored = await attempt(() => blobs.put(outcome.text));
  if (stored.kind === 'fault') {
    return {
      ...outcome,
      ...diff,
      text: showCut(cut, `the whole output could not be kept: ${stored.fault.message}`),
    };
  }
  const text = showCut(cut, `${why}${blobNote(stored.value, droppedBytes)}`);
  return { ...outcome, ...diff, text, blob: stored.value };
};
