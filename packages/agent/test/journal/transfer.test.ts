import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import test, { type TestContext } from 'node:test';
import {
  collect,
  eventsOf,
  headerOf,
  makeFolder,
  tellFrom,
} from '../../../../test/kit/journal/story.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { exportSession, importSession, verifyStored } from '../../src/journal/transfer.js';

const COUNT = 6;

const stage = async (context: TestContext) => {
  const folder = await makeFolder(context);
  const store = fileJournals({ folder });
  const instructions = await store.blobs.put('You are an agent. äöü €');
  const tools = await store.blobs.put('[]');
  const journal = await store.create({ ...headerOf('a'), instructions, tools });
  const drafts = tellFrom(headerOf('a'), COUNT);
  await journal.append(drafts);
  await journal.close();
  const target = join(folder, 'a.pawl');
  return { folder, store, drafts, target, path: join(folder, 'sessions', 'a.jsonl') };
};

test('an exported session is imported elsewhere with its blobs, byte for byte', async (context) => {
  const { folder, drafts, target, path } = await stage(context);
  assert.deepEqual((await exportSession(folder, 'a', target)).entries, COUNT);
  assert.equal((await stat(target)).mode & 0o777, 0o600);
  assert.equal((await verifyStored(target)).fault, null);
  const other = join(folder, 'other');
  const imported = await importSession(other, target);
  const { workspace } = headerOf('a');
  const counts = { entries: COUNT, blobs: 2, missing: [], checkpoints: 0 };
  assert.deepEqual(imported, { sessionId: 'a', workspace, ...counts });
  assert.deepEqual(await readFile(join(other, 'sessions', 'a.jsonl')), await readFile(path));
  assert.deepEqual(await readdir(join(other, 'sessions')), ['a.jsonl']);
  const { journal } = await fileJournals({ folder: other }).open('a');
  assert.deepEqual(
    (await collect(journal.read())).map(({ event }) => event),
    eventsOf(drafts),
  );
  assert.match((await journal.frozen()).instructions, /äöü €/);
  await journal.close();
});

test('an import replaces nothing, and an export neither', async (context) => {
  const { folder, target, path } = await stage(context);
  await exportSession(folder, 'a', target);
  await assert.rejects(exportSession(folder, 'a', target), { message: /is there already/ });
  for (const content of ['', 'not a journal', await readFile(path)]) {
    await writeFile(path, content);
    await assert.rejects(importSession(folder, target), {
      message: /is here already.*replaces nothing/,
    });
    assert.deepEqual(await readFile(path), Buffer.from(content));
  }
});

test('a journal alone can be imported; blobs that are nowhere are named', async (context) => {
  const { folder, path } = await stage(context);
  const other = join(folder, 'other');
  const { missing, entries } = await importSession(other, path);
  assert.deepEqual([missing.length, entries], [2, COUNT]);
});

test('an export that was changed or cut anywhere is refused before anything is stored', async (context) => {
  const { folder, target } = await stage(context);
  await exportSession(folder, 'a', target);
  const good = await readFile(target);
  const other = join(folder, 'other');
  const step = Math.max(1, Math.floor(good.length / 60));
  for (let at = 0; at < good.length; at += step) {
    const flipped = Buffer.from(good);
    flipped[at] = (flipped[at] ?? 0) ^ 1;
    for (const bytes of [
      flipped,
      good.subarray(0, at),
      Buffer.concat([good, good.subarray(0, at + 1)]),
    ]) {
      await writeFile(target, bytes);
      await assert.rejects(importSession(other, target), { name: 'JournalError' }, `at byte ${at}`);
    }
  }
  assert.deepEqual(await readdir(folder).then((names) => names.includes('other')), false);
});

test('a session id that leads out of the folder is refused', async (context) => {
  const { folder, target } = await stage(context);
  await exportSession(folder, 'a', target);
  const text = (await readFile(target, 'latin1')).replace('"sessionId":"a"', '"sessionId":"../b"');
  await writeFile(target, text, 'latin1');
  await assert.rejects(importSession(join(folder, 'other'), target), { kind: 'damaged' });
});

test('verify names file, line and byte of the first fault', async (context) => {
  const { path } = await stage(context);
  const good = await readFile(path);
  assert.equal((await verifyStored(path)).fault, null);
  const starts = [0];
  for (let at = good.indexOf(0x0a); at >= 0; at = good.indexOf(0x0a, at + 1)) starts.push(at + 1);
  for (const line of [1, 2, 5, COUNT + 1]) {
    const bytes = Buffer.from(good);
    const at = (starts[line - 1] ?? 0) + 12;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    await writeFile(path, bytes);
    const { fault } = await verifyStored(path);
    assert.deepEqual(
      [fault?.path, fault?.line, fault?.byte, fault?.seq],
      [path, line, starts[line - 1], Math.max(0, line - 2)],
    );
  }
});

test('verify finds a blob that is missing, and one that was changed', async (context) => {
  const { folder, path, store } = await stage(context);
  const sha256 = await store.blobs.put('[]');
  const blob = join(folder, 'blobs', sha256.slice(0, 2), sha256);
  await writeFile(blob, '{}');
  const changed = await verifyStored(path);
  assert.deepEqual(
    [changed.fault?.path, changed.fault?.why],
    [blob, 'the content of this blob does not fit its name'],
  );
  await mkdir(join(folder, 'away'));
  await rename(dirname(blob), join(folder, 'away', 'blobs'));
  const missing = await verifyStored(path);
  assert.deepEqual(
    [missing.fault?.path, missing.fault?.why],
    [blob, 'this blob of the header is missing'],
  );
});

test('an export in a folder named sessions is no journal of a state folder', async (context) => {
  const { folder } = await stage(context);
  const target = join(folder, 'elsewhere', 'sessions', 'a.pawl');
  await mkdir(dirname(target), { recursive: true });
  await exportSession(folder, 'a', target);
  const { fault, end } = await verifyStored(target);
  assert.deepEqual([fault, end], [null, 'export']);
});

test('a blob that is damaged here is missing: the import has worked', async (context) => {
  const { folder, path, store } = await stage(context);
  const other = join(folder, 'other');
  const sha256 = await store.blobs.put('[]');
  const blob = join(other, 'blobs', sha256.slice(0, 2), sha256);
  await mkdir(dirname(blob), { recursive: true });
  await writeFile(blob, '{}');
  const { missing } = await importSession(other, path);
  assert.equal(missing.includes(sha256), true);
});
