/**
 * How the words of programs name the files that they delete or overwrite: arguments are sorted into
 * options, values and operands, and the rows of programs choose among them.
 *
 * Whether such a file exists, and whether git could restore it, is looked up where the call is
 * judged (packages/agent/src/policy/shell/unrecoverable-files.ts).
 */

import { listWords } from '../paths.js';

/**
 * A word that names files: a path, a pattern that expands to paths, or unknown before the command
 * runs.
 */
export type FileWord =
  | { readonly kind: 'path' | 'pattern'; readonly text: string }
  | { readonly kind: 'unknown' };

export type FileLoss =
  /**
   * The file, or everything in the folder, is deleted or overwritten. `isProduct`: what the program
   * makes, so it counts only if it is known to be there.
   */
  | { readonly kind: 'file'; readonly file: FileWord; readonly isProduct?: true }
  /** Each source is put at `to`, or into it if it is a folder. `moves`: the sources disappear. */
  | {
      readonly kind: 'copy';
      readonly sources: readonly FileWord[];
      readonly to: FileWord;
      readonly moves: boolean;
    };

/** The losses of one program, by the words after its name. */
export type ReadLosses = (words: readonly FileWord[]) => readonly FileLoss[];

/** The words after a program's name. */
export type Arguments = {
  /** Without their values. */
  readonly options: readonly string[];
  /** Values of options that take one, by the option's name. */
  readonly values: ReadonlyMap<string, readonly FileWord[]>;
  readonly operands: readonly FileWord[];
};

export const HERE: FileWord = { kind: 'path', text: '.' };
export const UNKNOWN: FileWord = { kind: 'unknown' };

/** The text of a word, empty if it is not known. */
export const fileText = (word: FileWord | undefined): string =>
  word === undefined || word.kind === 'unknown' ? '' : word.text;

/** Each of the files as a loss. */
export const fileLosses = (files: readonly FileWord[]): readonly FileLoss[] =>
  files.map((file) => ({ kind: 'file', file }));

/** `text`: the option without its value. `option`: the one of `valued` that it is. */
type ReadOption = {
  readonly text: string;
  readonly option?: string | undefined;
  readonly value?: string | undefined;
};

/**
 * Reads `-rtDIR`, `-rt`, `--suf=x`: GNU programs accept a beginning of a long option. A program
 * with names such as `-out` has no clusters of letters, and takes `--out` too.
 */
const readOption = (word: string, valued: readonly string[]): ReadOption => {
  const [name = '', value] = word.split(/=(.*)/s);
  const hasClusters = !valued.some((option) => /^-[^-]./.test(option));
  const isLong = name.startsWith('--');
  const option =
    (hasClusters ? undefined : [name, name.slice(1)].find((one) => valued.includes(one))) ??
    valued.find((one) => isLong && one.startsWith(name));
  if (isLong || option !== undefined) return { text: name, option, value };
  const letters = word.slice(1, hasClusters ? undefined : 2);
  const at = [...letters].findIndex((letter) => valued.includes(`-${letter}`)) + 1;
  if (at === 0) return { text: word };
  const rest = word.slice(at + 1);
  return { text: word.slice(0, at + 1), option: `-${word[at]}`, value: rest || undefined };
};

/** The name of the option of `valued` that takes the next word: `-t` in `-rt`, but not in `-tr`. */
export const valueOption = (word: string, valued: readonly string[]): string | undefined => {
  const { option, value } = readOption(word, valued);
  return value === undefined ? option : undefined;
};

