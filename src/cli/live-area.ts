import { writeIfThere } from './print.js';

/**
 * The end of the screen that changes: an unfinished line of output, the status, the line being typed.
 *
 * 1. What is printed goes above the area and is never touched again: the terminal's own scroll-back keeps it.
 * 2. The area is drawn again in one write after every print, so that typed text is never lost or mixed up.
 * 3. Rows of the area never exceed the rows of the screen: what cannot be reached by the cursor could not be cleared.
 */
export type LiveArea = {
  /** Prints whole lines above the area. */
  print(text: string): void;
  /** Appends streamed text; its last, unfinished line stays in the area until it is ended. */
  stream(text: string): void;
  /** Ends an unfinished streamed line. */
  endStream(): void;
  /** Draws status and typed line. */
  draw(status: string, prompt: string, text: string, cursor: number): void;
  /** Removes the area; the cursor stands at the beginning of an empty line. */
  clear(): void;
};

/** Columns of a character: 2 of wide ones (East Asian, emoji), 0 of combining ones. */
const widthOf = (character: string): number => {
  if (/\p{Mark}|\u200d|\ufe0f/u.test(character)) return 0;
  return /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u.test(
    character,
  )
    ? 2
    : 1;
};

/** `text` broken into rows of at most `columns`. Escapes (colours) take no room. */
export const wrapText = (text: string, columns: number): readonly string[] => {
  const rows: string[] = [];
  for (const line of text.split('\n')) {
    let row = '';
    let used = 0;
    for (const piece of line.match(/\u001b\[[\d;]*m|./gu) ?? []) {
      const width = piece.startsWith('\u001b') ? 0 : widthOf(piece);
      if (used + width > columns) {
        rows.push(row);
        row = '';
        used = 0;
      }
      row += piece;
      used += width;
    }
    rows.push(row);
  }
  return rows;
};

const columnsOf = (row: string): number => [...row].reduce((sum, character) => sum + widthOf(character), 0);

type Size = { readonly columns: number; readonly rows: number };
type Drawn = {
  readonly status: string;
  readonly prompt: string;
  readonly text: string;
  readonly cursor: number;
};

const layOut = (drawn: Drawn, partial: string, size: Size) => {
  const columns = Math.max(10, size.columns - 1);
  const head = partial === '' ? [] : wrapText(partial, columns);
  const status = drawn.status === '' ? [] : wrapText(drawn.status, columns).slice(0, 1);
  const typedRows = wrapText(drawn.prompt + drawn.text, columns);
  const upTo = wrapText(drawn.prompt + drawn.text.slice(0, drawn.cursor), columns);
  const room = Math.max(1, size.rows - 2);
  const rows = [...head, ...status, ...typedRows];
  const cursorRow = head.length + status.length + upTo.length - 1;
  const first = Math.min(Math.max(0, rows.length - room), cursorRow);
  const shown = rows.slice(first, first + room);
  return { shown, cursorRow: cursorRow - first, cursorColumn: columnsOf(upTo.at(-1) ?? '') };
};

/** An area on the terminal behind `descriptor`. */
export const createLiveArea = (descriptor: number, size: () => Size): LiveArea => {
  let drawn: Drawn = { status: '', prompt: '', text: '', cursor: 0 };
  let partial = '';
  let cursorRow = 0;
  const clearing = (): string => `${cursorRow > 0 ? `\u001b[${cursorRow}A` : ''}\r\u001b[J`;
  const area = (): string => {
    const laid = layOut(drawn, partial, size());
    cursorRow = laid.cursorRow;
    const up = laid.shown.length - 1 - laid.cursorRow;
    const right = laid.cursorColumn > 0 ? `\u001b[${laid.cursorColumn}C` : '';
    return `${laid.shown.join('\r\n')}${up > 0 ? `\u001b[${up}A` : ''}\r${right}`;
  };
  const above = (lines: string): void =>
    writeIfThere(descriptor, clearing() + lines.replaceAll('\n', '\r\n') + area());
  const endPartial = (): string => {
    const ended = partial === '' ? '' : `${partial}\n`;
    partial = '';
    return ended;
  };
  return {
    print: (text) => above(`${endPartial()}${text}\n`),
    stream(text) {
      const whole = partial + text;
      const end = whole.lastIndexOf('\n') + 1;
      partial = whole.slice(end);
      if (wrapText(partial, size().columns - 1).length > size().rows - 5)
        return above(whole.slice(0, end) + endPartial());
      above(whole.slice(0, end));
    },
    endStream() {
      if (partial !== '') above(endPartial());
    },
    draw(status, prompt, text, cursor) {
      drawn = { status, prompt, text, cursor };
      above('');
    },
    clear() {
      const rest = endPartial();
      const wipe = clearing();
      cursorRow = 0;
      writeIfThere(descriptor, wipe + rest.replaceAll('\n', '\r\n'));
    },
  };
};
