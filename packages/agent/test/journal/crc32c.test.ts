import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { crc32c } from '../../src/journal/codec.js';

const ramp = Array.from({ length: 32 }, (_, index) => index);
// RFC 3720, B.4, and the check value of the catalogue of CRCs.
const rows = [
  // given these bytes,                              then the sum is
  ['123456789', Buffer.from('123456789'), 0xe3069283],
  ['nothing', Buffer.alloc(0), 0],
  ['32 bytes of 0', Buffer.alloc(32), 0x8a9136aa],
  ['32 bytes of ff', Buffer.alloc(32, 0xff), 0x62a8ab43],
  ['00 to 1f', Buffer.from(ramp), 0x46dd794e],
  ['1f to 00', Buffer.from(ramp.toReversed()), 0x113fdb5c],
] as const;

for (const [what, bytes, sum] of rows) {
  test(`the CRC-32C of ${what} is ${sum.toString(16)}`, () => {
    assert.equal(crc32c(bytes), sum);
  });
}

/** Bit by bit, as the definition says. */
const slow = (bytes: Uint8Array): number => {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  }
  return ~crc >>> 0;
};

test('eight bytes at a time give the same as bit by bit, whatever the length', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => crc32c(bytes) === slow(bytes)),
  );
});

test('a sum seeded with that of the bytes before is the sum of both', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 50 }),
      fc.uint8Array({ maxLength: 50 }),
      (left, right) => {
        assert.equal(crc32c(right, crc32c(left)), crc32c(Buffer.concat([left, right])));
      },
    ),
  );
});
