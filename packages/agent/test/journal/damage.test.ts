import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import test from 'node:test';
import fc from 'fast-check';
import {
  collect,
  eventsOf,
  headerOf,
  linesOf,
  makeFolder,
  plain,
  readEvents,
  tell,
  tellFrom,
} from '../../../../test/kit/journal/story.js';
import { countCases } from '../../../../test/tier.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { JournalError } from '../../src/journal/journal-error.js';
import { verifyStored } from '../../src/journal/transfer.js';
import { startChild } from './start-child.js';

const COUNT = 12;
const header = headerOf('a');
const drafts = tellFrom(header, COUNT);

/** A store with one good session of COUNT entries; `put` gives that session other bytes. */
const stage = async (folder: string) => {
  const store = fileJournals({ folder, checkEvery: 5 });
  const path = join(folder, 'sessions', 'a.jsonl');
  const journal = await store.create(header);
  await journal.append(drafts);
  await journal.close();
  const good = await readFile(path);
  const put = async (bytes: Uint8Array | string): Promise<void> => {
    await rm(dirname(path), { recursive: true });
    await mkdir(dirname(path));
    await writeFile(path, bytes);
  };
  return { store, path, good, put };
};

/** Whole lines behind the header within the first `size` bytes. */
const wholeEntries = (bytes: Buffer): number => bytes.toString('latin1').split('\n').length - 2;

test('cut at any byte, a journal keeps every whole entry and reports the rest as torn', async (context) => {
  const { store, path, good, put } = await stage(await makeFolder(context));
  const headerEnd = good.indexOf(0x0a);
  const cut = async (size: number): Promise<void> => {
    await put(good.subarray(0, size));
    // Only the line feed is missing: the entry is whole.
    const kept = wholeEntries(good.subarray(0, size + 1));
    const lineEnd = good[size] === 0x0a || good[size - 1] === 0x0a;
    const { journal, state, tornTail } = await store.open('a');
    assert.equal(journal.seq, kept);
    assert.deepEqual(await readEvents(journal), eventsOf(drafts.slice(0, kept)));
    if (kept > 0) assert.deepEqual(plain(state), plain(drafts[kept - 1]?.state));
    assert.equal(tornTail === null, lineEnd);
    if (tornTail !== null) {
      const start = good.subarray(0, size).lastIndexOf(0x0a) + 1;
      assert.equal(tornTail.keptAs, `${path}.torn-1`);
      assert.equal(tornTail.bytes, size - start);
      assert.deepEqual(await readFile(tornTail.keptAs), good.subarray(start, size));
    }
    const whole = good.subarray(
      0,
      good[size] === 0x0a ? size + 1 : good.subarray(0, size).lastIndexOf(0x0a) + 1,
    );
    assert.deepEqual(await readFile(path), whole);
    await journal.append(tell(2, state));
    await journal.close();
    const again = await store.open('a');
    assert.deepEqual([again.journal.seq, again.tornTail], [kept + 2, null]);
    await again.journal.close();
  };
  await fc.assert(fc.asyncProperty(fc.integer({ min: headerEnd, max: good.length }), cut), {
    numRuns: countCases(60),
  });
  const last = good.lastIndexOf(0x0a, good.length - 2);
  for (const size of [headerEnd, headerEnd + 1, headerEnd + 2, last, last + 1, good.length - 1])
    await cut(size);
});

test('a journal cut inside its header is damaged at line 1', async (context) => {
  const { store, good, put } = await stage(await makeFolder(context));
  for (const size of [0, 1, good.indexOf(0x0a) - 1]) {
    await put(good.subarray(0, size));
    await assert.rejects(store.open('a'), { kind: 'damaged', place: { line: 1, seq: 0 } });
    await assert.rejects(store.inspect('a'), { kind: 'damaged', place: { line: 1, seq: 0 } });
  }
});

