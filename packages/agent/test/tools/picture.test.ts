import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { makePlace } from './context.js';

/** The smallest files of their kind that say how large they are. */
const png = (width: number, height: number): Buffer => {
  const bytes = Buffer.alloc(44);
  bytes.write('\x89PNG\r\n\x1a\n', 'latin1');
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  bytes.write('IEND', 40, 'latin1');
  return bytes;
};
const gif = Buffer.concat([Buffer.from('GIF89a\x03\0\x02\0', 'latin1'), Buffer.alloc(30)]);
const jpeg = Buffer.concat([
  Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc0, 0, 11, 8, 0, 5, 0, 6]),
  Buffer.alloc(30),
  Buffer.from([0xff, 0xd9]),
]);
const webp = (kind: 'VP8X' | 'VP8L' | 'VP8 ', body: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(48);
  bytes.write(`RIFF\x28\0\0\0WEBP${kind}`, 'latin1');
  Buffer.from(body).copy(bytes, 20);
  return bytes;
};

for (const [name, bytes, says] of [
  ['a.png', png(3, 2), 'image/png, 3 x 2'],
  ['a.gif', gif, 'image/gif, 3 x 2'],
  ['a.jpg', jpeg, 'image/jpeg, 6 x 5'],
  ['x.webp', webp('VP8X', [0, 0, 0, 0, 2, 0, 0, 1, 0, 0]), 'image/webp, 3 x 2'],
  ['l.webp', webp('VP8L', [0x2f, 2, 0x40, 0, 0]), 'image/webp, 3 x 2'],
  ['y.webp', webp('VP8 ', [0, 0, 0, 0x9d, 1, 0x2a, 3, 0, 2, 0]), 'image/webp, 3 x 2'],
  ['a picture by another name.txt', png(3, 2), 'image/png, 3 x 2'],
] as const) {
  test(`${name} is shown as a picture, its bytes are a blob`, async (t) => {
    const place = await makePlace(t);
    await writeFile(place.path(name), bytes);
    const { status, text, images = [] } = await place.run('read', { path: name });
    assert.equal(status, 'ok');
    assert.ok(text.startsWith(`${name}: ${says} pixels`), text);
    const [image] = images;
    assert.equal(place.blobs.get(image?.sha256 ?? ''), bytes.toString('base64'));
    assert.equal(place.files.get(place.path(name)), undefined, 'its bytes were not shown');
  });
}

for (const [title, bytes, why] of [
  [
    'too many pixels',
    png(8_001, 1),
    /8001 x 1 pixels, and models take at most 8000 a side\. Make a smaller copy/,
  ],
  [
    'too many bytes',
    Buffer.concat([png(1, 1), Buffer.alloc(3_750_000)]),
    /3750044 bytes, and models take at most 3750000/,
  ],
  ['no size', png(0, 0), /does not say how large it is: is it whole\?\.$/],
  ['no end', png(3, 2).subarray(0, 40), /can't be shown: it breaks off before its end\.$/],
  ['no end, a JPEG', jpeg.subarray(0, -2), /breaks off before its end/],
  [
    'no end, a WebP',
    webp('VP8X', [0, 0, 0, 0, 2, 0, 0, 1, 0, 0]).subarray(0, -1),
    /breaks off before its end/,
  ],
  [
    'a JPEG that breaks off',
    Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.alloc(30)]),
    /does not say how large/,
  ],
  ['only the beginning', Buffer.from('\x89PNG\r\n\x1a\n\0', 'latin1'), /binary file of 9 bytes/],
] as const) {
  test(`a picture with ${title} is refused, with why`, async (t) => {
    const place = await makePlace(t);
    await writeFile(place.path('a.png'), bytes);
    const outcome = await place.run('read', { path: 'a.png' });
    assert.equal(outcome.status, 'failed');
    assert.match(outcome.text, why);
    assert.equal(place.blobs.size, 0);
  });
}
