/**
 * The screen of a session: the rows at its bottom that are redrawn, what some of them say, and the
 * modes of the terminal.
 *
 * From top to bottom: `LiveArea`, which redraws a frame (rows and a cursor) with as few escapes as
 * possible; `Screen`, which switches the terminal's modes; the status row (what the session does
 * now); and the row of settings and the input box. `Safe` is text that can't control the terminal:
 * it consists of Pawl's own words and escapes, and of checked text of others.
 */

import type { HookPhase } from '@pawl/agent/machine/action';
import type { FailureKind } from '@pawl/agent/machine/event';
import { toldUsage } from '@pawl/agent/machine/moves/request';
import { type Dimension, totalTokens } from '@pawl/agent/machine/settings';
import { isBusy, knownCostUsd, type State } from '@pawl/agent/machine/state';
import { type Clock, systemClock } from '@pawl/agent/platform/clock';
import { plural } from '@pawl/agent/platform/text';
import type { Preset } from '@pawl/agent/policy/presets';
import {
  BEGIN_UPDATE,
  CLOSE_STYLES,
  countColumns,
  cutLine,
  deleteRows,
  ENABLE_INPUT_MODES,
  ENABLE_TITLE_AND_FOCUS,
  END_UPDATE,
  ERASE_BELOW,
  ERASE_ROW,
  fitWords,
  formatCost,
  formatSeconds,
  formatSpent,
  formatTokens,
  HIDE_CURSOR,
  insertRows,
  type Look,
  moveDown,
  moveRight,
  moveUp,
  NEXT_ROW,
  oneLine,
  paint,
  RESTORE_TERMINAL,
  RESTORE_TITLE_AND_FOCUS,
  ROW_START,
  SHOW_CURSOR,
  type Style,
  WRAP_OFF,
  WRAP_ON,
  windowSize,
  windowTitle,
  wrapText,
} from './paint.js';
import { joinSafe, keepStyles, makeSafe, type Safe, safe } from './safe-text.js';
import { writeWindow } from './write.js';

/**
 * The rows at the bottom of the screen that are redrawn. Everything above them is scroll-back and
 * never changes.
 *
 * 1. Printed lines go above the area and into the terminal's own scroll-back. The screen is never
 *    cleared; only the rows from the area's first row to the end of the screen are erased.
 * 2. Each change is one write, in one synchronized update, with only the rows that differ. No
 *    difference, no write.
 * 3. At most one write per FRAME_MS, besides one for each key. The last frame is always drawn.
 * 4. The area is lower than the screen, since rows outside of the screen can't be erased. Rows at
 *    its top are left out, down to the row of the cursor; then rows at its end.
 * 5. Each row of the area takes one row of the screen, even if the terminal counts the width of a
 *    character differently: automatic wrapping is off while it is drawn.
 */
export type LiveArea = {
  /** Prints whole lines above the area. */
  print(text: Safe): void;
  /** A function is called only when the frame is drawn, so frames that are skipped cost nothing. */
  draw(frame: Frame | (() => Frame), when?: DrawTime): void;
  /**
   * Prints all pending lines and removes the area. The cursor is left at the start of an empty
   * line.
   */
  clear(): void;
};

/** Rows that already fit the width of the screen, and the cursor's place in them. */
export type Frame = {
  readonly rows: readonly Safe[];
  /** Counted from 0; null hides the cursor. */
  readonly cursor: { readonly row: number; readonly column: number } | null;
};

/** `now` is for keys: a typed character must not wait for the next frame. */
type DrawTime = 'now' | 'nextFrame';

type Size = { readonly columns: number; readonly rows: number };

const isSame = (one: Size, other: Size): boolean =>
  one.columns === other.columns && one.rows === other.rows;

/**
 * How the terminal rewraps rows that are too long after the window became narrower: all of them,
 * in the way of xterm.js, or none.
 */
export type Reflow = 'all' | 'byXterm' | 'none';

/** How known terminals rewrap. Environment variables tell which terminal it is. */
export const detectReflow = (environment: NodeJS.ProcessEnv): Reflow => {
  if (environment.XTERM_VERSION !== undefined || environment.STY !== undefined) return 'none';
  if (environment.TERM === 'linux') return 'none';
  return environment.TERM_PROGRAM === 'vscode' ? 'byXterm' : 'all';
};

type LiveAreaOptions = {
  write(text: Safe): void;
  size(): Size;
  readonly clock: Clock;
  readonly reflow: Reflow;
  /** While it returns true only `clear` writes. */
  readonly isHeld?: () => boolean;
};

const FRAME_MS = 33;
/** How long the window keeps its size before rows are drawn: none are drawn while it is dragged. */
const SETTLED_MS = 80;
const EMPTY: Frame = { rows: [], cursor: null };

/** The rows of a frame that fit: the last ones, or those from the row of the cursor on. */
const fitFrame = ({ rows, cursor }: Frame, room: number): Frame => {
  const top = Math.max(0, Math.min(rows.length - room, cursor?.row ?? rows.length));
  return {
    rows: rows.slice(top, top + room),
    cursor: cursor === null ? null : { row: cursor.row - top, column: cursor.column },
  };
};

