import { crc32, deflateSync } from 'node:zlib';

/** Real pictures, small. */

const piece = (name: string, body: Buffer): Buffer => {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), body]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(body.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
};

/** One pixel, grey: each shade is a picture with bytes of its own. `comment` makes it as large as one likes. */
export const makePng = (shade = 0, comment = ''): Buffer => {
  const head = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    piece('IHDR', head),
    ...(comment === '' ? [] : [piece('tEXt', Buffer.from(`Comment\0${comment}`, 'latin1'))]),
    piece('IDAT', deflateSync(Buffer.from([0, shade]))),
    piece('IEND', Buffer.alloc(0)),
  ]);
};

export const GIF = Buffer.from(
  'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7',
  'base64',
);
