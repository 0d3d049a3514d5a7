import { statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { attemptNow } from '../../../runtime/attempt.js';
import type { NamePaste } from '../../../terminal/input/composer.js';
import { readWish } from '../../slash/slash-commands.js';
import { mentionOf } from './pictures.js';

/** Files that are dragged into the window arrive as a paste of their paths, each terminal quotes them in its own way. */

const CHARACTERS_MAX = 4_096;
/** More pictures at once are hardly meant: each is looked for on the disk. */
const FILES_MAX = 20;

const SHELL_WORDS = /(?:[^\s\\'"]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+/g;

/** The words that a shell would make of it, as they are written; none where a quote is left open. */
const shellWordsOf = (text: string): readonly string[] =>
  text.replace(SHELL_WORDS, '').trim() === '' ? (text.match(SHELL_WORDS) ?? []) : [];

const QUOTED = /\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)"/g;

/** The text after shell quoting is removed, if a shell would read it as one word. */
const unquoted = (text: string): string | null =>
  shellWordsOf(text)[0] === text
    ? text.replace(
        QUOTED,
        (_, escaped?: string, single?: string, double?: string) =>
          escaped ?? single ?? (double ?? '').replace(/\\(["\\$`])/g, '$1'),
      )
    : null;

const pathOfUrl = (text: string): string | null => {
  if (!/^file:\/\//i.test(text)) return null;
  const read = attemptNow(() => fileURLToPath(text));
  return read.kind === 'done' ? read.value : null; // a file of another machine, or no URL at all: it is text
};

/**
 * The absolute paths that a paste may mean, the likeliest first. A relative one is taken for words: terminals write none,
 * and who pastes `logo.png` may be talking about it.
 */
export const pathsMeant = (pasted: string, home: string): readonly string[] => {
  const text = pasted.trim();
  if (text.length > CHARACTERS_MAX || /\p{Cc}/u.test(text)) return [];
  const read = [text, unquoted(text), pathOfUrl(text)].filter((each) => each !== null);
  const whole = read.map((each) => (each.startsWith('~/') ? path.join(home, each.slice(2)) : each));
  return [...new Set(whole)].filter((each) => path.isAbsolute(each) && !/\p{Cc}/u.test(each));
};

const isFile = (file: string): boolean => {
  const found = attemptNow(() => statSync(file).isFile());
  return found.kind === 'done' && found.value; // what can't be looked at is no file to us
};

/** Inside the workspace the short path is enough. */
const asSeenFrom = (workspace: string, file: string): string => {
  const relative = path.relative(workspace, file);
  return relative.startsWith('..') ? file : relative;
};

/** Names pictures that are pasted as their paths. In a line that goes to no model, as `!open …`, a path stays one. */
export const namePastesIn = (workspace: string, home: string): NamePaste => {
  const nameOf = (pasted: string): string | null => {
    const file = pathsMeant(pasted, home).find((each) => mentionOf(each) !== null && isFile(each));
    return file === undefined ? null : mentionOf(asSeenFrom(workspace, file));
  };
  const namesOf = (pasted: string): string | null => {
    const words = pasted.length > CHARACTERS_MAX ? [] : shellWordsOf(pasted);
    if (words.length < 2 || words.length > FILES_MAX) return null;
    const names = words.map(nameOf).filter((name) => name !== null);
    return names.length === words.length ? names.join(' ') : null;
  };
  return (pasted, before) =>
    readWish(`${before}@`, 'steer').kind === 'say' ? (nameOf(pasted) ?? namesOf(pasted)) : null;
};
