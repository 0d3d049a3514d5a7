import zlib from 'node:zlib';

/** Decompresses a `content-encoding`. */
export type Decoder = zlib.Gunzip | zlib.BrotliDecompress;

/** Null for an encoding that Node 20 can't decompress. A broken-off body is decompressed as far as it came. */
export const decoderOf = (coding: string): Decoder | null => {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip({ flush: zlib.constants.Z_SYNC_FLUSH });
    case 'deflate':
      return zlib.createUnzip({ flush: zlib.constants.Z_SYNC_FLUSH });
    case 'br':
      return zlib.createBrotliDecompress({ flush: zlib.constants.BROTLI_OPERATION_FLUSH });
    default:
      return null;
  }
};
