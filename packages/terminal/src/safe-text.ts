/**
 * Text that is safe to print: our own words and styles, and untrusted text whose control characters
 * became visible marks. Only this file creates it, and printing accepts no other type.
 */

/** Marks the type: nobody else can name this symbol. */
declare const checked: unique symbol;

/**
 * These methods only cut or pad, so their results are safe too. `+` and templates give a plain
 * string: use `safe`.
 */
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

/**
 * The pieces of safe text, in order and unchanged. For code that divides it into rows or
 * characters.
 */
export const cutSafe = (text: Safe, cut: (text: string) => readonly string[]): readonly Safe[] =>
  cut(text).map(asSafe);

/**
 * `text` between the codes that start and end a style (digits and semicolons of Select Graphic
 * Rendition).
 */
export const styleSafe = (text: Safe, begin: string, end: string): Safe =>
  /^[\d;]+$/.test(begin + end) ? asSafe(`\u001b[${begin}m${text}\u001b[${end}m`) : text;

/**
 * JSON in which control and invisible characters are escaped as `\uXXXX`. It parses to the same
 * value.
 */
export const safeJson = (value: unknown, indent = 0): Safe =>
  asSafe(escapeInJson(JSON.stringify(value, null, indent)));

/** Control sequences except styles, control characters, and characters that reorder text. */
const FOREIGN =
  /\u001b(?!\[[\d;]*m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const STYLES = /(\u001b\[[\d;]*m)/;

/**
 * Keeps styles and replaces every other control character with its mark. For text that a library
 * laid out, and as a last check before printing, because types don't exist at run time.
 */
export const keepStyles = (text: string): Safe => {
  if (!FOREIGN.test(text)) return asSafe(text);
  const pieces = text
    .split(STYLES)
    .map((piece, index) => (index % 2 === 1 ? piece : markInvisible(piece))); // odd: a style
  return asSafe(pieces.join(''));
};

// ---- Marks ----

/**
 * `markInvisible` replaces invisible characters, and characters that control a terminal or reorder
 * text, with visible marks: `␛` for an ASCII control character, `⟨U+202E⟩` for every other one.
 *
 * 1. Line feed and tab stay. CR LF becomes LF.
 * 2. Invisible characters stay where a script or an emoji needs them: joiners between letters of
 *    certain scripts and in emoji, variation selectors after a character with variants, the three
 *    flags made of tags.
 * 3. The time is linear in the length of the text. Text without such characters is returned
 *    unchanged.
 */

/**
 * `text` with marks for characters that a terminal obeys or nobody sees. `show` can style the
 * marks.
 */
const markInvisible = (text: string, show?: (mark: string) => string): string => {
  if (!SUSPICIOUS.test(text)) return text;
  return text.replace(MARKED, (character: string, at: number) => {
    if (character === '\r\n') return '\n';
    if (isInPlace(text, character, at)) return character;
    return show === undefined ? markFor(character) : show(markFor(character));
  });
};

/**
 * Characters that may need a mark, for both expressions below: controls, invisible characters,
 * private ones and noncharacters. `SUSPICIOUS` reads UTF-16 units and so matches all
 * surrogates; `MARKED` reads code points and matches only lone ones.
 */
const ODD =
  '\\u034f\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f' +
  '\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ud800-\\uf8ff\\ufdd0-\\ufdef\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffc\\ufffe\\uffff';
/** A cheap first pass: whether any character may need a mark. */
const SUSPICIOUS = new RegExp(`[${ODD}]`);
const MARKED = new RegExp(
  `\\r\\n|[${ODD}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{1fffe}\\u{1ffff}\\u{2fffe}\\u{2ffff}\\u{3fffe}\\u{3ffff}\\u{e0000}-\\u{10ffff}]`,
  'gu',
);

/** Flags of England, Scotland and Wales: a black flag, tag letters, and the tag that ends them. */
const TAGGED_FLAG =
  /\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/uy;
/** UTF-16 units of such a flag. */
const FLAG_UNITS = 14;
/** Number of marks to cache: creating one takes longer than finding it. */
const MARKS_KEPT = 1_000;
const FLAG = '\u{1f3f4}';

/**
 * Classes of characters. Created with the first text that needs them: tables of Unicode properties
 * take longer than drawing a screen.
 */
let signs: {
  readonly emoji: RegExp;
  readonly pictograph: RegExp;
  readonly han: RegExp;
  readonly mongolian: RegExp;
  /** A letter or mark of a script that uses joiners. */
  readonly joined: RegExp;
} | null = null;

const loadSigns = (): NonNullable<typeof signs> => {
  signs ??= {
    emoji: /^\p{Emoji}$/u,
    pictograph: /^[\ufe0f\p{Extended_Pictographic}\p{Emoji_Modifier}]$/u,
    han: /^\p{Script=Han}$/u,
    mongolian: /^\p{Script=Mongolian}$/u,
    joined:
      /^[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}]$|^[\u064b-\u065f\u0670]$/u,
  };
  return signs;
};

/** The code point that ends before `at`; empty at the start of the text. */
const signBefore = (text: string, at: number): string => {
  const low = text.charCodeAt(at - 1);
  const isPair = low >= 0xdc00 && low <= 0xdfff && at > 1;
  return text.slice(Math.max(0, at - (isPair ? 2 : 1)), at);
};

const signAfter = (text: string, at: number): string => {
  const point = text.codePointAt(at);
  return point === undefined ? '' : String.fromCodePoint(point);
};

/** Whether a joiner stands between two signs that it joins. */
const joins = (text: string, at: number): boolean => {
  const { joined, pictograph } = loadSigns();
  const before = signBefore(text, at);
  const after = signAfter(text, at + 1);
  if (joined.test(before) && joined.test(after)) return true;
  // an emoji of several: U+200D joins them, and no variation selector can begin the second one
  return (
    text[at] === '\u200d' && pictograph.test(before) && pictograph.test(after) && after !== '\ufe0f'
  );
};

/** Whether a variation selector follows a character that has variants. */
const selectsVariant = (text: string, character: string, at: number): boolean => {
  const { emoji, han } = loadSigns();
  const before = signBefore(text, at);
  // two selectors choose between emoji and text, all others between forms of a Chinese character
  if (character !== '\ufe0e' && character !== '\ufe0f') return han.test(before);
  // A digit is part of an emoji only in a keycap.
  return emoji.test(before) && (!/^[\d#*]$/.test(before) || text[at + 1] === '\u20e3');
};

/** Whether a tag letter belongs to one of the three flags. */
const isTagOfFlag = (text: string, at: number): boolean => {
  const from = Math.max(0, at - FLAG_UNITS);
  const start = text.slice(from, at).lastIndexOf(FLAG);
  if (start < 0) return false;
  TAGGED_FLAG.lastIndex = from + start;
  return TAGGED_FLAG.test(text);
};

/** Whether an invisible character is used as intended. */
const isInPlace = (text: string, character: string, at: number): boolean => {
  const point = character.codePointAt(0) ?? 0;
  if (point === 0x200c || point === 0x200d) return joins(text, at);
  if ((point >= 0xfe00 && point <= 0xfe0f) || (point >= 0xe0100 && point <= 0xe01ef))
    return selectsVariant(text, character, at);
  if (point >= 0x180b && point <= 0x180f && point !== 0x180e)
    return loadSigns().mongolian.test(signBefore(text, at));
  return point >= 0xe0020 && point <= 0xe007f && isTagOfFlag(text, at);
};

const marks = new Map<string, string>();

const markFor = (character: string): string => {
  const known = marks.get(character);
  if (known !== undefined) return known;
  const mark = visibleMark(character);
  if (marks.size < MARKS_KEPT) marks.set(character, mark);
  return mark;
};

/** The visible mark of a character that a terminal obeys or nobody sees. */
export const visibleMark = (character: string): string => {
  const point = character.codePointAt(0) ?? 0;
  if (point < 0x20) return String.fromCodePoint(0x2400 + point);
  if (point === 0x7f) return '␡';
  return `⟨U+${point.toString(16).toUpperCase().padStart(4, '0')}⟩`;
};

/**
 * Escapes all characters that may need a mark in JSON as `\uXXXX`. The value stays the same, and no
 * terminal obeys it.
 */
export const escapeInJson = (json: string): string => {
  if (!SUSPICIOUS.test(json)) return json;
  return json.replace(MARKED, (character: string) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
};
