import { hasBackdrops, type Look, padded, paint, paintOn } from '../paint-text.js';
import { joinSafe, makeSafe, type Safe, safe } from '../safe-text.js';
import { columnsOf, wrapText } from '../width.js';
import { type MarkedPart, markWords } from './changed-words.js';

/** Rows of a diff, and the number of lines left out. */
export type DiffRows = { readonly rows: readonly Safe[]; readonly left: number };

type Sign = '+' | '-' | ' ';
type Line = {
  readonly number: number;
  readonly sign: Sign;
  readonly text: Safe;
  /** The parts that differ from the line on the other side. */
  readonly parts?: readonly MarkedPart[];
};

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)/;

/** The lines of a unified diff with numbers: of the new text, or of the old text for removed lines. null between hunks. */
const linesOf = (diff: string): readonly (Line | null)[] => {
  const lines: (Line | null)[] = [];
  let before = 0;
  let after = 0;
  for (const line of makeSafe(diff).trimEnd().split('\n')) {
    const hunk = HUNK.exec(line);
    if (hunk !== null) {
      if (lines.length > 0) lines.push(null);
      before = Number(hunk[1]);
      after = Number(hunk[2]);
    } else if (after === 0 && before === 0)
      continue; // a line of the header
    else if (line.startsWith('+')) lines.push({ number: after++, sign: '+', text: line.slice(1) });
    else if (line.startsWith('-')) lines.push({ number: before++, sign: '-', text: line.slice(1) });
    else if (!line.startsWith('\\')) {
      lines.push({ number: after++, sign: ' ', text: line.slice(1) });
      before += 1;
    }
  }
  return lines;
};

/** Larger changes are not compared line by line. */
const RUN_MAX = 30;

/** Marks changed words: compares each removed line with the added lines after it and takes the most similar one. */
const withMarks = (lines: readonly (Line | null)[]): readonly (Line | null)[] => {
  const marked = [...lines];
  const endOfRun = (from: number, sign: Sign): number => {
    let end = from;
    while (lines[end]?.sign === sign) end += 1;
    return end;
  };
  let at = 0;
  while (at < lines.length) {
    const removedEnd = endOfRun(at, '-');
    const addedEnd = endOfRun(removedEnd, '+');
    if (addedEnd - at <= RUN_MAX) {
      let next = removedEnd;
      for (let index = at; index < removedEnd; index++) next = markBest(lines, index, next, addedEnd, marked);
    }
    at = Math.max(at + 1, addedEnd);
  }
  return marked;
};

/** Marks a removed line and the most similar added line from `from` to `end`. Returns the start for the next search. */
const markBest = (
  lines: readonly (Line | null)[],
  index: number,
  from: number,
  end: number,
  marked: (Line | null)[],
): number => {
  const before = lines[index];
  const candidates = lines.slice(from, end).flatMap((after, offset) => {
    const pair = before && after ? markWords(before.text, after.text) : null;
    return pair === null || !after ? [] : [{ at: from + offset, after, pair }];
  });
  const [first, ...others] = candidates;
  if (!before || first === undefined) return from;
  const best = others.reduce((one, other) => (other.pair.shared > one.pair.shared ? other : one), first);
  marked[index] = { ...before, parts: best.pair.before };
  marked[best.at] = { ...best.after, parts: best.pair.after };
  return best.at + 1;
};

const INDENT = safe`    `;
const SIGNS = { '+': safe`+`, '-': safe`-`, ' ': safe` ` } as const;
const COLOURS = { '+': 'green', '-': 'red' } as const;
const BACKDROPS = {
  '+': { line: 'added', word: 'addedWord' },
  '-': { line: 'removed', word: 'removedWord' },
} as const;

/** The text of a line with its marked parts highlighted. */
const paintText = (look: Look, { text, sign, parts = [] }: Line): Safe => {
  if (sign === ' ') return text;
  const painted: Safe[] = [];
  let at = 0;
  for (const { length, marked } of [...parts, { length: text.length, marked: false }]) {
    const part = text.slice(at, at + length);
    at += length;
    if (part === '') continue;
    if (!hasBackdrops(look)) {
      const coloured = paint(look, COLOURS[sign], part);
      painted.push(marked ? paint(look, 'underline', coloured) : coloured);
    } else painted.push(paintOn(look, marked ? BACKDROPS[sign].word : BACKDROPS[sign].line, part));
  }
  return joinSafe(painted);
};

/** A unified diff as rows of `look.columns` with line numbers. At most `limit` lines. */
export const diffRows = (look: Look, diff: string, limit: number): DiffRows => {
  const lines = linesOf(diff);
  const shown = withMarks(lines.slice(0, limit));
  const digits = String(Math.max(0, ...lines.map((line) => line?.number ?? 0))).length;
  const room = Math.max(8, look.columns - INDENT.length - digits - 4);
  // Background colours end at the longest of these lines.
  const wide = Math.min(room, Math.max(0, ...shown.map((line) => columnsOf(line?.text ?? '') + 1)));
  const rows = shown.flatMap((line) => {
    if (line === null) return [safe`${INDENT}${paint(look, 'dim', safe`⋮`.padStart(digits))}`];
    const { sign } = line;
    const signed = sign === ' ' ? SIGNS[sign] : paint(look, COLOURS[sign], SIGNS[sign]);
    return wrapText(paintText(look, line), room).map((part, index) => {
      const number = paint(look, 'dim', (index === 0 ? safe`${line.number}` : safe``).padStart(digits));
      if (sign === ' ' || !hasBackdrops(look)) return safe`${INDENT}${number} ${signed} ${part}`.trimEnd();
      const { line: backdrop } = BACKDROPS[sign];
      const rest = padded(safe``, wide - columnsOf(part));
      const body = [paintOn(look, backdrop, safe`${signed} `), part, paintOn(look, backdrop, rest)];
      return safe`${INDENT}${number} ${joinSafe(body)}`;
    });
  });
  return { rows, left: Math.max(0, lines.length - limit) };
};
