import type { Look } from './look.js';
import { type Movement, type NewCommit, placeOf, shortHash } from './movement.js';
import { plural, statistics } from './words.js';

/** What is told of new commits. */

/** A commit as it is shown: with its statistics. */
export const describeCommit = ({ hash, subject, files, insertions, deletions }: NewCommit) => ({
  hash,
  subject: `${subject} (${statistics(files.length, insertions, deletions)})`,
});

/** For the model: what became of HEAD between the calls and by them, and the commits that are new. */
export const noteOf = (between: Movement, within: Movement, look: Look): string => {
  const lines = [
    ...between.sentences.map((sentence) => `Between your calls, not by them: ${sentence}`),
    ...within.sentences,
  ];
  if (lines.length === 0) return '';
  const listed = within.commits.map(describeCommit);
  const more = within.count - listed.length;
  if (listed.length > 0) lines.push(`${plural(within.count, 'new commit')} on ${placeOf(look.head)}:`);
  lines.push(...listed.map(({ hash, subject }) => `  ${shortHash(hash)} ${subject}`));
  if (more > 0) lines.push(`  and ${more} more`);
  const { size } = look.changed;
  lines.push(size === 0 ? 'The working tree is clean.' : `${plural(size, 'file')} with uncommitted changes.`);
  return `[git] ${lines.join('\n')}`;
};

/** For the user: what is no longer on the branch, and commits that are not listed. */
export const warningOf = ({ lost, sentences, count, commits }: Movement): string =>
  [
    ...(lost ? sentences : []),
    ...(count > commits.length
      ? [`${count} new commits, of which the newest ${commits.length} are shown.`]
      : []),
  ].join(' ');
