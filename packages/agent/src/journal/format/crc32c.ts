/** CRC-32C (Castagnoli, as in iSCSI, RFC 3720), computed eight bytes at a time with eight tables. */

const POLYNOMIAL = 0x82f63b78;
const WAYS = 8;

const buildTables = (): Int32Array => {
  const tables = new Int32Array(256 * WAYS);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[byte] = crc;
  }
  for (let index = 256; index < tables.length; index++) {
    const before = tables[index - 256] ?? 0;
    tables[index] = (before >>> 8) ^ (tables[before & 0xff] ?? 0);
  }
  return tables;
};

const TABLES = buildTables();

/** Looks up a byte that has `after` more bytes behind it in its group of eight. */
const look = (after: number, byte: number): number => TABLES[after * 256 + byte] as number; // byte < 256, after < 8

/** The byte at `index`; the caller keeps `index` in range. */
const at = (bytes: Uint8Array, index: number): number => bytes[index] as number; // in range, so not undefined

const word = (bytes: Uint8Array, index: number): number =>
  at(bytes, index) |
  (at(bytes, index + 1) << 8) |
  (at(bytes, index + 2) << 16) |
  (at(bytes, index + 3) << 24);

/**
 * Checksum of `bytes` from `start` to `end`. `seed` is the checksum of the bytes before them: crc32c(b, crc32c(a)) is the
 * checksum of a followed by b.
 */
export const crc32c = (bytes: Uint8Array, seed = 0, start = 0, end = bytes.length): number => {
  let crc = ~seed;
  let index = start;
  for (; index + WAYS <= end; index += WAYS) {
    const low = crc ^ word(bytes, index);
    const high = word(bytes, index + 4);
    crc =
      look(7, low & 0xff) ^
      look(6, (low >>> 8) & 0xff) ^
      look(5, (low >>> 16) & 0xff) ^
      look(4, low >>> 24) ^
      look(3, high & 0xff) ^
      look(2, (high >>> 8) & 0xff) ^
      look(1, (high >>> 16) & 0xff) ^
      look(0, high >>> 24);
  }
  for (; index < end; index++) crc = (crc >>> 8) ^ look(0, (crc ^ at(bytes, index)) & 0xff);
  return ~crc >>> 0;
};
