/**
 * Backticks in a message: `git commit -m "Add `clearWhere`"` would run a command and commit "Add ".
 * Such a text is refused with advice, if no such command is known.
 *
 * 1. Only the value of an option that takes a message counts, in double quotes, and what `echo`
 *    prints, if one word stands in backticks.
 * 2. `$5` in such a value is refused, too: the shell of a command has no arguments, so it is empty.
 * 3. A text that can make commands known by itself (functions, `source`, `PATH=`) is not looked at.
 */

import { firstCharacters } from '../../platform/text.js';
import { findRow, isBuiltin } from '../programs/program-table.js';
import { readCommands } from './read-statements.js';
import type { QuotedSubstitution, SimpleCommand, Word } from './read-words.js';
import type { ShellLookup } from './shell-facts.js';

const MAY_HOLD = /[`]|\$\(|\$\d/;
const TEXT_CHARACTERS_MAX = 60;

/** An option with its value in the same word. */
const WITH_VALUE = /^(--[a-z]+)=|^(-[a-zA-Z]*m)./s;
/** The beginning of a command up to the quote of its message, for a text that can't be read. */
const BEFORE_MESSAGE =
  /(?:^|[\s;&|(])(?:git|gh|glab)\s[^;&|\n"'`]*(?:\s-[a-zA-Z]*[mtbnd]|\s--[a-z]+)[ =]?$/;

/** A text that can make commands known by itself. */
const MAKES_COMMANDS = /(?:^|[\s;&|(])(?:source|\.|alias|eval|function)\s|\bPATH=/;

/** Why a text would lose a part of a message; null if nothing shows that it would. */
export const messageFault = (text: string, find: ShellLookup): string | null => {
  if (!MAY_HOLD.test(text) || MAKES_COMMANDS.test(text)) return null;
  const reading = readCommands(text);
  if (reading.kind === 'unclear') {
    // a message often can't be read to its end: words in backticks are seldom good shell syntax
    const { within } = reading;
    const isText = within !== undefined && BEFORE_MESSAGE.test(text.slice(0, within.quote));
    return isText ? advice(text, within.quote) : null;
  }
  if (reading.functions.length > 0) return null;
  for (const command of reading.commands) {
    const fault =
      substitutionFault(command, reading.quoted, { text, find }) ??
      (SETS_ARGUMENTS.test(text) ? null : argumentFault(command, text));
    if (fault !== null) return fault;
  }
  return null;
};

const showQuoted = (text: string, quote: number): string => {
  const quoted = /^"(?:[^"\\]|\\[\s\S])*"/.exec(text.slice(quote))?.[0] ?? text.slice(quote);
  const isLong = quoted.length > TEXT_CHARACTERS_MAX;
  return isLong ? `${firstCharacters(quoted, TEXT_CHARACTERS_MAX)}…` : quoted;
};

/** What to tell the model. */
const advice = (text: string, quote: number): string => {
  const shown = showQuoted(text, quote);
  const marks = shown.includes('`') ? 'the backticks in' : 'a $(…) in';
  return `${marks} ${shown} would run a command: use single quotes`;
};

/** Whether the word carries a message. `before`: the word in front of it. */
const isMessage = (program: string, before: string | null, raw: string): boolean => {
  const options = program.includes('/') ? undefined : findRow(program)?.messages;
  if (options === undefined) return false;
  const [, long, short] = WITH_VALUE.exec(raw) ?? [];
  const own = long ?? short;
  return (before !== null && options.test(before)) || (own !== undefined && options.test(own));
};

const NAME = /^\s*([\w@.+-][\w@.+/:-]*)/;
const ONE_WORD = /^[\w@.+-][\w@.+/:-]*$/;

/** The text, and how to find the programs that it names. */
type Place = {
  readonly text: string;
  readonly find: ShellLookup;
};

/** Whether a substitution runs a command that is not known, so that words were meant. */
const isUnknown = (inside: string, find: ShellLookup): boolean => {
  const [, name] = NAME.exec(inside) ?? [];
  return name !== undefined && !isBuiltin(name) && find(name) === null;
};

/** A substitution in a message of this command. */
const substitutionFault = (
  { words }: SimpleCommand,
  quoted: readonly QuotedSubstitution[],
  { text, find }: Place,
): string | null => {
  const [program] = words;
  for (const [index, word] of words.entries()) {
    const within = quoted.filter(({ quote }) => quote >= word.start && quote < word.end);
    if (within.length === 0) continue;
    const before: Word | undefined = words[index - 1];
    const raw = text.slice(word.start, word.end);
    const isText = isMessage(program?.text ?? '', before?.text ?? null, raw);
    for (const { quote, start, end } of within) {
      const inside = text.slice(start, end ?? start);
      const isPrinted =
        program?.text === 'echo' && text[start - 1] === '`' && ONE_WORD.test(inside);
      if ((isText || isPrinted) && isUnknown(inside, find)) return advice(text, quote);
    }
  }
  return null;
};

const ARGUMENT = /^([^"']*)"(?:[^"\\$]|\\[\s\S]|\$(?!\d))*(\$\d)/;
/** `set -- a b` gives the shell arguments. */
const SETS_ARGUMENTS = /(?:^|[\s;&|(])set\s+-/;

/** An argument of the shell, `$5`, in a message in double quotes. */
const argumentFault = ({ words }: SimpleCommand, text: string): string | null => {
  for (const [index, word] of words.entries()) {
    const raw = text.slice(word.start, word.end);
    const [, start = '', argument] = ARGUMENT.exec(raw) ?? [];
    if (argument === undefined) continue;
    if (isMessage(words[0]?.text ?? '', words[index - 1]?.text ?? null, raw)) {
      const shown = showQuoted(text, word.start + start.length);
      return `${argument} in ${shown} would be empty: use single quotes`;
    }
  }
  return null;
};
