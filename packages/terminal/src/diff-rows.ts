/**
 * The one drawing of a diff: in questions, below finished edits, and in `/diff`.
 *
 * 1. Each line has its number, a sign and the colours of its language. A changed line stands on a
 *    backdrop, the words that changed on a stronger one. Where there are no backdrops, changed
 *    lines are green or red and the words underlined.
 * 2. Without colours text, numbers and signs are the same.
 *
 * From top to bottom: `diffRows`; reading a unified diff; its colours; a file of `/diff`; and
 * `markWords`, which finds the words that changed. `Safe` is text that can't control the terminal;
 * a backdrop is a background colour, which not every terminal gets.
 */

import { type CodeToken, codeTokens } from './markdown.js';
import {
  countColumns,
  hasBackdrops,
  type Look,
  padded,
  paint,
  paintOn,
  wrapText,
} from './paint.js';
import { joinSafe, makeSafe, type Safe, safe } from './safe-text.js';

/** Rows of a diff. `lines`: lines of the diff in them; `leftOut`: lines beyond the limit. */
type DiffRows = {
  readonly rows: readonly Safe[];
  readonly lines: number;
  readonly leftOut: number;
};

/** How the lines of a diff are laid out. */
export type DiffLayout = {
  /** Columns before the numbers. */
  readonly indent: number;
  /** At most this many lines of the diff. */
  readonly limit: number;
  /**
   * Breaks a line into rows of at most `columns`, without styles. Joined, they are the line as it
   * is shown: with visible marks for characters that nobody would see.
   */
  lay(line: string, columns: number): readonly Safe[];
};

/** Of at most `limit` lines, below a finished edit: rows break where a terminal breaks them. */
export const finishedDiff = (limit: number): DiffLayout => ({
  indent: 4,
  limit,
  lay: (line, columns) => wrapText(makeSafe(line), columns),
});

/** A unified diff of one file as rows of at most `look.columns`. */
export const diffRows = (look: Look, diff: string, layout: DiffLayout): DiffRows => {
  const numbered = pairLines(numberedLines(diff));
  const digits = String(Math.max(0, ...numbered.map((line) => line?.number ?? 0))).length;
  const room = Math.max(8, look.columns - layout.indent - digits - 5);
  const language = /\.(\w+)"?$/.exec(readFileName(diff))?.[1] ?? 'text';
  // null: the gap between two hunks
  const laid = numbered.slice(0, layout.limit).map((line): Line | null => {
    if (line === null) return null;
    const rows = layout.lay(line.text, room);
    return { ...line, rows, text: joinSafe(rows) };
  });
  const shown = withChangedWords(laid);
  // Backdrops end at the longest of these rows.
  const widths = shown.flatMap((line) => line?.rows.map(countColumns) ?? []);
  const wide = Math.min(room, Math.max(0, ...widths) + 1);
  const indent = safe` `.repeat(layout.indent);
  const before = (number: Safe): Safe =>
    safe`${indent}${paint(look, 'dim', number.padStart(digits))}`;
  const rows = shown.flatMap((line) => {
    if (line === null) return [before(safe`⋮`)];
    return linePieces(line, language).map((pieces, index) => {
      const number = index > 0 || line.number === null ? safe`` : safe`${line.number}`;
      return safe`${before(number)} ${rowBody(look, line, pieces, index, wide)}`.trimEnd();
    });
  });
  return { rows, lines: laid.length, leftOut: numbered.length - laid.length };
};

// ---- Reading a diff ----

/** Of an added, a removed and an unchanged line. */
type Sign = '+' | '-' | ' ';
/** A line of a diff. `number` is null for a remark, such as `\ No newline at end of file`. */
type NumberedText = { readonly number: number | null; readonly sign: Sign; readonly text: string };

/** A line that is laid out; `text` is its rows joined. */
type Line = Omit<NumberedText, 'text'> & {
  readonly text: Safe;
  readonly rows: readonly Safe[];
  /** The parts that differ from the line on the other side. */
  readonly parts?: readonly MarkedPart[];
};

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)/;

/**
 * The lines of a unified diff of one file, without its header; null between hunks. Numbers are of
 * the new text, or of the old text for removed lines.
 */
const numberedLines = (diff: string): readonly (NumberedText | null)[] => {
  const lines: (NumberedText | null)[] = [];
  const all = diff.split('\n');
  if (all.at(-1) === '') all.pop();
  let before = 0;
  let after = 0;
  let isHeader = true;
  for (const line of all) {
    const hunk = HUNK.exec(line);
    if (hunk !== null) {
      if (lines.length > 0) lines.push(null);
      isHeader = false;
      before = Number(hunk[1]);
      after = Number(hunk[2]);
    } else if (isHeader) {
      // a remark of the tool instead of the lines, such as `(the change is too large …)`
      if (line.startsWith('(')) lines.push({ number: null, sign: ' ', text: line });
    } else if (line.startsWith('+'))
      lines.push({ number: after++, sign: '+', text: line.slice(1) });
    else if (line.startsWith('-')) lines.push({ number: before++, sign: '-', text: line.slice(1) });
    else if (line.startsWith(' ')) {
      lines.push({ number: after++, sign: ' ', text: line.slice(1) });
      before += 1;
    } else lines.push({ number: null, sign: ' ', text: line });
  }
  return lines;
};

