/** The rows of an ended tool call, with its diff. */

import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import {
  countColumns,
  cutLine,
  formatSeconds,
  harmless,
  hasBackdrops,
  type Look,
  oneLine,
  padded,
  paint,
  paintOn,
  wrapText,
} from './paint.js';
import { joinSafe, makeSafe, type Safe, safe } from './safe-text.js';
import type { ToolResult } from './step-lines.js';

/**
 * An ended call: one line, and below it only the output that the user must see. `whole` has all
 * output.
 */
type CallRows = { readonly rows: readonly Safe[]; readonly whole: readonly Safe[] };

/** The call of a result. `tookMs` is null if its start was not seen. */
type KnownCall = {
  readonly call: JudgedCall | undefined;
  readonly title: string;
  readonly tookMs: number | null;
};

/** Lines of output below a failed call. */
const FAILED_LINES = 6;
/** Rows of output below a successful call. A longer output shows its first and last lines. */
const SHORT_LINES = 6;
const FIRST_LINES = 3;
const LAST_LINES = 2;
const DIFF_LINES = 24;
const SUMMARY_COLUMNS = 40;
const INDENT = safe`    `;

const moreLines = (count: number): Safe =>
  count === 1 ? safe`… 1 more line` : safe`… ${count} more lines`;

const outputLines = (text: string): readonly Safe[] => {
  const whole = harmless(text).trimEnd();
  return whole === '' ? [] : whole.split('\n');
};

/** A remark that the tool added to its output, see ToolOutcome. */
const isRemark = (line: string): boolean => /^\[.*\]$/.test(line);

const countText = (text: string): Safe => {
  const count = outputLines(text).filter((line) => !isRemark(line)).length;
  if (count === 0) return safe``;
  return count === 1 ? safe`1 line` : safe`${count} lines`;
};

const dimmed = (look: Look, lines: readonly Safe[]): readonly Safe[] =>
  lines.map((line) => paint(look, 'dim', cutLine(safe`${INDENT}${line}`, look.columns)));

const lastLines = (look: Look, lines: readonly Safe[], limit: number): readonly Safe[] => {
  const more = lines.length - limit;
  return dimmed(look, more > 0 ? [moreLines(more), ...lines.slice(-limit)] : lines);
};

const headAndTail = (lines: readonly Safe[]): readonly Safe[] => {
  if (lines.length <= SHORT_LINES) return lines;
  const more = moreLines(lines.length - FIRST_LINES - LAST_LINES);
  return [...lines.slice(0, FIRST_LINES), safe`${more} (Ctrl-O)`, ...lines.slice(-LAST_LINES)];
};

const callHead = (result: ToolResult, title: string, notes: Safe, look: Look): Safe => {
  const mark = result.status === 'ok' ? paint(look, 'green', safe`✓`) : paint(look, 'red', safe`✗`);
  const tool = makeSafe(result.tool);
  const room = look.columns - tool.length - notes.length - 4;
  const head =
    safe`${mark} ${paint(look, 'bold', tool)} ${oneLine(title, Math.max(12, room))}`.trimEnd();
  return notes === '' ? head : safe`${head} ${paint(look, 'dim', notes)}`;
};

/** A call that never ran, or that ran unseen. The first line of its result says why. */
const unseenCallRows = (result: ToolResult, title: string, look: Look): CallRows => {
  const [why = safe``, ...more] = outputLines(result.text);
  const room = look.columns - result.tool.length - why.length - 7;
  const head = callHead(result, oneLine(title, Math.max(20, room)), safe``, look);
  const rows = [safe`${head} · ${paint(look, 'dim', why)}`, ...lastLines(look, more, FAILED_LINES)];
  return { rows, whole: [safe`${head} · ${why}`, ...dimmed(look, more)] };
};

/** The tool's own summary; otherwise the heading of a list, or a count of lines. */
const callSummary = (
  { status, summary, diff, text }: ToolResult,
  call: JudgedCall | undefined,
): Safe => {
  if (status !== 'ok') return makeSafe(status);
  if (summary !== undefined) return oneLine(summary, SUMMARY_COLUMNS);
  if (diff !== null) return safe``;
  return call?.traits.shown === 'list' ? (outputLines(text)[0] ?? safe``) : countText(text);
};

const rowsBelow = (
  result: ToolResult,
  call: JudgedCall | undefined,
  look: Look,
): readonly Safe[] => {
  if (result.diff !== null) {
    const { rows, left } = diffRows(look, result.diff, DIFF_LINES);
    return left > 0 ? [...rows, ...dimmed(look, [moreLines(left)])] : rows;
  }
  if (result.status !== 'ok') return lastLines(look, outputLines(result.text), FAILED_LINES);
  // For a call that only reads, the summary is enough.
  if (!(call?.traits.mutating ?? false)) return [];
  return dimmed(look, headAndTail(outputLines(result.text).filter((line) => !isRemark(line))));
};

