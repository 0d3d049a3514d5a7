/** The cells of a terminal's screen, and their colours on a usual dark or light terminal. */

import type xterm from '@xterm/headless';
import type { Theme } from './svg.js';

/** A colour of the palette by number, or a colour as `#rrggbb`; null is the terminal's own. */
type Colour = number | string | null;

export type Cell = {
  readonly text: string;
  readonly foreground: Colour;
  readonly background: Colour;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly inverse: boolean;
};

type TerminalCell = NonNullable<
  ReturnType<NonNullable<ReturnType<xterm.Terminal['buffer']['active']['getLine']>>['getCell']>
>;

const toColour = (value: number, isPalette: boolean, isTrue: boolean): Colour => {
  if (isTrue) return `#${value.toString(16).padStart(6, '0')}`;
  return isPalette ? value : null;
};

const toCell = (cell: TerminalCell): Cell => ({
  text: cell.getChars() === '' ? ' ' : cell.getChars(),
  foreground: toColour(cell.getFgColor(), cell.isFgPalette(), cell.isFgRGB()),
  background: toColour(cell.getBgColor(), cell.isBgPalette(), cell.isBgRGB()),
  bold: cell.isBold() !== 0,
  dim: cell.isDim() !== 0,
  italic: cell.isItalic() !== 0,
  inverse: cell.isInverse() !== 0,
});

/** The rows that the window shows now. The cell of the cursor is inverse. */
export const screenRows = ({
  buffer: { active },
  cols,
  rows,
}: xterm.Terminal): readonly (readonly Cell[])[] =>
  Array.from({ length: rows }, (_, row) => {
    const line = active.getLine(active.baseY + row);
    return Array.from({ length: cols }, (_column, column) => line?.getCell(column))
      .filter((cell) => cell !== undefined && cell.getWidth() > 0)
      .map((cell) => toCell(cell as TerminalCell)) // filtered above
      .map((cell, column) =>
        row === active.cursorY && column === active.cursorX ? { ...cell, inverse: true } : cell,
      );
  });

export const palettes: Readonly<
  Record<
    Theme,
    { readonly paper: string; readonly ink: string; readonly sixteen: readonly string[] }
  >
> = {
  dark: {
    paper: '#1e1e1e',
    ink: '#d4d4d4',
    sixteen: (
      '#000000 #cd3131 #0dbc79 #e5e510 #2472c8 #bc3fbc #11a8cd #e5e5e5 ' +
      '#666666 #f14c4c #23d18b #f5f543 #3b8eea #d670d6 #29b8db #e5e5e5'
    ).split(' '),
  },
  light: {
    paper: '#ffffff',
    ink: '#333333',
    sixteen: (
      '#000000 #cd3131 #00bc00 #949800 #0451a5 #bc05bc #0598bc #555555 ' +
      '#666666 #cd3131 #14ce14 #b5ba00 #0451a5 #bc05bc #0598bc #a5a5a5'
    ).split(' '),
  },
};

const level = (step: number): number => (step === 0 ? 0 : 55 + 40 * step);

/** One of the 256 colours. */
const colourAt = (index: number, sixteen: readonly string[]): string => {
  if (index < 16) return sixteen[index] ?? '';
  if (index >= 232)
    return `rgb(${Array(3)
      .fill(8 + 10 * (index - 232))
      .join(',')})`;
  const cube = index - 16;
  return `rgb(${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level).join(',')})`;
};

/** The colours of a cell as it is seen: `inverse` has exchanged them. */
export const coloursOf = (
  cell: Pick<Cell, 'foreground' | 'background' | 'inverse'>,
  theme: Theme,
): { readonly front: string; readonly back: string } => {
  const { paper, ink, sixteen } = palettes[theme];
  const shown = (colour: Colour, own: string): string => {
    if (colour === null) return own;
    return typeof colour === 'number' ? colourAt(colour, sixteen) : colour;
  };
  const colours = [shown(cell.foreground, ink), shown(cell.background, paper)];
  const [front = ink, back = paper] = cell.inverse ? colours.toReversed() : colours;
  return { front, back };
};
