/**
 * Other ways to read the texts of an edit, since models write what they saw: with the line numbers
 * of a listing, with escapes as in JSON, with markers for omitted lines. From top to bottom:
 * `readEdit`, line numbers, escapes, markers.
 */

import { lineTexts, splitLines } from './lines.js';

/** Half of a character, which no file can hold. */
export const LONE_SURROGATE = /\p{Surrogate}/u;

/** What a reading has removed from the text. */
export type Removed = 'nothing' | 'lineNumbers' | 'escapes' | 'escapesAndLineNumbers';

/** One reading of `oldText`. */
export type EditReading = {
  readonly oldText: string;
  readonly removed: Removed;
  /** `newText` read in the same way; null if that is ambiguous. */
  readonly newText: string | null;
};

/** All readings of an edit, the literal one first. */
export const readEdit = (oldText: string, newText: string): readonly EditReading[] => {
  const readings: EditReading[] = [{ oldText, newText, removed: 'nothing' }];
  const add = (reading: EditReading): void => {
    if (!readings.some((known) => known.oldText === reading.oldText)) readings.push(reading);
  };
  const addWithoutNumbers = (text: string, other: string | null, removed: Removed): void => {
    const bare = removeNumbers(text);
    if (bare === null) return;
    const bareOther = other === null ? null : removeSameNumbers(other, bare.separator);
    add({ oldText: bare.text, newText: bareOther, removed });
  };
  addWithoutNumbers(oldText, newText, 'lineNumbers');
  for (const kinds of ['all', 'breaks'] as const) {
    if (escapesIn(oldText, kinds).size === 0) continue;
    const decoded = decode(oldText, kinds);
    const other = decodeSame(oldText, newText, kinds);
    add({ oldText: decoded, newText: other, removed: 'escapes' });
    addWithoutNumbers(decoded, other, 'escapesAndLineNumbers');
  }
  return readings;
};

// ---- Line numbers ----

/**
 * Separators after the number. A tab or an arrow is enough to recognise a listing; for others the
 * numbers must ascend.
 */
const NUMBERED = /^ *(\d{1,7})(\t|\u2192|[:|] ?| \| ?)(.*)$/s;
const BARE_NUMBER = /^ *(\d{1,7})$/;
const CLEAR_SEPARATORS = new Set(['\t', '\u2192']);

type Numbered = { readonly number: number; readonly separator: string; readonly text: string };

/**
 * The text without line numbers, and the separator after each; null if the text is not a listing.
 */
const removeNumbers = (
  text: string,
): { readonly text: string; readonly separator: string } | null => {
  const lines = bodyLines(text).map(readNumber);
  const numbered = lines.filter((line) => line !== null);
  const separators = new Set(
    numbered.map(({ separator }) => separator).filter((one) => one !== ''),
  );
  const [separator] = separators;
  if (numbered.length < lines.length || separators.size !== 1 || separator === undefined)
    return null;
  const ascends =
    numbered.length > 1 &&
    numbered.every(({ number }, at) => at === 0 || number === (numbered[at - 1]?.number ?? 0) + 1);
  if (!CLEAR_SEPARATORS.has(separator) && !ascends) return null;
  return {
    text: rejoin(
      text,
      numbered.map((line) => line.text),
    ),
    separator,
  };
};

/** The new text without line numbers, if it has any; null if only some of its lines have. */
const removeSameNumbers = (text: string, separator: string): string | null => {
  const lines = bodyLines(text).map((line) => ({ line, numbered: readNumber(line) }));
  const others = lines.filter(({ numbered }) => numbered?.separator !== separator);
  if (others.length === lines.length) return text;
  if (others.some(({ line }) => line.trim() !== '' && !BARE_NUMBER.test(line))) return null;
  return rejoin(
    text,
    lines.map(({ line, numbered }) => numbered?.text ?? line),
  );
};

const readNumber = (line: string): Numbered | null => {
  const [, digits, separator, text] = NUMBERED.exec(line) ?? [];
  if (digits !== undefined && separator !== undefined && text !== undefined)
    return { number: Number(digits), separator, text };
  const bare = BARE_NUMBER.exec(line)?.[1];
  return bare === undefined ? null : { number: Number(bare), separator: '', text: '' };
};

/** The lines of a text, without the empty one after its last line break. */
const bodyLines = (text: string): readonly string[] => {
  const lines = lineTexts(text);
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
};

const rejoin = (text: string, lines: readonly string[]): string =>
  lines.join('\n') + (text.endsWith('\n') ? '\n' : '');

