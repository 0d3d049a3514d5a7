/**
 * Words whose value stands in the same shell text: `CMD="ls -la"; $CMD`, `cmd=(ls -la);
 * "${cmd[@]}"`, `eval "$(echo ls)"`, `"$(cat <<'EOF' …)"`, and `$SHELL`, whose value the shell gets
 * from us.
 *
 * 1. Variables are replaced only in a command whose program is a variable. For files that a command
 *    names (`rm "$DIR"/x`) the values make a pattern, and the word itself stays unknown.
 * 2. A value counts while nothing can have changed it: in a text without functions, compound
 *    commands, arithmetic and IFS, after an assignment that surely ran, and until a builtin that
 *    can set variables.
 * 3. A value that the shell would treat further (patterns, backslashes) does not count.
 * 4. An assignment in a substitution or a pipe runs apart from the shell: it changes no value here,
 *    and there its name has none that is known.
 *
 * From top to bottom: which values count; words with values in their place; names of files; texts
 * that a substitution prints; and `completeCommands`, which follows the commands of a text.
 */

import { addEscapes } from '../patterns.js';
import { commandMeaning, isBuiltin } from '../programs/program-table.js';
import { readCommands, type ShellReading } from './read-statements.js';
import type { SimpleCommand, Word } from './read-words.js';

type Reading = Extract<ShellReading, { kind: 'read' }>;

/** The value of a variable: a text, or the elements of a list. */
type Value = string | readonly string[];

/** Characters that bash leaves alone after it has put a value in place, and blanks. */
const UNCHANGED = /^[\w@%+=:,./ -]+$/;
const UNCHANGED_WORD = /^[\w@%+=:,./-]+$/;

/** Variables that bash sets by itself, or that change how it reads and searches. */
const RESERVED_NAMES =
  /^(?:BASH\w*|COLUMNS|COMP_\w*|COPROC|DIRSTACK|ENV|EPOCH\w*|E?UID|EXECIGNORE|FUNC\w*|GLOB\w*|GROUPS|HIST\w*|IFS|LANG|LC_\w+|LINENO|LINES|MAPFILE|OLDPWD|OPT\w*|PATH|PIPESTATUS|POSIXLY_CORRECT|PPID|PS\d|PWD|RANDOM|READLINE\w*|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|_.*)$/;

/** An expansion that assigns: `${x:=value}`. */
const SETS_BY_EXPANSION = /\$\{[^}]*=/;
/** IFS, perhaps with quotes in its name, says how bash divides a value into words. */
const SETS_IFS = /\bI['"\\]*F['"\\]*S\b/;

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
  if (name === 'printf') return option != null && !/^-|%[^a-zA-Z%]*[hjlLqtz]*n/.test(option);
  // `set` with options about which the table has nothing to say
  const changesNothing = Object.keys(commandMeaning(texts)).length === 0;
  return name === 'set' && changesNothing && /^[-+]/.test(option ?? '') && option !== '--';
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

/** What is known of a shell before it reads a text. */
type Beginning = {
  /** Variables that it surely starts with. */
  readonly environment: Readonly<Record<string, string>>;
  /** The folder in which it begins; null: unknown. */
  readonly workspace: string | null;
  /** There are functions: one may stand for a builtin, and change any variable. */
  readonly hasFunctions: boolean;
  /** Something before may change values that are assigned later: no value is certain. */
  readonly changesValues: boolean;
};

/** The commands of a text, with the values that stand in it in place of variables. */
export const completeCommands = (
  reading: Reading,
  text: string,
  { environment, workspace, hasFunctions, changesValues }: Beginning,
): readonly SimpleCommand[] => {
  const { commands, hasCompound, evaluates } = reading;
  if (hasFunctions) return withFileNames(commands, text, NO_VALUES, workspace);
  if (
    changesValues ||
    hasCompound ||
    evaluates ||
    SETS_BY_EXPANSION.test(text) ||
    SETS_IFS.test(text)
  )
    return withFileNames(commands, text, NO_VALUES, workspace).map((one) =>
      withConstantTexts(one, text),
    );
  const variables: Variables = {
    values: new Map(Object.entries(environment)),
    conditional: new Set(),
  };
  // names that commands apart have set, `$(A=1; $A)`: unknown there, unchanged in the shell
  const setApart = new Set<string>();
  return commands.map((command) => {
    const isApart = command.flow === 'apart';
    if (command.flow !== 'and') forget(variables, [...variables.conditional]);
    if (!isApart) setApart.clear();
    const values = setApart.size === 0 ? variables.values : new Map(variables.values);
    for (const name of setApart) values.delete(name);
    const [named = command] = withFileNames([command], text, values, workspace);
    const completed = withConstantTexts(completeCommand(named, text, values), text);
    if (isApart && command.words.length === 0)
      for (const { name } of command.assignments) setApart.add(name);
    else remember(variables, command, completed.words);
    return completed;
  });
};
