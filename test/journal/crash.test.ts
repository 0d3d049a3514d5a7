import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { fileJournals } from '../../src/journal/file-store.js';
import { startChild } from './start-child.js';
import { collect, makeFolder, tell } from './story.js';

/** Killed after so many acknowledged entries. */
for (const entries of [1, 40, 333]) {
  test(`kill -9 after ${entries} acknowledged entries loses none of them`, async (context) => {
    const folder = join(await makeFolder(context), 'state');
    const child = startChild(context, ['append', folder]);
    let acknowledged = 0;
    while (acknowledged < entries) {
      const line = await child.nextLine();
      assert.ok(line !== undefined, child.complaints());
      acknowledged = Number(line);
    }
    await child.kill();
    for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) {
      acknowledged = Number(line);
    }
    const store = fileJournals({ folder });
    const { journal, state } = await store.open('a');
    assert.ok(
      journal.seq >= acknowledged,
      `${journal.seq} of ${acknowledged} acknowledged entries are there`,
    );
    await journal.append(tell(2, state));
    await journal.close();
    assert.equal((await collect(store.read('a'))).length, journal.seq);
  });
}
