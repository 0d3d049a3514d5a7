import { escapeInJson, markInvisible } from './visible-marks.js';

/**
 * Text that may be shown on a terminal: our own words and styles, and foreign text with visible marks in place of what a
 * terminal obeys. Only this file makes it; everything that is printed has this type.
 */
declare const checked: unique symbol;

/** These methods only cut or pad, so what they give is safe too. `+` and template strings give a plain string: use `safe`. */
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

/** For this file alone: `text` was put together from safe parts. */
const asSafe = (text: string): Safe => text as Safe; // the brand exists in types only

/** Foreign text, made safe. Marks are plain text; `show` styles them where colours are wanted. */
export const makeSafe = (untrusted: string, show?: (mark: string) => string): Safe =>
  asSafe(markInvisible(untrusted, show));

/** A template of our own words with safe text in it: safe`${makeSafe(name)} is gone`. */
export const safe = (words: TemplateStringsArray, ...values: readonly (Safe | number)[]): Safe => {
  let text = words[0] ?? '';
  for (const [index, value] of values.entries()) text += `${value}${words[index + 1] ?? ''}`;
  return asSafe(text);
};

export const joinSafe = (parts: readonly Safe[], separator: Safe = safe``): Safe =>
  asSafe(parts.join(separator));

/** The pieces of safe text, in order and unchanged. For code that breaks it into rows or signs. */
export const cutSafe = (text: Safe, cut: (text: string) => readonly string[]): readonly Safe[] =>
  cut(text).map(asSafe);

/** `text` between the codes (Select Graphic Rendition, digits and semicolons) that begin and end a style. */
export const styleSafe = (text: Safe, begin: string, end: string): Safe =>
  /^[\d;]+$/.test(begin + end) ? asSafe(`\u001b[${begin}m${text}\u001b[${end}m`) : text;

/** A value as JSON; what a terminal would obey, and what can't be seen, as `\uXXXX`: the value is the same. */
export const safeJson = (value: unknown, indent = 0): Safe =>
  asSafe(escapeInJson(JSON.stringify(value, null, indent)));

/** A control sequence other than a style, a control character, or what reorders text. */
const FOREIGN =
  /\u001b(?!\[[\d;]*m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const STYLES = /(\u001b\[[\d;]*m)/;

/**
 * Text in which only styles steer the terminal; anything else in it gets its mark. For what libraries lay out of safe
 * text, and a last look at what is printed: types are not there when the program runs.
 */
export const keepStyles = (text: string): Safe => {
  if (!FOREIGN.test(text)) return asSafe(text);
  const pieces = text.split(STYLES).map((piece, index) => (index % 2 === 1 ? piece : markInvisible(piece)));
  return asSafe(pieces.join(''));
};