// ---- Escapes ----

const ESCAPE = /\\(u[0-9a-fA-F]{4}|[\s\S])/g;
const ESCAPED: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  '"': '"',
  "'": "'",
  '`': '`',
  '\\': '\\',
  '/': '/',
};
const BREAKS_AND_TABS = new Set(['n', 'r', 't']);
const BACKSLASH_AND_QUOTES = new Set(['\\', '"', "'"]);

/**
 * Which escapes to decode: all, or only those of line breaks and tabs, since the others may be
 * literal, as in a regular expression.
 */
type Kinds = 'all' | 'breaks';

/** What follows the backslash; `u0` for any number. A `u` without one is no escape. */
const getEscapeKind = (sequence: string): string => (sequence.length > 1 ? 'u0' : sequence);

const isDecoded = (kind: string, kinds: Kinds): boolean =>
  kinds === 'breaks' ? BREAKS_AND_TABS.has(kind) : kind === 'u0' || Object.hasOwn(ESCAPED, kind);

const escapesIn = (text: string, kinds: Kinds): ReadonlySet<string> => {
  const all = [...text.matchAll(ESCAPE)].map(([, sequence = '']) => getEscapeKind(sequence));
  return new Set(all.filter((kind) => isDecoded(kind, kinds)));
};

const decode = (text: string, kinds: Kinds): string =>
  text
    .replace(ESCAPE, (whole, sequence: string) => {
      if (!isDecoded(getEscapeKind(sequence), kinds)) return whole;
      if (sequence.length > 1) return String.fromCharCode(Number.parseInt(sequence.slice(1), 16));
      return ESCAPED[sequence] ?? whole;
    })
    .replace(/\r\n/g, '\n');

/**
 * Decodes in the new text the escapes that the old text turned out to contain.
 *
 * 1. A new text with literal line breaks or quotes, where the old one has them escaped, is not
 *    escaped itself.
 * 2. null: an escape that the old text does not have may be literal. A backslash or quote is none
 *    of these: where one text is escaped, they must be.
 * 3. null: a decoded line break may belong inside a string, which then begins in one line and ends
 *    in another. Escaped quotes show that all is escaped: such a break would have two backslashes.
 */
const decodeSame = (oldText: string, newText: string, kinds: Kinds): string | null => {
  const oldKinds = escapesIn(oldText, kinds);
  const newKinds = escapesIn(newText, kinds);
  if (newKinds.size === 0) return newText;
  const isRaw = (kind: string, raw: string): boolean =>
    oldKinds.has(kind) && !oldText.includes(raw) && newText.includes(raw);
  if (isRaw('n', '\n') || isRaw('"', '"')) return newText;
  if ([...newKinds].some((kind) => !oldKinds.has(kind) && !BACKSLASH_AND_QUOTES.has(kind)))
    return null;
  const decoded = decode(newText, kinds);
  const quotesAreEscaped = oldKinds.has('"') || newKinds.has('"');
  if (!newKinds.has('n') || quotesAreEscaped) return decoded;
  const known = new Set(lineTexts(decode(oldText, kinds)));
  return lineTexts(decoded).some((line) => hasOddQuotes(line) && !known.has(line)) ? null : decoded;
};

/** Whether a string begins in a line and does not end in it, or the other way round. */
const hasOddQuotes = (line: string): boolean =>
  ['"', "'"].some((quote) => (line.replace(/\\./g, '').split(quote).length - 1) % 2 === 1);

// ---- Markers for omitted lines: `// ... existing code ...` ----

