/**
 * The machine's resting states and the arrows between them, as SVG. Drawn from its chart, which is
 * laid out from the table.
 */

import {
  type ArrowKind,
  type Chart,
  type ChartBox,
  type ChartLine,
  LABEL_LINE_PIXELS,
  LABEL_PIXELS,
  NAME_PIXELS,
  NOTE_LINE_PIXELS,
  NOTE_PIXELS,
  svgPath,
} from '../../packages/inspector/src/model/chart.js';
import type { MachineDescription } from '../../packages/machine/src/kernel/table.js';
import { restingArrows } from './resting.js';
import { escapeXml, type Theme } from './svg.js';

type Palette = Readonly<Record<'paper' | 'frame' | 'box' | 'ink' | 'muted' | ArrowKind, string>>;

const PALETTES: Readonly<Record<Theme, Palette>> = {
  dark: {
    paper: '#0d1117',
    frame: '#30363d',
    box: '#161b22',
    ink: '#e6edf3',
    muted: '#9198a1',
    onward: '#58a6ff',
    stopped: '#d29922',
    closed: '#6e7681',
  },
  light: {
    paper: '#ffffff',
    frame: '#d1d9e0',
    box: '#f6f8fa',
    ink: '#1f2328',
    muted: '#59636e',
    onward: '#0969da',
    stopped: '#9a6700',
    closed: '#818b98',
  },
};

const SANS =
  'ui-sans-serif,system-ui,-apple-system,Segoe UI,Helvetica,Arial,DejaVu Sans,sans-serif';
const MONO = 'ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace';

const rounded = (value: number): string => String(Math.round(value * 10) / 10);

/** What begins each arrow and by which ways it goes, by `from to kind`. */
const describeArrows = (machine: MachineDescription): ReadonlyMap<string, string> =>
  new Map(
    restingArrows(machine).map(({ from, to, kind, causes, ways }) => {
      const passed = ways.filter((way) => way.length > 0).map((way) => way.join(' → '));
      const through = passed.length === 0 ? '' : `; by way of ${passed.join(', or ')}`;
      return [`${from} ${to} ${kind}`, `${from} → ${to}: ${causes.join(', ')}${through}`];
    }),
  );

const lineSvg = (
  { from, to, kind, points }: ChartLine,
  about: ReadonlyMap<string, string>,
): string =>
  `<path class="${kind}" data-from="${from}" data-to="${to}" d="${svgPath(points)}" marker-end="url(#${kind})"><title>${escapeXml(about.get(`${from} ${to} ${kind}`) ?? '')}</title></path>`;

const labelSvg = ({ label, at }: ChartLine): string => {
  if (at === null) return '';
  const [x, y] = at;
  return label
    .map(
      ({ text, kind }, row) =>
        `<text class="${kind}" x="${rounded(x + 2)}" y="${rounded(y + LABEL_PIXELS + row * LABEL_LINE_PIXELS)}">${escapeXml(text)}</text>`,
    )
    .join('');
};

const boxSvg = ({ name, lines, x, y, width, height }: ChartBox): string => {
  const middle = rounded(x + width / 2);
  const notes = lines.map(
    (text, row) =>
      `<text class="note" x="${middle}" y="${rounded(y + 40 + row * NOTE_LINE_PIXELS)}">${escapeXml(text)}</text>`,
  );
  return [
    `<g data-state="${name}"><rect class="box" x="${rounded(x)}" y="${rounded(y)}" width="${rounded(width)}" height="${rounded(height)}" rx="8"/>`,
    `<text class="name" x="${middle}" y="${rounded(y + 23)}">${name}</text>${notes.join('')}</g>`,
  ].join('');
};

const KINDS: readonly { readonly kind: ArrowKind; readonly words: string }[] = [
  { kind: 'onward', words: 'work goes on' },
  { kind: 'stopped', words: 'cancelled, at a limit, or failed' },
  { kind: 'closed', words: 'the session is closed' },
];

const marker = (kind: ArrowKind, colour: string): string =>
  `<marker id="${kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 .5 8 4 0 7.5z" fill="${colour}"/></marker>`;

const styleOf = (colours: Palette): string =>
  [
    `.box{fill:${colours.box};stroke:${colours.frame}}`,
    `.name{font:600 ${NAME_PIXELS}px ${SANS};fill:${colours.ink};text-anchor:middle}`,
    `.note{font:${NOTE_PIXELS}px ${SANS};fill:${colours.muted};text-anchor:middle}`,
    `.cause{font:${LABEL_PIXELS}px ${MONO};fill:${colours.ink}}`,
    `.passed{font:${LABEL_PIXELS}px ${MONO};fill:${colours.muted}}`,
    `.key{font:${NOTE_PIXELS}px ${SANS};fill:${colours.muted}}`,
    '.onward,.stopped,.closed{fill:none}',
    `.onward{stroke:${colours.onward};stroke-width:1.6}`,
    `.stopped{stroke:${colours.stopped};stroke-width:1.1;stroke-dasharray:5 3}`,
    `.closed{stroke:${colours.closed};stroke-width:1.1;stroke-dasharray:1.5 3}`,
  ].join('');

const LEGEND_PIXELS = 34;

const legendSvg = (y: number): string =>
  KINDS.map(({ kind, words }, index) => {
    const x = 24 + index * 210;
    return `<path class="${kind}" d="M${x} ${y - 4}h34" marker-end="url(#${kind})"/><text class="key" x="${x + 44}" y="${y}">${words}</text>`;
  }).join('');

const draw = (
  { width, height, boxes, lines }: Chart,
  about: ReadonlyMap<string, string>,
  theme: Theme,
): string => {
  const colours = PALETTES[theme];
  const whole = { width: Math.ceil(width), height: Math.ceil(height) + LEGEND_PIXELS };
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${whole.width} ${whole.height}" width="${whole.width}" height="${whole.height}" role="img" aria-label="The states in which the agent waits, and what leads from one to the next">`,
    `<style>${styleOf(colours)}</style>`,
    `<defs>${KINDS.map(({ kind }) => marker(kind, colours[kind])).join('')}</defs>`,
    `<rect x=".5" y=".5" width="${whole.width - 1}" height="${whole.height - 1}" rx="10" fill="${colours.paper}" stroke="${colours.frame}"/>`,
    ...[
      ...lines.filter(({ kind }) => kind !== 'onward'),
      ...lines.filter(({ kind }) => kind === 'onward'),
    ].map((line) => lineSvg(line, about)),
    ...boxes.map(boxSvg),
    ...lines.map(labelSvg).filter((svg) => svg !== ''),
    legendSvg(Math.ceil(height) + 12),
    '</svg>\n',
  ].join('\n');
};

/** One picture for each theme, of the chart of the machine's resting states. */
export const machinePictures = (
  machine: MachineDescription,
  resting: Chart,
): Readonly<Record<Theme, string>> => {
  const about = describeArrows(machine);
  return { dark: draw(resting, about, 'dark'), light: draw(resting, about, 'light') };
};
