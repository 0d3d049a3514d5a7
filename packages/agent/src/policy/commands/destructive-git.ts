import type { ParsedCommand } from '../../machine/call.js';
import { programName } from './command-patterns.js';

/** Git commands that irrecoverably discard work. Every preset asks about them. */

type Words = readonly (string | null)[];

const VALUED = new Set([
  '-C',
  '-c',
  '--git-dir',
  '--work-tree',
  '--namespace',
  '--exec-path',
  '--config-env',
  '--super-prefix',
]);

/** The words after git's own options, beginning with its subcommand. */
export const gitCommand = (words: Words): Words => {
  let at = 1;
  for (let word = words[at]; word?.startsWith('-'); word = words[at]) at += VALUED.has(word) ? 2 : 1;
  return words.slice(at);
};

/** Whether the words have an option. A word computed at run time may be it. */
const has = (words: Words, short: string, ...long: readonly string[]): boolean =>
  words.some((word) => {
    if (word === null || word === undefined) return false;
    if (word.startsWith('--'))
      return long.some((option) => word.length > 4 && option.startsWith(word.split('=')[0] ?? word));
    return short !== '' && /^-[a-zA-Z]+$/.test(word) && word.includes(short);
  });

const names = (words: Words): Words => {
  const end = words.indexOf('--');
  return (end < 0 ? words : words.slice(0, end)).filter((word) => word === null || !word.startsWith('-'));
};

const hasPaths = (words: Words): boolean => {
  const end = words.indexOf('--');
  return (end >= 0 && end < words.length - 1) || words.includes('.') || words.includes(':/');
};

const lost = 'changes that were not committed would be lost';
const judges: Readonly<Record<string, (words: Words) => string | null>> = {
  reset: (words) => (has(words, '', '--hard', '--merge', '--keep') ? lost : null),
  clean: (words) =>
    has(words, 'n', '--dry-run') || !(has(words, 'f', '--force') || words.includes(null))
      ? null
      : 'files that git does not know would be lost',
  checkout: (words) =>
    has(words, 'f', '--force') ||
    hasPaths(words) ||
    (names(words).length > 1 && !has(words, 'b', '--orphan') && !has(words, 'B', '--track'))
      ? lost
      : null,
  restore: (words) => (has(words, 'S', '--staged') && !has(words, 'W', '--worktree') ? null : lost),
  switch: (words) => (has(words, 'f', '--force', '--discard-changes') ? lost : null),
  stash: (words) => (words[0] === 'drop' || words[0] === 'clear' ? 'what was stashed would be lost' : null),
  branch: (words) =>
    has(words, 'D', '') || (has(words, 'd', '--delete') && has(words, 'f', '--force'))
      ? 'commits that are on no other branch would be lost'
      : null,
  push: (words) =>
    has(
      words,
      'f',
      '--force',
      '--force-with-lease',
      '--force-if-includes',
      '--mirror',
      '--prune',
      '--delete',
    ) ||
    has(words, 'd', '') ||
    words.some((word) => word !== null && /^(\+|:.)/.test(word))
      ? 'commits of others could be lost'
      : null,
  'filter-branch': () => 'it rewrites the history',
  'filter-repo': () => 'it rewrites the history',
  reflog: (words) =>
    words[0] === 'expire' || words[0] === 'delete' ? 'the way back to earlier commits would be lost' : null,
  gc: (words) =>
    words.some((word) => word?.startsWith('--prune')) && !words.includes('--prune=never')
      ? 'commits that nothing names would be lost'
      : null,
  prune: () => 'commits that nothing names would be lost',
  worktree: (words) => (words[0] === 'remove' && has(words, 'f', '--force') ? lost : null),
  'update-ref': (words) => (has(words, 'd', '--stdin') ? 'commits that nothing names would be lost' : null),
  'read-tree': (words) => (has(words, 'u', '--reset') ? lost : null),
  'checkout-index': (words) => (has(words, 'f', '--force') ? lost : null),
  rm: (words) => (has(words, 'f', '--force') ? lost : null),
};

/** What a git command would destroy; null if nothing. */
export const isDestructiveGit = ({ words }: Pick<ParsedCommand, 'words'>): string | null => {
  const [first] = words;
  if (first == null || programName(first) !== 'git') return null;
  const [command, ...rest] = gitCommand(words);
  if (command === null) return 'which command of git it is, is known only when it runs';
  return Object.hasOwn(judges, command ?? '') ? (judges[command ?? '']?.(rest) ?? null) : null;
};
