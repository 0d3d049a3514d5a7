/** A screen as a page of HTML, in the colours of a usual dark or light terminal. */

import type { Theme } from '../pictures/svg.js';
import type { Cell, Colour, Shot } from './window.js';

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

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

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

const styleOf = (cell: Cell, theme: Theme): string => {
  const { paper, ink } = palettes[theme];
  const { front, back } = coloursOf(cell, theme);
  const lines = [cell.underline ? 'underline' : '', cell.struck ? 'line-through' : '']
    .join(' ')
    .trim();
  return [
    front === ink ? '' : `color:${front}`,
    back === paper ? '' : `background:${back}`,
    cell.bold ? 'font-weight:bold' : '',
    cell.dim ? 'opacity:.6' : '',
    cell.italic ? 'font-style:italic' : '',
    lines === '' ? '' : `text-decoration:${lines}`,
  ]
    .filter((part) => part !== '')
    .join(';');
};

const rowHtml = (row: readonly Cell[], theme: Theme, cursorAt: number | null): string => {
  const runs: { style: string; text: string }[] = [];
  for (const [column, cell] of row.entries()) {
    const style = styleOf(column === cursorAt ? { ...cell, inverse: true } : cell, theme);
    const last = runs.at(-1);
    if (last !== undefined && last.style === style) last.text += cell.text;
    else runs.push({ style, text: cell.text });
  }
  return runs
    .map(({ style, text }) =>
      style === '' ? escaped(text) : `<span style="${style}">${escaped(text)}</span>`,
    )
    .join('');
};

export const FONT_PIXELS = 15;
export const LINE_PIXELS = 19;
export const EDGE_PIXELS = 16;

export const pageOf = ({ rows, cursor }: Shot, theme: Theme): string => {
  const { paper, ink } = palettes[theme];
  const body = rows
    .map((row, index) => rowHtml(row, theme, cursor?.row === index ? cursor.column : null))
    .join('\n');
  return `<!doctype html><meta charset="utf-8"><style>
body{margin:0;background:${paper};color:${ink}}
pre{margin:${EDGE_PIXELS}px;font:${FONT_PIXELS}px/${LINE_PIXELS}px "DejaVu Sans Mono","Noto Sans Mono CJK SC",monospace}
</style><pre>${body}</pre>\n`;
};
