/**
 * A recorded session (asciicast, version 2) as a moving SVG: what the terminal shows, as it shows
 * it. From top to bottom: recordings; their screens as frames; rows of cells as SVG; and the
 * picture, in which all frames lie below each other and move through the window.
 */

import xterm from '@xterm/headless';
import { type Cell, coloursOf, palettes, screenRows } from './cells.js';
import { escapeXml, type Theme } from './svg.js';

/** Output of a program, with the time in seconds since its start. */
export type Output = readonly [seconds: number, text: string];

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

/** A screen, and how long it is shown, in seconds. */
type Frame = { readonly rows: readonly (readonly Cell[])[]; readonly seconds: number };

/** Outputs that follow each other faster are one frame. */
const FRAME_SECONDS = 0.12;
/** Nobody waits longer for the next frame. */
const PAUSE_SECONDS = 1.2;
/** The last frame can be read before the picture begins again. */
const LAST_SECONDS = 6;

/** The screens of a recording, each for as long as it was there. */
const play = async ({ columns, rows, outputs }: Recording): Promise<readonly Frame[]> => {
  const terminal = new xterm.Terminal({
    cols: columns,
    rows,
    scrollback: 1_000,
    allowProposedApi: true,
  });
  const frames: Frame[] = [];
  for (const [index, [seconds, text]] of outputs.entries()) {
    await new Promise<void>((resolve) => terminal.write(text, resolve));
    const next = outputs[index + 1]?.[0] ?? null;
    const lasts = next === null ? LAST_SECONDS : next - seconds;
    if (lasts < FRAME_SECONDS) continue;
    const shown = { rows: screenRows(terminal), seconds: lasts };
    frames.push({ ...shown, seconds: next === null ? lasts : Math.min(lasts, PAUSE_SECONDS) });
  }
  terminal.dispose();
  return frames;
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

/** Each different row once, with the name that the frames use. */
class Rows {
  readonly #names = new Map<string, string>();
  readonly #theme: Theme;

  constructor(theme: Theme) {
    this.#theme = theme;
  }

  /** The row at its place; empty for a row without a picture. */
  place(row: readonly Cell[], top: number): string {
    const drawn = runsOf(row)
      .map((run) => runSvg(run, 0, this.#theme))
      .join('');
    if (drawn === '') return '';
    const name = this.#names.get(drawn) ?? `r${this.#names.size}`;
    this.#names.set(drawn, name);
    return `<use href="#${name}" y="${rounded(top)}"/>`;
  }

  definitions(): string {
    const rows = [...this.#names].map(([drawn, name]) => `<g id="${name}">${drawn}</g>`);
    return `<defs>${rows.join('\n')}</defs>`;
  }
}

/** The film strip moves by one frame at the end of each. */
const strip = (frames: readonly Frame[], height: number): string => {
  const whole = frames.reduce((sum, { seconds }) => sum + seconds, 0);
  let passed = 0;
  const steps = frames.map(({ seconds }, index) => {
    const at = rounded((100 * passed) / whole);
    passed += seconds;
    return `${at}%{transform:translateY(${rounded(-index * height)}px)}`;
  });
  const last = `transform:translateY(${rounded(-(frames.length - 1) * height)}px)`;
  return [
    `@keyframes play{${steps.join('')}}`,
    `.film{animation:play ${rounded(whole)}s step-end infinite}`,
    `@media (prefers-reduced-motion:reduce){.film{animation:none;${last}}}`,
  ].join('');
};

/** A picture of a terminal's window in which a session plays. */
const sessionPicture = async (
  recording: Recording,
  theme: Theme,
  label: string,
): Promise<string> => {
  const frames = await play(recording);
  const { paper, ink } = palettes[theme];
  const frame = FRAMES[theme];
  // With room for what hangs below a line of the frame before.
  const screen = Math.ceil((recording.rows + 1) * LINE_PIXELS);
  const width = Math.ceil(recording.columns * CELL_PIXELS + 2 * EDGE_PIXELS);
  const top = BAR_PIXELS + 0.8 * EDGE_PIXELS;
  const height = Math.ceil(top + screen + 0.8 * EDGE_PIXELS);
  const rows = new Rows(theme);
  const film = frames.map((one, index) =>
    one.rows.map((row, line) => rows.place(row, index * screen + line * LINE_PIXELS)).join(''),
  );
  const lights = ['#ff5f57', '#febc2e', '#28c840'].map(
    (colour, index) => `<circle cx="${20 + index * 18}" cy="17" r="5.5" fill="${colour}"/>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(label)}">`,
    `<style>text{font:${FONT_PIXELS}px ${MONO};fill:${ink};white-space:pre}${strip(frames, screen)}</style>`,
    `<clipPath id="window"><rect width="${width}" height="${height}" rx="10"/></clipPath>`,
    `<clipPath id="screen"><rect y="${rounded(top)}" width="${width}" height="${screen}"/></clipPath>`,
    rows.definitions(),
    `<g clip-path="url(#window)"><rect width="${width}" height="${height}" fill="${paper}"/><rect width="${width}" height="${BAR_PIXELS}" fill="${frame.bar}"/></g>`,
    `<rect x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="10" fill="none" stroke="${frame.line}"/>`,
    ...lights,
    `<g clip-path="url(#screen)"><g transform="translate(0 ${rounded(top)})"><g class="film">`,
    ...film,
    '</g></g></g>',
    '</svg>\n',
  ]
    .filter((line) => line !== '')
    .join('\n');
};

const LABEL =
  'A session in a terminal: pawl is killed while a command runs. The next pawl goes on with it, and the model gets its ' +
  'whole output.';

/** The session of README.md, from what `npm run record` wrote. */
export const readmePicture = (recorded: string, theme: Theme): Promise<string> =>
  sessionPicture(decodeRecording(recorded), theme, LABEL);