/** Sorts the words; `withValue`: options that take a value. */
export const readArguments = (words: readonly FileWord[], withValue = ''): Arguments => {
  const valued = listWords(withValue);
  const options: string[] = [];
  const values = new Map<string, FileWord[]>();
  const operands: FileWord[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? UNKNOWN;
    if (word.kind !== 'path' || !/^-./.test(word.text)) {
      operands.push(word);
      continue;
    }
    if (word.text === '--') {
      operands.push(...words.slice(at + 1));
      break;
    }
    const { text, option, value } = readOption(word.text, valued);
    options.push(text);
    if (option === undefined) continue;
    const file = value === undefined ? words[++at] : ({ kind: 'path', text: value } as const);
    values.set(option, [...(values.get(option) ?? []), file ?? UNKNOWN]);
  }
  return { options, values, operands };
};

/** Whether one of these options is present: `-f` also in `-rf`, and a beginning of `--force`. */
export const hasOption = (args: Arguments, options: string): boolean =>
  args.options.some((word) =>
    listWords(options).some((option) =>
      word.startsWith('--') ? option.startsWith(word) : word.includes(option.slice(1)),
    ),
  );

/** The values of these options. */
export const listValues = ({ values }: Arguments, options: string): readonly FileWord[] =>
  listWords(options).flatMap((name) => values.get(name) ?? []);

/** Copies onto the last operand or the folder of `-t`. `moves`: the sources disappear. */
export const copies = (
  words: readonly FileWord[],
  moves: boolean,
  valued = '',
): readonly FileLoss[] => {
  const args = readArguments(words, `-t --target-directory -S --suffix ${valued}`);
  // a move that spares the target takes the sources away all the same
  if (!moves && hasOption(args, '-n --no-clobber') && !hasOption(args, '-f --force')) return [];
  const folder = listValues(args, '-t --target-directory').at(-1);
  const sources = folder === undefined ? args.operands.slice(0, -1) : args.operands;
  const to = folder ?? args.operands.at(-1);
  if (to === undefined) return [];
  // one word that becomes several: `mv notes.txt{,.old}`
  if (sources.length === 0) return to.kind === 'path' ? [] : fileLosses([to]);
  // `--parents` makes the folders of each source below `to`, so its place is not looked up
  const known = hasOption(args, '--parents') ? [UNKNOWN] : sources;
  return [{ kind: 'copy', sources: known, to, moves }];
};

/** Files that a program makes. */
export const products = (files: readonly (FileWord | undefined)[]): readonly FileLoss[] =>
  files.flatMap((file) =>
    file === undefined ? [] : [{ kind: 'file', file, isProduct: true } as const],
  );

/** Files whose names stand in a script: `print > "FILE"` of awk, `w FILE` of sed. */
export const productsInScript = (
  words: readonly FileWord[],
  pattern: RegExp,
): readonly FileLoss[] =>
  words.flatMap((word) =>
    word.kind === 'path'
      ? products([...word.text.matchAll(pattern)].map(([, text = '']) => ({ kind: 'path', text })))
      : [],
  );

/** Which words of a program name files that it deletes or overwrites. */
export type LossWords = {
  /** Every operand. The text has the options that take a value. */
  readonly operands?: string;
  /** The values of these options. */
  readonly writes?: string;
  /** The same, for what the program makes. */
  readonly makes?: string;
  /** The operand at this place is made: the second of `uniq IN OUT`, the last at -1. */
  readonly makesOperand?: { readonly at: number; readonly valued?: string };
};

/** The losses of a program, by the words after its name. */
export const lossesByWords = (
  { operands, writes, makes, makesOperand }: LossWords,
  words: readonly FileWord[],
): readonly FileLoss[] => {
  const named = (options: string) => listValues(readArguments(words, options), options);
  const { at = 0, valued } = makesOperand ?? {};
  const all = readArguments(words, operands ?? valued).operands;
  return [
    ...(operands === undefined ? [] : fileLosses(all)),
    ...(writes === undefined ? [] : fileLosses(named(writes))),
    ...(makes === undefined ? [] : products(named(makes))),
    // a single operand is the input, unless the output stands first
    ...(makesOperand === undefined || (all.length < 2 && at !== 0) ? [] : products([all.at(at)])),
  ];
};
