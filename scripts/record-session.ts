/**
 * `npm run record`: plays the session that README.md shows with the real program, and records what it writes.
 * `npm run update` draws the pictures from the recordings. To play one: asciinema play docs/pictures/session-dark.cast
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { encodeRecording } from './pictures/session.js';
import { readmeScene } from './screens/scenes.js';
import { take } from './screens/take.js';

const COLUMNS = 84;
const ROWS = 22;

for (const theme of ['dark', 'light'] as const) {
  const { outputs } = await take({ scene: readmeScene, columns: COLUMNS, rows: ROWS, theme });
  const file = fileURLToPath(new URL(`../docs/pictures/session-${theme}.cast`, import.meta.url));
  writeFileSync(file, encodeRecording({ columns: COLUMNS, rows: ROWS, outputs }));
  console.log(file);
}