/** Where as many lines go as come, each line stands above the one that replaces it. */
const pairLines = (lines: readonly (NumberedText | null)[]): readonly (NumberedText | null)[] => {
  const paired: (NumberedText | null)[] = [];
  for (let at = 0; at < lines.length; ) {
    const removedEnd = endOfRun(lines, at, '-');
    const end = endOfRun(lines, removedEnd, '+');
    const removed = lines.slice(at, removedEnd);
    const added = lines.slice(removedEnd, end);
    paired.push(
      ...(removed.length === added.length
        ? removed.flatMap((line, index) => [line, added[index] ?? null])
        : [...removed, ...added]),
    );
    if (end === at) paired.push(lines[at] ?? null);
    at = Math.max(end, at + 1);
  }
  return paired;
};

/** The end of the lines of one sign that begin at `from`. */
const endOfRun = (
  lines: readonly ({ readonly sign: Sign } | null)[],
  from: number,
  sign: Sign,
): number => {
  let end = from;
  while (lines[end]?.sign === sign) end += 1;
  return end;
};

/** The file that the header of a diff names; empty if it names none. */
const readFileName = (diff: string): string => {
  const names = [...readHeader(diff).matchAll(/^(?:\+\+\+|---) ([^\t\n]*)/gm)];
  const [name = ''] = names.map(([, one = '']) => one).filter((one) => one !== '/dev/null');
  return name;
};

const readHeader = (diff: string): string => diff.slice(0, Math.max(0, diff.search(/^@@ /m)));

// ---- Pairs of lines, and their colours ----

/** Larger changes are not compared line by line. */
const RUN_MAX = 30;

/**
 * The lines with their changed words marked: compares each removed line with the added lines after
 * it and takes the most similar one.
 */
const withChangedWords = (lines: readonly (Line | null)[]): readonly (Line | null)[] => {
  const marked = [...lines];
  let at = 0;
  while (at < lines.length) {
    const removedEnd = endOfRun(lines, at, '-');
    const addedEnd = endOfRun(lines, removedEnd, '+');
    if (addedEnd - at <= RUN_MAX) {
      let next = removedEnd;
      for (let index = at; index < removedEnd; index++)
        next = markMostSimilar(lines, index, next, addedEnd, marked);
    }
    at = Math.max(at + 1, addedEnd);
  }
  return marked;
};

/**
 * Marks a removed line and the most similar added line from `from` to `end`. Returns the start for
 * the next search.
 */
