/**
 * How git reads its words: its options before the command, those of a command, and paths that a
 * command takes back from the index or from HEAD.
 */

import type { ParsedCommand } from '../judged-call.js';
import { listWords, wordSet } from '../paths.js';
import { NOT_KNOWN } from './meanings.js';
import type { Words } from './program.js';

/** Git's own options whose value is the next word. */
const VALUED = wordSet(`
  -C -c --git-dir --work-tree --namespace --config-env --super-prefix --attr-source
  --shallow-file`);
/** Its other ones. */
const UNVALUED = wordSet(`
  -h --help -v --version -p --paginate -P --no-pager --exec-path --html-path --man-path --info-path
  --bare --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --literal-pathspecs
  --glob-pathspecs --noglob-pathspecs --icase-pathspecs --list-cmds`);

type GitOptions = {
  /** The values of `-c`. */
  readonly settings: readonly string[];
  /** Index of the subcommand. */
  readonly at: number;
  /** Why a setting, or where the subcommand is, can't be determined. */
  readonly unclear: string | undefined;
};

/** Reads what stands between `git` and its subcommand. */
export const readGitOptions = (words: Words): GitOptions => {
  const settings: string[] = [];
  let unclear: string | undefined;
  let at = 1;
  for (let word = words[at]; word?.startsWith('-'); word = words[at]) {
    const value = words[at + 1];
    const [option = ''] = word.split('=');
    if (!VALUED.has(option) && !UNVALUED.has(option))
      unclear ??= `the option ${option} of git is unknown`;
    if (option === '--config-env') unclear ??= 'git takes a setting from the environment';
    if (word === '-c' && value === null) unclear ??= `a setting of git is ${NOT_KNOWN}`;
    if (word === '-c' && value != null) settings.push(value);
    at += VALUED.has(word) ? 2 : 1;
  }
  return { settings, at, unclear };
};

/** The words after git's own options, beginning with its subcommand. */
export const gitCommand = (words: Words): Words => words.slice(readGitOptions(words).at);

/** Whether a word is an option. */
export const isOption = (word: string | null): boolean => word?.startsWith('-') === true;
/** The first word that is no option. */
export const firstOperand = (words: Words): string => words.find((word) => !isOption(word)) ?? '';

/**
 * Whether the words have one of these options. A word computed at run time counts as none. Git
 * accepts any beginning of a long option that fits no other one. `valued`: in a cluster, the letter
 * of an option and its value.
 */
export const hasGitOption = (
  words: Words,
  options: string,
  valued: RegExp | string = '',
): boolean =>
  words.some((word) => {
    if (word === null) return false;
    if (word.startsWith('--')) {
      const [name = ''] = word.split('=');
      return name.length > 2 && listWords(options).some((option) => option.startsWith(name));
    }
    return (
      /^-[a-zA-Z]+$/.test(word) &&
      listWords(options).some((one) => word.replace(valued, '').includes(one.slice(1)))
    );
  });

/** Whether the first operand may be one of these. One that is computed may be any. */
export const mayBegin = (words: Words, verbs: string): boolean => {
  const verb = words.find((word) => !isOption(word));
  return verb === null || listWords(verbs).includes(verb ?? '');
};

/** The words that are no options. */
export const listOperands = (words: Words): Words => words.filter((word) => !isOption(word));

