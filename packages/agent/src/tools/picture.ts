/** Pictures in the formats that models accept, recognised by their first bytes. */

import type { Image, ImageType } from '../machine/message.js';
import type { Blobs } from '../ports/journal.js';

/** Size limit for one picture. Base64 adds a third, and providers limit the sum. */
const BYTES_MAX = 3_750_000;
const SIDE_MAX = 8_000;

type Picture = { readonly mediaType: ImageType; readonly width: number; readonly height: number };

/**
 * Width and height from the frame header of a JPEG. The segments before it each state their length.
 */
const jpegSize = (bytes: Buffer): readonly [number, number] => {
  let at = 2;
  while (at + 9 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return [bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5)];
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return [0, 0];
};

/** Width and height of a WebP, which has three kinds of headers. */
const webpSize = (bytes: Buffer): readonly [number, number] => {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8X':
      return [bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1];
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return [(bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1];
    }
    default:
      return [bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff];
  }
};

/** All sizes stand in the first bytes, but for JPEG. */
const MEASURED_BYTES = 30;

/** Type and size of a picture; null for other files. */
const measurePicture = (bytes: Buffer): Picture | null => {
  const begins = (signature: string, at = 0): boolean =>
    bytes.toString('latin1', at, at + signature.length) === signature;
  const picture = (mediaType: ImageType, [width, height]: readonly [number, number]): Picture => ({
    mediaType,
    width,
    height,
  });
  if (bytes.length < MEASURED_BYTES) return null;
  if (begins('\x89PNG\r\n\x1a\n'))
    return picture('image/png', [bytes.readUInt32BE(16), bytes.readUInt32BE(20)]);
  if (begins('\xff\xd8\xff')) return picture('image/jpeg', jpegSize(bytes));
  if (begins('GIF87a') || begins('GIF89a'))
    return picture('image/gif', [bytes.readUInt16LE(6), bytes.readUInt16LE(8)]);
  if (begins('RIFF') && begins('WEBP', 8)) return picture('image/webp', webpSize(bytes));
  return null;
};

/**
 * Whether a picture is complete. Providers refuse a truncated picture, and every later request that
 * contains it. A GIF has no fixed end to check.
 */
const isWhole = (bytes: Buffer, mediaType: ImageType): boolean => {
  switch (mediaType) {
    case 'image/png':
      return bytes.includes('IEND', 0, 'latin1');
    case 'image/jpeg':
      return bytes.includes('\xff\xd9', 0, 'latin1');
    case 'image/webp':
      return bytes.readUInt32LE(4) + 8 <= bytes.length;
    case 'image/gif':
      return true;
    default:
      return mediaType satisfies never;
  }
};

type KeptPicture =
  | { readonly kind: 'stored'; readonly image: Image; readonly picture: Picture }
  | { readonly kind: 'none' }
  | { readonly kind: 'tooLarge'; readonly why: string }
  | { readonly kind: 'broken'; readonly why: string };

/** Stores a picture as a blob if models accept its format. Rejects if the blob can't be written. */
export const keepPicture = async (bytes: Buffer, blobs: Blobs): Promise<KeptPicture> => {
  const picture = measurePicture(bytes);
  if (picture === null) return { kind: 'none' };
  const { width, height, mediaType } = picture;
  if (bytes.length > BYTES_MAX)
    return {
      kind: 'tooLarge',
      why: `it has ${bytes.length} bytes, and models take at most ${BYTES_MAX}`,
    };
  if (Math.max(width, height) > SIDE_MAX)
    return {
      kind: 'tooLarge',
      why: `it has ${width} x ${height} pixels, and models take at most ${SIDE_MAX} a side`,
    };
  if (Math.min(width, height) < 1)
    return { kind: 'broken', why: 'it does not say how large it is: is it whole?' };
  if (!isWhole(bytes, mediaType)) return { kind: 'broken', why: 'it breaks off before its end' };
  const sha256 = await blobs.put(bytes.toString('base64'));
  return { kind: 'stored', image: { mediaType, sha256 }, picture };
};
