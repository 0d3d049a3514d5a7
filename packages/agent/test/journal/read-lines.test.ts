import assert from 'node:assert/strict';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import fc from 'fast-check';
import { collect, makeFolder } from '../../../../test/kit/journal/story.js';
import {
  bufferSource,
  chunkLines,
  crc32c,
  decodeRecord,
  decodeRecords,
  encodeRecord,
  type Lines,
  type Recorded,
  readLines,
  splitFirst,
} from '../../src/journal/codec.js';

const linesIn = ({ bytes, start, ends }: Lines): readonly string[] =>
  ends.map((end, index) => bytes.toString('utf8', (ends[index - 1] ?? start - 1) + 1, end));

const readText = async (context: TestContext, text: string, blockBytes: number) => {
  const path = join(await makeFolder(context), 'lines');
  await writeFile(path, text);
  const handle = await open(path);
  try {
    return await collect(readLines(handle, Buffer.byteLength(text), blockBytes));
  } finally {
    await handle.close();
  }
};

test('a file comes apart into its lines, whatever the size of a block', async (context) => {
  const lines = ['', 'short', 'ä'.repeat(50), '', 'x'.repeat(200), 'the last'];
  for (const blockBytes of [1, 2, 7, 64, 200, 1_000]) {
    for (const ending of ['\n', '']) {
      const blocks = await readText(context, `${lines.join('\n')}${ending}`, blockBytes);
      assert.deepEqual(blocks.flatMap(linesIn), lines, `${blockBytes} ${ending}`);
      const unended = blocks.filter(({ ended }) => ended === 'no');
      assert.deepEqual(unended.flatMap(linesIn), ending === '' ? ['the last'] : []);
    }
  }
  assert.deepEqual(await readText(context, '', 8), []);
});

test('a line that is much longer than a block is read in few pieces', async (context) => {
  const path = join(await makeFolder(context), 'lines');
  await writeFile(path, `${'x'.repeat(1 << 20)}\n`);
  const handle = await open(path);
  let reads = 0;
  const counting = {
    read: (...wish: Parameters<typeof handle.read>) => {
      reads += 1;
      return handle.read(...wish);
    },
  } as unknown as typeof handle; // readLines calls nothing else
  assert.equal((await collect(readLines(counting, (1 << 20) + 1, 16))).length, 1);
  await handle.close();
  assert.ok(reads < 20, `${reads} reads`);
});

test('of a line that cannot be good only the beginning is yielded, as the last one', async () => {
  const long = 'x'.repeat(200);
  const texts = [
    // after the good lines,    yielded,  a line feed follows
    [`${'\0'.repeat(200)}`, '\0', 'no'],
    [`{"seq\0${long}`, '{"seq\0', 'no'],
    [`${long.slice(0, 60)}\0${long}\nmore\n`, `${long.slice(0, 60)}\0`, 'yes'],
    [long, '', 'no'],
    [`${long}\nmore\n`, '', 'yes'],
  ] as const;
  for (const blockBytes of [1, 7, 16])
    for (const [text, beginning, ended] of texts) {
      const bytes = Buffer.from(`good\ngood\n${text}`);
      const blocks = await collect(
        readLines(bufferSource(bytes), bytes.length, blockBytes, 0, 100),
      );
      assert.deepEqual(
        blocks.flatMap(linesIn),
        ['good', 'good', beginning],
        `${blockBytes} ${text}`,
      );
      assert.equal(blocks.at(-1)?.ended, ended);
    }
});

test('the first line and the others', () => {
  const { first, rest } = splitFirst({
    bytes: Buffer.from('ab\ncd\n'),
    start: 0,
    ends: [2, 5],
    ended: 'yes',
  });
  assert.deepEqual([first.toString(), linesIn(rest)], ['ab', ['cd']]);
});

test('lines in pieces are the same lines, and no lines are one piece', () => {
  const bytes = Buffer.from('head\na\nbc\n\ndef\n');
  const lines: Lines = { bytes, start: 5, ends: [6, 9, 10, 14], ended: 'yes' };
  for (const count of [1, 2, 3, 4, 9]) {
    const pieces = [...chunkLines(lines, count)].map(linesIn);
    assert.deepEqual(pieces.flat(), ['a', 'bc', '', 'def']);
    assert.equal(pieces.length, Math.ceil(4 / count));
  }
  assert.deepEqual([...chunkLines({ ...lines, ends: [] }, 2)].map(linesIn), [[]]);
});

