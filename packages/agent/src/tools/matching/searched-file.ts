import {
  type Comparison,
  foldTypography,
  keyOf,
  linesOf,
  type TextLine,
  trimEndBlanks,
} from './text-lines.js';

/** A file's text with indexes that searches share. Each index is built on first use. */

/** The text with changed line ends, and a way back to offsets of the file. */
export type FileView = {
  readonly text: string;
  /** Offset in the file for an offset in `text`. */
  original(offset: number): number;
};

/** `endings`: only `\n`. `blanks`: also no trailing spaces. `typography`: also plain characters. */
export type ViewKind = 'endings' | 'blanks' | 'typography';

/** A number for each line; lines with equal keys have equal numbers. */
export type LineKeys = { readonly numbers: Int32Array; numberOf(key: string): number | undefined };

export type SearchedFile = {
  readonly text: string;
  readonly lines: readonly TextLine[];
  view(kind: ViewKind): FileView;
  keys(comparison: Comparison): LineKeys;
  /** Line number of an offset, from 1. */
  lineNumberAt(offset: number): number;
};

/** Index of the last of the ascending numbers that is not larger than `value`. */
const lastUpTo = (count: number, numberAt: (index: number) => number, value: number): number => {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (numberAt(middle) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
};

const makeView = (lines: readonly TextLine[], kind: ViewKind): FileView => {
  const shown = lines.map(({ text }) => {
    if (kind === 'endings') return text;
    return trimEndBlanks(kind === 'typography' ? foldTypography(text) : text);
  });
  const starts = new Float64Array(lines.length);
  let at = 0;
  for (const [index, text] of shown.entries()) {
    starts[index] = at;
    at += text.length + 1;
  }
  return {
    text: shown.join('\n'),
    original(offset) {
      const index = lastUpTo(starts.length, (one) => starts[one] ?? 0, offset);
      return (lines[index]?.start ?? 0) + offset - (starts[index] ?? 0);
    },
  };
};

const makeKeys = (lines: readonly TextLine[], comparison: Comparison): LineKeys => {
  const known = new Map<string, number>();
  const numbers = new Int32Array(lines.length);
  for (const [index, { text }] of lines.entries()) {
    const key = keyOf(text, comparison);
    const number = known.get(key) ?? known.size;
    known.set(key, number);
    numbers[index] = number;
  }
  return { numbers, numberOf: (key) => known.get(key) };
};

export const searchedFile = (text: string): SearchedFile => {
  const views = new Map<ViewKind, FileView>();
  const keyLists = new Map<string, LineKeys>();
  const lines = linesOf(text);
  return {
    text,
    lines,
    view(kind) {
      const view = views.get(kind) ?? makeView(lines, kind);
      views.set(kind, view);
      return view;
    },
    keys(comparison) {
      const name = `${comparison.typography} ${comparison.indentation}`;
      const keys = keyLists.get(name) ?? makeKeys(lines, comparison);
      keyLists.set(name, keys);
      return keys;
    },
    lineNumberAt: (offset) => lastUpTo(lines.length, (index) => lines[index]?.start ?? 0, offset) + 1,
  };
};
