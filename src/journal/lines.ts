import type { FileHandle } from 'node:fs/promises';
import { NEWLINE } from './codec.js';

/** A line without its line feed. `ended` is `no` of the last line of a file that lacks its line feed. */
export type RawLine = { readonly bytes: Buffer; readonly ended: 'yes' | 'no' };

/** Splits a file into lines, block by block, up to byte `end`; never holds more than a block and one line. */
export async function* readLines(
  handle: FileHandle,
  end: number,
  blockBytes: number,
): AsyncGenerator<readonly RawLine[], undefined> {
  let begun: Buffer[] = [];
  for (let position = 0; position < end; ) {
    const block = Buffer.allocUnsafe(Math.min(blockBytes, end - position));
    const { bytesRead } = await handle.read(block, 0, block.length, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    const lines: RawLine[] = [];
    let start = 0;
    for (
      let stop = block.indexOf(NEWLINE);
      stop >= 0 && stop < bytesRead;
      stop = block.indexOf(NEWLINE, start)
    ) {
      const piece = block.subarray(start, stop);
      lines.push({ bytes: begun.length === 0 ? piece : Buffer.concat([...begun, piece]), ended: 'yes' });
      begun = [];
      start = stop + 1;
    }
    if (start < bytesRead) begun.push(block.subarray(start, bytesRead));
    yield lines;
  }
  if (begun.length > 0) yield [{ bytes: Buffer.concat(begun), ended: 'no' }];
}
