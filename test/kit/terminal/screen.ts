import xterm from '@xterm/headless';

/** A terminal without a window: what is written to it, and what would be seen. */
export type Emulator = {
  write(text: string): void;
  /** Everything that was written. */
  written(): string;
  /** How many writes there were, and the bytes of the last. */
  writes(): readonly string[];
  /** All lines, scroll-back and screen, without the empty ones at the end. */
  text(): Promise<string>;
  /** What of it is on the screen, as far as what was written has come. */
  now(): string;
  /** The cursor's column and its row among all lines, from 0. */
  cursor(): Promise<{ readonly row: number; readonly column: number }>;
  resize(columns: number, rows: number): Promise<void>;
  size(): { readonly columns: number; readonly rows: number };
};

export const createEmulator = (columns: number, rows: number): Emulator => {
  const terminal = new xterm.Terminal({
    cols: columns,
    rows,
    scrollback: 10_000,
    allowProposedApi: true,
  });
  const writes: string[] = [];
  /** It takes what is written a little later. */
  const settled = (): Promise<void> => new Promise((resolve) => terminal.write('', resolve));
  const rowsFrom = (first: number): string => {
    const buffer = terminal.buffer.active;
    const rows = Array.from({ length: buffer.length - first }, (_, row) =>
      buffer.getLine(first + row),
    );
    return rows
      .map((row) => (row?.translateToString(true) ?? '').trimEnd())
      .join('\n')
      .trimEnd();
  };
  return {
    write(text) {
      writes.push(text);
      terminal.write(text);
    },
    written: () => writes.join(''),
    writes: () => writes,
    async text() {
      await settled();
      return rowsFrom(0);
    },
    now: () => rowsFrom(terminal.buffer.active.baseY),
    async cursor() {
      await settled();
      const buffer = terminal.buffer.active;
      return { row: buffer.baseY + buffer.cursorY, column: buffer.cursorX };
    },
    async resize(wide, high) {
      await settled();
      terminal.resize(wide, high);
    },
    size: () => ({ columns: terminal.cols, rows: terminal.rows }),
  };
};
