/**
 * Which files a command of git may write when it moves the working tree, as questions to git, so
 * that protected files among them are decided about before it starts.
 */

import { listWords } from '../paths.js';
import { hasGitOption, isOption, makesBranch, onlyUnstages } from './git-words.js';
import { optionTexts } from './meanings.js';

/**
 * Which files a command of git may write, as questions to git. `revisions`: `{}` in a question
 * stands for each of them; those that name no commit are left out. The answers are names.
 */
export type TreeMove = {
  readonly revisions: readonly string[];
  readonly questions: readonly (readonly string[])[];
};

const DIFF = listWords('diff --name-only --no-renames --no-ext-diff --no-textconv -z');
/** Files with changes that are not committed. */
const DIRTY = [...DIFF, 'HEAD'];
const TO_REVISION = [...DIFF, 'HEAD', '{}'];
/** Files that are not as the index, or a revision, has them. */
export const UNLIKE_INDEX = DIFF;
export const UNLIKE_REVISION = [...DIFF, '{}'];
const TRACKED = listWords('ls-files -z');
/** What a branch has changed since it left this one. */
const THEIR_CHANGES = [...DIFF, 'HEAD...{}'];
const OF_COMMIT = listWords('log --name-only --no-renames --format= -m -z --no-walk {}');
const OF_RANGE = listWords('log --name-only --no-renames --format= -m -z');
/** What a stash holds: changes, and files that git did not know. */
const STASHED = [[...DIFF, '{}^1', '{}'], listWords('ls-tree -r --full-tree --name-only -z {}^3')];

export type ReadMove = (
  operands: readonly string[],
  words: readonly string[],
) => TreeMove | 'unknown';

export const moveTo = (
  revisions: readonly string[],
  ...questions: readonly (readonly string[])[]
): TreeMove => ({ revisions, questions });
export const NO_MOVE: TreeMove = { revisions: [], questions: [] };

/** What moves to a branch may write. */
const toBranch = (words: readonly string[]): TreeMove['questions'] =>
  hasGitOption(words, '-f --force --discard-changes') ? [TO_REVISION, DIRTY] : [TO_REVISION];

export const readSwitch: ReadMove = (operands, words) =>
  hasGitOption(words, '--orphan') ? moveTo([], TRACKED) : moveTo(operands, ...toBranch(words));

/** To a branch, or paths: from a revision before them, or from the index. */
export const readCheckout: ReadMove = (operands, words) => {
  const dashes = words.indexOf('--');
  if (dashes === -1 && (operands.length < 2 || makesBranch(words)))
    return moveTo(operands, ...toBranch(words), [...DIFF, '--', ...operands]);
  const before =
    dashes === -1 ? 1 : words.slice(0, dashes).filter((word) => !isOption(word)).length;
  return moveTo(
    operands.slice(0, before),
    [...DIFF, '{}', '--', ...operands.slice(before)],
    [...DIFF, '--', ...operands],
  );
};

export const readMerge: ReadMove = (operands, words) => {
  if (words.includes('--abort')) return moveTo(['ORIG_HEAD'], TO_REVISION, DIRTY);
  if (hasGitOption(words, '--continue --quit')) return NO_MOVE;
  return moveTo(operands.length === 0 ? ['@{upstream}'] : operands, THEIR_CHANGES);
};

export const readRebase: ReadMove = (operands, words) => {
  if (words.includes('--quit')) return NO_MOVE;
  const goesOn = hasGitOption(words, '--continue --skip --abort');
  const revisions = goesOn ? ['ORIG_HEAD', 'REBASE_HEAD'] : operands;
  return moveTo(
    revisions.length === 0 ? ['@{upstream}'] : revisions,
    TO_REVISION,
    [...DIFF, '{}...HEAD'],
    ...(goesOn ? [DIRTY] : []),
  );
};

/** `cherry-pick` and `revert`: the changes of commits. */
export const readPick: ReadMove = (operands, words) => {
  if (words.includes('--quit')) return NO_MOVE;
  if (hasGitOption(words, '--continue --skip --abort'))
    return moveTo(['CHERRY_PICK_HEAD', 'REVERT_HEAD', 'ORIG_HEAD'], OF_COMMIT, DIRTY);
  const ranges = operands.filter((word) => word.includes('..'));
  const questions = ranges.map((range) => [...OF_RANGE, range]);
  return moveTo(operands, OF_COMMIT, ...questions);
};

export const readReset: ReadMove = (operands, words) =>
  hasGitOption(words, '--hard --merge --keep')
    ? moveTo(operands.length === 0 ? ['HEAD'] : operands, UNLIKE_REVISION)
    : NO_MOVE;

/** Without an action it is `push`, whose paths stand behind two dashes. */
export const readStash: ReadMove = (operands, [first = '--', ...words]) => {
  if (isOption(first) || first === 'push' || first === 'save') {
    const takesNew = hasGitOption([first, ...words], '-u -a --all --include-untracked');
    return moveTo([], DIRTY, ...(takesNew ? [listWords('ls-files --others -z')] : []));
  }
  if (!['pop', 'apply', 'branch'].includes(first)) return NO_MOVE;
  const name = operands[first === 'branch' ? 2 : 1] ?? '0';
  const entry = /^\d+$/.test(name) ? `stash@{${name}}` : name;
  return moveTo([entry], ...STASHED, ...(first === 'branch' ? [[...DIFF, 'HEAD', '{}^1']] : []));
};

/** By paths: files that are not as the index has them, or as a revision does. */
export const readRestore: ReadMove = (operands, words) => {
  if (onlyUnstages(words)) return NO_MOVE;
  const sources = optionTexts(words, '-s', '--source').map((text) => text ?? '');
  const isOfHead = sources.length === 0 && hasGitOption(words, '-S --staged');
  return moveTo(
    isOfHead ? ['HEAD'] : sources,
    [...DIFF, '--', ...operands],
    [...DIFF, '{}', '--', ...operands],
  );
};
