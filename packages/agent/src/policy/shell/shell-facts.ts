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
 * shell would start; the second reading, for plain texts; words whose value stands in the same
 * text; and `commandFacts`, which adds what the words do not say. The parts of a command that was
 * read (`SimpleCommand`) are explained in read-words.ts, what a program does with its words
 * (`Meaning`) in programs/program.ts.
 */

import { constants } from 'node:fs';
import path from 'node:path';
import { followStatus, isWithin, mayAccess, realPath } from '../../platform/files.js';
import type { CallFacts, Needs, ParsedCommand, ShellFacts } from '../judged-call.js';
import { addEscapes } from '../patterns.js';
import type { TreeMove } from '../programs/git-moves.js';
import type { Meaning, Words } from '../programs/program.js';
import { commandMeaning, findRow, isBuiltin } from '../programs/program-table.js';
import { changesShell } from '../programs/shells.js';
import { repositoryAccess, treeMoves } from '../repository-access.js';
import { expectedNeeds } from './expected-needs.js';
import { type CommandStarts, commandStarts } from './grammar.js';
import { readCommands, type ShellReading } from './read-statements.js';
import { changesFolder, type SimpleCommand, type Word } from './read-words.js';
import {
  type AskGit,
  discardedFiles,
  type FindDiscarded,
  type FindLosses,
  unrecoverableFiles,
  withGitReadings,
} from './unrecoverable-files.js';

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
  /** Something before may change values that are assigned later, see `setsUp`. */
  setsUp: boolean;
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
    setsUp: false,
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

/**
 * Adds what our reading of a text has found. Words whose value stands in the text are completed
 * first, but not if it defines functions: a function can change any variable.
 */
