import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { collect, headerOf, makeFolder, tell } from '../../../../test/kit/journal/story.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { exportSession, importSession } from '../../src/journal/transfer.js';
import { startChild } from './start-child.js';

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

test('an import that was killed leaves nothing that the next one does not remove, or a new session', async (context) => {
  const folder = await makeFolder(context);
  const store = fileJournals({ folder });
  const [instructions, tools] = [
    await store.blobs.put('You are an agent.'),
    await store.blobs.put('[]'),
  ];
  await (await store.create({ ...headerOf('a'), instructions, tools })).close();
  const file = join(folder, 'a.pawl');
  await exportSession(folder, 'a', file);
  for (const next of ['import', 'session']) {
    const other = join(folder, next);
    const names = async (): Promise<string[]> =>
      (await readdir(join(other, 'sessions'))).filter((name) => name !== '.gitignore').sort();
    const child = startChild(context, ['dieInImport', other, file]);
    assert.equal(await child.nextLine(), undefined, 'it was killed before it had imported');
    const left = (await names()).map((name) => name.replace(/[0-9a-f]{8}$/, '1'));
    assert.deepEqual(left, ['a.jsonl.import', 'a.lock', 'a.lock.1'], child.complaints());
    if (next === 'import') await importSession(other, file);
    else await (await fileJournals({ folder: other }).create(headerOf('b'))).close();
    assert.deepEqual(
      await names(),
      next === 'import' ? ['a.jsonl'] : ['b.jsonl', 'b.mark', 'b.owner'],
    );
  }
});
