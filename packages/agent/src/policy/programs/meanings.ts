/**
 * What the words of a command run beside itself, for the rows of programs: texts, commands behind
 * options, commands at the end.
 */

import { listWords } from '../paths.js';
import type { Meaning, Words, Wrapper } from './program.js';

/** The words, if all of them are known. */
export const literal = (words: Words): readonly string[] | null => {
  const known = words.filter((word) => word !== null);
  return known.length === words.length ? known : null;
};

/** The end of a sentence about something that no word shows. */
export const NOT_KNOWN = 'made when it runs';

/** The words from `runs` on as one shell text. */
export const asText = (words: Words, runs: number, name: string): Meaning => {
  const rest = words.slice(runs);
  if (rest.length === 0) return {};
  const text = literal(rest)?.join(' ') ?? null;
  return text === null ? { unclear: `what ${name} runs is ${NOT_KNOWN}` } : { texts: [text], runs };
};

/**
 * The values of an option that takes a command: `-x TEXT`, `-xTEXT`, `--exec=TEXT`. `from`: index
 * of the first word that may be it.
 */
export const optionTexts = (
  words: Words,
  from: number,
  short: string,
  long: string,
): readonly (string | null)[] =>
  words.flatMap((word, index) => {
    if (index < from || word === null) return [];
    if (word === short || word === long) return [words[index + 1] ?? null];
    if (word.startsWith(`${long}=`)) return [word.slice(long.length + 1)];
    return word.startsWith(short) && !word.startsWith('--') ? [word.slice(short.length)] : [];
  });

/** The meaning of texts; null among them is a text that is not known. */
export const textsMeaning = (texts: readonly (string | null)[], name: string): Meaning => {
  const known = texts.filter((text) => text !== null);
  if (known.length < texts.length) return { unclear: `what ${name} runs is ${NOT_KNOWN}` };
  return known.length === 0 ? {} : { texts: known };
};

/** `su -c`, `script -c`, `flock FILE -c`: they pass a text to a shell. */
export const passesText = (words: Words): Meaning => {
  const index = words.findIndex((word) => word === '-c' || word === '--command');
  const name = words[0] ?? '';
  if (index < 0) return { unclear: `${name} runs what it reads from its input` };
  const text = words[index + 1];
  return text == null
    ? { unclear: `what ${name} runs is ${NOT_KNOWN}` }
    : { texts: [text], runs: index + 1 };
};

/** Index of the first word from `from` on that is neither an option nor `NAME=value`. */
const skipOptions = (words: Words, from: number, valued: readonly string[]): number => {
  let at = from;
  for (;;) {
    const word = words[at];
    if (word === '--') return at + 1;
    if (word == null) return at;
    if (word.startsWith('-') && word !== '-') at += valued.includes(word) ? 2 : 1;
    else if (/^[A-Za-z_]\w*=/.test(word)) at++;
    else return at;
  }
};

/** The command at the end of a wrapper's words, if they run one. */
export const wrapped = (
  words: Words,
  { valued: withValue = '', before = 0, after }: Wrapper,
): Meaning => {
  const valued = listWords(withValue);
  let at = skipOptions(words, 1, valued);
  if (after !== undefined) {
    const next = words[at];
    if (next == null || !listWords(after).includes(next)) return {};
    at = skipOptions(words, at + 1, valued);
  }
  at = skipOptions(words, at + before, valued);
  return at < words.length ? { commands: [words.slice(at)], runs: at } : {};
};
