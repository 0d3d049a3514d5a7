import type { Clock } from '../ports/clock.js';
import {
  BEGIN_UPDATE,
  CLOSE_STYLES,
  END_UPDATE,
  ERASE_BELOW,
  ERASE_ROW,
  HIDE_CURSOR,
  moveDown,
  moveRight,
  moveUp,
  NEXT_ROW,
  ROW_START,
  SHOW_CURSOR,
  WRAP_OFF,
  WRAP_ON,
} from './escapes.js';
import type { Frame } from './frame.js';
import { joinSafe, keepStyles, type Safe, safe } from './safe-text.js';
import { columnsOf } from './width.js';

/**
 * The end of the screen that changes, under scroll-back that does not.
 *
 * 1. What is printed goes above the area and is never touched again: the terminal's own scroll-back keeps it. The screen
 *    is never cleared; what is erased lies between the area's first row and the end of the screen.
 * 2. One write a change, in one synchronized update; only rows that differ are in it, and none if nothing differs.
 * 3. At most one write each FRAME_MS; the last state is always drawn.
 * 4. The area is lower than the screen: what the cursor can't reach could not be erased. Its top is cut off, never the
 *    rows around the cursor.
 * 5. A row of the area takes one row of the screen even where the terminal has another opinion on the width of a sign:
 *    it is drawn with the terminal's own wrapping switched off.
 */
export type LiveArea = {
  /** Prints whole lines above the area. */
  print(text: Safe): void;
  /** A function is asked for the frame when it is drawn, so that what is never seen is never laid out. */
  draw(frame: Frame | (() => Frame)): void;
  /** Removes the area, with everything printed; the cursor stands at the beginning of an empty line. */
  clear(): void;
};

type Size = { readonly columns: number; readonly rows: number };

/**
 * What the terminal does with rows that became too long when the window was made narrower: breaks them all, all but the
 * one with the cursor, or none.
 */
export type Reflow = 'all' | 'aboveCursor' | 'none';

/** How known terminals reflow, recognised by their variables. */
export const reflowOf = (environment: NodeJS.ProcessEnv): Reflow => {
  if (environment.XTERM_VERSION !== undefined || environment.STY !== undefined) return 'none';
  if (environment.TERM === 'linux') return 'none';
  return environment.TERM_PROGRAM === 'vscode' ? 'aboveCursor' : 'all';
};

export type LiveAreaOptions = {
  write(text: Safe): void;
  /** The window as it is now. */
  size(): Size;
  readonly clock: Clock;
  readonly reflow: Reflow;
};

const FRAME_MS = 33;
/** The column of a cursor that nobody sees. */
const NOWHERE = -1;
const EMPTY: Frame = { rows: [], cursor: null };

/** The part of a frame that has room: around the cursor, and as near to the end as can be. */
const fit = ({ rows, cursor }: Frame, room: number): Frame => {
  const top = Math.max(0, Math.min(rows.length - room, cursor?.row ?? rows.length));
  return {
    rows: rows.slice(top, top + room),
    cursor: cursor === null ? null : { row: cursor.row - top, column: cursor.column },
  };
};

const vertical = (from: number, to: number): Safe => {
  if (from === to) return safe``;
  return to < from ? moveUp(from - to) : moveDown(to - from);
};

/** A row as it is drawn: whatever it holds, only styles steer the terminal, and they end with it. */
const closed = (row: Safe): Safe => {
  const kept = keepStyles(row);
  return kept.includes('\u001b') ? safe`${kept}${CLOSE_STYLES}` : kept;
};

/** The drawn frame: rows, cursor, and the window size it was drawn for. */
type Shown = {
  readonly rows: readonly Safe[];
  readonly row: number;
  readonly column: number;
  readonly hidden: boolean;
  readonly size: Size;
};

/** Rows between the area's first row and the cursor, in a window that has changed since. */
const rowsAboveCursor = ({ rows, row, column }: Shown, { columns }: Size, reflow: Reflow): number => {
  if (reflow === 'none') return row;
  const above = rows
    .slice(0, row)
    .reduce((sum, text) => sum + Math.max(1, Math.ceil(columnsOf(text) / columns)), 0);
  return above + (reflow === 'all' ? Math.max(0, Math.floor(column / columns)) : 0);
};

/** Control text that turns `from` into `to`. The cursor moves within existing rows; line feeds make new ones. */
const changeRows = (from: Shown, to: Frame): { readonly text: Safe; readonly row: number } => {
  const moves: Safe[] = [];
  let at = from.row;
  let last = Math.max(0, from.rows.length - 1);
  to.rows.forEach((row, index) => {
    if (from.rows[index] === row && index < from.rows.length) return;
    if (index > last) {
      moves.push(vertical(at, last), NEXT_ROW.repeat(index - last));
      last = index;
    } else moves.push(vertical(at, index));
    moves.push(ERASE_ROW, closed(row));
    at = index;
  });
  if (from.rows.length > to.rows.length) {
    // With no row left the cursor stays in the first one.
    moves.push(vertical(at, to.rows.length), ERASE_BELOW);
    at = to.rows.length;
  }
  return { text: joinSafe(moves), row: at };
};

