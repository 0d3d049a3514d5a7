/**
 * `npm run record [-- session] [inspector]`: records the pictures of README.md that need the real
 * program. The session is played, and what it writes is recorded; `npm run update` draws the moving
 * pictures from the recordings. `asciinema play docs/pictures/session-dark.cast` plays one. The
 * inspector shows the prepared session of a long day, in a real browser.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { storeDay } from '../packages/inspector/test/day-session.js';
import { inspect } from '../packages/inspector/test/inspected-page.js';
import { encodeRecording } from './pictures/session.js';
import { readmeScene } from './screens/scenes.js';
import { take } from './screens/take.js';

const COLUMNS = 84;
const ROWS = 22;
const THEMES = ['dark', 'light'] as const;

const pictureFile = (name: string): string =>
  fileURLToPath(new URL(`../docs/pictures/${name}`, import.meta.url));

const recordSession = async (): Promise<void> => {
  for (const theme of THEMES) {
    const { outputs } = await take({ scene: readmeScene, columns: COLUMNS, rows: ROWS, theme });
    const file = pictureFile(`session-${theme}.cast`);
    writeFileSync(file, encodeRecording({ columns: COLUMNS, rows: ROWS, outputs }));
    console.log(file);
  }
};

const photographInspector = async (): Promise<void> => {
  const ends: (() => Promise<void>)[] = [];
  try {
    const inspected = await inspect({ after: (end) => void ends.push(end) });
    const { page } = await inspected.open('day', await storeDay(inspected.folder));
    await page.setViewportSize({ width: 1100, height: 620 });
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      const file = pictureFile(`inspector-${theme}.png`);
      await page.screenshot({ path: file });
      console.log(file);
    }
  } finally {
    for (const end of ends.toReversed()) await end();
  }
};

const asked = process.argv.slice(2);
if (asked.length === 0 || asked.includes('session')) await recordSession();
if (asked.length === 0 || asked.includes('inspector')) await photographInspector();
