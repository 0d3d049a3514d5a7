import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';

/**
 * Output of a running command.
 *
 * 1. Memory is bounded: the start and the end are kept, and the omitted part in the middle is counted.
 * 2. Output is cut between words. Half a word misleads, and the redactor can't recognise half a secret.
 * 3. Progress is reported at once, then at most every PROGRESS_MS, with at most PROGRESS_CHARACTERS each time.
 */

const KEPT_BYTES = 1024 * 1024;
const PROGRESS_MS = 50;
const PROGRESS_CHARACTERS = 8_192;

export type CommandOutput = {
  add(bytes: Buffer): void;
  /** So many bytes are missing here, between what was added and what will be. */
  skip(count: number): void;
  /** The kept output, without terminal escapes. */
  text(): string;
  /** Bytes that are not kept. */
  droppedBytes(): number;
  /** Reports the last progress. Nothing is reported afterwards. */
  finish(): void;
};

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Removes incomplete characters at a cut. */
const trimCut = (bytes: Buffer, side: 'start' | 'end'): Buffer => {
  if (side === 'start') {
    let at = 0;
    while (at < 3 && isContinuation(bytes[at])) at += 1;
    return bytes.subarray(at);
  }
  let at = bytes.length;
  while (at > bytes.length - 3 && isContinuation(bytes[at - 1])) at -= 1;
  return (bytes[at - 1] ?? 0) >= 0xc0 ? bytes.subarray(0, at - 1) : bytes;
};

/** Longer words are cut in the middle. */
const WORD_MAX = 4_096;

/** Without a partial word at the start. */
const fromWord = (text: string): string => {
  const blank = text.search(/\s/);
  return blank > 0 && blank <= WORD_MAX ? text.slice(blank) : text;
};

/** Without a partial word at the end. */
const toWord = (text: string): string => {
  const half = /\S*$/.exec(text.slice(-WORD_MAX))?.[0].length ?? 0;
  return half < WORD_MAX ? text.slice(0, text.length - half) : text;
};

type Told = { add(bytes: Buffer): void; finish(): void };

const tellProgress = (tell: (text: string) => void): Told => {
  const decoder = new StringDecoder('utf8');
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;
  let done = false;
  const flush = (): void => {
    timer = undefined;
    if (waiting === '') return;
    const text =
      waiting.length > PROGRESS_CHARACTERS ? `…${fromWord(waiting.slice(-PROGRESS_CHARACTERS))}` : waiting;
    waiting = '';
    tell(text);
    timer = setTimeout(flush, PROGRESS_MS);
  };
  return {
    add(bytes) {
      if (done) return;
      waiting = (waiting + decoder.write(bytes)).slice(-PROGRESS_CHARACTERS - 1);
      if (timer === undefined) flush();
    },
    finish() {
      done = true;
      clearTimeout(timer);
      flush();
      clearTimeout(timer);
    },
  };
};

export const createCommandOutput = (tell: (text: string) => void): CommandOutput => {
  const head: Buffer[] = [];
  const tail: Buffer[] = [];
  let headBytes = 0;
  let tailBytes = 0;
  let droppedBytes = 0;
  const told = tellProgress(tell);
  const addToTail = (bytes: Buffer): void => {
    tail.push(bytes);
    tailBytes += bytes.length;
    for (
      let first = tail[0];
      first !== undefined && tailBytes - first.length >= KEPT_BYTES;
      first = tail[0]
    ) {
      tail.shift();
      tailBytes -= first.length;
      droppedBytes += first.length;
    }
  };
  return {
    add(bytes) {
      const room = KEPT_BYTES - headBytes;
      if (room > 0) {
        head.push(bytes.subarray(0, room));
        headBytes += Math.min(room, bytes.length);
      }
      if (bytes.length > room) addToTail(bytes.subarray(Math.max(0, room)));
      told.add(bytes);
    },
    skip(count) {
      droppedBytes += tailBytes + count;
      tail.length = 0;
      tailBytes = 0;
    },
    text() {
      const first = Buffer.concat(head);
      const last = Buffer.concat(tail);
      const whole =
        droppedBytes === 0
          ? Buffer.concat([first, last]).toString('utf8')
          : `${toWord(trimCut(first, 'end').toString('utf8'))}\n[${droppedBytes} bytes of output were dropped here]\n${fromWord(trimCut(last, 'start').toString('utf8'))}`;
      return whole.includes('\u001b') ? stripVTControlCharacters(whole) : whole;
    },
    droppedBytes: () => droppedBytes,
    finish: () => told.finish(),
  };
};
