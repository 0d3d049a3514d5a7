/**
 * What is known of a program, as one row: what it runs, which files it overwrites, which options
 * are risky, what it reaches. The rows stand in the files beside this one; `findRow` in
 * program-table.ts finds them, and each question about a command asks there.
 *
 * A program without a row, or without a field, counts as harmless in that respect: interpreters,
 * build tools and scripts can write any file, and no text shows which.
 */

import type { ParsedCommand } from '../judged-call.js';
import { listWords, wordSet } from '../paths.js';
import type { LossWords, ReadLosses } from './file-losses.js';

/** The words of a command, the program first; null is a word that is known only when it runs. */
export type Words = ParsedCommand['words'];

/** What a command means beside its own words. */
export type Meaning = {
  /** Shell texts that it runs. */
  readonly texts?: readonly string[];
  /** Whether a shell other than bash may read the texts; absent: the shell that runs the command. */
  readonly isPosix?: boolean;
  /** Commands that it runs, as words. */
  readonly commands?: readonly Words[];
  /**
   * Index of the word at which the first of them begins: a rule that allows must name all words up
   * to there. The last word, if they stand in several places.
   */
  readonly startsAt?: number;
  /** Index of the word from which a command may stand, for rules that ask or deny. */
  readonly mayStartAt?: number;
  /** Why it can't be determined what it runs. */
  readonly unclear?: string;
  /** What it runs that stands in no text, such as a file; rules for its words still apply. */
  readonly indirect?: string;
  /** It evaluates names or arithmetic, which runs substitutions in the values of variables. */
  readonly evaluates?: true;
};

/** A program whose last words are another command. Lists of words are separated by blanks. */
export type Wrapper = {
  /** Options whose value is the next word. */
  readonly valued?: string;
  /**
   * Options that take no next word; `-x=` is one whose value may follow in the same word. Behind
   * one that stands in neither list the command may begin at any word, so it is unclear.
   */
  readonly flags?: string;
  /** Words before the command, besides options. */
  readonly before?: number;
  /**
   * Without a command it starts a shell, which reads its input: `always`, or with these options.
   */
  readonly shell?: string;
  /** The command must follow one of these words. */
  readonly after?: string;
};

/** Whether a word of a command is risky; `index`: its place among the words. */
export type IsRisky = (word: string, words: Words, index: number) => boolean;

/**
 * How far a command changes git folders. `write`: refs, the index and loose objects; `writePacks`:
 * packs of objects too.
 */
export type GitAccess = 'read' | 'write' | 'writePacks';

/** What a look at the workspace can tell about a command of the network. */
export type NetworkPlace = {
  /** Whether `npx` and its like find this program in the workspace or above. */
  readonly isInstalled: (program: string) => boolean;
  /** The addresses of the remotes of the workspace. */
  readonly remotes: () => readonly string[];
};

/** One row. Lists of words and options are separated by blanks. */
export type Program = {
  /** Other names that the row is about. */
  readonly alsoNamed?: RegExp;
  /** What it runs beside itself. */
  readonly runs?: Wrapper | ((words: Words) => Meaning);
  /** The files that it deletes or overwrites, by the words after its name. */
  readonly losses?: LossWords | ReadLosses;
  /** It deletes whole folders, or does so with these words. */
  readonly deletes?: 'always' | ((words: Words) => boolean);
  /**
   * Options with which it runs other programs or writes elsewhere. A rule that allows the program
   * does not allow them unless it names them.
   */
  readonly risky?: string | IsRisky;
  /** What it destroys for good beside files, as the reason to ask; null if nothing. */
  readonly destroys?: (words: Words) => string | null;
  /** How far it changes the repository: as git that it runs, its targets, task or script do. */
  readonly repository?: 'runsGit' | 'targets' | 'task' | 'script' | ((words: Words) => GitAccess);
  /** Words that do nothing without the network, or what it does there, in words. */
  readonly network?: string | ((words: Words, place: NetworkPlace) => string | null);
  /** Words that change the packages of the system. */
  readonly system?: string;
  /** Options that carry a message for people. */
  readonly messages?: RegExp;
  /** With these options alone it only passes on its input. */
  readonly filters?: RegExp;
} & (
  | {
      /** It only reads, but with a word that is risky or that names a file to write. */
      readonly reads: 'always';
      readonly harmless?: never;
    }
  | {
      /** Whether it only reads with these words. */
      readonly reads?: (words: readonly string[]) => boolean;
      /** Options that neither run nor write anything, if need be by the subcommand. */
      readonly harmless?: string | ((subcommand: string) => string | undefined);
    }
);

/** Rows by the names of the programs, which are separated by blanks. */
export type Rows = Readonly<Record<string, Program>>;

/**
 * Matches also `--out` and `--out=x` for `--output`: GNU programs accept unambiguous abbreviations.
 * So a list with `--exec-batch` needs no `--exec`.
 */
const isLong = (word: string, option: string): boolean => {
  const name = word.split('=')[0] ?? word;
  return name.length > 2 && option.startsWith(name);
};

/** Whether a word may be one of these options; `-x` also as `-abx` and `-xVALUE`. */
export const matchesOption = (word: string, list: string): boolean => {
  if (!word.startsWith('-')) return false;
  const options = listWords(list);
  if (word.startsWith('--')) return options.some((option) => isLong(word, option));
  const name = word.split('=')[0] ?? word;
  return options.some((option) =>
    option.length === 2 ? word.includes(option.slice(1)) : option === name,
  );
};

/** For programs whose options are whole words after one hyphen or two, as those of `go`. */
export const isWholeOption = (word: string, list: string): boolean =>
  wordSet(list).has(word.replace('--', '-').replace(/=.*/s, ''));

/** Whether an option is harmless; `-x` also in a cluster, `-n` as `-n5`, `-1` for any number. */
export const isHarmlessOption = (word: string, harmless: string): boolean => {
  const options = wordSet(harmless);
  return (
    options.has(word) ||
    options.has(word.split('=')[0] ?? word) ||
    (/^-[a-zA-Z]\d+$/.test(word) && options.has(word.slice(0, 2))) ||
    (/^-\d+$/.test(word) && options.has('-1')) ||
    (word.startsWith('-') && [...word.slice(1)].every((letter) => options.has(`-${letter}`)))
  );
};

/** Each word after the name is risky. */
export const anyWord: IsRisky = () => true;
