import { lstat } from 'node:fs/promises';
import path from 'node:path';
import type { HookContext, HookReport } from '../needs-hooks.js';
import { cutDiff, DIFF_BYTES, writeMessage } from './commit-message.js';
import { type CommitWatch, QUIET } from './commits.js';
import { type Repository, useRepository } from './git.js';
import { isWithin } from './locate.js';
import { type Look, lookAt } from './look.js';
import { commitTree, filtered, patchOf, prepareTree, whyNotNow } from './make-commit.js';
import { parseChange, placeOf, shortHash } from './movement.js';
import { oneLine, plural, statistics } from './words.js';

/**
 * AutoCommitting: one commit of what the agent changed.
 *
 * 1. Only files that are the agent's (see touched.ts) are committed, and of the user's nothing changes: neither
 *    files, nor what is staged, nor the configuration. No hook, filter or signature program runs.
 * 2. What is left out is said once, with the reason.
 * 3. It fails open: what could not be committed now stays the agent's, and is committed with the next batch.
 */

const MESSAGE_DEADLINE_MS = 20_000;
const FILES_MAX = 1_000;
const FILE_BYTES_MAX = 20 * 1024 * 1024;
const LEFT_SHOWN = 10;

export type CommitOptions = {
  /** How long the model may take for the message. */
  readonly messageDeadlineMs?: number;
};

/** A commit that was made: what the model is told, and how many changed files it holds. */
type Done = {
  readonly commit: HookReport['commits'][number];
  readonly line: string;
  readonly files: number;
};

type Left = { readonly name: string; readonly why: string };

/** Why a file is not committed by itself, by name. */
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

/** What was left is told to both, `failure` to the user, and that only if it is news. */
const report = (look: Look, watch: CommitWatch, failure: string, done?: Done): HookReport => {
  const left = describeLeft(watch.touched.tellLeft());
  const lines = [...(done === undefined ? [] : [done.line]), ...left];
  return {
    ...QUIET,
    commits: done === undefined ? [] : [done.commit],
    dirty: look.changed.size > (done?.files ?? 0),
    note: lines.length === 0 ? '' : `[auto-commit] ${lines.join('\n')}`,
    warning: [watch.news(failure), ...left].filter((line) => line !== '').join('\n'),
  };
};

/** The agent's changed files that can be committed. Those that can't are left, with the reason. */
const candidates = async (
  repository: Repository,
  { touched }: CommitWatch,
  look: Look,
  formatted: readonly string[],
): Promise<readonly string[]> => {
  for (const file of formatted) {
    if (isWithin(file, look.top)) touched.format(path.relative(look.top, file), look);
  }
  touched.notice(look);
  const names = touched.ours();
  const reasons = await exclusions(repository, names);
  for (const [name, why] of reasons) touched.exclude(name, why);
  return names.filter((name) => !reasons.has(name));
};

const NUMSTAT = ['diff-tree', '-r', '--numstat', '-z', '--no-renames', '--no-ext-diff', '--no-textconv'];

const isOn = (value: string | undefined): boolean => /^(true|yes|on|1)$/i.test(value ?? '');

const commitNames = async (
  repository: Repository,
  watch: CommitWatch,
  { signal, write }: HookContext,
  look: Look,
  names: readonly string[],
  deadlineMs: number,
): Promise<HookReport> => {
  const lost = (why: string): HookReport =>
    report(look, watch, `The changes were not committed: ${why}. They will be with the next ones.`);
  const prepared = await prepareTree(repository, look, names);
  if (prepared.kind === 'lost') return lost(prepared.why);
  if (prepared.kind === 'same') return report(look, watch, '');
  const change = parseChange(await repository.ask([...NUMSTAT, prepared.before, prepared.tree]));
  const diff = cutDiff(await patchOf(repository, prepared, DIFF_BYTES + 1));
  const message = await writeMessage({ names: change.files, diff, deadlineMs, signal, write });
  const outcome = await commitTree(repository, prepared, message);
  if (outcome.kind === 'lost') return lost(outcome.why);
  watch.touched.commit(names);
  watch.expect(outcome.hash);
  const [first = ''] = message.split('\n');
  const subject = `${oneLine(first)} (${statistics(change.files.length, change.insertions, change.deletions)})`;
  const unsigned = isOn(repository.config.get('commit.gpgsign')) ? ', not signed' : '';
  return report(look, watch, '', {
    commit: { hash: outcome.hash, subject },
    line: `Your changes were committed to ${placeOf(look.head)} as ${shortHash(outcome.hash)}${unsigned}: ${subject}`,
    files: names.length,
  });
};

/** The files to commit, or why there is nothing to do. */
const commitIn = async (
  repository: Repository,
  watch: CommitWatch,
  context: HookContext,
  formatted: readonly string[],
  deadlineMs: number,
): Promise<HookReport> => {
  const look = await lookAt(repository);
  const names = await candidates(repository, watch, look, formatted);
  if (names.length === 0) return report(look, watch, '');
  const why = await whyNotNow(repository, look);
  if (why !== null) return report(look, watch, `The changes were not committed: ${why}.`);
  if (names.length > FILES_MAX) {
    const many = `${names.length} files are too many for an automatic commit`;
    return report(
      look,
      watch,
      `The changes were not committed: ${many}. Commit them, or ignore them (.gitignore).`,
    );
  }
  return commitNames(repository, watch, context, look, names, deadlineMs);
};

/**
 * The phase. `formatted` are the real absolute paths of files that the formatters changed in this batch. Rejects
 * where git or the disk fail, or `context.signal` is aborted; nothing of the repository has changed then.
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
