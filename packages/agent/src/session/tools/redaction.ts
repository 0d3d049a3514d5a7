import type { CallPreview } from '../../machine/call.js';
import type { JsonObject } from '../../machine/message.js';
import {
  createRedactor,
  type Redacted,
  type Redactor,
  redactionNote,
} from '../../platform/secrets/redactor.js';
import type { HookReport } from '../../ports/after-tool-hooks.js';
import type { Blobs } from '../../ports/journal.js';
import type { Job, Jobs, Judgement, ToolOutcome } from '../../ports/tool.js';
import type { Joiner } from '../model/join-deltas.js';

/** Replaces secrets in what tools return, before anything is journaled, shown or sent. */

/** For a session without secrets. */
export const NO_REDACTOR: Redactor = createRedactor([]);

const together = (all: readonly Redacted[]): Pick<Redacted, 'count' | 'names'> => ({
  count: all.reduce((sum, { count }) => sum + count, 0),
  names: [...new Set(all.flatMap(({ names }) => names))],
});

/** The outcome without secrets, with a note after its text if there were any. */
export const redactOutcome = (redactor: Redactor, outcome: ToolOutcome): ToolOutcome => {
  if (redactor.isIdle) return outcome;
  const text = redactor.redact(outcome.text);
  const diff = outcome.diff === undefined ? null : redactor.redact(outcome.diff);
  const summary = outcome.summary === undefined ? null : redactor.redact(outcome.summary);
  const both = together([text, diff, summary].filter((part) => part !== null));
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
  return { ...report, commits, note: redactor.clean(report.note), warning: redactor.clean(report.warning) };
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

/** Streamed text under one key. A secret that is split between two pieces is found too. */
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
  return judgement.title === undefined ? judgement : { ...judgement, title: redactor.clean(judgement.title) };
};

/**
 * Refuses an input that contains one of our placeholders; null for any other input. The file has the secret instead of
 * the placeholder, so an edit would not find it, and a write would store the placeholder.
 */
export const refusePlaceholder = (redactor: Redactor, input: JsonObject): Judgement | null => {
  if (redactor.isIdle) return null;
  for (const [field, value] of Object.entries(input)) {
    const placeholder = redactor.placeholderIn(typeof value === 'string' ? value : JSON.stringify(value));
    if (placeholder === null) continue;
    const why = `it has ${placeholder}, which stands in results for a secret that is not shown: the file has something else there. Leave that line as it is and change only others, or read the value from where it is kept when the program runs.`;
    return { kind: 'invalid', field, why };
  }
  return null;
};
