import type { Exchange } from './request-side-channel.js';

/**
 * Reads the lines of a server-sent event stream that packages skip: comments, by which gateways say that a provider is
 * at work; `data: [DONE]`; and `error: …`, which some servers write instead of an event.
 *
 * 1. Only the beginning of each line is read, so that a long reply costs nothing.
 * 2. A line ends with LF, CR or both. CRLF reads as a line and an empty line, which means nothing.
 */

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const HEAD_MAX = 16;
/** Characters of an `error:` line that are read. */
const ERROR_MAX = 8_192;

/** A byte order mark as latin1. */
const MARK = '\u00ef\u00bb\u00bf';
const withoutMark = (head: string): string => (head.startsWith(MARK) ? head.slice(MARK.length) : head);

const isDone = (head: string): boolean => /^data: ?\[DONE\]/.test(head);

const ERROR = 'error:';

/** Returns a function that takes the bytes of a body in order, and null at its end. */
export const watchLines = (told: Exchange): ((bytes: Uint8Array | null) => void) => {
  /** Beginning of the current line. */
  let head = '';
  /** The whole current line, if it may be an error. */
  let pieces: Buffer[] = [];
  const finish = (): void => {
    const begun = withoutMark(head);
    if (begun.startsWith(':')) told.onAlive();
    else if (isDone(begun)) told.onDone();
    else if (begun.startsWith(ERROR)) {
      const text = Buffer.concat(pieces)
        .toString('utf8')
        .replace(/^\ufeff/, '')
        .slice(ERROR.length);
      told.onError(text.slice(0, ERROR_MAX).trim());
    }
    head = '';
    pieces = [];
  };
  const read = (bytes: Buffer): void => {
    if (head.length < HEAD_MAX) head += bytes.toString('latin1', 0, HEAD_MAX - head.length);
    const begun = withoutMark(head);
    if (begun.startsWith(ERROR) || ERROR.startsWith(begun) || MARK.startsWith(head)) pieces.push(bytes);
  };
  return (bytes) => {
    if (bytes === null) return finish();
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const endAt = (byte: number, from: number): number => {
      const found = buffer.indexOf(byte, from);
      return found === -1 ? buffer.length : found;
    };
    let feed = endAt(LINE_FEED, 0);
    let carriage = endAt(CARRIAGE_RETURN, 0);
    for (let start = 0; start < buffer.length; ) {
      if (feed < start) feed = endAt(LINE_FEED, start);
      if (carriage < start) carriage = endAt(CARRIAGE_RETURN, start);
      const end = Math.min(feed, carriage);
      if (end > start) read(buffer.subarray(start, end));
      if (end < buffer.length) finish();
      start = end + 1;
    }
  };
};
