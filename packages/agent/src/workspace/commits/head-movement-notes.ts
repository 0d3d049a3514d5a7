import { plural } from '../../platform/base/plural.js';
import type { Refs } from '../git/refs.js';
import { statistics } from '../printable-names.js';
import { type HeadChange, joinHeadChanges, type NewCommit, placeOf, shortHash } from './head-movement.js';

/** Notes and warnings about new commits. */

/** Who moved HEAD: the agent's calls, somebody else between them, or unknown because a check failed. */
export type HeadMover = 'calls' | 'others' | 'unknown';

export type HeadMove = { readonly by: HeadMover; readonly change: HeadChange };

/** A commit with statistics in its subject. */
export const describeCommit = ({ hash, subject, files, insertions, deletions }: NewCommit) => ({
  hash,
  subject: `${subject} (${statistics(files.length, insertions, deletions)})`,
});

const OPENINGS: Readonly<Record<HeadMover, string>> = {
  calls: '',
  others: 'Between your calls, not by them: ',
  unknown: 'Since the last check, by an unknown author: ',
};

/** The changes that the calls made. */
export const byCalls = (moved: readonly HeadMove[]): HeadChange =>
  joinHeadChanges(moved.flatMap(({ by, change }) => (by === 'calls' ? [change] : [])));

/**
 * The note for the model: how HEAD moved, by the calls and between them, and the commits of the calls. `changed`:
 * number of files with uncommitted changes; null if unknown.
 */
export const noteOf = (moved: readonly HeadMove[], { head }: Refs, changed: number | null): string => {
  const lines = moved.flatMap(({ by, change }) =>
    change.sentences.map((sentence) => `${OPENINGS[by]}${sentence}`),
  );
  if (lines.length === 0) return '';
  const { commits, count } = byCalls(moved);
  const listed = commits.map(describeCommit);
  const more = count - listed.length;
  if (listed.length > 0) lines.push(`${plural(count, 'new commit')} on ${placeOf(head)}:`);
  lines.push(...listed.map(({ hash, subject }) => `  ${shortHash(hash)} ${subject}`));
  if (more > 0) lines.push(`  and ${more} more`);
  if (changed === 0) lines.push('The working tree is clean.');
  else if (changed !== null) lines.push(`${plural(changed, 'file')} with uncommitted changes.`);
  return `[git] ${lines.join('\n')}`;
};

/** The warning for the user: commits that are no longer on the branch, and commits that are not listed. */
export const warningOf = ({ lost, sentences, count, commits }: HeadChange): string =>
  [
    ...(lost ? sentences : []),
    ...(count > commits.length
      ? [`${count} new commits, of which the newest ${commits.length} are shown.`]
      : []),
  ].join(' ');