const SEED = 7;
const recordedOf = (text: string, seq: number): Recorded => ({
  entry: { seq, event: { type: 'UserInput', at: 5, text, mode: 'steer' } },
  check: seq % 2 === 0 ? 'ca'.repeat(32) : null,
});

/** Lines as they lie in a file behind others, and what was written. */
const blockOf = (texts: readonly string[]) => {
  const records = texts.map((text, index) => recordedOf(text, index + 1));
  const parts: Buffer[] = [Buffer.from('before\n')];
  const ends: number[] = [];
  let [crc, end] = [SEED, 6];
  for (const recorded of records) {
    const line = encodeRecord(recorded, crc);
    parts.push(line.bytes);
    end += line.bytes.length;
    ends.push(end);
    crc = line.crc;
  }
  const lines: Lines = { bytes: Buffer.concat(parts), start: 7, ends, ended: 'yes' };
  return { lines, records, crc };
};

test('a block decodes to what was written, and stays as it is', () => {
  const texts = fc.array(fc.string({ unit: 'binary', maxLength: 20 }), { maxLength: 6 });
  fc.assert(
    fc.property(texts, (all) => {
      const { lines, records, crc } = blockOf(all);
      const before = Buffer.from(lines.bytes);
      assert.deepEqual(decodeRecords(lines, SEED, 1), { records, crc, bad: null });
      assert.deepEqual(lines.bytes, before);
    }),
  );
});

test('of a block with a changed byte, everything before that line is good, and the sum goes with it', () => {
  const { lines, records } = blockOf(['one', 'two', 'three', 'four']);
  const byte = fc.integer({ min: lines.start, max: (lines.ends.at(-1) ?? 0) - 1 });
  fc.assert(
    fc.property(byte, fc.integer({ min: 1, max: 255 }), (index, mask) => {
      fc.pre(!lines.ends.includes(index));
      const bytes = Buffer.from(lines.bytes);
      bytes[index] = (bytes[index] ?? 0) ^ mask;
      const good = lines.ends.filter((end) => end < index).length;
      const decoded = decodeRecords({ ...lines, bytes }, SEED, 1);
      assert.deepEqual(decoded.records, records.slice(0, good));
      assert.match(decoded.bad ?? '', /checksum/);
      const last = blockOf(['one', 'two', 'three', 'four'].slice(0, good));
      assert.equal(decoded.crc, last.crc);
    }),
  );
});

/** A line of whatever JSON, with a sum that fits. */
const sealed = (body: string, seed: number): Buffer => {
  const crc = crc32c(Buffer.from(body), seed);
  return Buffer.from(`${body},"crc":"${crc.toString(16).padStart(8, '0')}"}`);
};

const forged = [
  // second line,                         which is
  ['{"seq":9,"event":{}', 'of another seq'],
  ['{"seq":2,"event":', 'no JSON'],
  ['{"seq":2},{"seq":3', 'two values'],
  ['[{"seq":2}', 'no object'],
] as const;
for (const [body, what] of forged) {
  test(`a line whose sum fits is bad all the same if it is ${what}`, () => {
    const first = encodeRecord(recordedOf('good', 1), SEED);
    const second = sealed(body, first.crc);
    const bytes = Buffer.concat([first.bytes, second]);
    const lines: Lines = {
      bytes,
      start: 0,
      ends: [first.bytes.length - 1, bytes.length],
      ended: 'yes',
    };
    const decoded = decodeRecords(lines, SEED, 1);
    assert.deepEqual(decoded.records, [recordedOf('good', 1)]);
    assert.equal(decoded.crc, first.crc);
    assert.match(decoded.bad ?? '', /not the entry with seq 2/);
    assert.equal(decodeRecord(second, first.crc, 2).kind, 'bad');
  });
}

test('a number that is not written in digits is no seq, even if its sum fits', () => {
  const bytes = sealed('{"seq"::,"event":{}', SEED); // the colon comes after 9
  const decoded = decodeRecords({ bytes, start: 0, ends: [bytes.length], ended: 'yes' }, SEED, 10);
  assert.deepEqual(decoded.records, []);
  assert.match(decoded.bad ?? '', /not the entry with seq 10/);
});
