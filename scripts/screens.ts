/**
 * Pictures of the scenes of screens/scenes.ts, made by the real program in a pseudo-terminal: `npm
 * run screens -- [FOLDER] [PART OF A NAME…]`.
 *
 * Each is taken in three sizes, on a dark and on a light terminal. HTML is always written; PNG
 * beside it if a Chromium is installed. They are for people to look at; no test compares them.
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { EDGE_PIXELS, FONT_PIXELS, LINE_PIXELS, pageOf } from './screens/picture.js';
import { scenes } from './screens/scenes.js';
import { take } from './screens/take.js';

const SIZES = [
  [80, 24],
  [120, 40],
  [40, 15],
] as const;
/** The share of a sign's height that is its width, of DejaVu Sans Mono. */
const SIGN_WIDTH = 0.602;
const findChromium = (): string | null => {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    try {
      return execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    } catch {
      // the next one
    }
  }
  return null;
};

const photograph = async (
  chromium: string,
  page: string,
  columns: number,
  rows: number,
): Promise<void> => {
  const width = Math.ceil(columns * FONT_PIXELS * SIGN_WIDTH) + 2 * EDGE_PIXELS;
  const height = rows * LINE_PIXELS + 2 * EDGE_PIXELS;
  await promisify(execFile)(chromium, [
    ...['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars'],
    `--screenshot=${page.replace(/html$/, 'png')}`,
    `--window-size=${width},${height}`,
    `file://${page}`,
  ]);
};

const [given = 'screens', ...names] = process.argv.slice(2);
const folder = path.resolve(given);
mkdirSync(folder, { recursive: true });
const chromium = findChromium();
if (chromium === null) console.log('No Chromium is installed: HTML only.');
const isWanted = (name: string): boolean =>
  names.length === 0 || names.some((part) => name.includes(part));
for (const scene of scenes) {
  for (const [columns, rows] of SIZES) {
    for (const theme of ['dark', 'light'] as const) {
      const name = `${scene.name}-${columns}x${rows}-${theme}`;
      if (!isWanted(name)) continue;
      const { shot } = await take({ scene, columns, rows, theme });
      const page = path.join(folder, `${name}.html`);
      writeFileSync(page, pageOf(shot, theme));
      if (chromium !== null) await photograph(chromium, page, columns, shot.rows.length);
      console.log(page);
    }
  }
}
