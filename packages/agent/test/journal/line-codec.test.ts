import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { headerOf } from '../../../../test/kit/journal/story.js';
import {
  decodeHeader,
  decodeRecord,
  encodeHeader,
  encodeRecord,
  type Recorded,
} from '../../src/journal/codec.js';

const recordedOf = (text: string, seq: number, check: string | null): Recorded => ({
  entry: { seq, event: { type: 'UserInput', at: 5, text, mode: 'steer' } },
  check,
});
const lineOf = (bytes: Buffer): Buffer => bytes.subarray(0, -1);

test('a line is JSON that others can read, with seq, event, check and crc', () => {
  const { bytes } = encodeRecord(recordedOf('hello', 7, 'cafe'), 1);
  assert.equal(bytes.at(-1), 0x0a);
  assert.deepEqual(Object.keys(JSON.parse(bytes.toString())), ['seq', 'event', 'check', 'crc']);
});

test('an entry without a check has no such field', () => {
  assert.deepEqual(
    Object.keys(JSON.parse(encodeRecord(recordedOf('', 1, null), 1).bytes.toString())),
    ['seq', 'event', 'crc'],
  );
});

test('whatever text is encoded comes back, and the sum goes on', () => {
  const text = fc.string({ unit: 'binary', maxLength: 60 });
  fc.assert(
    fc.property(text, fc.nat(), fc.option(fc.string()), fc.nat(), (words, seq, check, seed) => {
      const recorded = recordedOf(words, seq, check);
      const { bytes, crc } = encodeRecord(recorded, seed);
      assert.equal(bytes.indexOf(0x0a), bytes.length - 1);
      assert.deepEqual(decodeRecord(lineOf(bytes), seed, seq), { kind: 'record', recorded, crc });
    }),
  );
});

test('the header comes back as it was', () => {
  const header = headerOf('one');
  const { bytes, crc } = encodeHeader(header);
  assert.deepEqual(decodeHeader(lineOf(bytes)), { kind: 'header', header, crc });
});

test('any changed byte of a line is noticed', () => {
  const { bytes } = encodeRecord(recordedOf('some words', 3, 'abc'), 99);
  fc.assert(
    fc.property(fc.nat(bytes.length - 2), fc.integer({ min: 1, max: 255 }), (index, mask) => {
      const line = Buffer.from(lineOf(bytes));
      line[index] = (line[index] ?? 0) ^ mask;
      assert.equal(decodeRecord(line, 99, 3).kind, 'bad');
    }),
  );
});

test('a line behind another one than it was written behind is noticed', () => {
  const { bytes } = encodeRecord(recordedOf('x', 3, null), 99);
  assert.equal(decodeRecord(lineOf(bytes), 98, 3).kind, 'bad');
});

test('a line in the right place with the wrong seq is noticed', () => {
  const { bytes } = encodeRecord(recordedOf('x', 4, null), 99);
  assert.match(JSON.stringify(decodeRecord(lineOf(bytes), 99, 3)), /not the entry with seq 3/);
});

test('a header of a newer version is known as such, even if it is summed up in another way', () => {
  const line = Buffer.from('{"version":2,"whatever":true}');
  assert.deepEqual(decodeHeader(line), { kind: 'newer', version: 2 });
});