const markMostSimilar = (
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

const SIGNS = { '+': safe`+`, '-': safe`-`, ' ': safe` ` } as const;
/** Instead of the sign, before the further rows of a line. */
const CONTINUED = safe`┆`;
const COLOURS = { '+': 'green', '-': 'red' } as const;
const BACKDROPS = {
  '+': { line: 'added', word: 'addedWord' },
  '-': { line: 'removed', word: 'removedWord' },
} as const;

/** A piece of a line. `marked`: its words changed. */
type Piece = CodeToken & { readonly marked: boolean };

/** The marks that stand for characters that nobody would see, such as `⟨U+202E⟩` and `␛`. */
const INVISIBLE_SIGN = /(\u27e8[^\u27e9]*\u27e9|[\u2400-\u2426])/;

/** The pieces in groups of these lengths. A piece is cut where a group ends. */
const groupPieces = (
  pieces: readonly Piece[],
  lengths: readonly number[],
): readonly (readonly Piece[])[] => {
  const rest = [...pieces];
  return lengths.map((length) => {
    const group: Piece[] = [];
    let missing = length;
    while (missing > 0) {
      const piece = rest.shift();
      if (piece === undefined) break;
      const text = piece.text.slice(0, missing);
      if (text.length < piece.text.length)
        rest.unshift({ ...piece, text: piece.text.slice(text.length) });
      missing -= text.length;
      group.push({ ...piece, text });
    }
    return group;
  });
};

/** The pieces of a text; signs of invisible characters have a colour of their own. */
const textPieces = (text: Safe, language: string): readonly Piece[] =>
  text
    .split(INVISIBLE_SIGN) // each second part is such a mark
    .flatMap((part, index): readonly CodeToken[] =>
      index % 2 === 1 ? [{ style: 'yellow', text: part }] : codeTokens(part, language),
    )
    .map((token): Piece => ({ ...token, marked: false }));

/** Rows of one line of a command. Nothing of it is dim: what looks like a comment may run. */
export const commandRows = (look: Look, rows: readonly Safe[]): readonly Safe[] =>
  groupPieces(
    textPieces(joinSafe(rows), 'sh'),
    rows.map((row) => row.length),
  ).map((pieces) =>
    joinSafe(
      pieces.map(({ style, text }) =>
        style === null || style === 'dim' ? text : paint(look, style, text),
      ),
    ),
  );

/** The pieces of each row of a line. A word that changed has no other colour than its backdrop. */
const linePieces = (
  { text, rows, parts }: Line,
  language: string,
): ReturnType<typeof groupPieces> => {
  const pieces = textPieces(text, language);
  const marked =
    parts === undefined
      ? pieces
      : groupPieces(
          pieces,
          parts.map(({ length }) => length),
        ).flatMap((group, index) =>
          parts[index]?.marked === true
            ? group.map((piece) => ({ ...piece, style: null, marked: true }))
            : group,
        );
  return groupPieces(
    marked,
    rows.map((row) => row.length),
  );
};

const paintPiece = (look: Look, sign: Sign, { style, text, marked }: Piece): Safe => {
  const painted = style === null ? text : paint(look, style, text);
  if (sign === ' ') return painted;
  if (hasBackdrops(look))
    return paintOn(look, marked ? BACKDROPS[sign].word : BACKDROPS[sign].line, painted);
  // yellow: a mark of an invisible character, which must be seen in a changed line too
  const coloured = style === 'yellow' ? painted : paint(look, COLOURS[sign], text);
  return marked ? paint(look, 'underline', coloured) : coloured;
};

/** A row of a line without its number. `wide`: where the backdrop ends. */
const rowBody = (
  look: Look,
  { sign, number }: Line,
  pieces: readonly Piece[],
  index: number,
  wide: number,
): Safe => {
  const text = joinSafe(pieces.map((piece) => paintPiece(look, sign, piece)));
  if (number === null)
    return paint(look, 'dim', safe`  ${joinSafe(pieces.map((one) => one.text))}`);
  const begin = index === 0 ? SIGNS[sign] : CONTINUED;
  if (sign === ' ') return safe`${begin} ${text}`;
  const signed = paint(look, COLOURS[sign], begin);
  if (!hasBackdrops(look)) return safe`${signed} ${text}`;
  const { line } = BACKDROPS[sign];
  const rest = padded(safe``, wide - countColumns(text));
  return joinSafe([paintOn(look, line, safe`${signed} `), text, paintOn(look, line, rest)]);
};

// ---- A file of `/diff` ----

/** What a header says about a file besides its name. */
const fileNotes = (diff: string): readonly string[] => {
  const header = readHeader(diff) || diff;
  const [, mode] = /^new mode (\d+)/m.exec(header) ?? [];
  return [
    ...(/^--- \/dev\/null/m.test(header) || /^new file mode/m.test(header) ? ['new'] : []),
    ...(/^\+\+\+ \/dev\/null/m.test(header) || /^deleted file/m.test(header) ? ['deleted'] : []),
    ...(mode === undefined ? [] : [`mode ${mode}`]),
    ...(/^Binary files /m.test(header) ? ['binary'] : []),
  ];
};

/** A changed file of `/diff`: a row with its name and what was added and removed, then the diff. */
export const fileDiffRows = (look: Look, diff: string, limit: number): DiffRows => {
  const numbered = numberedLines(diff);
  const count = (sign: Sign): number => numbered.filter((line) => line?.sign === sign).length;
  // A binary or empty file has no hunk (`@@`), where the header would end. Its name stands twice
  // in the first line: `diff --git NAME NAME`.
  const [, named = ''] = /^diff --git (.*)$/m.exec(diff) ?? [];
  const name = readFileName(`${diff}\n@@ `) || named.slice(0, named.length / 2);
  const counts = numbered.some((line) => line?.number) ? [`+${count('+')} −${count('-')}`] : [];
  const notes = [...fileNotes(diff), ...counts].join(' · ');
  const room = Math.max(12, look.columns - notes.length - 6);
  const shown = name.length > room ? safe`…${makeSafe(name.slice(1 - room))}` : makeSafe(name);
  const title = safe`  ${paint(look, 'bold', shown)} ${paint(look, 'dim', makeSafe(notes))}`;
  const { rows, ...counted } = diffRows(look, diff, finishedDiff(limit));
  return { rows: [title, ...rows], ...counted };
};

// ---- The words in which a changed line differs from the line that it replaces ----

/** The diff library is loaded after the first paint. Until then no words are marked. */
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

/** The parts of both lines; null if they are too long, or have little in common. */
export const markWords = (before: string, after: string): MarkedPair | null => {
  if (compare === null || Math.max(before.length, after.length) > LENGTH_MAX) return null;
  const parts = compare(before, after);
  const common = parts
    .filter(({ added, removed }) => !added && !removed)
    .reduce((sum, { value }) => sum + value.trim().length, 0);
  const longer = Math.max(before.trim().length, after.trim().length);
  const shared = longer === 0 ? 0 : common / longer;
  if (shared < SHARED_MIN) return null;
  /** The parts of one line: all but those of the other one. */
  const side = (other: 'added' | 'removed'): readonly MarkedPart[] =>
    parts
      .filter((part) => !part[other])
      .map(({ value, added, removed }) => ({ length: value.length, marked: added || removed }));
  return { before: side('added'), after: side('removed'), shared };
};
