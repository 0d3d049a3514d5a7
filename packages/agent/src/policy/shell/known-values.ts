/**
 * Words whose value stands in the same text: `CMD="ls -la"; $CMD`, `cmd=(ls -la); "${cmd[@]}"`,
 * `eval "$(echo ls)"`, and `$SHELL`, which is handed to the shell.
 *
 * 1. Only a command whose program is a value is completed. All others stay as they are read.
 * 2. A value counts while nothing can have changed it: in a text without compound commands and
 *    arithmetic, after an assignment that surely ran, and until a builtin that can set variables.
 * 3. A value that the shell would treat further (patterns, backslashes) does not count.
 */

import { commandMeaning, isBuiltin } from './command-meanings.js';
import { readCommands, type ShellReading } from './read-statements.js';
import type { SimpleCommand, Word } from './read-words.js';

type Value = string | readonly string[];
type Reading = Extract<ShellReading, { kind: 'read' }>;

/** Characters that bash leaves alone after it has put a value in place, and blanks. */
const PLAIN = /^[\w@%+=:,./ -]+$/;
const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

/** Variables that bash sets by itself, or that change how it reads and searches. */
const SPECIAL =
  /^(?:BASH\w*|COMP_\w*|COPROC|DIRSTACK|ENV|EPOCH\w*|E?UID|EXECIGNORE|FUNC\w*|GLOB\w*|GROUPS|HIST\w*|IFS|LANG|LC_\w+|LINENO|MAPFILE|OLDPWD|OPT\w*|PATH|PIPESTATUS|POSIXLY_CORRECT|PPID|PS\d|PWD|RANDOM|READLINE\w*|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|_.*)$/;

/** An expansion that assigns: `${x:=value}`. */
const ASSIGNS = /\$\{[^}]*=/;

/** Builtins that set no variable but those which are never known. */
const HARMLESS = new Set([':', 'true', 'false', 'echo', 'pwd', 'cd', 'exit']);

const leavesVariables = (words: readonly Word[]): boolean => {
  const texts = words.map(({ text }) => text);
  const [name, option] = texts;
  if (name == null || name === 'time') return false;
  if (!isBuiltin(name) || HARMLESS.has(name)) return true;
  if (name === 'printf') return option != null && !option.startsWith('-');
  const changesNothing = Object.keys(commandMeaning(texts)).length === 0;
  return name === 'set' && changesNothing && /^[-+]/.test(option ?? '') && option !== '--';
};

type Values = {
  readonly known: Map<string, Value>;
  /** Names whose assignment runs only if the list gets so far. */
  readonly conditional: Set<string>;
};

const forget = ({ known, conditional }: Values, names: Iterable<string>): void => {
  for (const name of names) {
    known.delete(name);
    conditional.delete(name);
  }
};

/** What the shell knows after this command. `words`: with the values in their places. */
const remember = (values: Values, command: SimpleCommand, words: readonly Word[]): void => {
  const { assignments, flow, reads, writes } = command;
  const names = assignments.map(({ name }) => name);
  if (words.length > 0) {
    if (leavesVariables(words)) forget(values, names);
    else forget(values, [...values.known.keys()]);
    return;
  }
  forget(values, names);
  const isPlain = writes.length === 0 && reads === 'own input';
  if (!isPlain || (flow !== 'always' && flow !== 'and')) return;
  for (const { name, value } of assignments) {
    if (value === null || value.length === 0 || SPECIAL.test(name)) forget(values, [name]);
    else {
      values.known.set(name, value);
      if (flow === 'and') values.conditional.add(name);
    }
  }
};

const REFERENCE =
  /^(?:\$(\w+)|\$\{(\w+)\}|"\$(\w+)"|"\$\{(\w+)\}"|\$\{(\w+)\[@\]\}|"\$\{(\w+)\[@\]\}")$/;

/** The words that an expansion becomes; null if they are known only when it runs. */
const expand = (raw: string, known: ReadonlyMap<string, Value>): readonly string[] | null => {
  const match = REFERENCE.exec(raw);
  const value = known.get(match?.slice(1).find((name) => name !== undefined) ?? '');
  if (match === null || value === undefined) return null;
  const isQuoted = raw.startsWith('"');
  const isList = raw.includes('[@]');
  if (typeof value !== 'string') {
    const isWhole = isQuoted || value.every((element) => PLAIN_WORD.test(element));
    return isList && isWhole ? value : null;
  }
  if (isList) return null;
  if (isQuoted) return [value];
  const words = PLAIN.test(value) ? value.split(' ').filter((word) => word !== '') : [];
  return words.length > 0 ? words : null;
};

/** The command with the values of its words, if its program becomes known by that. */
const complete = (
  { words, ...command }: SimpleCommand,
  text: string,
  known: ReadonlyMap<string, Value>,
): SimpleCommand => {
  const [first] = words;
  if (first === undefined || first.text !== null) return { words, ...command };
  const completed = words.flatMap((word): readonly Word[] => {
    const { start, end } = word;
    const expanded = word.text === null ? expand(text.slice(start, end), known) : null;
    return expanded?.map((value) => ({ text: value, start, end })) ?? [word];
  });
  return completed[0]?.text == null ? { words, ...command } : { words: completed, ...command };
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
  if (name !== 'echo' || assignments.length > 0 || writes.length > 0 || reads !== 'own input')
    return null;
  const known = texts.filter((text) => text !== null);
  const isConstant = known.length === texts.length && !known.some((text) => text.includes('\\'));
  return isConstant && known.length > 0 && !known[0]?.startsWith('-') ? known.join(' ') : null;
};

/** `eval "$(echo …)"` as `eval` of the text. */
const evaluated = (command: SimpleCommand, text: string): SimpleCommand => {
  const [name, word, ...others] = command.words;
  if (name?.text !== 'eval' || word === undefined || word.text !== null || others.length > 0)
    return command;
  const echoed = echoedText(text.slice(word.start, word.end));
  return echoed === null ? command : { ...command, words: [name, { ...word, text: echoed }] };
};

/**
 * The commands of a text, with the values that stand in it. `environment`: variables that the shell
 * surely starts with.
 */
export const completeCommands = (
  reading: Reading,
  text: string,
  environment: Readonly<Record<string, string>> = {},
): readonly SimpleCommand[] => {
  const { commands, functions, hasCompound, evaluates } = reading;
  if (functions.length > 0) return commands;
  if (hasCompound || evaluates || ASSIGNS.test(text) || /\bIFS\b/.test(text))
    return commands.map((command) => evaluated(command, text));
  const values: Values = { known: new Map(Object.entries(environment)), conditional: new Set() };
  return commands.map((command) => {
    if (command.flow !== 'and') forget(values, [...values.conditional]);
    const completed = evaluated(complete(command, text, values.known), text);
    const isSubstituted = command.flow === 'apart' && command.words.length === 0;
    if (!isSubstituted) remember(values, command, completed.words);
    return completed;
  });
};
