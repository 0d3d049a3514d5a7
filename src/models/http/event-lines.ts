import type { Exchange } from './exchange.js';

/**
 * Reads the lines of a server-sent event stream that packages skip: comments, by which gateways say that a provider is
 * at work; `data: [DONE]`; and `error: …`, which some servers write instead of an event.
 *
 * Only the beginning of each line is read, so that a long reply costs nothing.
 */

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const HEAD_MAX = 16;
/** Characters of an `error:` line that are read. */
const ERROR_MAX = 8_192;

const isDone = (head: string): boolean => /^data: ?\[DONE\]/.test(head);

const ERROR = 'error:';

/** Returns a function that takes the bytes of a body in order, and null at its end. */
export const watchLines = (told: Exchange): ((bytes: Uint8Array | null) => void) => {
  /** Beginning of the current line. */
  let head = '';
  /** The whole current line, if it may be an error. */
  let pieces: Buffer[] = [];
  const finish = (): void => {
    if (head.startsWith(':')) told.onAlive();
    else if (isDone(head)) told.onDone();
    else if (head.startsWith(ERROR)) {
      const text = Buffer.concat(pieces).toString('utf8').slice(ERROR.length);
      told.onError(text.slice(0, ERROR_MAX).trim());
    }
    head = '';
    pieces = [];
  };
  const read = (bytes: Buffer): void => {
    if (head.length < HEAD_MAX) head += bytes.toString('latin1', 0, HEAD_MAX - head.length);
    if (head.startsWith(ERROR) || ERROR.startsWith(head)) pieces.push(bytes);
  };
  return (bytes) => {
    if (bytes === null) return finish();
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let start = 0;
    while (start < buffer.length) {
      const feed = buffer.indexOf(LINE_FEED, start);
      const end = feed === -1 ? buffer.length : feed;
      const isCarried = end > start && buffer[end - 1] === CARRIAGE_RETURN;
      if (end > start) read(buffer.subarray(start, isCarried ? end - 1 : end));
      if (feed !== -1) finish();
      start = end + 1;
    }
  };
};