const addReading = async (
  reading: Reading,
  text: string,
  collected: Collected,
  depth: number,
): Promise<void> => {
  for (const name of reading.functions) collected.functions.add(name);
  collected.evaluates ||= reading.evaluates;
  collected.quotesSubstitution ||= reading.quotesSubstitution;
  collected.setsUp ||= reading.commands.some(setsUp);
  // an inner text may run after the outer one has changed SHELL
  const environment = depth === 0 && collected.shell !== null ? { SHELL: collected.shell } : {};
  let commands =
    collected.functions.size === 0 ? completeCommands(reading, text, environment, collected) : null;
  if (!collected.setsUp && commands?.some(setsUp) === true) {
    // a value has shown it: `E=trap; $E …`
    collected.setsUp = true;
    commands = completeCommands(reading, text, environment, collected);
  }
  const { workspace } = collected;
  const read = commands ?? withFileNames(reading.commands, text, NO_VALUES, workspace);
  for (const [index, command] of read.entries()) {
    const previous = commands?.[index - 1];
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
const placesIn = ({ runs, mayRun }: Meaning): Pick<ParsedCommand, 'runs' | 'mayRun'> => ({
  ...(runs === undefined ? {} : { runs }),
  ...(mayRun === undefined ? {} : { mayRun }),
});

/**
 * The patterns of a wrapped command's words, if these are the wrapper's words from `runs` on. The
 * commands of `find` and `fd` are not: they end before the last word.
 */
const innerPatterns = (
  words: Words,
  inner: Words,
  { runs }: Meaning,
  patterns: Patterns,
): Patterns =>
  runs === undefined ||
  inner[0] !== words[runs] ||
  /^(.*\/)?(g?find|fd|fdfind)$/.test(words[0] ?? '')
    ? []
    : patterns.slice(runs);

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

/*
 * ---- Words whose value stands in the same text ----
 *
 * Examples: `CMD="ls -la"; $CMD`, `cmd=(ls -la); "${cmd[@]}"`, `eval "$(echo ls)"`,
 * `"$(cat <<'EOF' …)"`, and `$SHELL`, whose value the shell gets from us.
 *
 * 1. Variables are replaced only in a command whose program is a variable.
 * 2. A value counts while nothing can have changed it: in a text without compound commands and
 *    arithmetic, after an assignment that surely ran, and until a builtin that can set variables.
 * 3. A value that the shell would treat further (patterns, backslashes) does not count.
 */

/** The value of a variable: a text, or the elements of a list. */
type Value = string | readonly string[];

/** Characters that bash leaves alone after it has put a value in place, and blanks. */
const UNCHANGED = /^[\w@%+=:,./ -]+$/;
const UNCHANGED_WORD = /^[\w@%+=:,./-]+$/;

/** Variables that bash sets by itself, or that change how it reads and searches. */
const RESERVED_NAMES =
  /^(?:BASH\w*|COMP_\w*|COPROC|DIRSTACK|ENV|EPOCH\w*|E?UID|EXECIGNORE|FUNC\w*|GLOB\w*|GROUPS|HIST\w*|IFS|LANG|LC_\w+|LINENO|MAPFILE|OLDPWD|OPT\w*|PATH|PIPESTATUS|POSIXLY_CORRECT|PPID|PS\d|PWD|RANDOM|READLINE\w*|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|_.*)$/;

/** An expansion that assigns: `${x:=value}`. */
const ASSIGNS = /\$\{[^}]*=/;

/** Builtins that set no variable but those of RESERVED_NAMES. */
const SETS_NOTHING = new Set([':', 'true', 'false', 'echo', 'pwd', 'cd', 'exit']);

/** Whether a command leaves the values of all variables as they are. */
const leavesVariables = (words: readonly Word[]): boolean => {
  const texts = words.map(({ text }) => text);
  const [name, option] = texts;
  // `time` may run a builtin that sets variables
  if (name == null || name === 'time') return false;
  if (!isBuiltin(name) || SETS_NOTHING.has(name)) return true;
  // `%n` sets the variable that is named for it
  if (name === 'printf') return option != null && !/^-|%[^a-zA-Z%]*n/.test(option);
  // `set` with options about which the table has nothing to say
  const changesNothing = Object.keys(commandMeaning(texts)).length === 0;
  return name === 'set' && changesNothing && /^[-+]/.test(option ?? '') && option !== '--';
};

/**
 * Whether a command may change values that are assigned later, or keep them from it: by a trap, an
 * attribute of a variable (`declare -l`, `readonly`), or an evaluated text, which may do either. It
 * may stand behind `command`, `builtin` or `time`.
 */
const setsUp = ({ words }: SimpleCommand): boolean => {
  const texts = words.map(({ text }) => text ?? '?');
  const command = texts.join(' ').replace(/^((command|builtin|time|-[\w-]*) )*/, '');
  return /^((trap|eval|readonly) |(declare|typeset|local) .*[-+?])/.test(command);
};

/** Variables with a certain value at a place of the text. */
type Variables = {
  readonly values: Map<string, Value>;
  /** Names whose assignment runs only if the list gets so far: `x && A=1; $A`. */
  readonly conditional: Set<string>;
};

const forget = ({ values, conditional }: Variables, names: Iterable<string>): void => {
  for (const name of names) {
    values.delete(name);
    conditional.delete(name);
  }
};

/** Updates the variables after a command. `words`: its words with values in place of variables. */
const remember = (variables: Variables, command: SimpleCommand, words: readonly Word[]): void => {
  const { assignments, flow, reads, writes } = command;
  const names = assignments.map(({ name }) => name);
  // assignments before words count for that command alone; to be safe, these names are forgotten
  const leavesOthers = words.length === 0 || leavesVariables(words);
  forget(variables, leavesOthers ? names : [...variables.values.keys()]);
  if (words.length > 0) return;
  // with a redirection, which may fail, the assignment does not surely run
  const hasNoRedirection = writes.length === 0 && reads === 'stdin';
  if (!hasNoRedirection || (flow !== 'always' && flow !== 'and')) return;
  for (const { name, value } of assignments) {
    forget(variables, [name]); // `A=1 A=$x` assigns twice
    if (value === null || value.length === 0 || RESERVED_NAMES.test(name)) continue;
    variables.values.set(name, value);
    if (flow === 'and') variables.conditional.add(name);
  }
};

const REFERENCE =
  /^(?:\$(\w+)|\$\{(\w+)\}|"\$(\w+)"|"\$\{(\w+)\}"|\$\{(\w+)\[@\]\}|"\$\{(\w+)\[@\]\}")$/;

/** The words that an expansion becomes; null if they are certain only when it runs. */
const expand = (raw: string, values: ReadonlyMap<string, Value>): readonly string[] | null => {
  const match = REFERENCE.exec(raw);
  const value = values.get(match?.slice(1).find((name) => name !== undefined) ?? '');
  if (match === null || value === undefined) return null;
  const isQuoted = raw.startsWith('"');
  const isList = raw.includes('[@]');
  if (typeof value !== 'string') {
    // without quotes bash may divide an element into words
    const isWhole = isQuoted || value.every((element) => UNCHANGED_WORD.test(element));
    return isList && isWhole ? value : null;
  }
  if (isList) return null;
  if (isQuoted) return [value];
  const words = UNCHANGED.test(value) ? value.split(' ').filter((word) => word !== '') : [];
  return words.length > 0 ? words : null;
};

/** The command with the values of its variables, if that determines its program. */
const completeCommand = (
  { words, ...command }: SimpleCommand,
  text: string,
  values: ReadonlyMap<string, Value>,
): SimpleCommand => {
  const [first] = words;
  if (first === undefined || first.text !== null) return { words, ...command };
  const completed = words.flatMap((word): readonly Word[] => {
    const { start, end } = word;
    const expanded = word.text === null ? expand(text.slice(start, end), values) : null;
    return expanded?.map((value) => ({ text: value, start, end })) ?? [word];
  });
  return completed[0]?.text == null ? { words, ...command } : { words: completed, ...command };
};

const NO_VALUES: ReadonlyMap<string, Value> = new Map();

/** The folder in which the command runs, at the beginning of a word in quotes, or without them. */
const QUOTED_FOLDER = /^"(?:\$PWD\b|\$\{PWD(?::\?[\w ]*)?\}|\$\(pwd\)|`pwd`)(?=["/])/;
const BARE_FOLDER = /^(?:\$PWD\b|\$\{PWD(?::\?[\w ]*)?\}|\$\(pwd\)|`pwd`)(?=\/|$)/;
/** A value that bash leaves alone as a part of a name, also in braces: it has no comma. */
const FILE_NAME = /^[\w@%+=:./-]+$/;
/** PWD where it is no expansion, such as in an assignment. */
const SETS_PWD = /(?<!\$\{?)\bPWD\b/;

/** A word with `.` for the folder in which it runs: patterns are relative to that, too. */
const withFolder = (raw: string, text: string, workspace: string | null): string => {
  if (SETS_PWD.test(text)) return raw;
  const named = raw.replace(QUOTED_FOLDER, '".').replace(/^~\+(?=\/|$)/, '.');
  // without quotes bash divides a path with blanks
  const isWhole = workspace !== null && FILE_NAME.test(workspace) && !/\b(cd|pushd)\b/.test(text);
  return isWhole ? named.replace(BARE_FOLDER, '.') : named;
};

const withValues = (raw: string, values: ReadonlyMap<string, Value>): string =>
  raw.replace(
    /\$(?:(\w+)|\{(\w+)(?::\?[\w ]*)?\})/g,
    (all, plain: string | undefined, inBraces: string | undefined) => {
      const value = values.get(plain ?? inBraces ?? '');
      return typeof value === 'string' && FILE_NAME.test(value) ? value : all;
    },
  );

/**
 * Commands with the patterns of words that name files by `$PWD` or by variables whose values stand
 * in the text. Their texts stay unknown: a rule does not see them.
 */
const withFileNames = (
  commands: readonly SimpleCommand[],
  text: string,
  values: ReadonlyMap<string, Value>,
  workspace: string | null,
): readonly SimpleCommand[] => {
  const complete = (word: Word): Word => {
    const raw = text.slice(word.start, word.end);
    if (word.text !== null || word.pattern !== undefined || /['\\]/.test(raw)) return word;
    const named = withValues(withFolder(raw, text, workspace), values);
    // what a word becomes behind the name of a program
    const reading = named === raw ? null : readCommands(`x ${named}`);
    const [, completed, ...others] = (reading?.kind === 'read' && reading.commands[0]?.words) || [];
    // an option would change what the other words mean
    if (completed === undefined || others.length > 0 || completed.text?.startsWith('-'))
      return word;
    const pattern = completed.text === null ? completed.pattern : addEscapes(completed.text);
    return pattern === undefined ? word : { ...word, pattern };
  };
  return commands.map((command) => ({ ...command, words: command.words.map(complete) }));
};

/** The constant text that `"$(echo …)"` becomes; null for any other word. */
const echoedText = (raw: string): string | null => {
  const inner = /^"\$\(([\s\S]*)\)"$/.exec(raw)?.[1];
  const reading = inner === undefined ? null : readCommands(inner);
  if (reading?.kind !== 'read' || reading.hasCompound || reading.commands.length !== 1) return null;
  const [command] = reading.commands;
  if (command === undefined || command.flow !== 'always') return null;
  const { words, assignments, writes, reads } = command;
  const [name, ...texts] = words.map(({ text }) => text);
  if (name !== 'echo' || assignments.length > 0 || writes.length > 0 || reads !== 'stdin')
    return null;
  const constant = texts.filter((text) => text !== null);
  const isConstant =
    constant.length === texts.length && !constant.some((text) => text.includes('\\'));
  const isPrinted = constant.length > 0 && !constant[0]?.startsWith('-');
  return isConstant && isPrinted ? constant.join(' ') : null;
};

/**
 * `cat` of a here-document in which nothing is substituted, up to its end. Before it only `--name=`
 * may stand: bash expands `~`, `*` and braces.
 */
const HERE_TEXT = /^((?:--?[\w-]+=)?)"\$\((cat <<\s*'(\w+)'\n(?:([\s\S]*?)\n)?\3)\s*\)"$/;

/** The constant text that `"$(cat <<'EOF' …)"` becomes, also behind `--body=`; else null. */
const hereDocumentText = (raw: string): string | null => {
  const [, before = '', inner, , body = ''] = HERE_TEXT.exec(raw) ?? [];
  const reading = inner === undefined ? null : readCommands(`${inner}\n`);
  const isOne = reading?.kind === 'read' && reading.commands.length === 1;
  return isOne ? before + body.replace(/\n+$/, '') : null;
};

/** The command with the constant texts that `$(cat …)` and `eval "$(echo …)"` become. */
const withConstantTexts = (command: SimpleCommand, text: string): SimpleCommand => {
  const [name, word, ...others] = command.words;
  if (name?.text === 'eval' && word?.text === null && others.length === 0) {
    const echoed = echoedText(text.slice(word.start, word.end));
    if (echoed !== null) return { ...command, words: [name, { ...word, text: echoed }] };
  }
  if (!text.includes('$(cat <<')) return command;
  const words = command.words.map((each): Word => {
    const constant = each.text === null ? hereDocumentText(text.slice(each.start, each.end)) : null;
    return constant === null ? each : { ...each, text: constant };
  });
  return { ...command, words };
};

/**
 * The commands of a text without functions, with values in place of variables. `environment`:
 * variables that the shell surely starts with. After `setsUp` no value is certain.
 */
const completeCommands = (
  reading: Reading,
  text: string,
  environment: Readonly<Record<string, string>>,
  { setsUp: isSetUp, workspace }: Pick<Collected, 'setsUp' | 'workspace'>,
): readonly SimpleCommand[] => {
  const { commands, hasCompound, evaluates } = reading;
  if (isSetUp || hasCompound || evaluates || ASSIGNS.test(text) || /\bIFS\b/.test(text))
    return withFileNames(commands, text, NO_VALUES, workspace).map((one) =>
      withConstantTexts(one, text),
    );
  const variables: Variables = {
    values: new Map(Object.entries(environment)),
    conditional: new Set(),
  };
  const hasValues = /[$`~]/.test(text);
  // names that commands apart have set, `$(A=1; $A)`: unknown there, unchanged in the shell
  const setApart = new Set<string>();
  return commands.map((command) => {
    const isApart = command.flow === 'apart';
    if (command.flow !== 'and') forget(variables, [...variables.conditional]);
    if (!isApart) setApart.clear();
    const values = setApart.size === 0 ? variables.values : new Map(variables.values);
    for (const name of setApart) values.delete(name);
    const [named = command] = hasValues
      ? withFileNames([command], text, values, workspace)
      : [command];
    const completed = withConstantTexts(completeCommand(named, text, values), text);
    if (isApart && command.words.length === 0)
      for (const { name } of command.assignments) setApart.add(name);
    else remember(variables, command, completed.words);
    return completed;
  });
};

// ---- With look-ups ----

/** What a command's words do not say. */
export type CommandLookups = {
  readonly find: ShellLookup;
  /** The value of SHELL; null: not set. */
  readonly userShell?: string | null;
  /** Finds files that git could not restore. Without it every file that the words name counts. */
  readonly findLosses?: FindLosses;
  /** Finds changes that `git restore` of paths would discard. */
  readonly findDiscarded?: FindDiscarded;
  readonly askGit?: AskGit;
  /** Finds protected files that git would write. */
  readonly movedFiles?: {
    find(workspace: string, moves: readonly TreeMove[] | 'unknown'): Promise<readonly string[]>;
  };
};

export type CommandFacts = Pick<CallFacts, 'paths' | 'unrecoverable' | 'discarded' | 'expects'> &
  Required<Pick<CallFacts, 'shell'>>;

/** Looks up the facts of a command. The first text that is not plain loads the shell grammar. */
export const commandFacts = async (
  command: string,
  needs: Needs | undefined,
  workspace: string,
  lookups: CommandLookups,
): Promise<CommandFacts> => {
  const { find, userShell = null, findLosses, findDiscarded, askGit, movedFiles } = lookups;
  const read = await shellFacts(command, find, userShell, workspace);
  const shell = askGit === undefined ? read : await withGitReadings(read, workspace, askGit);
  // protected files that git writes are decided about as those that a tool writes
  const isReading = repositoryAccess(shell, needs) === 'read';
  const moved = isReading ? [] : ((await movedFiles?.find(workspace, treeMoves(shell))) ?? []);
  const unrecoverable =
    findLosses === undefined ? null : await unrecoverableFiles(shell, workspace, findLosses);
  const discarded =
    findDiscarded === undefined ? null : await discardedFiles(shell, workspace, findDiscarded);
  // what the command will probably need outside of the sandbox, which the model did not state
  const expects = needs === undefined ? expectedNeeds(shell, workspace) : null;
  return {
    paths: [workspace, ...moved],
    shell,
    ...(unrecoverable === null ? {} : { unrecoverable }),
    ...(discarded === null ? {} : { discarded }),
    ...(expects === null ? {} : { expects }),
  };
};
