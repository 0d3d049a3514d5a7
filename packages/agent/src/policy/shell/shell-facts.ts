/**
 * Determines what a shell text would run.
 *
 * 1. Two readings must agree: ours, which knows how bash treats words, and that of a published
 *    grammar. For a plain text, `plainStarts` replaces the grammar; tests ensure that both give the
 *    same result.
 * 2. A text that can't be read, is read differently, or takes too long, is unclear. Nothing is left
 *    out silently.
 */

import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import type { ParsedCommand, ShellFacts } from '../judged-call.js';
import {
  changesShell,
  commandMeaning,
  isBuiltin,
  type Meaning,
  type Words,
} from './command-meanings.js';
import { type CommandStarts, commandStarts, plainStarts } from './command-starts.js';
import { completeCommands } from './known-values.js';
import { readCommands, type ShellReading } from './read-statements.js';
import type { SimpleCommand } from './read-words.js';

/** Maximum length of a text, in characters. */
const LENGTH_MAX = 20_000;
/** Texts within texts: `bash -c "bash -c …"`. */
const TEXTS_DEEP_MAX = 4;
const TEXTS_MAX = 30;

/** Absolute path of the program that a command of this name would start; null if there is none. */
export type FindProgram = (name: string) => string | null;

type Collected = {
  readonly commands: ParsedCommand[];
  readonly functions: Set<string>;
  readonly find: FindProgram;
  /** The value of SHELL that the command gets; null if it is not known. */
  readonly shell: string | null;
  texts: number;
  unclear: string | null;
  indirect: string | null;
  evaluates: boolean;
  quotesSubstitution: boolean;
};

const doubt = (into: Collected, why: string): void => {
  into.unclear ??= why;
};

/** Why the two readings disagree about where commands begin; null if they agree. */
const findDisagreement = async (
  text: string,
  commands: readonly SimpleCommand[],
): Promise<string | null> => {
  const plain = plainStarts(text);
  const starts: CommandStarts =
    plain === null ? await commandStarts(text) : { kind: 'starts', at: plain };
  if (starts.kind === 'error') return starts.why;
  const ours = new Set(commands.filter(({ words }) => words.length > 0).map(({ start }) => start));
  const agree = ours.size === starts.at.size && [...ours].every((start) => starts.at.has(start));
  return agree ? null : 'our reading and the shell grammar disagree about its commands';
};

const findProgram = (
  name: string | null | undefined,
  { find, functions }: Collected,
): string | null => (name == null || isBuiltin(name) || functions.has(name) ? null : find(name));

type Patterns = readonly (string | null)[];

/** The patterns of a wrapped command's words, if these are the wrapper's words from `runs` on. */
const innerPatterns = (
  words: Words,
  inner: Words,
  { runs }: Meaning,
  patterns: Patterns,
): Patterns =>
  runs === undefined || inner[0] !== words[runs] || /^(.*\/)?(find|fd|fdfind)$/.test(words[0] ?? '')
    ? []
    : patterns.slice(runs);

const withPatterns = (patterns: Patterns): Pick<ParsedCommand, 'patterns'> =>
  patterns.every((pattern) => pattern === null) ? {} : { patterns };

const addMeaning = async (
  words: Words,
  patterns: Patterns,
  meaning: Meaning,
  into: Collected,
  depth: number,
): Promise<void> => {
  if (meaning.unclear !== undefined) doubt(into, meaning.unclear);
  if (meaning.indirect !== undefined) into.indirect ??= meaning.indirect;
  if (meaning.evaluates) into.evaluates = true;
  for (const inner of meaning.commands ?? [])
    await addWords(inner, innerPatterns(words, inner, meaning, patterns), into, depth);
  for (const text of meaning.texts ?? []) await addText(text, into, depth + 1);
  const [name] = words;
  if (name != null && into.functions.has(name)) into.indirect ??= `${name} is a function`;
};

/** Where commands stand in the words. */
const placesIn = ({ runs, mayRun }: Meaning): Pick<ParsedCommand, 'runs' | 'mayRun'> => ({
  ...(runs === undefined ? {} : { runs }),
  ...(mayRun === undefined ? {} : { mayRun }),
});

/** Adds a command that another one runs. */
const addWords = async (
  words: Words,
  patterns: Patterns,
  into: Collected,
  depth: number,
): Promise<void> => {
  if (depth > TEXTS_DEEP_MAX * 2) return doubt(into, 'commands run commands too deeply');
  const meaning = commandMeaning(words);
  const runs = placesIn(meaning);
  into.commands.push({
    words,
    assignments: [],
    writes: [],
    ...withPatterns(patterns),
    program: findProgram(words[0], into),
    wrapped: 'yes',
    ...runs,
  });
  await addMeaning(words, patterns, meaning, into, depth + 1);
};

/**
 * `git branch NAME && git branch -D NAME`: the branch exists only since the command before, so no
 * commit is lost.
 */
const deletesNewBranch = (one: SimpleCommand, other: SimpleCommand): boolean => {
  if (other.flow !== 'and' || (one.flow !== 'always' && one.flow !== 'and')) return false;
  const [made, deleted] = [one, other].map(({ words }) => words.map(({ text }) => text));
  const [git, branch, name, ...more] = made ?? [];
  if (git !== 'git' || branch !== 'branch' || name == null || more.length > 0) return false;
  if (one.assignments.length + other.assignments.length > 0 || name.startsWith('-')) return false;
  return deleted?.length === 4 && deleted.join('\n') === ['git', 'branch', '-D', name].join('\n');
};