export const callRows = (result: ToolResult, known: KnownCall, look: Look): CallRows => {
  const { call, title, tookMs } = known;
  const good = result.status === 'ok';
  if (!good && tookMs === null) return unseenCallRows(result, title, look);
  const notes = [callSummary(result, call), tookMs === null ? safe`` : formatSeconds(tookMs)];
  const note = joinSafe(
    notes.filter((note) => note !== ''),
    safe` `,
  );
  const head = callHead(result, title, note, look);
  const all = outputLines(result.text).map((line) => safe`${INDENT}${line}`);
  const whole =
    result.diff === null ? all : diffRows(look, result.diff, Number.POSITIVE_INFINITY).rows;
  return { rows: [head, ...rowsBelow(result, call, look)], whole: [head, ...whole] };
};

/** Rows of a diff, and the number of lines left out. */
type DiffRows = { readonly rows: readonly Safe[]; readonly left: number };

type Sign = '+' | '-' | ' ';
type Line = {
  readonly number: number;
  readonly sign: Sign;
  readonly text: Safe;
  /** The parts that differ from the line on the other side. */
  readonly parts?: readonly MarkedPart[];
};

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)/;

/**
 * The lines of a unified diff with numbers: of the new text, or of the old text for removed lines.
 * null between hunks.
 */
const numberedLines = (diff: string): readonly (Line | null)[] => {
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

/**
 * Marks changed words: compares each removed line with the added lines after it and takes the most
 * similar one.
 */
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
      for (let index = at; index < removedEnd; index++)
        next = markBest(lines, index, next, addedEnd, marked);
    }
    at = Math.max(at + 1, addedEnd);
  }
  return marked;
};

/**
 * Marks a removed line and the most similar added line from `from` to `end`. Returns the start for
 * the next search.
 */
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
  const best = others.reduce(
    (one, other) => (other.pair.shared > one.pair.shared ? other : one),
    first,
  );
  marked[index] = { ...before, parts: best.pair.before };
  marked[best.at] = { ...best.after, parts: best.pair.after };
  return best.at + 1;
};

const DIFF_INDENT = safe`    `;
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
  const lines = numberedLines(diff);
  const shown = withMarks(lines.slice(0, limit));
  const digits = String(Math.max(0, ...lines.map((line) => line?.number ?? 0))).length;
  const room = Math.max(8, look.columns - DIFF_INDENT.length - digits - 4);
  // Background colours end at the longest of these lines.
  const wide = Math.min(
    room,
    Math.max(0, ...shown.map((line) => countColumns(line?.text ?? '') + 1)),
  );
  const rows = shown.flatMap((line) => {
    if (line === null) return [safe`${DIFF_INDENT}${paint(look, 'dim', safe`⋮`.padStart(digits))}`];
    const { sign } = line;
    const signed = sign === ' ' ? SIGNS[sign] : paint(look, COLOURS[sign], SIGNS[sign]);
    return wrapText(paintText(look, line), room).map((part, index) => {
      const number = paint(
        look,
        'dim',
        (index === 0 ? safe`${line.number}` : safe``).padStart(digits),
      );
      if (sign === ' ' || !hasBackdrops(look))
        return safe`${DIFF_INDENT}${number} ${signed} ${part}`.trimEnd();
      const { line: backdrop } = BACKDROPS[sign];
      const rest = padded(safe``, wide - countColumns(part));
      const body = [paintOn(look, backdrop, safe`${signed} `), part, paintOn(look, backdrop, rest)];
      return safe`${DIFF_INDENT}${number} ${joinSafe(body)}`;
    });
  });
  return { rows, left: Math.max(0, lines.length - limit) };
};

/**
 * Marks the words in which a changed line differs from the line it replaces. The diff library is
 * loaded after the first paint. Until then nothing is marked, and neither are lines that have
 * little in common.
 */
type Compare = typeof import('diff')['diffWordsWithSpace'];

let compare: Compare | null = null;

/**
 * Resolves when `markWords` can compare. The library is part of the program, so loading doesn't
 * fail.
 */
export const loadWordMarks = async (): Promise<void> => {
  compare ??= (await import('diff')).diffWordsWithSpace;
};

/** A part of a line; `length` in UTF-16 units. `marked`: the other line doesn't contain it. */
type MarkedPart = { readonly length: number; readonly marked: boolean };

type MarkedPair = {
  readonly before: readonly MarkedPart[];
  readonly after: readonly MarkedPart[];
  /** Share of the longer line that both lines have in common, from 0 to 1. */
  readonly shared: number;
};

/** Longer lines are data or generated code. Comparing them takes long and shows nothing. */
const LENGTH_MAX = 400;
/** Lines with less in common are two different lines, not one changed line. */
const SHARED_MIN = 0.4;

/** The parts of both lines; null if the lines should not be compared. */
export const markWords = (before: string, after: string): MarkedPair | null => {
  if (compare === null || Math.max(before.length, after.length) > LENGTH_MAX) return null;
  const parts = compare(before, after);
  const common = parts
    .filter(({ added, removed }) => !added && !removed)
    .reduce((sum, { value }) => sum + value.trim().length, 0);
  const longer = Math.max(before.trim().length, after.trim().length);
  const shared = longer === 0 ? 0 : common / longer;
  if (shared < SHARED_MIN) return null;
  const side = (other: 'added' | 'removed'): readonly MarkedPart[] =>
    parts
      .filter((part) => !part[other])
      .map(({ value, added, removed }) => ({ length: value.length, marked: added || removed }));
  return { before: side('added'), after: side('removed'), shared };
};
