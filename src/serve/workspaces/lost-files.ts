import { createHash } from 'node:crypto';
import path from 'node:path';
import { collectPastFiles } from '../../agent/collect-past-files.js';
import { isWithin } from '../../files/is-within.js';
import { openRegular } from '../../files/regular-file.js';
import type { Entry } from '../../ports/journal.js';
import { attempt } from '../../runtime/attempt.js';

/** What a session loses with its worktree, from its journal. */

export type PastWork = {
  /** sha256 of the files that its tools read or wrote, by real path. */
  readonly seen: ReadonlyMap<string, string>;
  /** The commits that were found after its calls, the oldest first. */
  readonly commits: readonly string[];
};

/** Reads the entries up to `last`. */
export const collectPastWork = async (entries: AsyncIterable<Entry>, last: number): Promise<PastWork> => {
  const files = collectPastFiles();
  const commits: string[] = [];
  if (last > 0)
    for await (const { seq, event } of entries) {
      files.see(event);
      if (event.type === 'HookCompleted') commits.push(...event.commits.map(({ hash }) => hash));
      if (seq >= last) break;
    }
  return { seen: files.past().seen, commits };
};

const FILE_BYTES_MAX = 64 * 1024 * 1024;

const hashOf = async (file: string): Promise<string | null> => {
  const read = await attempt(async () => {
    const { file: opened, status } = await openRegular(file);
    try {
      return status.size > FILE_BYTES_MAX
        ? null
        : createHash('sha256')
            .update(await opened.readFile())
            .digest('hex');
    } finally {
      await opened.close();
    }
  });
  return read.kind === 'done' ? read.value : null;
};

/** The files of the worktree that are not as the session last saw them, relative to it and sorted. */
export const lostFiles = async ({ seen }: PastWork, worktree: string): Promise<readonly string[]> => {
  const lost: string[] = [];
  for (const [file, sha256] of seen) {
    if (!isWithin(file, worktree) || (await hashOf(file)) === sha256) continue;
    lost.push(path.relative(worktree, file));
  }
  return lost.toSorted();
};

const LISTED_MAX = 100;

/** What the model is told before the next input. */
export const moveNotice = (commit: string, lost: readonly string[]): string => {
  const names = lost.slice(0, LISTED_MAX).map((name) => `- ${JSON.stringify(name).slice(1, -1)}`);
  const more = lost.length > LISTED_MAX ? [`- and ${lost.length - LISTED_MAX} more`] : [];
  return [
    `[The workspace was lost. It is now a fresh worktree at commit ${commit.slice(0, 12)}, at the same path.`,
    lost.length === 0
      ? 'No file that you read or wrote with a tool is lost.'
      : 'These files are not as you last saw them, since their changes were not committed:',
    ...names,
    ...more,
    'Files that only commands wrote, and ignored files such as installed packages, are not listed and are gone too. Read files again before you rely on them.]',
  ].join('\n');
};