const addSimple = async (
  command: SimpleCommand,
  into: Collected,
  depth: number,
  more: Pick<ParsedCommand, 'undoes'>,
): Promise<void> => {
  const words = command.words.map(({ text }) => text);
  const patterns = command.words.map(({ pattern }) => pattern ?? null);
  const meaning = commandMeaning(words);
  const runs = placesIn(meaning);
  const assignments = command.assignments.map(({ raw }) => raw);
  const wrapped = depth > 0 ? ({ wrapped: 'yes' } as const) : {};
  into.commands.push({
    words,
    assignments,
    writes: command.writes,
    ...(command.appends.length === 0 ? {} : { appends: command.appends }),
    ...withPatterns(patterns),
    program: findProgram(words[0], into),
    ...wrapped,
    ...runs,
    ...more,
  });
  if (command.assignments.some(({ name }) => changesShell(name)))
    doubt(into, 'it sets a variable that changes how the shell reads');
  await addMeaning(words, patterns, meaning, into, depth);
};

const addReading = async (
  reading: Extract<ShellReading, { kind: 'read' }>,
  text: string,
  into: Collected,
  depth: number,
): Promise<void> => {
  for (const name of reading.functions) into.functions.add(name);
  into.evaluates ||= reading.evaluates;
  into.quotesSubstitution ||= reading.quotesSubstitution;
  const environment = depth === 0 && into.shell !== null ? { SHELL: into.shell } : {};
  const commands = into.functions.size === 0 ? completeCommands(reading, text, environment) : null;
  for (const [index, command] of (commands ?? reading.commands).entries()) {
    const previous = commands?.[index - 1];
    const undoes = previous !== undefined && deletesNewBranch(previous, command);
    await addSimple(command, into, depth, undoes ? { undoes: 'previous' } : {});
  }
};

const addText = async (text: string, into: Collected, depth: number): Promise<void> => {
  if (depth > TEXTS_DEEP_MAX || ++into.texts > TEXTS_MAX)
    return doubt(into, 'it holds texts within texts too deeply');
  const reading = readCommands(text);
  if (reading.kind === 'unclear') return doubt(into, reading.why);
  const disagreement = await findDisagreement(text, reading.commands);
  if (disagreement !== null) return doubt(into, disagreement);
  await addReading(reading, text, into, depth);
};

/**
 * The commands that a shell text would run. No text makes it reject. `shell`: the value of SHELL
 * that it runs with.
 */
export const shellFacts = async (
  text: string,
  find: FindProgram,
  shell: string | null = null,
): Promise<ShellFacts> => {
  if (text.length > LENGTH_MAX)
    return { commands: [], unclear: `it is longer than ${LENGTH_MAX} characters` };
  const odd = oddCharacter(text);
  const into: Collected = {
    commands: [],
    functions: new Set(),
    find,
    shell,
    texts: 0,
    unclear: odd === null ? null : `it has ${odd}`,
    indirect: null,
    evaluates: false,
    quotesSubstitution: false,
  };
  await addText(text, into, 0);
  if (into.evaluates && into.quotesSubstitution)
    doubt(into, 'it evaluates a text that may hold a substitution');
  if (into.evaluates) into.indirect ??= 'it evaluates arithmetic or names of variables';
  if (into.functions.size > 0) into.indirect ??= 'it defines a function';
  const { commands, unclear, indirect } = into;
  return { commands, unclear, ...(indirect === null ? {} : { indirect }) };
};

/** Characters that people, grammars and bash may read differently. */

const ODD: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/[^\P{Cc}\t\n]/u, 'a control character'],
  [/[^\P{Zs} ]/u, 'a space that bash treats as a letter'],
  [/[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}]/u, 'an invisible character'],
  [/\p{Surrogate}/u, 'half of a character'],
];

/** Emoji may contain invisible characters that join and colour them. Those are allowed. */
const EMOJI = /\p{Extended_Pictographic}[\u{fe0f}\u{200d}]*/gu;

const codePoint = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Describes the first such character; null if there is none. */
const oddCharacter = (text: string): string | null => {
  const plain = text.replace(EMOJI, '');
  for (const [pattern, name] of ODD) {
    const match = pattern.exec(plain);
    if (match !== null) return `${name} (${codePoint(match[0])})`;
  }
  return null;
};

/**
 * Finds the file that a shell would start, also in the workspace, so that it can be shown and
 * judged.
 */

const isRunnable = (file: string): boolean => {
  try {
    if (!statSync(file).isFile()) return false;
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false; // missing or not executable: a shell would continue its search
  }
};

/** The path by which it is found; its real path if a symlink leads into the workspace. */
const visiblePath = (file: string, workspace: string): string => {
  const real = realpathSync(file);
  return `${real}/`.startsWith(`${workspace}/`) ? real : file;
};

/** Searches the folders of `searchPath`, relative ones below the workspace. Caches its results. */
export const commandFinder = (searchPath: string, workspace: string): FindProgram => {
  const folders = searchPath.split(path.delimiter).map((folder) => path.resolve(workspace, folder));
  const programs = new Map<string, string | null>();
  return (name) => {
    const known = programs.get(name);
    if (known !== undefined) return known;
    const files = name.includes('/')
      ? [path.resolve(workspace, name)]
      : folders.map((folder) => path.join(folder, name));
    const file = name === '' ? undefined : files.find(isRunnable);
    const program = file === undefined ? null : visiblePath(file, workspace);
    programs.set(name, program);
    return program;
  };
};
