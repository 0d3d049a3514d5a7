import { type Editor, isMark, labelOf, withCursor } from './editor.js';
import type { Frame } from './frame.js';
import { signsOf } from './graphemes.js';
import { columnsOf } from './width.js';

/** How the typed text lies on the screen. */

/** One row: what it shows, and which part of the text that is. */
type Row = {
  readonly shown: string;
  readonly start: number;
  readonly signs: readonly { readonly at: number; readonly column: number }[];
  /** Column after the last sign. */
  readonly columns: number;
  readonly end: number;
};

type Draft = { shown: string; start: number; signs: { at: number; column: number }[]; columns: number };

const draftAt = (start: number): Draft => ({ shown: '', start, signs: [], columns: 0 });

const shownOf = (
  editor: Editor,
  sign: string,
  room: number,
): { readonly text: string; readonly columns: number } => {
  if (sign === '\t') return { text: '    ', columns: 4 };
  if (!isMark(sign)) return { text: sign, columns: columnsOf(sign) };
  const label = labelOf(editor, sign).slice(0, room);
  return { text: label, columns: label.length };
};

/** Where a row that is full is broken: after its last space, so that words stay whole, else right here. */
const breakPoint = (text: string, draft: Draft): number => {
  const space = draft.signs.findLastIndex(({ at }) => text[at] === ' ');
  return space < 0 ? draft.signs.length : space + 1;
};

const layLine = (editor: Editor, start: number, end: number, room: number): readonly Row[] => {
  const rows: Row[] = [];
  let at = start;
  let draft = draftAt(start);
  const close = (rowEnd: number): void => void rows.push({ ...draft, end: rowEnd });
  for (const sign of signsOf(editor.text.slice(start, end))) {
    const piece = shownOf(editor, sign, room);
    while (draft.columns + piece.columns > room && draft.signs.length > 0) {
      const count = breakPoint(editor.text, draft);
      const moved = draft.signs.slice(count);
      const [first] = moved;
      const next = draftAt(first?.at ?? at);
      for (const [index, { at: from }] of moved.entries()) {
        const until = moved[index + 1]?.at ?? at;
        append(next, from, shownOf(editor, editor.text.slice(from, until), room));
      }
      draft = cutAfter(editor, draft, count, room);
      close(next.start);
      draft = next;
    }
    append(draft, at, piece);
    at += sign.length;
  }
  close(end);
  return rows;
};

const append = (
  draft: Draft,
  at: number,
  piece: { readonly text: string; readonly columns: number },
): void => {
  draft.signs.push({ at, column: draft.columns });
  draft.shown += piece.text;
  draft.columns += piece.columns;
};

const cutAfter = (editor: Editor, draft: Draft, count: number, room: number): Draft => {
  const kept = draftAt(draft.start);
  for (const [index, { at }] of draft.signs.slice(0, count).entries()) {
    const until = draft.signs[index + 1]?.at ?? at + 1;
    append(kept, at, shownOf(editor, editor.text.slice(at, until), room));
  }
  return count === draft.signs.length ? draft : kept;
};

const layOut = (editor: Editor, room: number): readonly Row[] => {
  const rows: Row[] = [];
  let start = 0;
  for (const line of editor.text.split('\n')) {
    rows.push(...layLine(editor, start, start + line.length, room));
    start += line.length + 1;
  }
  return rows;
};

/** The row that the cursor stands in: of two that meet at it the lower one. */
const rowOf = (rows: readonly Row[], cursor: number): number =>
  Math.max(
    0,
    rows.findLastIndex((row) => row.start <= cursor),
  );

const columnOf = (row: Row, cursor: number): number =>
  row.signs.find(({ at }) => at >= cursor)?.column ?? row.columns;

/** Columns that prompt and cursor take. */
const PROMPT = 2;

const roomIn = (columns: number): number => Math.max(4, columns - PROMPT - 1);

/** The editor with its cursor a row higher or lower; null at the first or last row. */
export const movedByRow = (editor: Editor, by: -1 | 1, columns: number): Editor | null => {
  const rows = layOut(editor, roomIn(columns));
  const index = rowOf(rows, editor.cursor);
  const [here, there] = [rows[index], rows[index + by]];
  if (here === undefined || there === undefined) return null;
  const column = columnOf(here, editor.cursor);
  const sign = there.signs.find((candidate) => candidate.column >= column);
  const last = rows[index + by + 1]?.start === there.end ? there.signs.at(-1)?.at : there.end;
  return withCursor(editor, sign?.at ?? last ?? there.end);
};

/** The text in at most `rowsMax` rows around the cursor; `↑` and `↓` where there is more. */
export const editorFrame = (
  editor: Editor,
  columns: number,
  rowsMax: number,
  prompt = '>',
): Frame & { readonly cursor: NonNullable<Frame['cursor']> } => {
  const rows = layOut(editor, roomIn(columns));
  const at = rowOf(rows, editor.cursor);
  const first = Math.max(0, Math.min(at - Math.floor(rowsMax / 2), rows.length - rowsMax));
  const shown = rows.slice(first, first + rowsMax);
  const markOf = (index: number): string => {
    if (index === 0 && first > 0) return '↑';
    if (index === shown.length - 1 && first + rowsMax < rows.length) return '↓';
    return first + index === 0 ? prompt : ' ';
  };
  const row = rows[at];
  return {
    rows: shown.map((each, index) => `${markOf(index)} ${each.shown}`),
    cursor: {
      row: at - first,
      column: PROMPT + (row === undefined ? 0 : columnOf(row, editor.cursor)),
    },
  };
};
