/**
 * Determines what a shell text would run, for the rules that judge it.
 *
 * 1. Two parsers must agree: ours, which knows how bash treats words, and a published grammar
 *    (grammar.ts). For a plain text, `plainStarts` replaces the grammar; tests ensure that both
 *    give the same result.
 * 2. A text is unclear if it can't be known what it runs: it can't be parsed, the parsers
 *    disagree, parsing takes too long, its words have odd characters, … The policy asks the user.
 * 3. A text is indirect if it surely runs these commands, but also something that stands in no
 *    text, such as a file. Then rules that ask or deny hold, and no rule allows it.
 *
 * For `FOO=1 npm test && bash -c "rm a"` the facts are the commands `npm test`, `bash -c "rm a"`
 * and `rm a`.
 *
 * From top to bottom: `shellFacts`, which collects the commands; odd characters; the file that a
 * shell would start; and the second parser, for plain texts. Words whose value stands in the same
 * text are completed in known-values.ts; command-facts.ts adds what the words do not say. The parts
 * of a command that was read (`SimpleCommand`) are explained in read-words.ts, what a program does
 * with its words (`Meaning`) in programs/program.ts.
 */

import { constants } from 'node:fs';
import path from 'node:path';
import { followStatus, isWithin, mayAccess, realPath } from '../../platform/files.js';
import type { ParsedCommand, ShellFacts } from '../judged-call.js';
import type { Meaning, Words } from '../programs/program.js';
import { commandMeaning, findRow, isBuiltin } from '../programs/program-table.js';
import { changesShell } from '../programs/shells.js';
import { type CommandStarts, commandStarts } from './grammar.js';
import { completeCommands } from './known-values.js';
import { readCommands, type ShellReading } from './read-statements.js';
import { changesFolder, type SimpleCommand } from './read-words.js';

type Reading = Extract<ShellReading, { kind: 'read' }>;

/** Levels of texts within texts: `bash -c "bash -c …"`. */
const LEVELS_MAX = 4;
const TEXTS_MAX = 30;

/** Absolute path of the program that a command of this name would start; null if there is none. */
export type ShellLookup = (name: string) => string | null;

/** The facts collected so far. */
type Collected = {
  readonly commands: ParsedCommand[];
  /** Functions that the text defines. */
  readonly functions: Set<string>;
  readonly find: ShellLookup;
  /** The value of SHELL that the command gets; null: unknown. */
  readonly shell: string | null;
  /** The folder in which the text begins; null: unknown. */
  readonly workspace: string | null;
  /** Texts that were read, for TEXTS_MAX. */
  texts: number;
  /** A shell other than bash may read the text that is being added. */
  isPosix: boolean;
  /** Why it can't be determined what the text runs. */
  unclear: string | null;
  /** It runs something that is not among the commands: a file, a function. */
  indirect: string | null;
  /** It evaluates arithmetic or names, which runs substitutions in the values of variables. */
  evaluates: boolean;
  /** Something before may change values that are assigned later (`changesLaterValues`). */
  changesValues: boolean;
  /** It holds the text of a substitution in quotes, which runs only if the text is evaluated. */
  quotesSubstitution: boolean;
};

/**
 * The commands that a shell text would run. Rejects only if the grammar can't be loaded. `shell`:
 * the value of SHELL that it runs with. `workspace`: the folder in which it begins.
 */
export const shellFacts = async (
  text: string,
  find: ShellLookup,
  shell: string | null = null,
  workspace: string | null = null,
): Promise<ShellFacts> => {
  const odd = oddCharacter(text);
  const collected: Collected = {
    commands: [],
    functions: new Set(),
    find,
    shell,
    workspace,
    texts: 0,
    isPosix: false,
    unclear: odd === null ? null : `it has ${odd}`,
    indirect: null,
    evaluates: false,
    changesValues: false,
    quotesSubstitution: false,
  };
  await addText(text, collected, 0);
  if (collected.evaluates && collected.quotesSubstitution)
    setUnclear(collected, 'it evaluates a text that may hold a substitution');
  if (collected.evaluates) collected.indirect ??= 'it evaluates arithmetic or names of variables';
  if (collected.functions.size > 0) collected.indirect ??= 'it defines a function';
  const { commands, unclear, indirect } = collected;
  return { commands, unclear, ...(indirect === null ? {} : { indirect }) };
};

const setUnclear = (collected: Collected, why: string): void => {
  collected.unclear ??= why;
};

/**
 * Adds the commands of a shell text. `depth`: 0 for the text of the call; one more for each text or
 * command around it.
 */
