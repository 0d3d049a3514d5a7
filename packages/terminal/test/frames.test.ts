import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { createStage } from '../../../test/kit/terminal/stage.js';
import { loadMarkdown } from '../src/markdown.js';
import { sessions } from './sessions.js';

/** Golden frames: what the screen shows of whole sessions. `UPDATE=1` writes them anew; read the diff. */

const FOLDER = join(import.meta.dirname, 'frames');
const WIPES = /\u001b\[[123]J|\u001b\[\?(?:1049|1047|47)[hl]|\u001bc/;
/** The promise is 4 kB for each event of a stream. */
const WRITE_BYTES_MAX = 4_096;

before(loadMarkdown);

for (const [name, told] of Object.entries(sessions)) {
  for (const columns of [60, 100]) {
    test(`the session '${name}' at ${columns} columns looks as it did`, async () => {
      const stage = createStage({ columns });
      const looks: string[] = [];
      const look = async (title: string): Promise<void> => {
        const { row, column } = await stage.screen.cursor();
        looks.push(
          `=== ${title} (cursor ${row + 1}:${column + 1})\n${await stage.screen.text()}\n`,
        );
      };
      await told(stage, look);
      const file = join(FOLDER, `${name}.${columns}.txt`);
      const shown = looks.join('\n');
      if (process.env.UPDATE === '1') {
        mkdirSync(FOLDER, { recursive: true });
        writeFileSync(file, shown);
      }
      assert.equal(shown, readFileSync(file, 'utf8'));
      assert.doesNotMatch(stage.screen.written(), WIPES);
      for (const text of stage.screen.writes())
        assert.ok(Buffer.byteLength(text) <= WRITE_BYTES_MAX, text);
    });
  }
}
