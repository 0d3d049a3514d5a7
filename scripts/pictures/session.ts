import xterm from '@xterm/headless';
import { coloursOf, palettes } from '../screens/picture.js';
import { type Cell, type Output, type Shot, shotOf } from '../screens/window.js';
import { escapeXml, type Theme } from './svg.js';

/** A recorded session (asciicast, version 2) as SVG: what the terminal shows at its end. */

type Recording = {
  readonly columns: number;
  readonly rows: number;
  readonly outputs: readonly Output[];
};

/** As asciinema writes it: a header, then a line for each output. */
export const encodeRecording = ({ columns, rows, outputs }: Recording): string =>
  [
    JSON.stringify({ version: 2, width: columns, height: rows }),
    ...outputs.map(([seconds, text]) =>
      JSON.stringify([Math.round(seconds * 1000) / 1000, 'o', text]),
    ),
    '',
  ].join('\n');

const decodeRecording = (text: string): Recording => {
  const [header = '{}', ...lines] = text.trimEnd().split('\n');
  const { width, height } = JSON.parse(header) as { width: number; height: number }; // written by encodeRecording
  const outputs = lines.map((line) => {
    const [seconds, , output] = JSON.parse(line) as [number, 'o', string];
    return [seconds, output] as const;
  });
  return { columns: width, rows: height, outputs };
};

/** The screen at the end, from the first row that contains `from`. */
const play = async ({ columns, rows, outputs }: Recording, from: string): Promise<Shot> => {
  const terminal = new xterm.Terminal({
    cols: columns,
    rows,
    scrollback: 1_000,
    allowProposedApi: true,
  });
  for (const [, text] of outputs)
    await new Promise<void>((resolve) => terminal.write(text, resolve));
  const shot = shotOf(terminal, rows);
  terminal.dispose();
  const first = shot.rows.findIndex((row) =>
    row
      .map(({ text }) => text)
      .join('')
      .includes(from),
  );
  if (first === -1) throw new Error(`the recording does not show '${from}'`);
  const cursor = shot.cursor === null ? null : { ...shot.cursor, row: shot.cursor.row - first };
  return { rows: shot.rows.slice(first), cursor };
};

const FONT_PIXELS = 13;
const LINE_PIXELS = 18.5;
const CELL_PIXELS = 7.83;
const EDGE_PIXELS = 18;
const BAR_PIXELS = 34;
const MONO = 'ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace';
const FRAMES: Readonly<
  Record<Theme, { readonly bar: string; readonly line: string; readonly title: string }>
> = {
  dark: { bar: '#2d2d2d', line: '#3c3c3c', title: '#9d9d9d' },
  light: { bar: '#f3f3f3', line: '#d0d7de', title: '#6e7781' },
};

const rounded = (value: number): string => String(Math.round(value * 100) / 100);

type Run = { readonly start: number; readonly cells: Cell[]; readonly look: string };

/** Neighbours that look alike. */
const runsOf = (row: readonly Cell[]): readonly Run[] => {
  const runs: Run[] = [];
  for (const [column, cell] of row.entries()) {
    const { text: _text, ...rest } = cell;
    const look = JSON.stringify(rest);
    const last = runs.at(-1);
    if (last !== undefined && last.look === look) last.cells.push(cell);
    else runs.push({ start: column, cells: [cell], look });
  }
  return runs;
};

const runSvg = ({ start, cells }: Run, top: number, theme: Theme): string => {
  const [cell] = cells;
  if (cell === undefined) return '';
  const { front, back } = coloursOf(cell, theme);
  const x = rounded(EDGE_PIXELS + start * CELL_PIXELS);
  const isPaper = back === palettes[theme].paper;
  const ground = isPaper
    ? ''
    : `<rect x="${x}" y="${rounded(top)}" width="${rounded(cells.length * CELL_PIXELS)}" height="${LINE_PIXELS}" fill="${back}"/>`;
  const whole = cells.map(({ text }) => text).join('');
  const text = whole.trimEnd();
  if (text === '') return ground;
  const skipped = text.length - text.trimStart().length;
  const words = text.trimStart();
  const styles = [
    front === palettes[theme].ink ? '' : `fill:${front}`,
    cell.bold ? 'font-weight:bold' : '',
    cell.dim ? 'opacity:.65' : '',
    cell.italic ? 'font-style:italic' : '',
  ].filter((style) => style !== '');
  const attributes = [
    `x="${rounded(EDGE_PIXELS + (start + skipped) * CELL_PIXELS)}"`,
    `y="${rounded(top + 13.5)}"`,
    `textLength="${rounded([...words].length * CELL_PIXELS)}"`,
    ...(styles.length === 0 ? [] : [`style="${styles.join(';')}"`]),
  ];
  return `${ground}<text ${attributes.join(' ')}>${escapeXml(words)}</text>`;
};

/** A picture of a terminal's window, in which the session has just ended its turn. */
const sessionPicture = async (
  recording: Recording,
  theme: Theme,
  from: string,
): Promise<string> => {
  const { rows, cursor } = await play(recording, from);
  const { paper, ink } = palettes[theme];
  const frame = FRAMES[theme];
  const width = Math.ceil(recording.columns * CELL_PIXELS + 2 * EDGE_PIXELS);
  const height = Math.ceil(BAR_PIXELS + rows.length * LINE_PIXELS + 1.6 * EDGE_PIXELS);
  const shown = rows.map((row, index) =>
    row.map((cell, column) =>
      cursor?.row === index && cursor.column === column ? { ...cell, inverse: true } : cell,
    ),
  );
  const lights = ['#ff5f57', '#febc2e', '#28c840'].map(
    (colour, index) => `<circle cx="${20 + index * 18}" cy="17" r="5.5" fill="${colour}"/>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="A session in a terminal: the agent finds out why tests fail, repairs the code and commits the repair">`,
    `<style>text{font:${FONT_PIXELS}px ${MONO};fill:${ink};white-space:pre}</style>`,
    `<clipPath id="window"><rect width="${width}" height="${height}" rx="10"/></clipPath>`,
    `<g clip-path="url(#window)"><rect width="${width}" height="${height}" fill="${paper}"/><rect width="${width}" height="${BAR_PIXELS}" fill="${frame.bar}"/></g>`,
    `<rect x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="10" fill="none" stroke="${frame.line}"/>`,
    ...lights,
    `<text x="${width / 2}" y="21.5" text-anchor="middle" style="fill:${frame.title}">pawl</text>`,
    ...shown.map((row, index) =>
      runsOf(row)
        .map((run) => runSvg(run, BAR_PIXELS + 0.8 * EDGE_PIXELS + index * LINE_PIXELS, theme))
        .join(''),
    ),
    '</svg>\n',
  ]
    .filter((line) => line !== '')
    .join('\n');
};

/** The session of README.md, from what `npm run record` wrote. */
export const readmePicture = (recorded: string, theme: Theme): Promise<string> =>
  sessionPicture(decodeRecording(recorded), theme, '> the tests fail');
