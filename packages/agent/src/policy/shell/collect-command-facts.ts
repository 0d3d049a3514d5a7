import type { ParsedCommand, ShellFacts } from '../../machine/call.js';
import { oddCharacter } from './ambiguous-characters.js';
import { isBuiltin } from './commands/builtins.js';
import { changesShell, meaningOf } from './commands/special-commands.js';
import type { Meaning, Words } from './commands/wrapper-commands.js';
import type { SimpleCommand } from './cursor.js';
import { type CommandStarts, commandStarts } from './grammar-command-starts.js';
import { plainStarts } from './plain-command-starts.js';
import { readCommands, type ShellReading } from './read-commands.js';

/**
 * Determines what a shell text would run.
 *
 * 1. Two readings must agree: ours, which knows how bash treats words, and that of a published grammar. For a plain
 *    text, plain-command-starts.ts replaces the grammar; tests ensure that both give the same result.
 * 2. A text that can't be read, is read differently, or takes too long, is unclear. Nothing is left out silently.
 */

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
const disagreementOf = async (text: string, commands: readonly SimpleCommand[]): Promise<string | null> => {
  const plain = plainStarts(text);
  const starts: CommandStarts = plain === null ? await commandStarts(text) : { kind: 'starts', at: plain };
  if (starts.kind === 'error') return starts.why;
  const own = new Set(commands.filter(({ words }) => words.length > 0).map(({ start }) => start));
  const agree = own.size === starts.at.size && [...own].every((start) => starts.at.has(start));
  return agree ? null : 'our reading and the shell grammar disagree about its commands';
};

const programOf = (name: string | null | undefined, { find, functions }: Collected): string | null =>
  name == null || isBuiltin(name) || functions.has(name) ? null : find(name);

type Patterns = readonly (string | null)[];

/** The patterns of a wrapped command's words, if these are the wrapper's words from `runs` on. */
const innerPatterns = (words: Words, inner: Words, { runs }: Meaning, patterns: Patterns): Patterns =>
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
const addWords = async (words: Words, patterns: Patterns, into: Collected, depth: number): Promise<void> => {
  if (depth > TEXTS_DEEP_MAX * 2) return doubt(into, 'commands run commands too deeply');
  const meaning = meaningOf(words);
  const runs = placesIn(meaning);
  into.commands.push({
    words,
    assignments: [],
    writes: [],
    ...withPatterns(patterns),
    program: programOf(words[0], into),
    wrapped: 'yes',
    ...runs,
  });
  await addMeaning(words, patterns, meaning, into, depth + 1);
};

const addSimple = async (command: SimpleCommand, into: Collected, depth: number): Promise<void> => {
  const words = command.words.map(({ text }) => text);
  const patterns = command.words.map(({ pattern }) => pattern ?? null);
  const meaning = meaningOf(words);
  const runs = placesIn(meaning);
  const assignments = command.assignments.map(({ raw }) => raw);
  const wrapped = depth > 0 ? ({ wrapped: 'yes' } as const) : {};
  into.commands.push({
    words,
    assignments,
    writes: command.writes,
    ...(command.appends.length === 0 ? {} : { appends: command.appends }),
    ...withPatterns(patterns),
    program: programOf(words[0], into),
    ...wrapped,
    ...runs,
  });
  if (command.assignments.some(({ name }) => changesShell(name)))
    doubt(into, 'it sets a variable that changes how the shell reads');
  await addMeaning(words, patterns, meaning, into, depth);
};

const addReading = async (
  reading: Extract<ShellReading, { kind: 'read' }>,
  into: Collected,
  depth: number,
): Promise<void> => {
  for (const name of reading.functions) into.functions.add(name);
  into.evaluates ||= reading.evaluates;
  into.quotesSubstitution ||= reading.quotesSubstitution;
  for (const command of reading.commands) await addSimple(command, into, depth);
};

const addText = async (text: string, into: Collected, depth: number): Promise<void> => {
  if (depth > TEXTS_DEEP_MAX || ++into.texts > TEXTS_MAX)
    return doubt(into, 'it holds texts within texts too deeply');
  const reading = readCommands(text);
  if (reading.kind === 'unclear') return doubt(into, reading.why);
  const disagreement = await disagreementOf(text, reading.commands);
  if (disagreement !== null) return doubt(into, disagreement);
  await addReading(reading, into, depth);
};

/** The commands that a shell text would run. No text makes it reject. */
export const shellFacts = async (text: string, find: FindProgram): Promise<ShellFacts> => {
  if (text.length > LENGTH_MAX)
    return { commands: [], unclear: `it is longer than ${LENGTH_MAX} characters` };
  const odd = oddCharacter(text);
  const into: Collected = {
    commands: [],
    functions: new Set(),
    find,
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