const addText = async (text: string, collected: Collected, depth: number): Promise<void> => {
  if (depth > LEVELS_MAX || ++collected.texts > TEXTS_MAX)
    return setUnclear(collected, 'it holds too many texts within texts, or too deeply');
  const reading = readCommands(text);
  if (reading.kind === 'unclear') return setUnclear(collected, reading.why);
  if (collected.isPosix && reading.isBashOnly)
    return setUnclear(collected, 'sh reads its text differently from bash');
  const disagreement = await findDisagreement(text, reading.commands);
  if (disagreement !== null) return setUnclear(collected, disagreement);
  await addReading(reading, text, collected, depth);
};

/** Adds what our reading of a text has found. */
const addReading = async (
  reading: Reading,
  text: string,
  collected: Collected,
  depth: number,
): Promise<void> => {
  for (const name of reading.functions) collected.functions.add(name);
  collected.evaluates ||= reading.evaluates;
  collected.quotesSubstitution ||= reading.quotesSubstitution;
  collected.changesValues ||= reading.commands.some((one) => changesLaterValues(one, text));
  const commands = withKnownValues(reading, text, collected, depth);
  for (const [index, command] of commands.entries()) {
    const previous = collected.functions.size === 0 ? commands[index - 1] : undefined;
    const undoes = previous !== undefined && deletesNewBranch(previous, command);
    const name = command.words[0]?.text ?? '';
    const isFiltering = !reading.hasCompound && isFilter(command, findRow(name)?.filters);
    const from = collected.commands.length;
    await addSimple(command, collected, depth, {
      ...(undoes ? { undoes: 'previous' } : {}),
      ...(isFiltering ? { filters: 'yes' } : {}),
    });
    const { folder } = command;
    const added = collected.commands.slice(from);
    if (folder !== undefined && !changesFolder(added))
      collected.commands.splice(from, added.length, ...added.map((one) => ({ folder, ...one })));
  }
};