test('any changed byte is damage at its line, and everything before it can still be read and forked', async (context) => {
  const { store, path, good, put } = await stage(await makeFolder(context));
  const change = async (index: number, mask: number): Promise<void> => {
    const bytes = Buffer.from(good);
    bytes[index] = (bytes[index] ?? 0) ^ mask;
    await put(bytes);
    const error: unknown = await store.open('a').then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof JournalError);
    assert.deepEqual(await readFile(path), bytes, 'a damaged file is left as it is');
    assert.deepEqual((await readdir(dirname(path))).length, 1);
    if (error.kind === 'newerVersion') return; // the change made the version a greater number
    assert.equal(error.kind, 'damaged');
    const { line, seq } = error.place ?? { line: 0, seq: 0 };
    assert.equal(line, good.subarray(0, index).toString('latin1').split('\n').length);
    if (line === 1) return;
    assert.equal(seq, line - 2);
    const { records, damage } = await store.inspect('a');
    assert.deepEqual(
      records.map(({ entry }) => entry.event),
      eventsOf(drafts.slice(0, seq)),
    );
    assert.deepEqual(damage?.place, error.place);
    await store.fork('a', seq, 'b', 1);
    assert.equal((await collect(store.read('b'))).length, seq);
    await assert.rejects(store.fork('a', seq + 1, 'c', 1), { kind: 'damaged' });
  };
  await fc.assert(
    fc.asyncProperty(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), change),
    {
      numRuns: countCases(80),
    },
  );
  await change(good.length - 1, 0x20); // the last line feed
  await change(good.lastIndexOf(0x0a, good.length - 2), 0x20); // the one before
  await change(good.length - 3, 1); // the last entry's own sum
  await change(good.length - 90, good.at(-90) ?? 0); // a zero, as a power loss leaves it
});

type Lines = readonly string[];
const moved: readonly (readonly [title: string, change: (lines: Lines) => Lines, line: number])[] =
  [
    [
      'two lines are swapped',
      (all) => [...all.slice(0, 4), all[5] ?? '', all[4] ?? '', ...all.slice(6)],
      5,
    ],
    ['a line is cut out', (all) => all.toSpliced(6, 1), 7],
    ['a line stands twice', (all) => all.toSpliced(6, 0, all[6] ?? ''), 8],
    ['an empty line is put in', (all) => all.toSpliced(3, 0, ''), 4],
    ['the first entry is missing', (all) => all.toSpliced(1, 1), 2],
    [
      'the header is of another session',
      (all) => all.with(0, (all[0] ?? '').replace('/somewhere', '/elsewhere')),
      1,
    ],
  ];
for (const [title, change, line] of moved) {
  test(`${title}: damaged at line ${line}`, async (context) => {
    const { store, path, put } = await stage(await makeFolder(context));
    await put(`${change(await linesOf(path)).join('\n')}\n`);
    await assert.rejects(store.open('a'), {
      kind: 'damaged',
      message: new RegExp(`line ${line}:`),
    });
    await assert.rejects(collect(store.read('a')), { kind: 'damaged' });
  });
}

test('a second torn tail is kept beside the first', async (context) => {
  const { store, path, good, put } = await stage(await makeFolder(context));
  await put(good.subarray(0, good.length - 5));
  await writeFile(`${path}.torn-1`, 'older');
  const { journal, tornTail } = await store.open('a');
  assert.equal(tornTail?.keptAs, `${path}.torn-2`);
  assert.equal(await readFile(`${path}.torn-1`, 'utf8'), 'older');
  await journal.close();
});

