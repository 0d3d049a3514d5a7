import { statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { attemptNow } from '@pawl/agent/session/attempt';
import type { NamePaste } from '@pawl/terminal/input/composer';
import { readTypedInput } from '../../slash/command-table-and-parser.js';
import { mentionOf } from './mentioned-pictures.js';

/** A file that is dragged into the window arrives as a pasted path. Each terminal quotes it differently. */

const CHARACTERS_MAX = 4_096;
/** Limit on the pictures in one paste, since each one needs a look at the disk. */
const FILES_MAX = 20;

const SHELL_WORDS = /(?:[^\s\\'"]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+/g;

/** The words of the paste as a shell would divide them; none if a quote is not closed. */
const shellWordsOf = (text: string): readonly string[] =>
  text.replace(SHELL_WORDS, '').trim() === '' ? (text.match(SHELL_WORDS) ?? []) : [];

const QUOTED = /\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)"/g;

/** The text without shell quotes, if a shell would read it as one word. */
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
  return read.kind === 'done' ? read.value : null; // a file on another machine, or no URL: treat it as text
};

/**
 * Absolute paths that a paste may mean, the likeliest first. Relative paths are excluded: terminals never paste them, and
 * `logo.png` may be a word in a sentence.
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
  return found.kind === 'done' && found.value; // an inaccessible path is not treated as a file
};

/** Relative inside the workspace, absolute outside. */
const asSeenFrom = (workspace: string, file: string): string => {
  const relative = path.relative(workspace, file);
  return relative.startsWith('..') ? file : relative;
};

/** Replaces pasted paths of pictures with mentions, except in lines that no model reads, such as `!open …`. */
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
    readTypedInput(`${before}@`, 'steer').kind === 'say' ? (nameOf(pasted) ?? namesOf(pasted)) : null;
};
