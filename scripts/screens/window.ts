/** A program in a real pseudo-terminal, and the cells of its screen. */

import { readFileSync } from 'node:fs';
import { spawn } from '@lydell/node-pty';
import xterm from '@xterm/headless';

/** A colour of the palette by number, or a colour as `#rrggbb`; null is the terminal's own. */
export type Colour = number | string | null;

export type Cell = {
  readonly text: string;
  readonly foreground: Colour;
  readonly background: Colour;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly struck: boolean;
  readonly inverse: boolean;
};

export type Shot = {
  readonly rows: readonly (readonly Cell[])[];
  readonly cursor: { readonly row: number; readonly column: number } | null;
};

/** Output of a program, with the time in seconds since its start. */
export type Output = readonly [seconds: number, text: string];

export type Window = {
  press(keys: string): void;
  /** Kills the program that the shell of the window runs, without a warning. */
  killProgram(): void;
  /** Waits until the lines, scroll-back included, show it. Throws after a minute. */
  sees(wanted: string | RegExp): Promise<void>;
  /** The last `rowsMax` lines with something in them. */
  shot(rowsMax: number): Shot;
  /** All output of the program. */
  outputs(): readonly Output[];
  /** Kills the program. */
  close(): Promise<void>;
};

type TerminalCell = NonNullable<
  ReturnType<NonNullable<ReturnType<xterm.Terminal['buffer']['active']['getLine']>>['getCell']>
>;

const LIMIT_MS = 60_000;
const POLL_MS = 30;

const hex = (colour: number): string => `#${colour.toString(16).padStart(6, '0')}`;

const colourOf = (value: number, isPalette: boolean, isTrue: boolean): Colour => {
  if (isTrue) return hex(value);
  return isPalette ? value : null;
};

const cellOf = (cell: TerminalCell): Cell => ({
  text: cell.getChars() === '' ? ' ' : cell.getChars(),
  foreground: colourOf(cell.getFgColor(), cell.isFgPalette(), cell.isFgRGB()),
  background: colourOf(cell.getBgColor(), cell.isBgPalette(), cell.isBgRGB()),
  bold: cell.isBold() !== 0,
  dim: cell.isDim() !== 0,
  italic: cell.isItalic() !== 0,
  underline: cell.isUnderline() !== 0,
  struck: cell.isStrikethrough() !== 0,
  inverse: cell.isInverse() !== 0,
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

export type WindowOptions = {
  readonly columns: number;
  readonly rows: number;
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly program: readonly string[];
};

const rowsOf = (
  { buffer: { active }, cols }: xterm.Terminal,
  start: number,
  end: number,
): Shot['rows'] =>
  Array.from({ length: end - start }, (_, index) => {
    const line = active.getLine(start + index);
    return Array.from({ length: cols }, (_column, column) => line?.getCell(column))
      .filter((cell) => cell !== undefined && cell.getWidth() > 0)
      .map((cell) => cellOf(cell as TerminalCell)); // filtered above
  });

/** The last `rowsMax` lines of a terminal with something in them. */
const shotOf = (terminal: xterm.Terminal, rowsMax: number): Shot => {
  const { active } = terminal.buffer;
  const cursorRow = active.baseY + active.cursorY;
  const written = Array.from({ length: active.length }, (_, row) => row).findLast(
    (row) => active.getLine(row)?.translateToString(true) !== '',
  );
  const end = Math.max(cursorRow, written ?? 0) + 1;
  const start = Math.max(0, end - rowsMax);
  const rows = rowsOf(terminal, start, end);
  return { rows, cursor: { row: cursorRow - start, column: active.cursorX } };
};

/** What the window shows now. */
export const screenOf = (terminal: xterm.Terminal): Shot => {
  const { baseY, cursorX, cursorY } = terminal.buffer.active;
  const rows = rowsOf(terminal, baseY, baseY + terminal.rows);
  return { rows, cursor: { row: cursorY, column: cursorX } };
};

/** Whether the program has left the cursor visible. */
const watchCursor = ({ parser }: xterm.Terminal): (() => boolean) => {
  let isShown = true;
  for (const final of ['h', 'l'])
    parser.registerCsiHandler({ prefix: '?', final }, (parameters) => {
      if (parameters.includes(25)) isShown = final === 'h';
      return false; // the terminal takes it too
    });
  return () => isShown;
};

export const openWindow = ({
  columns,
  rows,
  folder,
  environment,
  program,
}: WindowOptions): Window => {
  const terminal = new xterm.Terminal({
    cols: columns,
    rows,
    scrollback: 2_000,
    allowProposedApi: true,
  });
  const [first = '', ...words] = program;
  const child = spawn(first, words, { cols: columns, rows, cwd: folder, env: environment });
  let isRunning = true;
  const isCursorShown = watchCursor(terminal);
  const startedAtMs = performance.now();
  const outputs: Output[] = [];
  child.onData((text) => {
    outputs.push([(performance.now() - startedAtMs) / 1000, text]);
    terminal.write(text);
  });
  const ended = new Promise<void>((resolve) => {
    child.onExit(() => {
      isRunning = false;
      resolve();
    });
  });
  const buffer = () => terminal.buffer.active;
  const lines = (): readonly string[] =>
    Array.from(
      { length: buffer().length },
      (_, row) => buffer().getLine(row)?.translateToString(true) ?? '',
    );

  return {
    press: (keys) => child.write(keys),
    killProgram() {
      const running = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
      for (const pid of running.trim().split(' ')) process.kill(Number(pid), 'SIGKILL');
    },
    async sees(wanted) {
      const endsAt = Date.now() + LIMIT_MS;
      for (;;) {
        const text = lines().join('\n');
        if (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)) return;
        if (Date.now() > endsAt)
          throw new Error(`waited in vain for ${wanted} in\n${text.trimEnd()}`);
        await pause(POLL_MS);
      }
    },
    shot: (rowsMax) => {
      const shot = shotOf(terminal, rowsMax);
      return isCursorShown() ? shot : { ...shot, cursor: null };
    },
    outputs: () => outputs,
    async close() {
      if (isRunning) child.kill('SIGKILL');
      await ended;
      terminal.dispose();
    },
  };
};