/** The escapes that move the cursor up or down. */
const moveToRow = (from: number, to: number): Safe => {
  if (from === to) return safe``;
  return to < from ? moveUp(from - to) : moveDown(to - from);
};

/** A row with a style reset at its end. Only styles may control the terminal here. */
const closeStyles = (row: Safe): Safe => {
  const safeRow = keepStyles(row);
  return safeRow.includes('\u001b') ? safe`${safeRow}${CLOSE_STYLES}` : safeRow;
};

/** The drawn frame, the place of its cursor (`row`, `column`), and the window size at that time. */
type DrawnFrame = {
  readonly rows: readonly Safe[];
  readonly row: number;
  readonly column: number;
  /** Whether the cursor is hidden. */
  readonly hidden: boolean;
  readonly size: Size;
};

/** Rows that a row takes beside the first one, once the terminal has rewrapped it to `columns`. */
const addedRows = (text: Safe, columns: number): number => wrapText(text, columns).length - 1;

/**
 * Rows between the area's first row and the cursor after the window changed its size. Terminals
 * join what they have wrapped, so only the last width counts, however many there were before it.
 */
const rowsAboveCursor = (
  { rows, row, column }: DrawnFrame,
  { columns }: Size,
  reflow: Reflow,
): number => {
  if (reflow === 'none') return row;
  if (reflow === 'byXterm') return rowsAboveXtermCursor(rows, row, columns);
  const above = rows.slice(0, row).reduce((sum, text) => sum + addedRows(text, columns), row);
  return above + Math.min(addedRows(rows[row] ?? safe``, columns), Math.floor(column / columns));
};

/**
 * xterm.js rewraps from the last row to the first. Each row added, below the cursor or above it,
 * moves the cursor down; the row that has the same number as the cursor then stays whole. Example:
 * the cursor is in the third of four rows, and each is twice as long as the window. The fourth
 * becomes two, which moves the cursor to row 3 (counted from 0). The third, second and first do the
 * same, so it ends in row 6.
 */
const rowsAboveXtermCursor = (rows: readonly Safe[], row: number, columns: number): number =>
  rows.reduceRight((at, text, index) => (index === at ? at : at + addedRows(text, columns)), row);

/** Rows at the end that both frames have. Rows below an inserted one are not written again. */
const countSharedEnd = (from: readonly Safe[], to: readonly Safe[]): number => {
  let count = 0;
  while (count < from.length && from.at(-1 - count) === to.at(-1 - count)) count += 1;
  return count;
};

/** Fewer rows at the end are written again: moving them costs some twenty bytes. */
const MOVED_MIN = 2;

/**
 * Moves the rows that both frames end with to their new place, by inserting or deleting rows before
 * them. Returns the escapes, and the frame that the screen shows after them.
 */
const moveEnd = (
  from: DrawnFrame,
  to: readonly Safe[],
): { readonly text: Safe; readonly from: DrawnFrame } => {
  const added = to.length - from.rows.length;
  const stay = countSharedEnd(from.rows, to);
  if (added === 0 || stay < MOVED_MIN) return { text: safe``, from };
  if (added < 0) {
    const at = to.length - stay;
    const rows = [...from.rows.slice(0, at), ...from.rows.slice(from.rows.length - stay)];
    const text = safe`${moveToRow(from.row, at)}${deleteRows(-added)}`;
    return { text, from: { ...from, rows, row: at } };
  }
  const last = from.rows.length - 1;
  const at = from.rows.length - stay;
  const text = joinSafe([
    moveToRow(from.row, last),
    NEXT_ROW.repeat(added),
    moveToRow(last + added, at),
    insertRows(added),
  ]);
  const blank = Array.from({ length: added }, () => safe``);
  const rows = [...from.rows.slice(0, at), ...blank, ...from.rows.slice(at)];
  return { text, from: { ...from, rows, row: at } };
};

/**
 * Escapes that turn the drawn rows into `to`, and the row of the cursor after them. The cursor only
 * moves within existing rows; line feeds add rows.
 */
const changeRows = (
  shown: DrawnFrame,
  to: readonly Safe[],
): { readonly text: Safe; readonly row: number } => {
  const { text: moved, from } = moveEnd(shown, to);
  const moves: Safe[] = [moved];
  let at = from.row;
  let last = Math.max(0, from.rows.length - 1);
  to.forEach((row, index) => {
    if (from.rows[index] === row && index < from.rows.length) return;
    if (index > last) {
      moves.push(moveToRow(at, last), NEXT_ROW.repeat(index - last));
      last = index;
    } else moves.push(moveToRow(at, index));
    moves.push(ERASE_ROW, closeStyles(row));
    at = index;
  });
  if (from.rows.length > to.length) {
    // If all rows are gone the cursor stays in the first one.
    moves.push(moveToRow(at, to.length), ERASE_BELOW);
    at = to.length;
  }
  return { text: joinSafe(moves), row: at };
};

/**
 * Number of lines to print that are already on the screen as the area's first rows, such as a live
 * answer that has ended. They are not drawn again.
 */
