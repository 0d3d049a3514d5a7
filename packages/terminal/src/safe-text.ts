import { escapeInJson, markInvisible } from './visible-marks.js';

/**
 * Text that is safe to print: our own words and styles, and untrusted text whose control characters became visible marks.
 * Only this file creates it, and printing accepts no other type.
 */
declare const checked: unique symbol;

/** These methods only cut or pad, so their results are safe too. `+` and templates give a plain string: use `safe`. */
type Cuts = {
  trim(): Safe;
  trimStart(): Safe;
  trimEnd(): Safe;
  slice(start?: number, end?: number): Safe;
  split(separator: string | RegExp): Safe[];
  padStart(length: number): Safe;
  padEnd(length: number): Safe;
  repeat(count: number): Safe;
};

export type Safe = Cuts & string & { readonly [checked]: true };

/** For this file only: `text` must consist of safe parts. */
const asSafe = (text: string): Safe => text as Safe; // the brand exists only in types

/** Makes untrusted text safe. Marks are plain text; `show` can style them. */
export const makeSafe = (untrusted: string, show?: (mark: string) => string): Safe =>
  asSafe(markInvisible(untrusted, show));

/** A template of our own words with safe values: safe`${makeSafe(name)} is gone`. */
export const safe = (words: TemplateStringsArray, ...values: readonly (Safe | number)[]): Safe => {
  let text = words[0] ?? '';
  for (const [index, value] of values.entries()) text += `${value}${words[index + 1] ?? ''}`;
  return asSafe(text);
};

export const joinSafe = (parts: readonly Safe[], separator: Safe = safe``): Safe =>
  asSafe(parts.join(separator));

/** The pieces of safe text, in order and unchanged. For code that divides it into rows or characters. */
export const cutSafe = (text: Safe, cut: (text: string) => readonly string[]): readonly Safe[] =>
  cut(text).map(asSafe);

/** `text` between the codes that start and end a style (digits and semicolons of Select Graphic Rendition). */
export const styleSafe = (text: Safe, begin: string, end: string): Safe =>
  /^[\d;]+$/.test(begin + end) ? asSafe(`\u001b[${begin}m${text}\u001b[${end}m`) : text;

/** JSON in which control and invisible characters are escaped as `\uXXXX`. It parses to the same value. */
export const safeJson = (value: unknown, indent = 0): Safe =>
  asSafe(escapeInJson(JSON.stringify(value, null, indent)));

/** Control sequences except styles, control characters, and characters that reorder text. */
const FOREIGN =
  /\u001b(?!\[[\d;]*m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const STYLES = /(\u001b\[[\d;]*m)/;

/**
 * Keeps styles and replaces every other control character with its mark. For text that a library laid out, and as a last
 * check before printing, because types don't exist at run time.
 */
export const keepStyles = (text: string): Safe => {
  if (!FOREIGN.test(text)) return asSafe(text);
  const pieces = text.split(STYLES).map((piece, index) => (index % 2 === 1 ? piece : markInvisible(piece)));
  return asSafe(pieces.join(''));
};
