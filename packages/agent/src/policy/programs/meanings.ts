/**
 * What the words of a command run beside itself, for the rows of programs: texts, commands behind
 * options, commands at the end.
 */

import { listWords } from '../paths.js';
import { valueOption } from './file-losses.js';
import { type Meaning, matchesOption, type Words, type Wrapper } from './program.js';

/** The words, if all of them are known. */
export const literal = (words: Words): readonly string[] | null => {
  const known = words.filter((word) => word !== null);
  return known.length === words.length ? known : null;
};

/** The end of a sentence about something that no word shows. */
export const NOT_KNOWN = 'made when it runs';

/** The words from `startsAt` on as one shell text. */
export const asText = (words: Words, startsAt: number, name: string): Meaning => {
  const rest = words.slice(startsAt);
  if (rest.length === 0) return {};
  const text = literal(rest)?.join(' ') ?? null;
  return { ...textsMeaning([text], name), startsAt };
};

/** The values of an option that takes a command: `-x TEXT`, `-ixTEXT`, `--exec=TEXT`, `--ex TEXT`. */
export const optionTexts = (
  words: Words,
  short: string,
  long: string,
): readonly (string | null)[] =>
  words.flatMap((known, index) => {
    const word = known ?? '';
    const next = words[index + 1] ?? null;
    const [name = '', value] = word.split(/=(.*)/s);
    if (name.length > 2 && long.startsWith(name)) return [value ?? next];
    const letter = /^-[^-]/.test(word) ? word.indexOf(short.slice(1), 1) : -1;
    return letter < 1 ? [] : [word.slice(letter + 1) || next];
  });

/**
 * The meaning of texts that a program hands to `sh` or to the shell of the user; null among them is
 * a text that is not known.
 */
export const textsMeaning = (texts: readonly (string | null)[], name: string): Meaning => {
  const known = texts.filter((text) => text !== null);
  return known.length < texts.length
    ? { unclear: `what ${name} runs is ${NOT_KNOWN}` }
    : { texts: known, isPosix: true };
};

/** The same for texts that stand in several places: a rule must name all words but the last. */
export const textsAmong = (
  words: Words,
  texts: readonly (string | null)[],
  name: string,
): Meaning => ({ ...textsMeaning(texts, name), startsAt: words.length - 1 });

/** Whether a word behind the program is like this, or not known. */
export const hasWordLike = (words: Words, pattern: RegExp): boolean =>
  words.slice(1).some((word) => word === null || pattern.test(word));

/**
 * `su -c`, `script -c`: they pass a text to a shell, the last one that is named. Behind `--`, or
 * behind two words, a command may stand, whose options are not theirs: then both count.
 */
export const passesText = (words: Words): Meaning => {
  const find = (some: Words) => optionTexts(some, '-c', '--command');
  const name = words[0] ?? '';
  const end = words.indexOf('--');
  const options = end < 1 ? words : words.slice(0, end);
  const first = options.findIndex((_, index) => find(options.slice(0, index + 1)).length > 0);
  if (first < 1) return { unclear: `${name} runs what it reads from its input` };
  const isOperand = (at: number) => options[at]?.startsWith('-') !== true;
  const second = options
    .slice(0, first)
    .findIndex((_, at) => at > 1 && isOperand(at) && isOperand(at - 1));
  const starts = [second, end + 1].filter((at) => at > 0 && at < words.length);
  const commands = starts.map((at) => words.slice(at));
  return { ...textsMeaning(find(options), name), startsAt: first + 1, commands };
};

/**
 * How many words an option takes: 2 with a value behind it; null if it is not known. `valued`:
 * options with a value. `flags`: others; one that ends with `=` may have its value in the same
 * word. A long option may be shortened, several short ones may stand in one word.
 */
export const optionLength = (
  word: string,
  valued: readonly string[],
  flags: readonly string[],
): 1 | 2 | null => {
  if (flags.includes(word) || /^-\d+$/.test(word)) return 1;
  if (word.startsWith('--') && valueOption(word, valued) === undefined) {
    const [name = ''] = word.split('=');
    return [...flags, ...valued].some((known) => known.startsWith(name)) ? 1 : null;
  }
  for (const letter of word.startsWith('--') ? '' : word.slice(1)) {
    if (flags.includes(`-${letter}=`)) return 1; // the rest is its value
    if (valued.includes(`-${letter}`)) break;
    if (!flags.includes(`-${letter}`)) return null;
  }
  return valueOption(word, valued) === undefined ? 1 : 2;
};

/** Where words go on behind options; `unknown`: index of the first option that is not known. */
type Skipped = { readonly at: number; readonly unknown: number | null };

/** The first word from `from` on that is neither an option nor `NAME=value`. */
const skipOptions = (
  words: Words,
  from: number,
  valued: readonly string[],
  flags: readonly string[],
): Skipped => {
  let at = from;
  let unknown: number | null = null;
  for (;;) {
    const word = words[at];
    if (word === '--') return { at: at + 1, unknown };
    if (word == null) return { at, unknown };
    if (word.startsWith('-') && (word !== '-' || flags.includes('-'))) {
      const length = optionLength(word, valued, flags);
      if (length === null) unknown ??= at;
      at += length ?? 1;
    } else if (/^[^/=]+=/.test(word)) at++;
    else return { at, unknown };
  }
};

/** The meaning of a wrapper with an option that is not known. */
const unknownOption = (words: Words, at: number): Meaning => ({
  unclear: `the option ${words[at]} of ${words[0]} is not known`,
  mayStartAt: at + 1,
});

const startsShell = (words: Words, shell: string): boolean =>
  !words.some((word) => word === '--help' || word === '--version') &&
  (shell === 'always' || words.some((word) => word !== null && matchesOption(word, shell)));

/** The command at the end of a wrapper's words, if they run one. */
export const wrapped = (
  words: Words,
  { valued: withValue = '', flags: withoutValue = '', shell, before = 0, after }: Wrapper,
): Meaning => {
  const valued = listWords(withValue);
  const flags = listWords(withoutValue);
  const first = skipOptions(words, 1, valued, flags);
  let last = first;
  if (after !== undefined) {
    const starts = listWords(after);
    if (!starts.includes(words[first.at] ?? '')) {
      const mayStart = words.slice(first.at).some((word) => starts.includes(word ?? ''));
      return first.unknown !== null && mayStart ? unknownOption(words, first.unknown) : {};
    }
    last = skipOptions(words, first.at + 1, valued, flags);
  }
  // behind the words that the wrapper takes itself (`before`), options may stand again
  const { at, unknown } = skipOptions(words, last.at + before, valued, flags);
  const odd = first.unknown ?? last.unknown ?? unknown;
  if (at >= words.length && shell !== undefined && startsShell(words, shell))
    return { unclear: `the shell of ${words[0]} runs what it reads from its input` };
  // with a value it may be the command itself: `npx --call='npm test'`
  const isHarmless = odd === words.length - 1 && !(words[odd] ?? '').includes('=');
  return {
    ...(odd === null || isHarmless ? {} : unknownOption(words, odd)),
    ...(at < words.length ? { commands: [words.slice(at)], startsAt: at } : {}),
  };
};
