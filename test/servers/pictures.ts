import { demand } from './strict.js';

/**
 * Pictures in requests, as all wires look at them: of a kind that the wire takes, bytes that are of that kind, in base64
 * and nothing but base64, and not too many of them.
 */

const SIGNATURES: Readonly<Record<string, RegExp>> = {
  'image/png': /^\x89PNG\r\n\x1a\n.{4}IHDR/s,
  'image/jpeg': /^\xff\xd8\xff/,
  'image/gif': /^GIF8[79]a/,
  'image/webp': /^RIFF.{4}WEBP/s,
};

export const demandPicture = (
  mediaType: unknown,
  base64: unknown,
  taken: readonly string[],
  at: string,
): void => {
  demand(taken.includes(String(mediaType)), `${at}: Unsupported media type: ${mediaType}`);
  demand(typeof base64 === 'string' && base64 !== '', `${at}: a picture without bytes`);
  const bytes = Buffer.from(base64, 'base64');
  demand(bytes.toString('base64') === base64, `${at}: Invalid base64 data`);
  const isOfKind = SIGNATURES[String(mediaType)]?.test(bytes.toString('latin1', 0, 16));
  demand(isOfKind === true, `${at}: the bytes are no ${mediaType}`);
};

/** Where a wire wants it as an address that holds the bytes. */
export const demandDataUrl = (url: unknown, taken: readonly string[], at: string): void => {
  const parts = /^data:([^;,]*);base64,(.*)$/s.exec(String(url));
  demand(parts !== null, `${at}: should be a data URL`);
  demandPicture(parts[1], parts[2], taken, at);
};

/** The whole request, in bytes. */
export const demandWeight = (body: unknown, bytesMax: number): void => {
  const bytes = Buffer.byteLength(JSON.stringify(body));
  demand(bytes <= bytesMax, `Request exceeds the maximum size: ${bytes} bytes > ${bytesMax}`);
};
