/**
 * Which files a command of git may write when it moves the working tree, as questions to git, so
 * that protected files among them are decided about before it starts.
 */

import { listWords } from '../paths.js';
import { isOption } from './git-words.js';

/**
 * Which files a command of git may write, as questions to git. `revisions`: `{}` in a question
 * stands for each of them; those that name no commit are left out. The answers are names.
 */
export type TreeMove = {
  readonly revisions: readonly string[];
  readonly questions: readonly (readonly string[])[];
};

export const DIFF = listWords('diff --name-only --no-renames --no-ext-diff --no-textconv -z');
/** Files with changes that are not committed. */
const DIRTY = [...DIFF, 'HEAD'];
export const TO_REVISION = [...DIFF, 'HEAD', '{}'];
/** What a branch has changed since it left this one. */
const THEIR_CHANGES = [...DIFF, 'HEAD...{}'];
const OF_COMMIT = listWords('log --name-only --no-renames --format= -m -z --no-walk {}');
const OF_RANGE = listWords('log --name-only --no-renames --format= -m -z {}');
const STASHED = [...DIFF, '{}^1', '{}'];

export type ReadMove = (
  operands: readonly string[],
  words: readonly string[],
) => TreeMove | 'unknown';

export const moveTo = (
  revisions: readonly string[],
  ...questions: readonly (readonly string[])[]
): TreeMove => ({ revisions, questions });
export const NO_MOVE: TreeMove = { revisions: [], questions: [] };

export const readSwitch = (operands: readonly string[], words: readonly string[]): TreeMove => {
  const discards = words.some((word) => /^(?:-f|--force|--discard-changes)$/.test(word));
  return moveTo(operands, TO_REVISION, ...(discards ? [DIRTY] : []));
};

/** To a branch, or paths: from a revision before them, or from the index. */
export const readCheckout: ReadMove = (operands, words) => {
  const dashes = words.indexOf('--');
  const begins = words.some((word) => /^-[bBdtl]|^--(?:orphan|detach|track)/.test(word));
  if (dashes < 0 && (operands.length < 2 || begins)) {
    const move = readSwitch(operands, words);
    return moveTo(move.revisions, ...move.questions, [...DIFF, '--', ...operands]);
  }
  const [first, ...others] = operands;
  const count = words.slice(0, dashes).filter((word) => !isOption(word)).length;
  const isFirst = dashes < 0 || count > 0;
  const paths = isFirst ? others : operands;
  return isFirst && first !== undefined
    ? moveTo([first], [...DIFF, '{}', '--', ...paths], [...DIFF, '--', ...operands])
    : moveTo([], [...DIFF, '--', ...paths]);
};

export const readMerge: ReadMove = (operands, words) => {
  if (words.includes('--abort')) return moveTo(['ORIG_HEAD'], TO_REVISION, DIRTY);
  if (words.some((word) => /^--(?:continue|quit)$/.test(word))) return NO_MOVE;
  return moveTo(operands.length === 0 ? ['@{upstream}'] : operands, THEIR_CHANGES);
};

export const readRebase: ReadMove = (operands, words) => {
  const goesOn = words.some((word) => /^--(?:continue|skip|abort|quit)$/.test(word));
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
  if (words.some((word) => /^--(?:continue|skip|abort|quit)$/.test(word)))
    return moveTo(['CHERRY_PICK_HEAD', 'REVERT_HEAD', 'ORIG_HEAD'], OF_COMMIT, DIRTY);
  const ranges = operands.filter((word) => word.includes('..'));
  const questions = ranges.map((range) => [...OF_RANGE.slice(0, -1), range]);
  return moveTo(operands, OF_COMMIT, ...questions);
};

export const readReset: ReadMove = (operands, words) => {
  const movesFiles = words.some((word) => /^--(?:hard|merge|keep)$/.test(word));
  return movesFiles
    ? moveTo(operands.length === 0 ? ['HEAD'] : operands, [...DIFF, '{}'])
    : NO_MOVE;
};

export const readStash: ReadMove = ([action = 'push', name], words) => {
  const saves = /^(?:push|save)$/.test(action);
  if (!saves && !/^(?:pop|apply|branch)$/.test(action)) return NO_MOVE;
  if (saves) {
    const others = ['ls-files', '--others', '-z'];
    const takesNew = words.some((word) => /^(?:-u|-a|--all|--include-untracked)$/.test(word));
    return moveTo([], DIRTY, ...(takesNew ? [others] : []));
  }
  const entry = name === undefined || action === 'branch' ? 'stash@{0}' : name;
  return moveTo([/^\d+$/.test(entry) ? `stash@{${entry}}` : entry], STASHED);
};

/** Files that are not as the index has them, by paths. */
export const readRestore: ReadMove = (operands, words) => {
  const sources = words.flatMap((word, at) => {
    if (word.startsWith('--source=')) return [word.slice('--source='.length)];
    return word === '-s' || word === '--source' ? [words[at + 1] ?? ''] : [];
  });
  return words.includes('--staged') && !words.includes('--worktree')
    ? NO_MOVE
    : moveTo(sources, [...DIFF, '--', ...operands], [...DIFF, '{}', '--', ...operands]);
};
