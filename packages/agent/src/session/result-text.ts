/**
 * Text that tools return and models stream, on its way into the journal: without secrets, cut to a
 * limit, joined.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { CallOutcome, CallPreview } from '../machine/call.js';
import { defaultSettings } from '../machine/settings.js';
import { attempt } from '../platform/attempt.js';
import type { Clock } from '../platform/clock.js';
import { groupDigits } from '../platform/text.js';
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

/** Cuts long output: head and tail stay, and a line between them counts the missing part. */

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

type Cut = { readonly head: string; readonly tail: string; readonly leftOutBytes: number };

/**
 * Head and tail of about half the limit each, split between characters; null if the text is within
 * the limit.
 */
export const cutText = (text: string, limitBytes: number): Cut | null => {
  if (text.length * 3 <= limitBytes || Buffer.byteLength(text) <= limitBytes) return null;
  const bytes = Buffer.from(text);
  const headEnd = beforeCharacter(bytes, Math.ceil(limitBytes / 2));
  const tailStart = afterCharacter(bytes, bytes.length - Math.floor(limitBytes / 2));
  return {
    head: bytes.toString('utf8', 0, headEnd),
    tail: bytes.toString('utf8', tailStart),
    leftOutBytes: tailStart - headEnd,
  };
};

/**
 * The cut text with a line about the missing part for the model. `stored` says where the whole text
 * is.
 */
const showCut = (cut: Cut, stored: string): string =>
  `${cut.head}\n… ${groupDigits(cut.leftOutBytes)} bytes left out; ${stored} …\n${cut.tail}`;

const blobNote = (blob: string, droppedBytes = 0): string =>
  droppedBytes === 0
    ? `the whole output can be read as blob:${blob}`
    : `${groupDigits(droppedBytes)} more are gone, since the output was too long to be kept; ` +
      `its beginning and its end can be read as blob:${blob}`;

/** All results of a batch together are about so long, since they come with one request. */
const BATCH_BYTES = 100_000;
/** A result of a full batch still shows its ends. */
const SMALLEST_RESULT_BYTES = 1_000;

type Room = { readonly limitBytes: number; readonly why: string };

/** Counts the bytes of a batch's results. One per session. */
export class BatchRoom {
  #batchId = '';
  #bytes = 0;

  /** The limit for a result, which is counted. `ended`: results from before a resume. */
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
  { droppedBytes, cutBytes: _, ...outcome }: ToolOutcome,
  limitBytes: number,
  blobs: Blobs,
  why = '',
): Promise<CallOutcome> => {
  const diffCut = outcome.diff === undefined ? null : cutText(outcome.diff, limitBytes);
  const diff = diffCut === null ? {} : { diff: showCut(diffCut, 'this is for display only') };
  const cut = cutText(outcome.text, limitBytes);
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

/** At most 25 times a second (docs/rules.md#merged-text). */
const EVERY_MS = 40;

export type Joiner = {
  /** Text with the same key keeps its order. Keys are emitted in the order of their first text. */
  add(key: string, text: string): void;
  /** Emits the held text now. */
  flush(): void;
  /** Drops the held text and stops. */
  drop(): void;
};

/**
 * Joins streamed text: the first piece is emitted at once, the pieces of the following 40 ms
 * together.
 */
export const createJoiner = (clock: Clock, emit: (key: string, text: string) => void): Joiner => {
  const held = new Map<string, string>();
  let cancelTimer: (() => void) | null = null;
  const release = (): void => {
    const pieces = [...held];
    held.clear();
    for (const [key, text] of pieces) emit(key, text);
  };
  const ring = (): void => {
    cancelTimer = null;
    if (held.size === 0) return;
    cancelTimer = clock.after(EVERY_MS, ring);
    release();
  };
  const stop = (): void => {
    cancelTimer?.();
    cancelTimer = null;
  };
  return {
    add(key, text) {
      held.set(key, (held.get(key) ?? '') + text);
      if (cancelTimer !== null) return;
      cancelTimer = clock.after(EVERY_MS, ring);
      release();
    },
    flush() {
      stop();
      release();
    },
    drop() {
      stop();
      held.clear();
    },
  };
};