const COMMENT_START = /^(?:\/\/+|#+|\/\*+|\{\/\*|<!--|--|;+|%+|\*|"""|''')\s*/;
const COMMENT_END = /\s*(?:\*\/\}?|-->|"""|''')$/;
const STARTS_WITH_DOTS = /^(?:\.{3,}|\u2026)/;
const OMISSION_WORDS =
  /\b(?:existing|unchanged|rest|remaining|other|same|previous|keep|kept|omitted|more|code|lines|content|as before)\b/i;
const ENDS_WITH_DOTS = /(?:\.{3,}|\u2026)$/;

/**
 * Whether a line is a marker: a comment that starts with dots and is empty or mentions omitted
 * code; without a comment sign, dots alone, or such words between dots.
 */
const isMarker = (line: string): boolean => {
  const trimmed = line.trim();
  const inside = trimmed.replace(COMMENT_START, '').replace(COMMENT_END, '').trim();
  if (!STARTS_WITH_DOTS.test(inside)) return false;
  const words = inside.replace(STARTS_WITH_DOTS, '').replace(ENDS_WITH_DOTS, '').trim();
  if (words === '') return true;
  if (words.length > 100 || !OMISSION_WORDS.test(words)) return false;
  return (
    inside !== trimmed ||
    (/^\s/.test(inside.replace(STARTS_WITH_DOTS, '')) && ENDS_WITH_DOTS.test(inside))
  );
};

/**
 * The whole lines between markers. `first`, `last`: the text starts or ends with a marker, whose
 * empty part on the outside is dropped.
 */
type Cut = { readonly parts: readonly string[]; readonly first: boolean; readonly last: boolean };

const cutAtMarkers = (text: string): Cut => {
  const parts: string[] = [];
  let from = 0;
  let first = false;
  let last = false;
  for (const { text: line, start, next } of splitLines(text)) {
    last = last && line.trim() === '';
    if (!isMarker(line)) continue;
    const part = text.slice(from, start);
    if (parts.length === 0 && part.trim() === '') first = true;
    parts.push(part);
    from = next;
    last = true;
  }
  parts.push(text.slice(from));
  return { parts: parts.slice(first ? 1 : 0, last ? -1 : undefined), first, last };
};

export type SplitTexts =
  | {
      readonly kind: 'split';
      /** Parts in the order of the file, with any text between them. */
      readonly oldParts: readonly string[];
      /** One for each of `oldParts`, or a single one for the whole range. */
      readonly newParts: readonly string[];
    }
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly why: string };

/** Both texts divided at their markers; `none` if the old text has no marker. */
export const splitAtMarkers = (oldText: string, newText: string): SplitTexts => {
  const old = cutAtMarkers(oldText);
  if (old.parts.length === 1 && !old.first && !old.last) return { kind: 'none' };
  const next = cutAtMarkers(newText);
  if ((next.first && !old.first) || (next.last && !old.last)) {
    return {
      kind: 'refused',
      why: 'begins or ends with a marker for left out lines where oldText does not',
    };
  }
  if (old.parts.length === 0 || old.parts.some((part) => part.trim() === ''))
    return { kind: 'none' };
  const newParts = next.parts.length === 0 ? [''] : next.parts; // a marker alone
  const markers = newParts.length - 1;
  // a marker at its edge stands for what is left out somewhere, so nothing is replaced by it
  const isWhole = markers === 0 && !next.first && !next.last;
  if (markers === old.parts.length - 1 || isWhole)
    return { kind: 'split', oldParts: old.parts, newParts };
  return {
    kind: 'refused',
    why:
      `has ${markers} markers for left out lines between its parts, and oldText has ` +
      `${old.parts.length - 1}: give each in both texts`,
  };
};

/** What `read` adds to the lines of a file: the end of a long one, and where it goes on. */
const READ_MARK =
  /^\[lines \d+-\d+ of \d+; go on with offset \d+\]$| \u2026 \d+ more characters in this line$/;

/**
 * A marker of the new text, or a mark of `read`, beyond doubt, without a counterpart in the old
 * text; null if there is none.
 */
export const findStrayMarker = (oldText: string, newText: string): string | null => {
  const known = new Set(lineTexts(oldText).map((line) => line.trim()));
  const isStray = (line: string): boolean =>
    !known.has(line.trim()) &&
    (READ_MARK.test(line) ||
      (oldText !== '' && isMarker(line) && /\bexisting code\b|\brest of\b/i.test(line)));
  return lineTexts(newText).find(isStray)?.trim() ?? null;
};

/**
 * What a whole new text of a file has that is no text of the file: half a character, a mark for
 * lines that were left out, line numbers of `read`; null if nothing. `before`: its text so far.
 */
export const findForeignText = (before: string, content: string): string | null => {
  if (LONE_SURROGATE.test(content)) return 'has half a character (a lone surrogate)';
  const stray = findStrayMarker(before, content);
  if (stray !== null)
    return `has \`${stray}\`, which the file has not: write the lines out, or edit the file`;
  const bare = removeNumbers(content);
  if (bare === null || removeNumbers(before) !== null) return null;
  const known = new Set(lineTexts(before).filter((line) => line.trim() !== ''));
  return lineTexts(bare.text).some((line) => known.has(line))
    ? 'has line numbers as read shows them, which the file has not: give the lines without them, ' +
        'or edit the file'
    : null;
};