/** A word that names no branch and no commit, so that git takes it for a path. */
const isSurePath = (word: string | null): boolean =>
  /^\.{1,2}(\/|$)|^\/|\/$|[*?[\\]|^:[/(!]/.test(word ?? '');

/** Whether words of `git checkout` surely name files: something after `--`, `.` or `:/`. */
export const hasPaths = (words: Words): boolean => {
  const end = words.indexOf('--');
  return (end !== -1 && end < words.length - 1) || listOperands(words).some(isSurePath);
};

/** Whether `git checkout` makes a branch: then no operand is a path. */
export const makesBranch = (words: Words): boolean =>
  hasGitOption(words, '-b -B -t -d --orphan --track --detach');

/** Whether `git restore` restores the index alone. */
export const onlyUnstages = (words: Words): boolean =>
  hasGitOption(words, '-S --staged', /s.*/) && !hasGitOption(words, '-W --worktree', /s.*/);

/** What is asked about a command of git: its words, and how git reads them. */
type GitWords = Pick<ParsedCommand, 'words' | 'readAs'>;

/** Paths that a command takes back from the index or from HEAD. */
export type PathRestore = {
  /** `:/` is the whole repository. */
  readonly paths: readonly string[];
  readonly from: 'index' | 'HEAD';
  /** The folder of `git -C FOLDER`, to which the paths are joined already. */
  readonly folder?: string;
};

/** Reads the options that change nothing else than where the paths come from; null for others. */
const readRestore = (words: readonly string[]): PathRestore | null => {
  const operands: string[] = [];
  let from: PathRestore['from'] = 'index';
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word === '--') {
      operands.push(...words.slice(at + 1));
      break;
    }
    if (listWords('-S --staged --source=HEAD').includes(word)) from = 'HEAD';
    else if ((word === '-s' || word === '--source') && words[at + 1] === 'HEAD') {
      from = 'HEAD';
      at++;
    } else if (word.startsWith('-') && !listWords('-q --quiet -W --worktree').includes(word))
      return null;
    else if (!word.startsWith('-')) operands.push(word);
  }
  return operands.length === 0 ? null : { paths: operands, from };
};

const QUIET = listWords('-q --quiet --no-progress');
const FORCED = listWords('-f --force');

/**
 * The paths of `git checkout`: what follows `--`, else its operands, if the first is surely a path.
 * With `-f` and no path, the whole repository. Null for other forms, and for commits but HEAD.
 */
const readCheckout = (words: readonly string[]): PathRestore | null => {
  const end = words.indexOf('--');
  const before = end === -1 ? words : words.slice(0, end);
  const options = before.filter((word) => word.startsWith('-'));
  const operands = before.filter((word) => !word.startsWith('-'));
  if (!options.every((option) => QUIET.includes(option) || FORCED.includes(option))) return null;
  const isFromHead = operands[0] === 'HEAD';
  const named = isFromHead ? operands.slice(1) : operands;
  const paths = end === -1 ? named : words.slice(end + 1);
  const from = isFromHead ? 'HEAD' : 'index';
  if (end !== -1) return paths.length === 0 || named.length > 0 ? null : { paths, from };
  if (paths.length > 0) return isSurePath(paths[0] ?? null) ? { paths, from } : null;
  const isForced = options.some((option) => FORCED.includes(option));
  return isForced ? { paths: [':/'], from: 'HEAD' } : null;
};

const HARD = listWords('--hard -q --quiet HEAD');

const joinPath = (folder: string, file: string): string =>
  folder === '' || file.startsWith('/') ? file : `${folder}/${file}`;

/** The folder of `git -C FOLDER`, empty without one; null if other options stand there. */
export const folderBefore = (words: readonly string[]): string | null => {
  let folder = '';
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (word === '-C') folder = joinPath(folder, words[++at] ?? '');
    else if (word !== '--no-pager' && word !== '-P') return null;
  }
  return folder;
};

/**
 * What `git restore PATH`, `git checkout PATH`, `git checkout HEAD PATH`, `git checkout .`, `git
 * checkout -f` and `git reset --hard` take back; null for every other command and form.
 */
export const pathRestore = ({ words: written, readAs = written }: GitWords): PathRestore | null => {
  const known = readAs.filter((word) => word !== null);
  if (known.length < readAs.length || known[0] !== 'git') return null;
  const { at } = readGitOptions(known);
  const [command, ...rest] = known.slice(at);
  const folder = folderBefore(known.slice(1, at));
  // patterns of git's own, and words with a meaning of their own
  if (folder === null || rest.some((word) => /^:|[*?[\\]/.test(word))) return null;
  const restored = readCommand(command, rest);
  if (restored === null || folder === '') return restored;
  const inFolder = (one: string): string => (one === ':/' ? one : joinPath(folder, one));
  return { ...restored, paths: restored.paths.map(inFolder), folder };
};

const readCommand = (command: string | undefined, rest: readonly string[]): PathRestore | null => {
  if (command === 'restore') return readRestore(rest);
  if (command === 'checkout') return readCheckout(rest);
  const isHard = rest.includes('--hard') && rest.every((word) => HARD.includes(word));
  return command === 'reset' && isHard ? { paths: [':/'], from: 'HEAD' } : null;
};