/** The commands with the values of words that stand in the text (known-values.ts). */
const withKnownValues = (
  reading: Reading,
  text: string,
  collected: Collected,
  depth: number,
): readonly SimpleCommand[] => {
  if (!/[$`~]/.test(text)) return reading.commands;
  const { shell, workspace, functions } = collected;
  // an inner text may run after the outer one has changed SHELL
  const environment = depth === 0 && shell !== null ? { SHELL: shell } : {};
  const beginning = { environment, workspace, hasFunctions: functions.size > 0 };
  const { changesValues } = collected;
  const commands = completeCommands(reading, text, { ...beginning, changesValues });
  if (changesValues || !commands.some((one) => changesLaterValues(one, text))) return commands;
  // a value has shown it: `E=trap; $E …`
  collected.changesValues = true;
  return completeCommands(reading, text, { ...beginning, changesValues: true });
};

/**
 * Whether a command may change values that are assigned later, or keep them from it: by a trap, an
 * attribute of a variable (`declare -l`, `readonly`), an evaluated text, which may do either, or a
 * variable that is named when it runs (`?`), which may be IFS. It may stand behind `command`,
 * `builtin` or `time`.
 */
const changesLaterValues = ({ words }: SimpleCommand, text: string): boolean => {
  const names = words.map(({ text: known, start, end }) => {
    const raw = text.slice(start, end);
    return known ?? (/^\w+=/.test(raw) ? raw.replace(/=.*/s, '=') : '?');
  });
  const command = names.join(' ').replace(/^((command|builtin|time|-[\w-]*) )*/, '');
  return (
    /^((trap|eval|readonly) |(declare|typeset|local) .*[-+?])/.test(command) ||
    /^(export|getopts|mapfile|printf -v|read|readarray) .*\?/.test(command)
  );
};

/**
 * Whether a command only passes on its input, or a here-document: it reads and writes no file.
 * `harmless`: matches the words of its program that do so, each behind a blank: ` tail -3`.
 */
const isFilter = ({ words, reads, writes }: SimpleCommand, harmless: RegExp | undefined): boolean =>
  harmless?.test(words.map(({ text }) => ` ${text ?? '?'}`).join('')) === true &&
  reads !== 'a text or file' &&
  writes.length === 0;

/** Adds a command that stands in the text itself. */
const addSimple = async (
  command: SimpleCommand,
  collected: Collected,
  depth: number,
  flags: Pick<ParsedCommand, 'undoes' | 'filters'>,
): Promise<void> => {
  const words = command.words.map(({ text }) => text);
  const patterns = command.words.map(({ pattern }) => pattern ?? null);
  const meaning = commandMeaning(words);
  const places = placesIn(meaning);
  const assignments = command.assignments.map(({ raw }) => raw);
  const wrapped = depth > 0 ? ({ wrapped: 'yes' } as const) : {};
  collected.commands.push({
    words,
    assignments,
    writes: command.writes,
    ...(command.appends.length === 0 ? {} : { appends: command.appends }),
    ...(command.readsFrom.length === 0 ? {} : { readsFrom: command.readsFrom }),
    ...withPatterns(patterns),
    program: programOf(words[0], collected),
    ...wrapped,
    ...places,
    ...flags,
  });
  if (command.assignments.some(({ name }) => changesShell(name)))
    setUnclear(collected, 'it sets a variable that changes how the shell reads');
  await addMeaning(words, patterns, meaning, collected, depth);
};

/** For each word the file pattern that it is, or null. */
type Patterns = readonly (string | null)[];

/** Adds a command that another one runs. */
const addWords = async (
  words: Words,
  patterns: Patterns,
  collected: Collected,
  depth: number,
): Promise<void> => {
  // each command in a command adds a level, too
  if (depth > LEVELS_MAX * 2) return setUnclear(collected, 'commands run commands too deeply');
  const meaning = commandMeaning(words);
  const places = placesIn(meaning);
  collected.commands.push({
    words,
    assignments: [],
    writes: [],
    ...withPatterns(patterns),
    program: programOf(words[0], collected),
    wrapped: 'yes',
    ...places,
  });
  await addMeaning(words, patterns, meaning, collected, depth + 1);
};

/** Adds the commands and texts that a command runs. */
const addMeaning = async (
  words: Words,
  patterns: Patterns,
  meaning: Meaning,
  collected: Collected,
  depth: number,
): Promise<void> => {
  if (meaning.unclear !== undefined) setUnclear(collected, meaning.unclear);
  if (meaning.indirect !== undefined) collected.indirect ??= meaning.indirect;
  if (meaning.evaluates) collected.evaluates = true;
  // for what it runs; afterwards the shell of this text goes on
  const { isPosix } = collected;
  collected.isPosix = meaning.isPosix ?? isPosix;
  for (const inner of meaning.commands ?? [])
    await addWords(inner, innerPatterns(words, inner, meaning, patterns), collected, depth);
  for (const text of meaning.texts ?? []) await addText(text, collected, depth + 1);
  collected.isPosix = isPosix;
  const [name] = words;
  if (name != null && collected.functions.has(name)) collected.indirect ??= `${name} is a function`;
};

/** The file of a program; null for builtins, functions and names that are not known. */
const programOf = (
  name: string | null | undefined,
  { find, functions }: Collected,
): string | null => (name == null || isBuiltin(name) || functions.has(name) ? null : find(name));

/** The positions of further commands in the words. */
const placesIn = ({ startsAt, mayStartAt }: Meaning): Pick<ParsedCommand, 'runs' | 'mayRun'> => ({
  ...(startsAt === undefined ? {} : { runs: startsAt }),
  ...(mayStartAt === undefined ? {} : { mayRun: mayStartAt }),
});

/**
 * The patterns of a wrapped command's words, if these are the wrapper's words from `startsAt` on.
 * Those of `find` and `fd` are not: they end before the last word.
 */
const innerPatterns = (
  words: Words,
  inner: Words,
  { startsAt }: Meaning,
  patterns: Patterns,
): Patterns =>
  startsAt === undefined ||
  inner[0] !== words[startsAt] ||
  /^(.*\/)?(g?find|fd|fdfind)$/.test(words[0] ?? '')
    ? []
    : patterns.slice(startsAt);

const withPatterns = (patterns: Patterns): Pick<ParsedCommand, 'patterns'> =>
  patterns.join('') === '' ? {} : { patterns };

/**
 * `git branch NAME && git branch -D NAME`: the branch exists only since the command before, so no
 * commit is lost.
 */
const deletesNewBranch = (previous: SimpleCommand, command: SimpleCommand): boolean => {
  if (command.flow !== 'and') return false;
  if (previous.flow !== 'always' && previous.flow !== 'and') return false;
  if (previous.assignments.length + command.assignments.length > 0) return false;
  const [git, branch, name, ...rest] = previous.words.map(({ text }) => text);
  if (git !== 'git' || branch !== 'branch' || rest.length > 0) return false;
  if (name == null || name.startsWith('-')) return false;
  const deletion = ['git', 'branch', '-D', name];
  return (
    command.words.length === deletion.length &&
    command.words.every(({ text }, index) => text === deletion[index])
  );
};

/** Why the two parsers disagree about where commands begin; null if they agree. */
const findDisagreement = async (
  text: string,
  commands: readonly SimpleCommand[],
): Promise<string | null> => {
  const quick = plainStarts(text);
  const starts: CommandStarts =
    quick === null ? await commandStarts(text) : { kind: 'starts', at: quick };
  if (starts.kind === 'error') return starts.why;
  const ours = new Set(commands.filter(({ words }) => words.length > 0).map(({ start }) => start));
  const agree = ours.size === starts.at.size && [...ours].every((start) => starts.at.has(start));
  return agree ? null : 'our reading and the shell grammar disagree about its commands';
};

// ---- Characters that people, grammars and bash may read differently ----

const ODD: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/(?![\t\n])\p{Cc}/u, 'a control character'],
  [/(?! )\p{Zs}/u, 'a space that bash treats as a letter'],
  [/[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}]/u, 'an invisible character'],
  [/\p{Surrogate}/u, 'half of a character'],
];

/** Emoji may contain invisible characters that join and colour them. Those are allowed. */
const EMOJI = /\p{Extended_Pictographic}[\u{fe0f}\u{200d}]*/gu;

const codePoint = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Describes the first such character; null if there is none. */
const oddCharacter = (text: string): string | null => {
  const withoutEmoji = text.replace(EMOJI, '');
  for (const [pattern, name] of ODD) {
    const match = pattern.exec(withoutEmoji);
    if (match !== null) return `${name} (${codePoint(match[0])})`;
  }
  return null;
};

// ---- The file that a shell would start, so that it can be shown and judged ----

/** Else a shell continues its search. */
const isRunnable = (file: string): boolean =>
  followStatus(file)?.isFile() === true && mayAccess(file, constants.X_OK);

/** The path by which a program is found; its real path if a symlink leads into the workspace. */
const visiblePath = (file: string, workspace: string): string => {
  const real = realPath(file) ?? file; // it may be gone by now
  return isWithin(real, workspace) ? real : file;
};

/** Searches the folders of `searchPath`, relative ones below the workspace. Caches its results. */
export const commandFinder = (searchPath: string, workspace: string): ShellLookup => {
  const folders = searchPath.split(path.delimiter).map((folder) => path.resolve(workspace, folder));
  const programs = new Map<string, string | null>();
  return (name) => {
    const cached = programs.get(name);
    if (cached !== undefined) return cached;
    const files = name.includes('/')
      ? [path.resolve(workspace, name)]
      : folders.map((folder) => path.join(folder, name));
    const file = name === '' ? undefined : files.find(isRunnable);
    const program = file === undefined ? null : visiblePath(file, workspace);
    programs.set(name, program);
    return program;
  };
};

/*
 * ---- Where commands begin, by the second parser ----
 *
 * It shares no code with ours (read-statements.ts), so that the two check each other: a scan of
 * plain texts, a published grammar for all others.
 *
 * A plain text is one line of words, closed quotes and operators between commands. It contains no
 * compound command, no command made from a value, and nothing that shells and grammars read
 * differently. Any other character, word or operator makes a text not plain. Most commands of a
 * model are plain; for others the grammar is loaded, which takes 17 MB.
 */

const PLAIN_QUOTED = /'[ -&(-~]*'|"[ !#%-[\]-_a-~]*"/.source;
/** The complete name of a program or builtin. */
const NAME = /[A-Za-z_./][\w./:-]*(?![^ ;|&])/y;
const WORD = new RegExp(
  `(?:[\\w./:@%+,*?-]|${PLAIN_QUOTED})(?:[\\w./:@%+,*?=-]|${PLAIN_QUOTED})*`,
  'y',
);
const REDIRECTION = /(?:2>&1|[12]?> ?\/dev\/null)(?![^ ;|&])/y;
const BLANKS = / */y;
const OPERATOR = /&&|\|\||[;|]/y;

/** Reserved words, and builtins whose arguments are declarations, tests or shell texts. */
const SPECIAL = new Set(
  (
    'if then elif else fi for while until do done case esac in select function time coproc ' +
    'declare typeset local export readonly unset let test eval'
  ).split(' '),
);

/** Offsets at which the commands of a plain text begin; null if the text is not plain. */
export const plainStarts = (text: string): ReadonlySet<number> | null => {
  const starts = new Set<number>();
  let at = 0;
  const take = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text)?.[0] ?? null;
    at += match?.length ?? 0;
    return match;
  };
  for (;;) {
    take(BLANKS);
    const start = at;
    const name = take(NAME);
    if (name === null || SPECIAL.has(name)) return null;
    starts.add(start);
    // words and redirections, each after a blank
    while (take(BLANKS) !== '') if (take(REDIRECTION) === null && take(WORD) === null) break;
    if (at === text.length) return starts;
    if (take(OPERATOR) === null) return null;
  }
};
