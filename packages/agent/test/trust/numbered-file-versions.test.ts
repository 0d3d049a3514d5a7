import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { readNewest, writeNext } from '../../src/extensions/trust.js';

/** Adds a word to the newest text. */
const add =
  (word: string) =>
  async ({ text }: { readonly text: string | null }): Promise<string> =>
    `${text ?? ''} ${word}`;

test('a writer that two others have overtaken tries again, and no word is lost', async (t) => {
  const folder = temporaryFolder(t, 'versions');
  await writeNext(folder, add('first'));
  let tries = 0;
  await writeNext(folder, async (newest) => {
    tries += 1;
    if (tries === 1) {
      // Version 2 is written and removed again, so nothing is in the way of ours.
      await writeNext(folder, add('second'));
      await writeNext(folder, add('third'));
      assert.deepEqual(readdirSync(folder), ['3.json']);
    }
    return add('last')(newest);
  });
  assert.equal((await readNewest(folder)).text, ' first second third last');
  assert.equal(tries, 2);
  assert.deepEqual(readdirSync(folder), ['4.json']);
});
