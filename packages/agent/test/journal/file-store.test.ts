import assert from 'node:assert/strict';
import promises, { chmod, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import {
  collect,
  eventsOf,
  headerOf,
  linesOf,
  makeFolder,
  readEvents,
  tellFrom,
} from '../../../../test/kit/journal/story.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { writeWhole } from '../../src/journal/state-folder.js';
import { step } from '../../src/machine/machine.js';

const modeOf = async (path: string): Promise<string> =>
  ((await stat(path)).mode & 0o777).toString(8);

test('files are for their owner only', async (context) => {
  const root = await makeFolder(context);
  const folder = join(root, 'state', 'pawl');
  const store = fileJournals({ folder });
  const journal = await store.create(headerOf('a'));
  const sha256 = await journal.blobs.put('hello');
  const sessions = join(folder, 'sessions');
  for (const name of ['a.jsonl', 'a.lock', 'a.mark', 'a.owner', 'a.reserve'])
    assert.equal(await modeOf(join(sessions, name)), '600', name);
  assert.equal(await modeOf(join(folder, 'blobs', sha256.slice(0, 2), sha256)), '600');
  for (const path of [
    folder,
    sessions,
    join(folder, 'blobs'),
    join(folder, 'blobs', sha256.slice(0, 2)),
  ]) {
    assert.equal(await modeOf(path), '700', path);
  }
  await journal.close();
  await store.fork('a', 0, 'b', 1);
  assert.equal(await modeOf(join(sessions, 'b.jsonl')), '600');
  assert.deepEqual(
    (await readdir(sessions)).sort(),
    ['a.jsonl', 'a.mark', 'a.owner', 'b.jsonl', 'b.owner'],
    'no lock and no draft stays behind',
  );
});

test('writers of one file at one moment leave the text of one, and nothing beside it', async (context) => {
  const folder = await makeFolder(context);
  const path = join(folder, 'key');
  const texts = ['one', 'two', 'three'];
  await Promise.all(texts.map((text) => writeWhole(path, [Buffer.from(text.repeat(50_000))])));
  const written = await readFile(path, 'utf8');
  assert.ok(texts.some((text) => written === text.repeat(50_000)));
  assert.deepEqual(await readdir(folder), ['key']);
});

test('every line is JSON, numbered from 1, with a check at rest and every so often', async (context) => {
  const folder = await makeFolder(context);
  const journal = await fileJournals({ folder, checkEvery: 4 }).create(headerOf('a'));
  const drafts = tellFrom(headerOf('a'), 12);
  await journal.append(drafts);
  await journal.close();
  const [head, ...rest] = (await linesOf(join(folder, 'sessions', 'a.jsonl'))).map((line) =>
    JSON.parse(line),
  );
  assert.deepEqual([head.version, head.sessionId], [1, 'a']);
  assert.deepEqual(
    rest.map(({ seq }) => seq),
    drafts.map((_, index) => index + 1),
  );
  assert.deepEqual(
    rest.map(({ event }) => event),
    eventsOf(drafts),
  );
  const due = drafts.map(
    ({ state }, index) => state.name === 'WaitingForUserInput' || (index + 1) % 4 === 0,
  );
  assert.ok(due.includes(false));
  assert.deepEqual(
    rest.map(({ check }) => typeof check === 'string'),
    due,
  );
});

test('appends at the same time are written in the order of their calls, and each resolves when durable', async (context) => {
  const folder = await makeFolder(context);
  const store = fileJournals({ folder });
  const journal = await store.create(headerOf('a'));
  const drafts = tellFrom(headerOf('a'), 300);
  const done: number[] = [];
  await Promise.all(
    drafts.map(async (draft, index) => {
      await journal.append([draft]);
      done.push(index);
      assert.ok(journal.seq >= index + 1);
    }),
  );
  assert.deepEqual(
    done,
    drafts.map((_, index) => index),
  );
  assert.deepEqual(await readEvents(journal), eventsOf(drafts));
  await journal.close();
});

test('closing waits for the appends under way', async (context) => {
  const store = fileJournals({ folder: await makeFolder(context) });
  const journal = await store.create(headerOf('a'));
  const appended = journal.append(tellFrom(headerOf('a'), 40));
  let isDurable = false;
  void appended.then(() => {
    isDurable = true;
  });
  await journal.close();
  assert.ok(isDurable);
  assert.equal((await collect(store.read('a'))).length, 40);
});

test('a store under a folder that was moved opens the same sessions', async (context) => {
  const root = await makeFolder(context);
  const journal = await fileJournals({ folder: join(root, 'one') }).create(headerOf('a'));
  await journal.append(tellFrom(headerOf('a'), 3));
  await journal.close();
  await rename(join(root, 'one'), join(root, 'two'));
  const opened = await fileJournals({ folder: join(root, 'two') }).open('a');
  assert.equal(opened.journal.seq, 3);
  await opened.journal.close();
});

test('an id that is no file name is refused', async (context) => {
  const store = fileJournals({ folder: await makeFolder(context) });
  for (const sessionId of ['', '../a', 'a/b', '.a', 'a\0', 'a'.repeat(200)]) {
    await assert.rejects(store.create(headerOf(sessionId)), {
      kind: 'cannotWrite',
      message: /cannot be the id/,
    });
  }
});

test('a blob that is there is not written again, one that was cut is repaired, one that was changed is refused', async (context) => {
  const folder = await makeFolder(context);
  const { blobs, close } = await fileJournals({ folder }).create(headerOf('a'));
  const sha256 = await blobs.put('hello');
  const path = join(folder, 'blobs', sha256.slice(0, 2), sha256);
  const { ino } = await stat(path);
  assert.deepEqual(await Promise.all([blobs.put('hello'), blobs.put('hello')]), [sha256, sha256]);
  assert.equal((await stat(path)).ino, ino);
  await chmod(path, 0o600);
  await writeFile(path, 'hel');
  await blobs.put('hello');
  assert.equal(await readFile(path, 'utf8'), 'hello');
  await writeFile(path, 'jello');
  await assert.rejects(blobs.get(sha256), { kind: 'damaged', message: /does not fit its name/ });
  assert.equal(
    (await readdir(join(folder, 'blobs', sha256.slice(0, 2)))).length,
    1,
    'no draft stays behind',
  );
  await close();
});

test('a large text comes back whole, in a blob and in an event', async (context) => {
  const folder = await makeFolder(context);
  const store = fileJournals({ folder });
  const journal = await store.create(headerOf('a'));
  const text = '0123456789 äöü €\n'.repeat(300_000);
  assert.equal(await journal.blobs.get(await journal.blobs.put(text)), text);
  const [start] = tellFrom(headerOf('a'), 1);
  assert.ok(start);
  const event = { type: 'UserInput', at: 2, text, mode: 'steer' } as const;
  await journal.append([start, { event, state: step(start.state, event).state }]);
  await journal.close();
  assert.deepEqual(
    (await collect(store.read('a', 2))).map((entry) => entry.event),
    [event],
  );
  await (await store.open('a')).journal.close();
});

/** Calls `open` first with each path that is opened. */
const watchOpen = (context: TestContext, opened: (path: string) => void): void => {
  const real = promises.open as (...given: readonly unknown[]) => Promise<unknown>; // one of its signatures
  const mock = context.mock.method(promises, 'open', async (...given: readonly unknown[]) => {
    opened(String(given[0]));
    return real(...given);
  });
  syncBuiltinESMExports();
  context.after(() => {
    mock.mock.restore();
    syncBuiltinESMExports();
  });
};

test('the names of a new session and of its folders are made durable, but for folders of others', async (context) => {
  const root = await makeFolder(context);
  const folder = join(root, 'state');
  const sessions = join(folder, 'sessions');
  const opened = new Set<string>();
  watchOpen(context, (path) => {
    opened.add(path);
    if (path === root) throw Object.assign(new Error('EACCES: not allowed'), { code: 'EACCES' });
  });
  const store = fileJournals({ folder });
  await assert.rejects(
    store.create(headerOf('a')),
    /EACCES/,
    'the parent of a new folder has to be synced',
  );
  await (await store.create(headerOf('a'))).close();
  for (const path of [root, folder, sessions]) assert.ok(opened.has(path), path);
});
