import type { Clock } from '../needs.js';
import type { Frame } from './frame.js';
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
  print(text: string): void;
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

/** What terminals are known to do, by the variables they set. */
export const reflowOf = (environment: NodeJS.ProcessEnv): Reflow => {
  if (environment.XTERM_VERSION !== undefined || environment.STY !== undefined) return 'none';
  if (environment.TERM === 'linux') return 'none';
  return environment.TERM_PROGRAM === 'vscode' ? 'aboveCursor' : 'all';
};

export type LiveAreaNeeds = {
  write(text: string): void;
  /** The window as it is now. */
  size(): Size;
  readonly clock: Clock;
  readonly reflow: Reflow;
};

const FRAME_MS = 33;
const UPDATE = '\u001b[?2026h';
const UPDATED = '\u001b[?2026l';
const WRAP_OFF = '\u001b[?7l';
const WRAP_ON = '\u001b[?7h';
const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
const ERASE_ROW = '\r\u001b[K';
const ERASE_BELOW = '\r\u001b[J';
const RESET = '\u001b[0m';

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

const vertical = (from: number, to: number): string => {
  if (from === to) return '';
  return to < from ? `\u001b[${from - to}A` : `\u001b[${to - from}B`;
};

const closed = (row: string): string => (row.includes('\u001b') ? row + RESET : row);

/** What stands on the screen: the area's rows, the cursor, and the window they were drawn for. */
type Shown = {
  readonly rows: readonly string[];
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

/** What leads from `from` to `to`; the cursor moves within the rows there are, new ones are made by line feeds. */
const changeRows = (from: Shown, to: Frame): { readonly text: string; readonly row: number } => {
  let text = '';
  let at = from.row;
  let last = Math.max(0, from.rows.length - 1);
  to.rows.forEach((row, index) => {
    if (from.rows[index] === row && index < from.rows.length) return;
    if (index > last) {
      text += vertical(at, last) + '\r\n'.repeat(index - last);
      last = index;
    } else text += vertical(at, index);
    text += ERASE_ROW + closed(row);
    at = index;
  });
  if (from.rows.length > to.rows.length) {
    // With no row left the cursor stays in the first one.
    text += vertical(at, to.rows.length) + ERASE_BELOW;
    at = to.rows.length;
  }
  return { text, row: at };
};

/** How many of the lines stand on the screen already, at the top of the area: they stay where they are. */
const standing = (lines: readonly string[], rows: readonly string[]): number => {
  const first = lines.findIndex((line, index) => line !== rows[index]);
  return first < 0 ? lines.length : first;
};

class DrawnArea implements LiveArea {
  readonly #needs: LiveAreaNeeds;
  #shown: Shown;
  #wanted: Frame | (() => Frame) = EMPTY;
  #lines: readonly string[] = [];
  #drawnAt = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;

  constructor(needs: LiveAreaNeeds) {
    this.#needs = needs;
    this.#shown = { rows: [], row: 0, column: 0, hidden: false, size: needs.size() };
  }

  print(text: string): void {
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
    const change = moved + this.#printLines() + this.#drawRows(size);
    if (change === '') return;
    this.#drawnAt = this.#needs.clock.now();
    this.#needs.write(UPDATE + change + UPDATED);
  }

  /** A window of another size: the area is erased wherever it went, and drawn anew. */
  #followWindow(size: Size): string {
    const before = this.#shown;
    if (before.size.columns === size.columns && before.size.rows === size.rows) return '';
    this.#shown = { ...before, rows: [], row: 0, column: 0, size };
    if (before.rows.length === 0) return '';
    const up = Math.min(size.rows - 1, rowsAboveCursor(before, size, this.#needs.reflow));
    return vertical(up, 0) + ERASE_BELOW;
  }

  #printLines(): string {
    if (this.#lines.length === 0) return '';
    const kept = standing(this.#lines, this.#shown.rows);
    const rest = this.#lines.slice(kept);
    this.#lines = [];
    return this.#makeRoom(kept, rest.length === 0) + rest.map((line) => `${closed(line)}\r\n`).join('');
  }

  /** To the row that the first line goes into; rows that stand there already become scroll-back as they are. */
  #makeRoom(kept: number, all: boolean): string {
    const { rows, row } = this.#shown;
    if (all && kept < rows.length) {
      this.#shown = { ...this.#shown, rows: rows.slice(kept), row: row - kept };
      return '';
    }
    this.#shown = { ...this.#shown, rows: [], row: 0, column: 0 };
    if (rows.length === 0) return '\r';
    return kept < rows.length ? vertical(row, kept) + ERASE_BELOW : `${vertical(row, rows.length - 1)}\r\n`;
  }

  #drawRows(size: Size): string {
    const before = this.#shown;
    const wanted = typeof this.#wanted === 'function' ? this.#wanted() : this.#wanted;
    const frame = fit(wanted, Math.max(1, size.rows - 1));
    const { text, row } = changeRows(before, frame);
    const hidden = frame.cursor === null && frame.rows.length > 0;
    const cursor = frame.cursor ?? { row, column: NOWHERE };
    const moves = text !== '' || row !== cursor.row || cursor.column !== before.column;
    const right = cursor.column > 0 ? `\u001b[${cursor.column}C` : '';
    const move = moves && frame.cursor !== null ? `${vertical(row, cursor.row)}\r${right}` : '';
    const visible = hidden ? HIDE_CURSOR : SHOW_CURSOR;
    const change = hidden === before.hidden ? '' : visible;
    this.#shown = { rows: frame.rows, ...cursor, hidden, size };
    return (text === '' ? '' : WRAP_OFF + text + WRAP_ON) + move + change;
  }
}

export const createLiveArea = (needs: LiveAreaNeeds): LiveArea => new DrawnArea(needs);
