import assert from 'node:assert/strict';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { crc32 } from 'node:zlib';
import { makeFolder } from '../../../../test/kit/journal/story.js';
import { JournalBytes, sumBytes } from '../../src/journal/snapshot.js';

/** Reading a journal in blocks gives what reading it as a whole gives, wherever lines and texts lie. */

const MEGABYTE = 1024 * 1024;
const FIRST = 'a'.repeat(1.5 * MEGABYTE);
const LAST = `${'ü€'.repeat(MEGABYTE)}z`;
const WHOLE = Buffer.from(`${FIRST}\nshort\n${'m'.repeat(3 * MEGABYTE)}\n${LAST}\n`);

const openFile = async (context: TestContext, size = WHOLE.length) => {
  const file = join(await makeFolder(context), 'journal');
  await writeFile(file, WHOLE);
  const handle = await open(file);
  context.after(() => handle.close());
  return { handle, journal: new JournalBytes(handle, size) };
};

test('the checksum of many blocks, and of a file that is too short', async (context) => {
  const { handle } = await openFile(context);
  for (const size of [1, MEGABYTE, MEGABYTE + 1, WHOLE.length])
    assert.equal(await sumBytes(handle, size), crc32(WHOLE.subarray(0, size)), `${size} bytes`);
  assert.equal(await sumBytes(handle, WHOLE.length + 1), null);
});

test('lines longer than a block', async (context) => {
  const { journal } = await openFile(context);
  assert.equal(journal.lineBefore(WHOLE.length).toString(), `${LAST}\n`);
  assert.equal(journal.firstLine().toString(), FIRST);
  assert.equal(journal.lineBefore(FIRST.length + 1).toString(), `${FIRST}\n`);
  assert.equal(journal.lineBefore(FIRST.length + 7).toString(), 'short\n');
});

test('texts across blocks, backwards, and longer than a block', async (context) => {
  const { journal } = await openFile(context);
  const ends = [
    WHOLE.length,
    MEGABYTE + 5,
    MEGABYTE,
    3 * MEGABYTE,
    2.5 * MEGABYTE,
    WHOLE.length - 4,
    20,
  ];
  for (const length of [10, 1.2 * MEGABYTE])
    for (const end of ends) {
      const start = Math.max(0, Math.floor(end - length));
      assert.equal(journal.toString('latin1', start, end), WHOLE.toString('latin1', start, end));
    }
});

test('nothing is read behind the part that the checksum holds for', async (context) => {
  const { journal } = await openFile(context, 10);
  assert.throws(() => journal.toString('latin1', 5, 11), RangeError);
  const { journal: longer } = await openFile(context, WHOLE.length + 1);
  assert.throws(() => longer.toString('latin1', 0, WHOLE.length + 1), /shorter/);
});
