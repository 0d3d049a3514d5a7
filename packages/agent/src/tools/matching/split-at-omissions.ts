import { linesOf } from './text-lines.js';

/** Markers for omitted lines: `// ... existing code ...`. */

const OPENING = /^(?:\/\/+|#+|\/\*+|\{\/\*|<!--|--|;+|%+|\*|"""|''')\s*/;
const CLOSING = /\s*(?:\*\/\}?|-->|"""|''')$/;
const DOTS = /^(?:\.{3,}|\u2026)/;
const WORDS =
  /\b(?:existing|unchanged|rest|remaining|other|same|previous|keep|kept|omitted|more|code|lines|content|as before)\b/i;
const ENDS_WITH_DOTS = /(?:\.{3,}|\u2026)$/;

/**
 * Whether a line is a marker: a comment that starts with dots and is empty or mentions omitted code; without a comment
 * sign, dots alone, or such words between dots.
 */
const isMarker = (line: string): boolean => {
  const trimmed = line.trim();
  const inside = trimmed.replace(OPENING, '').replace(CLOSING, '').trim();
  if (!DOTS.test(inside)) return false;
  const words = inside.replace(DOTS, '').replace(ENDS_WITH_DOTS, '').trim();
  if (words === '') return true;
  if (words.length > 100 || !WORDS.test(words)) return false;
  return inside !== trimmed || (/^\s/.test(inside.replace(DOTS, '')) && ENDS_WITH_DOTS.test(inside));
};

/** Whether a line is a marker beyond doubt. */
const isPlainMarker = (line: string): boolean =>
  isMarker(line) && /\bexisting code\b|\brest of\b/i.test(line);

/** The whole lines between markers. `first`, `last`: the text starts or ends with a marker. */
type Cut = { readonly parts: readonly string[]; readonly first: boolean; readonly last: boolean };

const cutAtMarkers = (text: string): Cut => {
  const parts: string[] = [];
  let from = 0;
  let first = false;
  let last = false;
  for (const { text: line, start, next } of linesOf(text)) {
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

export type Segmented =
  | {
      readonly kind: 'segments';
      /** Parts in the order of the file, with any text between them. */
      readonly oldParts: readonly string[];
      /** One for each of `oldParts`, or a single one for the whole range. */
      readonly newParts: readonly string[];
    }
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly why: string };

/** Both texts divided at their markers; `none` if the old text has no marker. */
export const segmentsOf = (oldText: string, newText: string): Segmented => {
  const old = cutAtMarkers(oldText);
  if (old.parts.length === 1 && !old.first && !old.last) return { kind: 'none' };
  const next = cutAtMarkers(newText);
  if ((next.first && !old.first) || (next.last && !old.last)) {
    return { kind: 'refused', why: 'begins or ends with a marker for left out lines where oldText does not' };
  }
  if (old.parts.length === 0 || old.parts.some((part) => part.trim() === '')) return { kind: 'none' };
  const marks = next.parts.length - 1;
  if (marks === old.parts.length - 1 || marks === 0) {
    return { kind: 'segments', oldParts: old.parts, newParts: next.parts.length === 0 ? [''] : next.parts };
  }
  return {
    kind: 'refused',
    why: `has ${marks} markers for left out lines, and oldText has ${old.parts.length - 1}: give each in both texts`,
  };
};

/** A marker of the new text without a counterpart in the old text; null if there is none. */
export const strayMarker = (oldText: string, newText: string): string | null => {
  const known = new Set(linesOf(oldText).map(({ text }) => text.trim()));
  const stray = linesOf(newText).find(({ text }) => isPlainMarker(text) && !known.has(text.trim()));
  return stray === undefined ? null : stray.text.trim();
};