/** Number of lines that already stand at the top of the area; they are not drawn again. */
const standing = (lines: readonly Safe[], rows: readonly Safe[]): number => {
  const first = lines.findIndex((line, index) => line !== rows[index]);
  return first < 0 ? lines.length : first;
};

class DrawnArea implements LiveArea {
  readonly #needs: LiveAreaOptions;
  #shown: Shown;
  #wanted: Frame | (() => Frame) = EMPTY;
  #lines: readonly Safe[] = [];
  #drawnAt = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;

  constructor(needs: LiveAreaOptions) {
    this.#needs = needs;
    this.#shown = { rows: [], row: 0, column: 0, hidden: false, size: needs.size() };
  }

  print(text: Safe): void {
    this.#lines = [...this.#lines, ...text.split('\n')];
    this.#soon(); // a frame that is drawn in the same breath takes them along
  }

  draw(frame: Frame | (() => Frame)): void {
    this.#wanted = frame;
    if (this.#needs.clock.now() - this.#drawnAt >= FRAME_MS) this.#flush();
    else this.#soon();
  }

  clear(): void {
    this.#wanted = EMPTY;
    this.#flush();
  }

  #soon(): void {
    const { clock } = this.#needs;
    const waitMs = Math.max(0, this.#drawnAt + FRAME_MS - clock.now());
    this.#cancelTimer ??= clock.after(waitMs, () => this.#flush());
  }

  #flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const size = this.#needs.size();
    const moved = this.#followWindow(size);
    const printed = this.#printLines();
    const change = joinSafe([moved, printed, this.#drawRows(size)]);
    if (change === '') return;
    this.#drawnAt = this.#needs.clock.now();
    this.#needs.write(safe`${BEGIN_UPDATE}${change}${END_UPDATE}`);
  }

  /** A window of another size: the area is erased wherever it went, and drawn anew. */
  #followWindow(size: Size): Safe {
    const before = this.#shown;
    if (before.size.columns === size.columns && before.size.rows === size.rows) return safe``;
    this.#shown = { ...before, rows: [], row: 0, column: 0, size };
    if (before.rows.length === 0) return safe``;
    const up = Math.min(size.rows - 1, rowsAboveCursor(before, size, this.#needs.reflow));
    return safe`${vertical(up, 0)}${ERASE_BELOW}`;
  }

  #printLines(): Safe {
    if (this.#lines.length === 0) return safe``;
    const kept = standing(this.#lines, this.#shown.rows);
    const rest = this.#lines.slice(kept);
    this.#lines = [];
    const room = this.#makeRoom(kept, rest.length === 0);
    return joinSafe([room, ...rest.map((line) => safe`${closed(line)}${NEXT_ROW}`)]);
  }

  /** To the row that the first line goes into; rows that stand there already become scroll-back as they are. */
  #makeRoom(kept: number, all: boolean): Safe {
    const { rows, row } = this.#shown;
    if (all && kept < rows.length) {
      this.#shown = { ...this.#shown, rows: rows.slice(kept), row: row - kept };
      return safe``;
    }
    this.#shown = { ...this.#shown, rows: [], row: 0, column: 0 };
    if (rows.length === 0) return ROW_START;
    return kept < rows.length
      ? safe`${vertical(row, kept)}${ERASE_BELOW}`
      : safe`${vertical(row, rows.length - 1)}${NEXT_ROW}`;
  }

  #drawRows(size: Size): Safe {
    const before = this.#shown;
    const wanted = typeof this.#wanted === 'function' ? this.#wanted() : this.#wanted;
    const frame = fit(wanted, Math.max(1, size.rows - 1));
    const { text, row } = changeRows(before, frame);
    const hidden = frame.cursor === null && frame.rows.length > 0;
    const cursor = frame.cursor ?? { row, column: NOWHERE };
    const moves = text !== '' || row !== cursor.row || cursor.column !== before.column;
    const right = cursor.column > 0 ? moveRight(cursor.column) : safe``;
    const move =
      moves && frame.cursor !== null ? safe`${vertical(row, cursor.row)}${ROW_START}${right}` : safe``;
    const visible = hidden ? HIDE_CURSOR : SHOW_CURSOR;
    const change = hidden === before.hidden ? safe`` : visible;
    this.#shown = { rows: frame.rows, ...cursor, hidden, size };
    const rows = text === '' ? text : safe`${WRAP_OFF}${text}${WRAP_ON}`;
    return joinSafe([rows, move, change]);
  }
}

export const createLiveArea = (needs: LiveAreaOptions): LiveArea => new DrawnArea(needs);
