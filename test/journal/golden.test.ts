import '../starts-no-program.js';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { object, parse, string } from 'valibot';
import { fileJournals } from '../../src/journal/file-store.js';
import { createStateCheck } from '../../src/journal/read/hash-state.js';
import { exportSession } from '../../src/journal/transfer/export-session.js';
import { importSession } from '../../src/journal/transfer/import-session.js';
import { sha256Of } from '../../src/journal/transfer/named-blobs.js';
import { makeFolder } from './story.js';

/**
 * Sessions that an earlier Pawl has written, each an export with what must be read from it (`state`: the hash of its last
 * state). They hold calls, a denied approval, a retry, a cancel, a commit, a resume and a compaction; one is a fork.
 *
 * These files are never changed: users have journals like them. If a test here fails, the change would keep users from
 * opening their sessions. Give what is new in a state or an event a meaning where it is missing, and leave it out of the
 * state hash then. A new format gets files of its own: node --import tsx scripts/record-golden-journal.ts NAME
 */
const golden = fileURLToPath(new URL('golden', import.meta.url));
const names = readdirSync(golden)
  .filter((name) => name.endsWith('.pawl'))
  .map((name) => name.slice(0, -'.pawl'.length));

const expectedOf = (name: string) => {
  const json: unknown = JSON.parse(readFileSync(join(golden, `${name}.json`), 'utf8'));
  return parse(object({ sessionId: string(), state: string() }), json);
};

/** The files that must be there, with their content: it is not enough to change a file and its hash beside it. */
const FROZEN: Readonly<Record<string, string>> = {
  'format-1': 'ee11dfe31dc7c5efef13604973262fc00395921c1ff8dc87d10a3e3f79cb9a90',
  'format-1-fork': '5b1e67ef46ef974660845e4776427cf141067ac6ac23a109f3abd5113934f5f0',
};

test('golden journals are neither changed nor removed', () => {
  const found = Object.fromEntries(
    names.map((name) => [name, sha256Of(readFileSync(join(golden, `${name}.pawl`)))]),
  );
  assert.deepEqual(found, FROZEN, 'add a new file for a new format, with its hash here; leave the old ones');
});

for (const name of names) {
  test(`the golden journal ${name} is imported, opened, replayed and exported as it was`, async (context) => {
    const { sessionId, state } = expectedOf(name);
    const folder = await makeFolder(context);
    const source = join(golden, `${name}.pawl`);
    assert.deepEqual((await importSession(folder, source)).missing, []);
    const store = fileJournals({ folder });
    const { mismatches, damage, checks } = await store.replay(sessionId);
    assert.deepEqual([mismatches, damage], [[], null]);
    assert.ok(checks > 3, `${checks} recorded states were compared`);
    const opened = await store.open(sessionId);
    assert.equal(createStateCheck()(opened.state), state);
    await opened.journal.close();
    const target = join(folder, 'again.pawl');
    await exportSession(folder, sessionId, target);
    assert.deepEqual(await readFile(target), await readFile(source));
  });
}
