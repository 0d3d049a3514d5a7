import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import promises, { mkdir, readdir, rename, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { collect, headerOf, makeFolder, tellFrom } from '../../../../test/kit/journal/story.js';
import { isDeep, SEED } from '../../../../test/tier.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { exportSession, importSession } from '../../src/journal/transfer.js';

const startedBy = { sessionId: 'a', batchId: 'batch-1', callId: 'call-1-1' };

/** The session `a` with all files that a session can have, its task `t`, its fork `a-1`, and another session `a.b`. */
const makeSessions = async (context: TestContext) => {
  const folder = await makeFolder(context);
  const store = fileJournals({ folder });
  for (const header of [headerOf('a'), { ...headerOf('t'), startedBy }, headerOf('a.b')]) {
    const journal = await store.create(header);
    await journal.append(tellFrom(header, 5));
    await journal.close();
  }
  await store.fork('a', 3, 'a-1', 2_000);
  const sessions = join(folder, 'sessions');
  await mkdir(join(sessions, 'a'));
  for (const name of [
    'a/pasted-1.png',
    'a.jsonl.torn-1',
    'a.jsonl.torn-12',
    'a.snapshot',
    'a.snapshot.new',
    'a.reserve',
    't.reserve',
  ])
    await writeFile(join(sessions, name), 'x');
  const listed = async () => (await collect(store.list())).map(({ sessionId }) => sessionId).sort();
  return { folder, store, sessions, listed };
};

const OTHERS = ['a-1', 'a.b'];
/** Names of the others' files, and drafts of locks, are left out. */
const othersOf = (names: readonly string[]) =>
  names.filter((name) => !/^(a-1|a\.b)\.|\.lock\../.test(name)).sort();

test('a deleted session goes with all its files and its tasks; forks and sessions with a longer id stay', async (context) => {
  const { store, sessions, listed } = await makeSessions(context);
  assert.deepEqual(await store.delete('a'), ['a', 't']);
  assert.deepEqual(await listed(), OTHERS);
  assert.deepEqual(othersOf(await readdir(sessions)), []);
  for (const id of OTHERS) await (await store.open(id)).journal.close();
  await assert.rejects(store.delete('a'), { kind: 'notFound' });
  await assert.rejects(store.delete('../sessions/a.b'), { kind: 'notFound' });
  assert.deepEqual(await listed(), OTHERS);
});

test('a session is locked before its tasks are looked for', async (context) => {
  const { store, sessions } = await makeSessions(context);
  const areLocked: boolean[] = [];
  const looking = context.mock.method(promises, 'readdir', async (folder: string) => {
    areLocked.push(existsSync(join(sessions, 'a.lock')));
    return readdirSync(folder);
  });
  syncBuiltinESMExports();
  await store.delete('a').finally(() => {
    looking.mock.restore();
    syncBuiltinESMExports();
  });
  assert.equal(areLocked[0], true);
});

test('a session is not deleted while it or one of its tasks is open', async (context) => {
  const { store, listed } = await makeSessions(context);
  for (const id of ['a', 't']) {
    const { journal } = await store.open(id);
    await assert.rejects(store.delete('a'), { kind: 'locked' });
    assert.deepEqual(await listed(), ['a', ...OTHERS, 't']);
    await journal.append(tellFrom(headerOf(id), 1));
    await journal.close();
  }
  await store.delete('a');
});

/** From call `from` on, no file is renamed or removed: as if the process had been killed there. */
const withoutRemovals = async (
  context: TestContext,
  from: number,
  work: () => Promise<unknown>,
) => {
  let calls = 0;
  const mocks = (['rm', 'rename'] as const).map((name) => {
    const real = promises[name] as (...given: readonly unknown[]) => Promise<void>; // one of two signatures
    return context.mock.method(promises, name, async (...given: readonly unknown[]) => {
      calls += 1;
      if (calls > from) throw Object.assign(new Error('EIO: killed'), { code: 'EIO' });
      await real(...given);
    });
  });
  syncBuiltinESMExports();
  try {
    return await work().then(
      () => 'done',
      (error: Error) => error.message,
    );
  } finally {
    for (const mock of mocks) mock.mock.restore();
    syncBuiltinESMExports();
  }
};

test('a deletion that is killed at any call leaves the whole session or none, and is finished later', async (context) => {
  const ends = new Set<string>();
  // each day one of three calls
  const step = isDeep ? 1 : 3;
  for (let from = isDeep ? 0 : SEED % step, ended = ''; ended !== 'done'; from += step) {
    const { folder, store, sessions, listed } = await makeSessions(context);
    ended = await withoutRemovals(context, from, () => store.delete('a'));
    const ids = await listed();
    const isWhole = ids.length === 4;
    ends.add(isWhole ? 'whole' : 'none');
    assert.deepEqual(ids, isWhole ? ['a', ...OTHERS, 't'] : OTHERS, `after ${from} calls`);
    if (isWhole) for (const id of ids) await (await store.open(id)).journal.close();
    const told = isWhole ? 'Cannot write' : 'The session a is deleted, but';
    assert.ok(ended.startsWith(told) || ended === 'done', `after ${from} calls: ${ended}`);
    if (ended === 'done')
      assert.deepEqual(
        othersOf(await readdir(sessions)).filter((name) => !name.endsWith('.lock')),
        [],
        `after ${from} calls`,
      );
    // The first session of the next process finishes it.
    await (await fileJournals({ folder }).create(headerOf('z'))).close();
    const left = othersOf(await readdir(sessions)).filter((name) => !name.startsWith('z.'));
    if (!isWhole) assert.deepEqual(left, [], `after ${from} calls`);
    else assert.ok(left.includes('a.jsonl') && left.includes('t.jsonl') && left.includes('a'));
    assert.ok(from < 100);
  }
  assert.deepEqual([...ends], ['whole', 'none']);
});

test('a journal that was put back stays, and an import after a killed deletion is whole', async (context) => {
  const { folder, sessions, listed } = await makeSessions(context);
  const exported = join(folder, 'a.pawl');
  await exportSession(folder, 'a', exported);
  await rename(join(sessions, 'a.jsonl'), join(sessions, 'a.deleted'));
  assert.deepEqual(await listed(), OTHERS);
  await importSession(folder, exported);
  assert.deepEqual(await listed(), ['a', ...OTHERS], 'the old tasks were removed first');
  assert.ok(!(await readdir(sessions)).includes('a.mark'), 'no mark of the deleted journal');
  await writeFile(join(sessions, 'a.deleted'), 'x');
  const store = fileJournals({ folder });
  await (await store.create(headerOf('z'))).close();
  assert.ok(!(await readdir(sessions)).includes('a.deleted'));
  await (await store.open('a')).journal.close();
});

test('a store in memory deletes in the same way', async () => {
  const store = memoryJournals();
  const open = await store.create(headerOf('a'));
  await (await store.create({ ...headerOf('task'), startedBy })).close();
  await store.fork('a', 0, 'fork', 1);
  await assert.rejects(store.delete('a'), { kind: 'locked' });
  await open.close();
  assert.deepEqual(await store.delete('a'), ['a', 'task']);
  assert.deepEqual(
    (await collect(store.list())).map(({ sessionId }) => sessionId),
    ['fork'],
  );
  await assert.rejects(store.delete('a'), { kind: 'notFound' });
});
