import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { object, parse, string } from 'valibot';
import { makeFolder, readEvents } from '../../../../test/kit/journal/story.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { createStateCheck } from '../../src/journal/journaled-agent-machine.js';
import { exportSession, importSession } from '../../src/journal/transfer.js';
import { MACHINE_VERSION } from '../../src/machine/machine.js';
import { hashBytes } from '../../src/platform/files.js';
import type { Journal } from '../../src/ports/journal.js';

/**
 * Sessions of this machine and of earlier ones, each an export with what must be read from it (`state`: the hash of its
 * last state). They hold calls, approvals, retries, cancels, commits, crashes, compactions, jobs, hooks and tools of a
 * server.
 *
 * These files are never changed: users have journals like them. A session of this machine's version must lead to the
 * states that are recorded in it. If that fails, the machine has changed: raise MACHINE_VERSION and record files of the new
 * version (node --import tsx scripts/record-golden-journal.ts NAME), or leave what is new out of old states. A session of
 * an earlier version must open, replay, export and go on.
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
  'machine-2': '381bbc72f0207ff71fc85801f5ffe03978edaebe6c04ea7a5accee0994068647',
  'machine-2-fork': 'de717a0b346da17d842a7303bd7c64dd25e866f5edfb77309cce37e1e7d4e72d',
  'machine-2-crash-in-call': '57be578f55a027b6e61d1a398213e7f108432ad9d3d6be18f95a622e1af71525',
  'machine-2-crash-in-reply': '68401dea87dca04396ec4ec0b11b6ae18cd5c6817c90a668a437d74abdc3ba76',
  'machine-2-files-in-git': 'be857055262419a6dc17d331c94c9744f7bed6289a7ae835f919a88517dce985',
  'machine-2-hooks': '377f6de0a5cb3c18b7e7f8e9d1d89322f6a7ebd39e62c30e5c1bd4f1a5f04457',
  'machine-2-mcp': '892fe043e8167ab90ca5e5a4ec9e97e28ca5c55001846c022b9c9c8518011e01',
  'machine-3': '65d2b93defd43c2d8fb4fb175c69fcd5c1d992a137aa402cf9e2481a414b56c2',
  'machine-3-fork': '02ed6969e60bb7ed1cb56eefed5c57ee312dd911568e9b464dec9faa2e625a07',
  'machine-3-crash-in-call': '4f1695b499bf8dedec3dd77ff8a1ffefe7cc7e3f5eb900177662a95e9143206f',
  'machine-3-crash-in-reply': '61c6b49c7be89f984f809e911e9e72bba49379cc8c6af2d4ff498ca219c1d019',
  'machine-3-hooks': '2c6081b76c94e39bd4f401965fa5abbc06a1a5271ea0c5f4823b16d0beab8bf3',
  'machine-3-mcp': '5129312a999572c53a8616a9f27c7da08a8a954026f505970782b0d1d1bd60b5',
  'machine-3-files-in-git': '7ca48e1655f41ef8aee078424eee94fb1baae9b1e6588f8e6049939a5948330c',
  'machine-4': '104080ed690595e74a59acd83b0eb42dfadb896d9c5f71da22f112a3490d1cbe',
  'machine-4-fork': '12f1e8dc9ae985f55a58b7ce0e121fb13e03819517c23b389d56f2463636403a',
  'machine-4-crash-in-call': '4c586f2d9dd58c51081c76c6ec59b0466a65bd8a28d372c1ff29d7b789e24fe7',
  'machine-4-crash-in-reply': 'd41191944bc37f9450824f366d3b54c878e51a1ec589ef2b265003d9f668fc5a',
  'machine-4-hooks': '421f3758024352192c32b0000353db0d24b072b0844a698a64f8094f7aeee12c',
  'machine-4-mcp': 'a4aaff7f64ab2c1ac38904d8d6808b4a4901b99151614269edcc95fa1fee98b3',
  'machine-4-files-in-git': '3c29fecb13ef951115fc5a48243cf9a7ad741cabcdda5df5f91ce8410e5a3350',
  'machine-5': '46c0f9a5013f418004b27096b5ec7a8249355f44c1dfc0d1702c3d7be5a3f502',
  'machine-5-fork': 'd5542530cb24e8144eb0b45b88ddb736b72abc19283317535a4cda6d095b0d8e',
  'machine-5-crash-in-call': '5a3efe5639efbc904fa08664dabb26c304a71fecc1d2edecc70e252e27e9b683',
  'machine-5-crash-in-reply': 'ac8185faa0a0425b8380c5510743c7bbd8444ed218a7e9556b7d2cfad6cd03c7',
  'machine-5-hooks': '20c726d553f2722cd17eb23d1143dba9705c0e3d2c91dd7b800383b7f86a9b55',
  'machine-5-mcp': '555a5222fc0cbdadc2045a79889031372b6d939deb26ca7f3cc64216d73428d8',
  'machine-5-files-in-git': '872b305842f4ac688107994578b1af4e6a463ed6278956d562707e873bb0221d',
};

test('golden journals are neither changed nor removed', () => {
  const found = Object.fromEntries(
    names.map((name) => [name, hashBytes(readFileSync(join(golden, `${name}.pawl`)))]),
  );
  assert.deepEqual(
    found,
    FROZEN,
    'add a new file for a new format, with its hash here; leave the old ones',
  );
});

/** The texts of all replies. */
const repliesIn = async (journal: Pick<Journal, 'read'>): Promise<readonly string[]> =>
  (await readEvents(journal)).flatMap((event) =>
    event.type === 'LlmCompleted'
      ? (event.message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : []))
      : [],
  );

for (const name of names) {
  test(`the golden journal ${name} is imported, opened, replayed and exported as it was`, async (context) => {
    const { sessionId, state } = expectedOf(name);
    const folder = await makeFolder(context);
    const source = join(golden, `${name}.pawl`);
    assert.deepEqual((await importSession(folder, source)).missing, []);
    const store = fileJournals({ folder });
    const { header, mismatches, damage, checks } = await store.replay(sessionId);
    assert.deepEqual([mismatches, damage], [[], null]);
    const opened = await store.open(sessionId);
    if (header.machineVersion === MACHINE_VERSION) {
      assert.ok(checks > 0, `${checks} recorded states were compared`);
      assert.equal(createStateCheck()(opened.state), state);
    }
    const replies = await repliesIn(opened.journal);
    const conversation = JSON.stringify(opened.state.session.conversation.closed);
    assert.ok(
      conversation.includes(JSON.stringify(replies.at(-1))),
      'the last reply is in the conversation',
    );
    await opened.journal.close();
    const target = join(folder, 'again.pawl');
    await exportSession(folder, sessionId, target);
    assert.deepEqual(await readFile(target), await readFile(source));
  });
}