test('hundreds of megabytes of zeros at the end of a journal take little memory to read, and to cut off', async (context) => {
  const folder = await makeFolder(context);
  const { path, good } = await stage(folder);
  const zeros = 300 * 1024 * 1024;
  await truncate(path, good.length + zeros);
  const child = startChild(context, ['readAll', folder]);
  const lines: string[] = [];
  for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine())
    lines.push(line);
  const why = `it is incomplete: the last ${zeros} bytes were never acknowledged`;
  assert.deepEqual(
    lines.map((line) => (line.startsWith('listed') ? 'listed' : line)),
    [
      `verified ${COUNT}, line ${COUNT + 2} ${why}`,
      'listed',
      `inspected ${COUNT} and ${zeros} torn`,
      `replayed ${COUNT} and ${zeros} torn`,
      `opened ${COUNT} and cut ${zeros} off`,
      'memory small',
    ],
    child.complaints(),
  );
  assert.deepEqual(await readFile(path), good);
  const copy = await stat(`${path}.torn-1`);
  assert.equal(copy.size, zeros);
  assert.ok(copy.blocks * 512 < 1024 * 1024, `the copy of the zeros takes ${copy.blocks} blocks`);
});

test('a torn tail is kept byte for byte, whatever blocks it is copied in', async (context) => {
  const { store, path, good } = await stage(await makeFolder(context));
  const megabyte = 1024 * 1024;
  const tail = Buffer.concat([
    Buffer.alloc(2 * megabyte),
    Buffer.alloc(megabyte, 'x'),
    Buffer.alloc(10),
  ]);
  await writeFile(path, Buffer.concat([good, tail]));
  const { journal, tornTail } = await store.open('a');
  await journal.close();
  assert.ok(tail.equals(await readFile(tornTail?.keptAs ?? '')));
  assert.deepEqual(await readFile(path), good);
});

test('reading and inspecting a journal with a torn tail leaves it alone', async (context) => {
  const { store, path, good, put } = await stage(await makeFolder(context));
  await put(good.subarray(0, good.length - 5));
  assert.equal((await collect(store.read('a'))).length, COUNT - 1);
  assert.ok((await store.inspect('a')).tornBytes > 0);
  assert.deepEqual(await readFile(path), good.subarray(0, good.length - 5));
});

test('a newer version is refused, and the file left untouched', async (context) => {
  const { store, path, put } = await stage(await makeFolder(context));
  const text = '{"version":2,"sessionId":"a"}\n{"of":"the future"';
  await put(text);
  const newer = { kind: 'newerVersion', message: /version 2.*update Pawl/ };
  await assert.rejects(store.open('a'), newer);
  await assert.rejects(collect(store.read('a')), newer);
  await assert.rejects(store.fork('a', 0, 'b', 1), newer);
  await assert.rejects(verifyStored(path), newer);
  assert.equal(await readFile(path, 'utf8'), text);
  assert.deepEqual(await readdir(dirname(path)), ['a.jsonl']);
});

test('sessions that cannot be read are listed with a title that says why', async (context) => {
  const folder = await makeFolder(context);
  const { store, good } = await stage(folder);
  const flipped = Buffer.from(good);
  flipped[good.indexOf('words') + 1] = 0x21;
  for (const [name, bytes] of [
    ['future', '{"version":2}\n'],
    ['none', ''],
    ['flipped', flipped],
  ] as const) {
    await writeFile(join(folder, 'sessions', `${name}.jsonl`), bytes);
  }
  await writeFile(join(folder, 'sessions', 'notes.txt'), 'not a session');
  const titles = new Map(
    (await collect(store.list())).map(({ sessionId, title }) => [sessionId, title]),
  );
  assert.equal(titles.size, 4);
  assert.match(titles.get('future') ?? '', /newer version/);
  assert.match(titles.get('none') ?? '', /damaged/);
  assert.match(titles.get('flipped') ?? '', /^\(damaged at line \d+\)/);
  assert.match(titles.get('a') ?? '', /^words/);
});

test('a journal under another name is refused, and the message says whose it is', async (context) => {
  const folder = await makeFolder(context);
  const { store, good } = await stage(folder);
  await writeFile(join(folder, 'sessions', 'b.jsonl'), good);
  await assert.rejects(store.open('b'), { kind: 'damaged', message: /that of session "a".*fork/ });
});
