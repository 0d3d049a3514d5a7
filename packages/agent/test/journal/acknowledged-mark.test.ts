import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { appendFile, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { headerOf, makeFolder, tell, tellFrom } from '../../../../test/kit/journal/story.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { encodeMark } from '../../src/journal/state-folder.js';

/** The mark beside a journal says which entry was acknowledged last. */

const COUNT = 8;

const stage = async (context: TestContext) => {
  const folder = await makeFolder(context);
  const store = fileJournals({ folder });
  const journal = await store.create(headerOf('a'));
  await journal.append(tellFrom(headerOf('a'), COUNT));
  await journal.close();
  const path = join(folder, 'sessions', 'a.jsonl');
  const bytes = await readFile(path);
  /** Byte at which a line begins; the header is line 1. */
  const lineAt = (line: number): number => {
    let at = 0;
    for (let number = 1; number < line; number++) at = bytes.indexOf(0x0a, at) + 1;
    return at;
  };
  return { store, path, bytes, lineAt, mark: path.replace('.jsonl', '.mark') };
};

const damagedAfter = (seq: number, message: RegExp) => ({
  kind: 'damaged',
  place: { line: seq + 2, seq },
  message,
});

const readAll = async (entries: AsyncIterable<unknown>): Promise<void> => {
  for await (const _ of entries);
};

test('a cut at a line end is damage, named with what is missing', async (context) => {
  const { store, path, lineAt, bytes } = await stage(context);
  for (const line of [2, 5, COUNT + 1]) {
    await writeFile(path, bytes);
    await truncate(path, lineAt(line));
    const missing = line === COUNT + 1 ? /: entry 8 stood/ : /: entries \d to 8 stood/;
    await assert.rejects(store.open('a'), damagedAfter(line - 2, missing));
    assert.deepEqual((await store.inspect('a')).damage?.place, { line, seq: line - 2 });
    await assert.rejects(readAll(store.read('a')), damagedAfter(line - 2, missing));
    assert.equal((await readFile(path)).length, lineAt(line), 'it stays as it is');
  }
});

test('a cut inside an acknowledged line, or zeros over it, are damage and no torn end', async (context) => {
  const { store, path, lineAt, bytes } = await stage(context);
  await truncate(path, bytes.length - 5);
  await assert.rejects(store.open('a'), damagedAfter(COUNT - 1, /entry 8 stood here/));
  for (const from of [bytes.length - 20, lineAt(COUNT), lineAt(5) + 3]) {
    const zeroed = Buffer.from(bytes);
    zeroed.fill(0, from);
    await writeFile(path, zeroed);
    await assert.rejects(store.open('a'), {
      kind: 'damaged',
      message: /stood here when last written/,
    });
  }
});

test('a mark that the system refuses to read is no missing mark: the session is not opened, nor called damaged', async (context) => {
  const { store, path, mark, lineAt } = await stage(context);
  await truncate(path, lineAt(5)); // without its mark, the journal looks whole
  const kept = await readFile(mark);
  await rm(mark);
  await symlink(mark, mark); // ELOOP, as EMFILE comes from a system that is short of descriptors
  const refused = { kind: 'cannotRead', message: /a\.mark: .*ELOOP/ };
  await assert.rejects(store.open('a'), refused);
  await assert.rejects(store.open('a'), ({ cause }) => cause.code === 'ELOOP');
  await assert.rejects(store.inspect('a'), refused);
  await assert.rejects(readAll(store.read('a')), refused);
  await rm(mark);
  await writeFile(mark, kept);
  await assert.rejects(store.open('a'), damagedAfter(3, /entries 4 to 8 stood/));
});

test('a power loss in the middle of a mark leaves the mark before it', async (context) => {
  const { store, path, mark, bytes } = await stage(context);
  const size = encodeMark({ seq: 0, crc: 0 }).length;
  const whole = await readFile(mark);
  assert.equal(whole.length, 2 * size, 'the mark of the opening, and that of the entries');
  const older = encodeMark({ seq: COUNT - 1, crc: 4_000_000_000 });
  for (let at = 1; at < size; at++) {
    for (const spoiled of [older.subarray(at), Buffer.alloc(size - at)]) {
      await writeFile(mark, Buffer.concat([whole.subarray(0, size + at), spoiled]));
      await writeFile(path, Buffer.concat([bytes, Buffer.alloc(7)]));
      const { journal, tornTail } = await store.open('a');
      assert.deepEqual(
        [journal.seq, tornTail?.bytes],
        [COUNT, 7],
        'zeros are no damage: there is a mark',
      );
      await journal.close();
    }
  }
});

test('zeros before lines that were never acknowledged are cut off with them, and kept aside', async (context) => {
  const { store, path, bytes, mark } = await stage(context);
  const markThen = await readFile(mark);
  const first = await store.open('a');
  await first.journal.append(tell(3, first.state));
  await first.journal.close();
  const lines = (await readFile(path)).subarray(bytes.length);
  const next = lines.indexOf(0x0a) + 1;
  for (const [from, to] of [
    [0, 1],
    [5, 40],
    [0, next],
    [next - 1, next + 9],
  ] as const) {
    await writeFile(mark, markThen);
    const tail = Buffer.from(lines).fill(0, from, to);
    await writeFile(path, Buffer.concat([bytes, tail]));
    const { journal, tornTail } = await store.open('a');
    assert.deepEqual([journal.seq, tornTail?.bytes], [COUNT, tail.length]);
    assert.deepEqual(await readFile(tornTail?.keptAs ?? ''), tail);
    await journal.close();
    assert.deepEqual(await readFile(path), bytes);
  }
});

test('control: zeros before lines that may have been acknowledged are damage: the mark is old', async (context) => {
  const { store, path, bytes, mark, lineAt } = await stage(context);
  const size = encodeMark({ seq: 0, crc: 0 }).length;
  await truncate(mark, size);
  const zeroed = Buffer.from(bytes).fill(0, lineAt(5), lineAt(5) + 30);
  await writeFile(path, zeroed);
  await assert.rejects(store.open('a'), damagedAfter(3, /overwritten with zeros/));
  assert.deepEqual(await readFile(path), zeroed);
});

test('zeros at the end of a journal without a mark are damage', async (context) => {
  const { store, path, bytes, mark } = await stage(context);
  await rm(mark);
  const zeroed = Buffer.from(bytes);
  zeroed.fill(0, bytes.length - 20);
  await writeFile(path, zeroed);
  await assert.rejects(store.open('a'), damagedAfter(COUNT - 1, /overwritten with zeros/));
});

test('another journal in the place of the one that was written is damage', async (context) => {
  const { store, mark } = await stage(context);
  await writeFile(mark, encodeMark({ seq: COUNT, crc: 7 }));
  await assert.rejects(store.open('a'), {
    kind: 'damaged',
    message: /another entry 8 was written last/,
  });
});

test('control: an end that was never acknowledged is torn, with zeros too, and an old mark claims nothing', async (context) => {
  const { store, path } = await stage(context);
  for (const tail of ['{"seq":9,"eve', '{"seq":9\0\0\0']) {
    await appendFile(path, tail);
    const { journal, tornTail } = await store.open('a');
    assert.deepEqual([journal.seq, tornTail?.bytes], [COUNT, tail.length]);
    await journal.close();
  }
});

test('control: a journal that went on behind its mark is whole, and a mark that is no mark is ignored', async (context) => {
  const { store, mark } = await stage(context);
  const old = await readFile(mark);
  const first = await store.open('a');
  await first.journal.append(tell(2, first.state));
  await first.journal.close();
  for (const content of [old, 'nonsense', '']) {
    await writeFile(mark, content);
    const { journal } = await store.open('a');
    assert.equal(journal.seq, COUNT + 2);
    await journal.close();
  }
});
