import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { plural } from '../../base/plural.js';
import { isWithin } from '../../files/is-within.js';
import type { HookContext, HookReport } from '../../ports/hooks.js';
import { type Repository, useRepository } from '../git/git.js';
import { oneLine, statistics } from '../safe-names.js';
import { takeSnapshot, type WorktreeSnapshot } from '../worktree-snapshot.js';
import { cutDiff, DIFF_BYTES, writeMessage } from './commit-message.js';
import { type CommitWatch, QUIET } from './commit-watch.js';
import { parseStatistics, placeOf, shortHash } from './head-changes.js';
import { commitTree, filtered, patchOf, prepareTree, whyNotNow } from './make-commit.js';

/**
 * The phase AutoCommitting: commits the files that the agent changed.
 *
 * 1. Only the agent's files (agent-changes.ts) are committed. The user's files, index and configuration do not change.
 *    No hook, filter or signature program runs.
 * 2. Files that are left out are reported once, with the reason.
 * 3. It fails open: files that can't be committed now stay the agent's and are committed with the next batch.
 */

const MESSAGE_DEADLINE_MS = 20_000;
const FILES_MAX = 1_000;
const FILE_BYTES_MAX = 20 * 1024 * 1024;
const LEFT_SHOWN = 10;

export type CommitOptions = {
  /** How long the model may take for the message. */
  readonly messageDeadlineMs?: number;
};

/** A new commit, the line about it for the model, and its number of files. */
type Done = {
  readonly commit: HookReport['commits'][number];
  readonly line: string;
  readonly files: number;
};

type Left = { readonly name: string; readonly why: string };

/** Reasons why files are not committed, by name. */
const exclusions = async (
  repository: Repository,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> => {
  const reasons = new Map<string, string>();
  for (const name of names.length === 0 ? [] : await filtered(repository, names)) {
    reasons.set(name, 'a filter of the repository would have to run for it');
  }
  for (const name of names) {
    if ((await sizeOf(path.join(repository.top, name))) > FILE_BYTES_MAX) {
      reasons.set(name, `it is larger than ${FILE_BYTES_MAX / 1024 / 1024} MiB`);
    }
  }
  return reasons;
};

const sizeOf = async (file: string): Promise<number> => {
  try {
    return (await lstat(file)).size;
  } catch {
    return 0; // it was deleted, and the deletion is what is committed
  }
};

const describeLeft = (left: readonly Left[]): readonly string[] => {
  const lines = left.slice(0, LEFT_SHOWN).map(({ name, why }) => `Not committed: ${oneLine(name)}: ${why}.`);
  const more = left.length - lines.length;
  return more > 0 ? [...lines, `Not committed: ${plural(more, 'more file')}.`] : lines;
};

/**
 * The report. Files that are left alone are reported to the model and the user; `failure` only to the user, and not
 * twice in a row.
 */
const report = (snapshot: WorktreeSnapshot, watch: CommitWatch, failure: string, done?: Done): HookReport => {
  const left = describeLeft(watch.agentChanges.tellLeft());
  const lines = [...(done === undefined ? [] : [done.line]), ...left];
  return {
    ...QUIET,
    commits: done === undefined ? [] : [done.commit],
    dirty: snapshot.changed.size > (done?.files ?? 0),
    note: lines.length === 0 ? '' : `[auto-commit] ${lines.join('\n')}`,
    warning: [watch.unlessRepeated(failure), ...left].filter((line) => line !== '').join('\n'),
  };
};

/** The agent's files that can be committed. The others are excluded with a reason. */
const candidates = async (
  repository: Repository,
  { agentChanges }: CommitWatch,
  snapshot: WorktreeSnapshot,
  formatted: readonly string[],
): Promise<readonly string[]> => {
  for (const file of formatted) {
    if (isWithin(file, snapshot.top))
      agentChanges.format(path.relative(snapshot.top, file), snapshot.changed);
  }
  agentChanges.notice(snapshot.changed);
  const names = agentChanges.ours();
  const reasons = await exclusions(repository, names);
  for (const [name, why] of reasons) agentChanges.exclude(name, why);
  return names.filter((name) => !reasons.has(name));
};

const NUMSTAT = ['diff-tree', '-r', '--numstat', '-z', '--no-renames', '--no-ext-diff', '--no-textconv'];

const isOn = (value: string | undefined): boolean => /^(true|yes|on|1)$/i.test(value ?? '');

const commitNames = async (
  repository: Repository,
  watch: CommitWatch,
  { signal, write }: HookContext,
  snapshot: WorktreeSnapshot,
  names: readonly string[],
  deadlineMs: number,
): Promise<HookReport> => {
  const lost = (why: string): HookReport =>
    report(
      snapshot,
      watch,
      `The changes were not committed: ${why}. They are committed with the next changes.`,
    );
  const prepared = await prepareTree(repository, snapshot, names);
  if (prepared.kind === 'lost') return lost(prepared.why);
  if (prepared.kind === 'same') return report(snapshot, watch, '');
  const change = parseStatistics(await repository.ask([...NUMSTAT, prepared.before, prepared.tree]));
  const diff = cutDiff(await patchOf(repository, prepared, DIFF_BYTES + 1));
  const message = await writeMessage({ names: change.files, diff, deadlineMs, signal, write });
  const outcome = await commitTree(repository, prepared, message);
  if (outcome.kind === 'lost') return lost(outcome.why);
  watch.agentChanges.commit(names);
  watch.expectCommit(outcome.hash);
  const [first = ''] = message.split('\n');
  const subject = `${oneLine(first)} (${statistics(change.files.length, change.insertions, change.deletions)})`;
  const unsigned = isOn(repository.config.get('commit.gpgsign')) ? ', not signed' : '';
  return report(snapshot, watch, '', {
    commit: { hash: outcome.hash, subject },
    line: `Your changes were committed to ${placeOf(snapshot.head)} as ${shortHash(outcome.hash)}${unsigned}: ${subject}`,
    files: names.length,
  });
};

/** Commits the candidates, or reports why not. */
const commitIn = async (
  repository: Repository,
  watch: CommitWatch,
  context: HookContext,
  formatted: readonly string[],
  deadlineMs: number,
): Promise<HookReport> => {
  const snapshot = await takeSnapshot(repository);
  const names = await candidates(repository, watch, snapshot, formatted);
  if (names.length === 0) return report(snapshot, watch, '');
  const why = await whyNotNow(repository, snapshot);
  if (why !== null) return report(snapshot, watch, `The changes were not committed: ${why}.`);
  if (names.length > FILES_MAX) {
    const many = `${names.length} files are too many for an automatic commit`;
    return report(
      snapshot,
      watch,
      `The changes were not committed: ${many}. Commit them, or ignore them (.gitignore).`,
    );
  }
  return commitNames(repository, watch, context, snapshot, names, deadlineMs);
};

/**
 * Runs the phase. `formatted`: real absolute paths of files that the formatters changed in this batch. Rejects if git
 * or the disk fails, or `context.signal` is aborted; the repository is then unchanged.
 */
export const commitTouched = async (
  watch: CommitWatch,
  context: HookContext,
  formatted: readonly string[],
  { messageDeadlineMs = MESSAGE_DEADLINE_MS }: CommitOptions = {},
): Promise<HookReport> => {
  const { workspace, signal } = context;
  const done = await useRepository(watch.place(workspace, signal), (repository) =>
    commitIn(repository, watch, context, formatted, messageDeadlineMs),
  );
  return done ?? QUIET;
};
