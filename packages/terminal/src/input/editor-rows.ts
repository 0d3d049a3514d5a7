import type { Frame } from '../frame-type.js';
import { graphemesOf } from '../graphemes.js';
import { joinSafe, makeSafe, type Safe, safe } from '../safe-text.js';
import { columnsOf } from '../width.js';
import { type Editor, isMark, labelOf, withCursor } from './editor.js';

/** Layout of the typed text in screen rows. */

/** One row, and the range of text in it. */
type Row = {
  readonly shown: Safe;
  readonly start: number;
  readonly signs: readonly { readonly at: number; readonly column: number }[];
  /** Column after the last grapheme. */
  readonly columns: number;
  readonly end: number;
};

type Draft = { shown: Safe; start: number; signs: { at: number; column: number }[]; columns: number };

const draftAt = (start: number): Draft => ({ shown: safe``, start, signs: [], columns: 0 });

type Piece = { readonly text: Safe; readonly columns: number };

/** One grapheme as it is displayed: an invisible character as its mark, a folded paste as its label. */
const shownOf = (editor: Editor, from: number, until: number, room: number): Piece => {
  const sign = editor.text.slice(from, until);
  if (sign === '\t') return { text: safe`    `, columns: 4 };
  if (!isMark(sign)) {
    // Whether a joiner is visible depends on the character after it.
    const within = makeSafe(editor.text.slice(from, /[\u200c\u200d]$/.test(sign) ? until + 2 : until));
    const text = within.startsWith(sign) ? within.slice(0, sign.length) : makeSafe(sign);
    const shown = columnsOf(text) > room ? safe`·` : text;
    return { text: shown, columns: columnsOf(shown) };
  }
  const label = makeSafe(labelOf(editor, sign)).slice(0, room);
  return { text: label, columns: label.length };
};

/** Break position of a full row: after its last space, or at the end if it has none. */
const breakPoint = (text: string, draft: Draft): number => {
  const space = draft.signs.findLastIndex(({ at }) => text[at] === ' ');
  return space < 0 ? draft.signs.length : space + 1;
};

const layLine = (editor: Editor, start: number, end: number, room: number): readonly Row[] => {
  const rows: Row[] = [];
  let at = start;
  let draft = draftAt(start);
  const close = (rowEnd: number): void => void rows.push({ ...draft, end: rowEnd });
  for (const sign of graphemesOf(editor.text.slice(start, end))) {
    const piece = shownOf(editor, at, at + sign.length, room);
    while (draft.columns + piece.columns > room && draft.signs.length > 0) {
      const count = breakPoint(editor.text, draft);
      const moved = draft.signs.slice(count);
      const [first] = moved;
      const next = draftAt(first?.at ?? at);
      for (const [index, { at: from }] of moved.entries()) {
        const until = moved[index + 1]?.at ?? at;
        append(next, from, shownOf(editor, from, until, room));
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

const append = (draft: Draft, at: number, piece: Piece): void => {
  draft.signs.push({ at, column: draft.columns });
  draft.shown = joinSafe([draft.shown, piece.text]);
  draft.columns += piece.columns;
};

const cutAfter = (editor: Editor, draft: Draft, count: number, room: number): Draft => {
  const kept = draftAt(draft.start);
  for (const [index, { at }] of draft.signs.slice(0, count).entries()) {
    const until = draft.signs[index + 1]?.at ?? at + 1;
    append(kept, at, shownOf(editor, at, until, room));
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

/** The row of the cursor; where two rows meet at it, the lower one. */
const rowOf = (rows: readonly Row[], cursor: number): number =>
  Math.max(
    0,
    rows.findLastIndex((row) => row.start <= cursor),
  );

const columnOf = (row: Row, cursor: number): number =>
  row.signs.find(({ at }) => at >= cursor)?.column ?? row.columns;

/** Columns of the prompt and the cursor. */
const PROMPT = 2;

const roomIn = (columns: number): number => Math.max(4, columns - PROMPT - 1);

/** Moves the cursor one row up or down; null at the first or last row. */
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

/** At most `rowsMax` rows around the cursor. `↑` and `↓` stand where rows are left out. */
export const editorFrame = (
  editor: Editor,
  columns: number,
  rowsMax: number,
  prompt = safe`>`,
): Frame & { readonly cursor: NonNullable<Frame['cursor']> } => {
  const rows = layOut(editor, roomIn(columns));
  const at = rowOf(rows, editor.cursor);
  const first = Math.max(0, Math.min(at - Math.floor(rowsMax / 2), rows.length - rowsMax));
  const shown = rows.slice(first, first + rowsMax);
  const markOf = (index: number): Safe => {
    if (index === 0 && first > 0) return safe`↑`;
    if (index === shown.length - 1 && first + rowsMax < rows.length) return safe`↓`;
    return first + index === 0 ? prompt : safe` `;
  };
  const row = rows[at];
  return {
    rows: shown.map((each, index) => safe`${markOf(index)} ${each.shown}`),
    cursor: {
      row: at - first,
      column: PROMPT + (row === undefined ? 0 : columnOf(row, editor.cursor)),
    },
  };
};