const countShownLines = (lines: readonly Safe[], rows: readonly Safe[]): number => {
  const first = lines.findIndex((line, index) => line !== rows[index]);
  return first < 0 ? lines.length : first;
};

/** Whether a printed line takes one row of the screen. */
const fitsRow = (line: Safe, columns: number): boolean =>
  !line.includes('\t') && countColumns(line) < columns;

/** Remembers what it has drawn, and writes only what differs. */
class DrawnArea implements LiveArea {
  readonly #options: LiveAreaOptions;
  #shown: DrawnFrame;
  #frame: Frame | (() => Frame) = EMPTY;
  /** Lines to print above the area with the next write. */
  #lines: readonly Safe[] = [];
  #drawnAt = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;
  /** The size that the window has now, and since when; null if the frame was drawn for it. */
  #resized: { readonly size: Size; readonly at: number } | null = null;

  constructor(options: LiveAreaOptions) {
    this.#options = options;
    this.#shown = { rows: [], row: 0, column: 0, hidden: false, size: options.size() };
  }

  print(text: Safe): void {
    this.#lines = [...this.#lines, ...text.split('\n')];
    this.#soon(); // not at once: a frame drawn in the same tick then goes into the same write
  }

  draw(frame: Frame | (() => Frame), when: DrawTime = 'nextFrame'): void {
    this.#frame = frame;
    if (when === 'now' || this.#options.clock.now() - this.#drawnAt >= FRAME_MS) this.#flush();
    else this.#soon();
  }

  clear(): void {
    this.#frame = EMPTY;
    this.#flush('cleared');
  }

  /** Plans the next write, unless one is planned. */
  #soon(): void {
    const { clock } = this.#options;
    const waitMs = Math.max(0, this.#drawnAt + FRAME_MS - clock.now());
    this.#cancelTimer ??= clock.after(waitMs, () => this.#flush());
  }

  /**
   * How long the window must still keep its size until the area is drawn; not positive: no longer.
   * xterm.js itself waits for that, and a terminal that rewraps nothing needs no wait.
   */
  #unsettledMs(size: Size): number {
    const { clock, reflow } = this.#options;
    const { rows, size: drawn } = this.#shown;
    if (reflow !== 'all' || rows.length === 0 || isSame(drawn, size)) this.#resized = null;
    else if (this.#resized === null || !isSame(this.#resized.size, size))
      this.#resized = { size, at: clock.now() };
    return this.#resized === null ? 0 : this.#resized.at + SETTLED_MS - clock.now();
  }

  /** Writes all changes. While the window is dragged it waits; `clear` never waits. */
  #flush(why?: 'cleared'): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#options.isHeld?.() === true && why !== 'cleared') return;
    const size = this.#options.size();
    const waitMs = this.#unsettledMs(size);
    if (waitMs > 0 && why !== 'cleared') {
      this.#cancelTimer = this.#options.clock.after(waitMs, () => this.#flush());
      return;
    }
    const moved = this.#followWindow(size);
    const next = typeof this.#frame === 'function' ? this.#frame() : this.#frame;
    const frame = fitFrame(next, Math.max(1, size.rows - 1));
    const { text: printed, above } = this.#printLines(size, frame);
    const change = joinSafe([moved, printed, this.#drawRows(size, frame, above)]);
    if (change === '') return;
    this.#drawnAt = this.#options.clock.now();
    this.#options.write(safe`${BEGIN_UPDATE}${change}${END_UPDATE}`);
  }

  /**
   * After a change of the window's size: erases the area wherever it moved to. It is then drawn
   * again.
   */
  #followWindow(size: Size): Safe {
    const before = this.#shown;
    if (isSame(before.size, size)) return safe``;
    this.#shown = { ...before, rows: [], row: 0, column: 0, size };
    if (before.rows.length === 0) return safe``;
    const up = Math.min(size.rows - 1, rowsAboveCursor(before, size, this.#options.reflow));
    return safe`${moveToRow(up, 0)}${ERASE_BELOW}`;
  }

  /**
   * Escapes that print the lines. If lines and frame fit into the window, the area's first row
   * stays where it is, and `above` are the lines: they are compared and written together with the
   * rows of the area, so that rows that are already right are not written, and are scroll-back
   * after that.
   */
  #printLines(size: Size, frame: Frame): { readonly text: Safe; readonly above: readonly Safe[] } {
    if (this.#lines.length === 0) return { text: safe``, above: [] };
    const shownLines = countShownLines(this.#lines, this.#shown.rows);
    const rest = this.#lines.slice(shownLines);
    this.#lines = [];
    const areaStays =
      frame.rows.length > 0 &&
      rest.length + frame.rows.length < size.rows &&
      rest.every((line) => fitsRow(line, size.columns));
    // Without a rest nothing is printed: the shown lines only stop being rows of the area.
    const room = this.#makeRoom(shownLines, areaStays || rest.length === 0);
    if (areaStays && this.#shown.rows.length > 0) return { text: room, above: rest };
    const printed = rest.map((line) => safe`${closeStyles(line)}${NEXT_ROW}`);
    return { text: joinSafe([room, ...printed]), above: [] };
  }

  /**
   * Moves to the row of the first new line. The `shownLines` above it are right already and become
   * scroll-back unchanged.
   */
  #makeRoom(shownLines: number, areaStays: boolean): Safe {
    const { rows, row } = this.#shown;
    if (areaStays && shownLines < rows.length) {
      this.#shown = { ...this.#shown, rows: rows.slice(shownLines), row: row - shownLines };
      return safe``;
    }
    // From here on the area is drawn anew, below the printed lines.
    this.#shown = { ...this.#shown, rows: [], row: 0, column: 0 };
    if (rows.length === 0) return ROW_START;
    return shownLines < rows.length
      ? safe`${moveToRow(row, shownLines)}${ERASE_BELOW}`
      : safe`${moveToRow(row, rows.length - 1)}${NEXT_ROW}`;
  }

  /** Escapes that draw the frame below the lines `above` it, and place the cursor. */
  #drawRows(size: Size, frame: Frame, above: readonly Safe[]): Safe {
    const before = this.#shown;
    const change = changeRows(before, [...above, ...frame.rows]);
    // The lines `above` are scroll-back from now on: the area's rows are counted below them.
    const row = change.row - above.length;
    const hidden = frame.cursor === null && frame.rows.length > 0;
    const cursor = frame.cursor ?? { row: Math.max(0, row), column: 0 };
    const moves = change.text !== '' || row !== cursor.row || cursor.column !== before.column;
    const right = cursor.column > 0 ? moveRight(cursor.column) : safe``;
    const move = moves ? safe`${moveToRow(row, cursor.row)}${ROW_START}${right}` : safe``;
    const visible = hidden ? HIDE_CURSOR : SHOW_CURSOR;
    const shows = hidden === before.hidden ? safe`` : visible;
    this.#shown = { rows: frame.rows, ...cursor, hidden, size };
    const rows = change.text === '' ? safe`` : safe`${WRAP_OFF}${change.text}${WRAP_ON}`;
    return joinSafe([rows, move, shows]);
  }
}

export const createLiveArea = (options: LiveAreaOptions): LiveArea => new DrawnArea(options);

/**
 * Prints whole lines and redraws nothing. For screen readers (`--plain`) and terminals without
 * escapes (`TERM=dumb`).
 */
export const createPlainArea = (write: (text: Safe) => void): LiveArea => ({
  print: (text) => write(safe`${keepStyles(text)}\n`),
  draw: () => undefined,
  clear: () => undefined,
});

// ---- The screen: the terminal's modes ----

/** Takes the terminal over from the shell, and restores it however the program ends. */
export type Screen = {
  readonly area: LiveArea;
  size(): { readonly columns: number; readonly rows: number };
  /** Switches to raw mode and the input modes. */
  take(): void;
  /** Restores the shell's modes. */
  giveBack(): void;
  /**
   * Stops the whole job as Ctrl-Z does. Nothing is drawn until the terminal is taken again: keys
   * pressed at a frame in the shell's modes would be echoed, and Enter would be a line feed. The
   * caller takes it at SIGCONT. If no stop happens (a shell without job control), this does, and
   * calls `redraw`.
   */
  suspend(redraw: () => void): void;
  /**
   * The title of the window, from now until the terminal is given back. From the first title on the
   * terminal also reports whether its window has the focus.
   */
  setTitle(title: Safe): void;
};

/** Longer than a stop signal needs to arrive. */
const STOPPING_MS = 100;

/** `plain`: whole lines, and no escapes. */
export const createScreen = (plain: boolean): Screen => {
  const size = () => windowSize(process.stdout.columns, process.stdout.rows);
  let isTaken = false;
  let isSuspended = false;
  let title: Safe | null = null;
  const titleText = (): Safe => (title === null ? safe`` : windowTitle(title, process.env));
  const switchModes = (take: boolean): void => {
    if (plain || isTaken === take) return;
    isTaken = take;
    try {
      process.stdin.setRawMode(take);
    } catch {
      // the terminal is gone: there is no mode to set
    }
    const titleAndFocus = take
      ? safe`${ENABLE_TITLE_AND_FOCUS}${titleText()}`
      : RESTORE_TITLE_AND_FOCUS;
    writeWindow(
      safe`${title === null ? safe`` : titleAndFocus}${take ? ENABLE_INPUT_MODES : RESTORE_TERMINAL}`,
    );
  };
  // Runs after an uncaught error too.
  process.on('exit', () => switchModes(false));
  const area = plain
    ? createPlainArea(writeWindow)
    : createLiveArea({
        write: writeWindow,
        size,
        clock: systemClock,
        reflow: detectReflow(process.env),
        isHeld: () => isSuspended,
      });
  const take = (): void => {
    switchModes(true);
    isSuspended = false;
  };
  return {
    area,
    size,
    take,
    giveBack: () => switchModes(false),
    suspend(redraw) {
      area.clear();
      switchModes(false);
      isSuspended = true;
      process.kill(0, 'SIGTSTP');
      setTimeout(() => {
        take();
        redraw();
      }, STOPPING_MS);
    },
    setTitle(next) {
      const begin = title === null ? ENABLE_TITLE_AND_FOCUS : safe``;
      title = next;
      if (isTaken) writeWindow(safe`${begin}${titleText()}`);
    },
  };
};

// ---- The status row ----

/**
 * `streamed`: UTF-16 units of the running reply. `typing`: whether the input line has text.
 * `servers`: MCP servers that the request waits for. `coldUsd`: what reading the conversation anew
 * would cost, once the provider may have forgotten it.
 */
type StatusInput = {
  readonly streamed: number;
  readonly typing: boolean;
  readonly servers?: readonly string[];
  readonly coldUsd?: number | null;
};

const NO_INPUT: StatusInput = { streamed: 0, typing: false };

/** One row of at most `columns`: state, time of the turn, tokens, keys. */
export const statusRow = (
  state: State,
  columns: number,
  now: number,
  seen: StatusInput = NO_INPUT,
): Safe => {
  const spinner = isMoving(state) ? safe`${spinnerAt(now)} ` : safe``;
  let parts = statusParts(state, now, seen);
  // the part with the highest rank is left out until the others fit
  while (parts.length > 1 && countColumns(spinner + joinParts(parts)) > columns) {
    const last = Math.max(...parts.map((part) => part.rank));
    parts = parts.filter((part) => part.rank !== last);
  }
  return cutLine(safe`${spinner}${joinParts(parts)}`, columns);
};

/** What the session does now. */
const stateText = (state: State, now: number): Safe => {
  switch (state.name) {
    case 'Ready':
    case 'WaitingForUserInput':
      return waitingText(state);
    case 'CallingLlm':
      // draining: the turn was cancelled, and the end of its reply is awaited
      return state.call.mode === 'draining'
        ? safe`stopping`
        : callingText(state.partial !== '', state.attempt);
    case 'Error':
      return safe`retrying in ${secondsLeft(state.dueAt - now)}s (Enter: now)`;
    case 'ExecutingTools':
      return toolsText(state);
    case 'PostToolsHook':
      return phaseWords[state.phase];
    case 'Compacting':
      return safe`summarising the conversation to free context`;
    case 'Rewinding':
      return safe`taking files back`;
    case 'ShuttingDown':
      return safe`closing`;
    default:
      return makeSafe(state.name);
  }
};

/** Whole seconds, so that the row changes once per second. */
const secondsLeft = (leftMs: number): number => Math.max(0, Math.ceil(leftMs / 1_000));

const phaseWords: Readonly<Record<HookPhase, Safe>> = {
  CheckingGitCommits: safe`checking commits`,
  RunningAutoformatters: safe`formatting`,
  AutoCommitting: safe`committing`,
};

/** `streams`: whether a part of the reply has arrived. */
const callingText = (streams: boolean, attempt: number): Safe => {
  const what = streams ? safe`answering` : safe`thinking`;
  return attempt > 1 ? safe`${what} (attempt ${attempt})` : what;
};

const toolsText = (state: Extract<State, { name: 'ExecutingTools' }>): Safe => {
  if (state.phase.mode === 'cancelling') return safe`stopping what runs`;
  if (isAsking(state)) return safe`needs your answer`;
  const running = state.calls.filter(
    (call) => call.status === 'running' || call.status === 'starting',
  );
  return makeSafe(`running ${running.map((call) => call.judged.tool).join(', ')}`).trim();
};

/** Failures that come again where only the same is sent again. */
const FAILS_AGAIN: readonly FailureKind[] = ['auth', 'badRequest', 'refused'];

/** What ended the last turn. */
const waitingText = (state: State): Safe => {
  if (state.name !== 'WaitingForUserInput') return safe`ready`;
  switch (state.reason.kind) {
    case 'cancelled':
      return safe`stopped`;
    case 'budget':
      return safe`limit reached: ${limitTexts(state, state.reason.dimension).limit}`;
    case 'error':
      return FAILS_AGAIN.includes(state.reason.error)
        ? safe`failed`
        : safe`failed: /retry tries again`;
    default:
      return safe`ready`;
  }
};

/** With as many decimals as it has, at least two: another number would be another limit. */
const limitUsd = (usd: number): Safe =>
  makeSafe(usd.toFixed(USD_DECIMALS).replace(/(\.\d\d\d*?)0+$/, '$1'));
const USD_DECIMALS = 6;

type LimitTexts = { readonly limit: Safe; readonly more: Safe };

/** Limits without an amount: what the session did too often. */
const REPEATED = {
  truncation: safe`replies that were cut off`,
  repeats: safe`the same calls again and again`,
  errors: safe`calls that fail again and again`,
  sameResults: safe`the same results again and again`,
} as const;

/**
 * A limit in words, and at least twice as much (`more`) for the command `/budget`: there a number
 * alone means the limit that stopped the turn. `dimension`: what the limit counts.
 */
const limitTexts = ({ session }: State, dimension: Dimension): LimitTexts => {
  const limit = session.settings.limits[dimension === 'time' ? 'timeMs' : dimension];
  const amount = limit === 'unlimited' ? 0 : limit;
  switch (dimension) {
    case 'usd':
      return {
        limit: safe`$${limitUsd(amount)}`,
        more: Number.isInteger(2 * amount) ? safe`${2 * amount}` : limitUsd(2 * amount),
      };
    case 'tokens':
      return {
        limit: safe`${formatTokens(amount)} tokens`,
        // thousands, rounded up: 2 * amount / 1000
        more: amount < 1_000 ? safe`${2 * amount}` : safe`${Math.ceil(amount / 500)}k`,
      };
    case 'rounds':
      return { limit: makeSafe(plural(amount, 'round')), more: safe`${2 * amount}` };
    case 'time': {
      const minutes = amount / 60_000;
      const limit = Number.isInteger(minutes)
        ? plural(minutes, 'minute')
        : plural(Math.ceil(amount / 1_000), 'second');
      return { limit: makeSafe(limit), more: safe`${Math.ceil(2 * minutes)}` };
    }
    default:
      return { limit: REPEATED[dimension], more: safe`${2 * amount}` };
  }
};

/** Whether a call waits for the user's answer. */
export const isAsking = (state: State): boolean =>
  state.name === 'ExecutingTools' &&
  state.calls.some(({ status }) => status === 'awaitingApproval');

/** Whether the screen changes with time alone: something runs, and the user is asked nothing. */
export const isMoving = (state: State): boolean => isBusy(state) && !isAsking(state);

const SPINNER = safe`⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏`;
/** How long the spinner shows one of its signs. */
export const SPINNER_MS = 120;

const spinnerAt = (now: number): Safe => {
  const index = Math.floor(now / SPINNER_MS) % SPINNER.length;
  return SPINNER.slice(index, index + 1);
};

/** Less than a cent is not worth a word. */
const COLD_USD_MIN = 0.01;

/** A cold cache: the provider has forgotten the conversation. Sending it costs the full price. */
const coldText = (usd: number | null): Safe =>
  usd === null || usd < COLD_USD_MIN ? safe`` : safe`cache may be cold: about ${formatCost(usd)}`;

/** Characters per token: a rough mean for English and code. */
const SIGNS_A_TOKEN = 4;

/** Tokens of the session, plus an estimate for the reply that is streaming. */
const tokensText = ({ session: { usage } }: State, streamed: number): Safe => {
  const counted = totalTokens(usage);
  return streamed === 0
    ? safe`${formatTokens(counted)} tokens`
    : safe`~${formatTokens(counted + Math.ceil(streamed / SIGNS_A_TOKEN))} tokens`;
};

/** The keys that are useful in this state. */
const keysText = (state: State, typing: boolean): Safe => {
  if (isMoving(state))
    return typing
      ? safe`Enter: with the next step · Alt+Enter: after the turn`
      : safe`Escape stops`;
  // the text of the state already names /retry
  if (state.name === 'WaitingForUserInput' && state.reason.kind === 'error') return safe``;
  if (state.name === 'WaitingForUserInput' && state.reason.kind === 'budget')
    return safe`/budget ${limitTexts(state, state.reason.dimension).more} and /retry go on`;
  return typing || isBusy(state) ? safe`` : safe`? for keys`;
};

const SEPARATOR = safe` · `;

/** A part of the status row. */
type Part = {
  readonly text: Safe;
  /** Parts with a low rank stay longest in a narrow window. */
  readonly rank: number;
};

const serversText = (servers: readonly string[]): Safe =>
  safe`waiting for MCP server${servers.length > 1 ? safe`s` : safe``} ${makeSafe(servers.join(', '))}`;

/** The parts in the order of the row. */
const statusParts = (
  state: State,
  now: number,
  { streamed, typing, servers = [], coldUsd = null }: StatusInput,
): readonly Part[] => {
  const { turn } = state.session;
  return [
    { text: servers.length > 0 ? serversText(servers) : stateText(state, now), rank: 0 },
    { text: isBusy(state) ? formatSeconds(now - turn.startedAt) : safe``, rank: 1 },
    // At rest a sum over all requests says nothing.
    { text: isBusy(state) ? tokensText(state, streamed) : safe``, rank: 4 },
    { text: coldText(coldUsd), rank: 3 },
    { text: keysText(state, typing), rank: 2 },
  ].filter((part) => part.text !== '');
};

const joinParts = (parts: readonly Part[]): Safe =>
  joinSafe(
    parts.map(({ text }) => text),
    SEPARATOR,
  );

/** Further texts are only counted. */
const QUEUED_ROWS = 3;

/** Texts of the user that wait to be sent, in a row each. */
export const queuedRows = ({ session: { queue } }: State, columns: number): readonly Safe[] => {
  const more = queue.length - QUEUED_ROWS;
  return [
    ...queue.slice(0, QUEUED_ROWS).map(({ text }) => oneLine(`queued: ${text}`, columns)),
    ...(more > 0 ? [safe`… ${more} more`] : []),
  ];
};

// ---- The input box: the line between its edges; below it the row of settings or the key card ----

/**
 * An edge is short: a terminal that becomes narrower rewraps long rows. The added rows push others
 * into scroll-back, where nothing can be erased. Half of a usual window does not rewrap this edge.
 */
const EDGE_COLUMNS = 40;
/** Windows with fewer rows have no lower edge, no upper edge, and at last no row of settings. */
const BOTH_EDGES_ROWS = 20;
const UPPER_EDGE_ROWS = 12;
const SETTINGS_ROWS = 8;

/** Presets are named sets of permissions; red is the one that allows all. */
const PRESET_STYLES: Readonly<Record<Preset, Style>> = {
  plan: 'blue',
  careful: 'green',
  auto: 'yellow',
  ci: 'yellow',
  full: 'red',
};

/** A part of the row of settings. */
type Setting = {
  readonly text: Safe;
  /** Parts with a low rank stay longest in a narrow window. */
  readonly rank: number;
  readonly style: Style;
  /** What replaces the text before the context is left out. */
  readonly short?: Safe;
};

/** The part with the highest rank is left out first. */
const PRESET_RANK = 0;
const NO_SANDBOX_RANK = 1;
const COST_RANK = 2;
const MODEL_RANK = 3;
const CONTEXT_RANK = 4;
const EFFORT_RANK = 5;
const SANDBOX_RANK = 6;
/** A shorter piece of a model's name tells nothing. */
const MODEL_COLUMNS_MIN = 8;

/**
 * The name of a model without its provider; the whole id where the name has a `/` and so looks like
 * one. A scripted model, as tests use it, is named by a path: its folder is left out.
 */
export const modelName = (id: string): string => {
  if (id.startsWith('scripted/')) return id.slice(id.lastIndexOf('/') + 1);
  const name = id.slice(id.indexOf('/') + 1);
  return name.includes('/') ? id : name;
};

const limitText = ({ session }: State): Safe => {
  const { usd } = session.settings.limits;
  return usd === 'unlimited' ? safe`` : safe` of $${limitUsd(usd)}`;
};

const sandboxPart = ({ session: { settings } }: State): Setting => {
  const { sandbox = 'off' } = settings;
  if (sandbox === 'off') return { text: safe`sandbox off`, rank: NO_SANDBOX_RANK, style: 'yellow' };
  // missing: a sandbox is wanted, but does not work on this system
  if (sandbox === 'missing')
    return { text: safe`no sandbox`, rank: NO_SANDBOX_RANK, style: 'yellow' };
  const level = sandbox === 'workspace' ? safe`on` : makeSafe(sandbox);
  return { text: safe`sandbox ${level}`, rank: SANDBOX_RANK, style: 'dim' };
};

/** The parts in the order of the row. */
const settingsParts = (state: State): readonly Setting[] => {
  const { settings, contextTokens } = state.session;
  const { preset, model, effort = 'auto', windowTokens } = settings;
  const share = Math.round((100 * contextTokens) / Math.max(1, windowTokens));
  const usage = toldUsage(state);
  const spent = formatSpent(knownCostUsd(usage), usage);
  const parts: readonly Setting[] = [
    {
      text: makeSafe(preset ?? ''),
      rank: PRESET_RANK,
      style: preset === undefined ? 'dim' : PRESET_STYLES[preset],
    },
    sandboxPart(state),
    { text: makeSafe(modelName(model)), rank: MODEL_RANK, style: 'dim' },
    {
      text: makeSafe(effort === 'auto' ? '' : `effort ${effort}`),
      rank: EFFORT_RANK,
      style: 'dim',
    },
    { text: safe`${spent}${limitText(state)}`, rank: COST_RANK, style: 'dim', short: spent },
    { text: safe`context ${share}%`, rank: CONTEXT_RANK, style: 'dim' },
  ];
  return parts.filter(({ text }) => text !== '');
};

const INDENT = safe`  `;

const measureParts = (parts: readonly Setting[]): number =>
  countColumns(joinSafe([INDENT, ...parts.map(({ text }) => safe`${SEPARATOR}${text}`)])) -
  (parts.length === 0 ? 0 : SEPARATOR.length);

/** The cost without its limit. */
const withoutLimit = (parts: readonly Setting[]): readonly Setting[] =>
  parts.map(({ text, short = text, ...part }) => ({ ...part, text: short }));

/** Without the part of the highest rank. */
const withoutLast = (parts: readonly Setting[]): readonly Setting[] => {
  const last = Math.max(...parts.map(({ rank }) => rank));
  return parts.filter(({ rank }) => rank !== last);
};

/** The row with the model's name cut so that all fits; unchanged if too little of it would stay. */
const withCutModel = (parts: readonly Setting[], columns: number): readonly Setting[] =>
  parts.map((part) => {
    const room = countColumns(part.text) - (measureParts(parts) - columns);
    const isCut = part.rank === MODEL_RANK && room >= MODEL_COLUMNS_MIN;
    return isCut ? { ...part, text: cutLine(part.text, room) } : part;
  });

/** The parts that fit: at first without effort, sandbox and limit, then without the context. */
const fittingParts = (all: readonly Setting[], columns: number): readonly Setting[] => {
  const isTooWide = (parts: readonly Setting[]): boolean => measureParts(parts) > columns;
  let parts = all;
  /** Leaves parts with a higher rank out, one by one, until the row fits. */
  const leaveOutAbove = (rank: number): void => {
    while (isTooWide(parts) && parts.length > 1 && parts.some((part) => part.rank > rank))
      parts = withoutLast(parts);
  };
  leaveOutAbove(CONTEXT_RANK);
  if (isTooWide(parts)) parts = withoutLimit(parts);
  leaveOutAbove(MODEL_RANK);
  if (isTooWide(parts)) parts = withCutModel(parts, columns);
  leaveOutAbove(PRESET_RANK);
  return parts;
};

/** Whether the row names the key that changes the preset: not while the key does something else. */
type PresetKey = 'named' | 'notNamed';

/** One row of at most `columns`: preset, sandbox, model, effort, money, share of the context. */
export const settingsRow = (
  state: State,
  look: Look,
  columns: number,
  key: PresetKey = 'named',
): Safe => {
  const parts = fittingParts(settingsParts(state), columns);
  const [first] = parts;
  const hint = safe` (Shift+Tab)`;
  // `full` is chosen at the start, and the key can't leave it
  const isNamed = key === 'named' && state.session.settings.preset !== 'full';
  const hasRoom = measureParts(parts) + hint.length <= columns && first?.rank === PRESET_RANK;
  const painted = parts.map(({ text, style }, index) => {
    const shown = paint(look, style, text);
    if (index > 0) return safe`${paint(look, 'dim', SEPARATOR)}${shown}`;
    return hasRoom && isNamed ? safe`${shown}${paint(look, 'dim', hint)}` : shown;
  });
  return cutLine(joinSafe([INDENT, ...painted]), columns);
};

/** The row of settings, if the window is high enough for it. */
export const settingsRows = (
  state: State,
  look: Look,
  { columns, rows }: Size,
  key: PresetKey = 'named',
): readonly Safe[] => (rows < SETTINGS_ROWS ? [] : [settingsRow(state, look, columns - 1, key)]);

const KEY_CARD: readonly (readonly [key: string, meaning: string])[] = [
  ['Enter', 'send; while it works: with the next step'],
  ['Alt+Enter', 'send after this turn'],
  ['Escape', 'stop; twice at rest: take back'],
  ['Shift+Tab', 'next preset: what runs unasked'],
  ['@', 'name a file of this folder'],
  ['!', 'run a command yourself'],
  ['Ctrl-O', 'show what is folded'],
  ['/', 'all commands; /help explains them'],
];
const KEY_COLUMNS = 2 + Math.max(...KEY_CARD.map(([key]) => key.length));

/** The keys, in one or two columns. */
const cardRows = (look: Look, columns: number): readonly Safe[] => {
  const cells = KEY_CARD.map(([key, meaning]) => ({ key: makeSafe(key), meaning }));
  const width = Math.max(...KEY_CARD.map(([, meaning]) => meaning.length)) + KEY_COLUMNS + 2;
  const cell = ({ key, meaning }: (typeof cells)[number]): Safe =>
    safe`${paint(look, 'bold', key.padEnd(KEY_COLUMNS))}${makeSafe(meaning)}`;
  if (columns <= 2 * width)
    return cells.map((one) => cutLine(safe`${INDENT}${cell(one)}`, columns));
  const half = Math.ceil(cells.length / 2);
  return cells.slice(0, half).map((left, index) => {
    const right = cells[half + index];
    const gap = safe` `.repeat(width - KEY_COLUMNS - left.meaning.length);
    return safe`${INDENT}${cell(left)}${right === undefined ? safe`` : safe`${gap}${cell(right)}`}`;
  });
};

/** The card that stands below the line while it holds a question mark alone. */
export const keyCard = (look: Look, { columns }: Pick<Size, 'columns'>): readonly Safe[] => [
  ...cardRows(look, columns - 1),
  ...fitWords(safe`Backspace closes this; Enter shows all keys and commands`, columns - 4).map(
    (row) => safe`${INDENT}${paint(look, 'dim', row)}`,
  ),
];

const PLACEHOLDER = 'Give a task, for example: find out why the tests fail and repair it';

/** An empty line with an example of what to type. */
export const withPlaceholder = ({ rows, cursor }: Frame, look: Look, columns: number): Frame => {
  const [first = safe`> `, ...others] = rows;
  const example = cutLine(makeSafe(PLACEHOLDER), Math.max(4, columns - 3));
  return { rows: [safe`${first}${paint(look, 'dim', example)}`, ...others], cursor };
};

/** The line between its edges, with `below` under it. */
export const inputBox = (
  line: Frame,
  look: Look,
  { columns, rows }: Size,
  below: readonly Safe[],
): Frame => {
  const edge = paint(look, 'dim', safe`─`.repeat(Math.min(EDGE_COLUMNS, columns - 1)));
  const upper = rows < UPPER_EDGE_ROWS ? [] : [edge];
  const lower = rows < BOTH_EDGES_ROWS ? [] : [edge];
  const { cursor } = line;
  return {
    rows: [...upper, ...line.rows, ...lower, ...below],
    cursor: cursor === null ? null : { ...cursor, row: cursor.row + upper.length },
  };
};
