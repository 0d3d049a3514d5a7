/**
 * The output of a command on its way to the model and the screen.
 *
 * From top to bottom: `createCommandOutput`, which keeps the start and the end in bounded memory;
 * the parts that are probably no text, which are counted and not shown; `createProgress`, what the
 * user sees while the command runs; and `SpoolReader`, which reads the spool: the folder of one
 * command, to which its launcher (launcher.sh, the shell that started it) writes the output in
 * pieces.
 */

import { isUtf8 } from 'node:buffer';
import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import { attemptNow } from '../platform/attempt.js';
import { groupDigits } from '../platform/text.js';

/**
 * The output of a command, in memory.
 *
 * Memory is bounded: the start and the end stay, and the omitted part in the middle is counted.
 * Output is cut between words: half a word misleads, and half a secret can't be recognised when
 * secrets are replaced in the text.
 */
export type CommandOutput = {
  add(bytes: Buffer): void;
  /** So many bytes are missing here: between those that were added and those that will be. */
  skip(count: number): void;
  /** The stored output as a terminal shows it, with a note in place of binary bytes. */
  text(): string;
  /** Bytes that were dropped. */
  droppedBytes(): number;
  /** All bytes of the output, with those that were dropped. */
  totalBytes(): number;
  /** Reports the last progress. Nothing is reported afterwards. Bytes can still be added. */
  finish(): void;
};

/** Bytes that stay of the start, and of the end. */
const HEAD_BYTES = 1024 * 1024;
const TAIL_BYTES = 2 * 1024 * 1024;

export const createCommandOutput = (report: (text: string) => void): CommandOutput => {
  const head: Buffer[] = [];
  const tail: Buffer[] = [];
  let headBytes = 0;
  let headMax = HEAD_BYTES;
  let tailBytes = 0;
  let droppedBytes = 0;
  const progress = createProgress(report);
  /**
   * Keeps exactly TAIL_BYTES, and no whole chunks: a later process may read the same output from
   * the spool, in other chunks, and must get the same text.
   */
  const addToTail = (bytes: Buffer): void => {
    tail.push(bytes);
    tailBytes += bytes.length;
    while (tailBytes > TAIL_BYTES) {
      const first = tail[0] ?? bytes;
      const excess = Math.min(first.length, tailBytes - TAIL_BYTES);
      if (excess === first.length) tail.shift();
      else tail[0] = first.subarray(excess);
      tailBytes -= excess;
      droppedBytes += excess;
    }
  };
  return {
    add(bytes) {
      const room = headMax - headBytes;
      if (room > 0) {
        head.push(bytes.subarray(0, room));
        headBytes += Math.min(room, bytes.length);
      }
      if (bytes.length > room) addToTail(bytes.subarray(Math.max(0, room)));
      progress.add(bytes);
    },
    skip(count) {
      // What came before a gap is not the end of the output, and what follows not its start.
      headMax = headBytes;
      droppedBytes += tailBytes + count;
      tail.length = 0;
      tailBytes = 0;
    },
    text() {
      const first = Buffer.concat(head);
      const last = Buffer.concat(tail);
      return asShown(
        droppedBytes === 0
          ? decodeText(Buffer.concat([first, last]))
          : `${toWord(decodeText(trimCut(first, 'end')))}\n[${droppedBytes} bytes of ` +
              `output were dropped here]\n${fromWord(decodeText(trimCut(last, 'start')))}`,
      );
    },
    droppedBytes: () => droppedBytes,
    totalBytes: () => headBytes + tailBytes + droppedBytes,
    finish: () => progress.finish(),
  };
};

/** Moves within a line: a return that no line break follows, and a backspace. */
const MOVES_BACK = /\r(?!\n|$)|[\b]/;
/** Moves to the start of the line, as `\r` does: progress of Node's programs is written so. */
const TO_START = /\u001b\[[01]?G/g;
/** Erases the line to its end (0), to its start (1) or whole (2). */
const ERASES = /\u001b\[([012]?)K/g;
/** Characters that no text has stand for the three while the other escapes are removed. */
const ERASED: readonly string[] = ['\ufdd0', '\ufdd1', '\ufdd2'];

const CHANGES_LINE = new RegExp(`${MOVES_BACK.source}|[${ERASED.join('')}]`);

/** The text as a terminal shows it: without escapes, and of each line what was not overwritten. */
const asShown = (text: string): string => {
  const returned = text.includes('\u001b') ? text.replace(TO_START, '\r') : text;
  const movesBack = MOVES_BACK.test(returned);
  const marked = movesBack
    ? returned.replace(ERASES, (_, which: string) => ERASED[Number(which)] ?? '')
    : returned;
  const plain = marked.includes('\u001b') ? stripVTControlCharacters(marked) : marked;
  return movesBack ? plain.split('\n').map(lineAsShown).join('\n') : plain;
};

/** A progress bar returns to the start of its line and writes over it: its last state stays. */
const lineAsShown = (line: string): string => {
  if (!CHANGES_LINE.test(line)) return line;
  const shown: string[] = [];
  let column = 0;
  for (const character of line) {
    if (character === '\r') column = 0;
    else if (character === '\b') column = Math.max(0, column - 1);
    else if (character === ERASED[0]) shown.length = Math.min(column, shown.length);
    else if (character === ERASED[1]) shown.fill(' ', 0, column + 1);
    else if (character === ERASED[2]) shown.fill(' ');
    else {
      while (shown.length < column) shown.push(' ');
      shown[column] = character;
      column += 1;
    }
  }
  const end = line.endsWith('\r') ? '\r' : '';
  return `${shown.join('').trimEnd()}${end}`;
};

const isContinuation = (byte: number | undefined): boolean =>
  byte !== undefined && (byte & 0xc0) === 0x80;

/** Removes an incomplete character at a cut. */
const trimCut = (bytes: Buffer, side: 'start' | 'end'): Buffer => {
  if (side === 'start') {
    let at = 0;
    while (at < 3 && isContinuation(bytes[at])) at += 1;
    return bytes.subarray(at);
  }
  let at = bytes.length;
  while (at > bytes.length - 3 && isContinuation(bytes[at - 1])) at -= 1;
  const first = bytes[at - 1] ?? 0;
  const size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return bytes.length - (at - 1) < size ? bytes.subarray(0, at - 1) : bytes;
};

/** A part of the output that is probably no text. */
type BinaryPart = {
  readonly start: number;
  end: number;
  /** Bytes that are no part of a text: NUL, control characters, invalid UTF-8. */
  oddBytes: number;
  /** Those of them that are NUL, which also separates names (`find -print0`). */
  nulBytes: number;
};

/** So many bytes of text at most stand between the odd bytes of one part. */
const TEXT_IN_BINARY_MAX = 1_024;
/**
 * A part is binary with so many odd bytes beside its NULs, and so many NULs or such a share of odd
 * bytes. With fewer it may be text of another encoding.
 */
const ODD_BYTES_MIN = 32;
const ODD_SHARE_MIN = 0.1;

/** Length of the character at this position in bytes; 0 if it is no valid UTF-8. */
const characterLength = (bytes: Buffer, at: number): number => {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return 1;
  const length = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (let next = 1; next < length; next++) if (!isContinuation(bytes[at + next])) return 0;
  return length;
};

/** Control characters but those of text and terminals: BEL to CR, SO, SI, ESC. */
const isControl = (byte: number): boolean =>
  byte < 0x07 || byte === 0x7f || (byte > 0x0f && byte < 0x20 && byte !== 0x1b);

const findBinaryParts = (bytes: Buffer): readonly BinaryPart[] => {
  const parts: BinaryPart[] = [];
  let part: BinaryPart | null = null;
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at] ?? 0;
    const length = characterLength(bytes, at);
    if (length === 0 || isControl(byte)) {
      if (part === null || at - part.end > TEXT_IN_BINARY_MAX) {
        part = { start: at, end: at, oddBytes: 0, nulBytes: 0 };
        parts.push(part);
      }
      part.end = at + 1;
      part.oddBytes += 1;
      if (byte === 0) part.nulBytes += 1;
    }
    at += length || 1;
  }
  return parts.filter(isBinary);
};

const isBinary = ({ start, end, oddBytes, nulBytes }: BinaryPart): boolean =>
  oddBytes - nulBytes >= ODD_BYTES_MIN &&
  (nulBytes >= ODD_BYTES_MIN || oddBytes >= (end - start) * ODD_SHARE_MIN);

/** Ends the note in place of a binary part. */
const LOOK_AT_BYTES = 'file, strings or od can look at them';

/** The text of the bytes. Binary parts are counted, not shown. */
const decodeText = (bytes: Buffer): string => {
  if (isUtf8(bytes)) return bytes.toString('utf8');
  let text = '';
  let from = 0;
  const add = (part: string): void => {
    text += text === '' || text.endsWith('\n') || part.startsWith('\n') ? part : `\n${part}`;
  };
  for (const { start, end } of findBinaryParts(bytes)) {
    if (start > from) add(bytes.toString('utf8', from, start));
    add(
      `[${groupDigits(end - start)} bytes that are no UTF-8 text are not shown; ${LOOK_AT_BYTES}]`,
    );
    from = end;
  }
  if (from < bytes.length) add(bytes.toString('utf8', from));
  return text;
};

/** Longer words are cut in the middle. */
const WORD_MAX = 4_096;

/** The text without a partial word at its start. */
const fromWord = (text: string): string => {
  const blank = text.search(/\s/);
  return blank > 0 && blank <= WORD_MAX ? text.slice(blank) : text;
};

/** The text without a partial word at its end. */
const toWord = (text: string): string => {
  const half = /\S*$/.exec(text.slice(-WORD_MAX))?.[0].length ?? 0;
  return half < WORD_MAX ? text.slice(0, text.length - half) : text;
};

/**
 * Progress is reported at once, then at most every PROGRESS_MS, with at most PROGRESS_CHARACTERS
 * each time.
 */
const PROGRESS_MS = 50;
const PROGRESS_CHARACTERS = 8_192;

const createProgress = (report: (text: string) => void): Pick<CommandOutput, 'add' | 'finish'> => {
  const decoder = new StringDecoder('utf8');
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;
  let isFinished = false;
  const flush = (): void => {
    timer = undefined;
    if (waiting === '') return;
    const text =
      waiting.length > PROGRESS_CHARACTERS
        ? `…${fromWord(waiting.slice(-PROGRESS_CHARACTERS))}`
        : waiting;
    waiting = '';
    report(text);
    timer = setTimeout(flush, PROGRESS_MS);
  };
  return {
    add(bytes) {
      if (isFinished) return;
      waiting = (waiting + decoder.write(bytes)).slice(-PROGRESS_CHARACTERS - 1);
      if (timer === undefined) flush();
    },
    finish() {
      isFinished = true;
      clearTimeout(timer);
      flush();
      clearTimeout(timer); // `flush` may have set another one
    },
  };
};

/** Gets the output of a command from its start to its end: bytes and gaps, in their order. */
export type OutputReceiver = {
  bytes(bytes: Buffer): void;
  /** So many bytes are missing here: their pieces were removed before anybody read them. */
  skipped(count: number): void;
};

export type SpoolReaderOptions = {
  /**
   * Pieces may be missing: when the agent is dead, its output is not read, and the launcher removes
   * pieces itself, so that the command can go on.
   */
  readonly hasGaps: boolean;
  /** This reader removes no piece: it only looks at the files of another process. */
  readonly keepsPieces?: boolean;
};

const READ_BYTES = 65_536;
/** The buffer of all readers: nothing stays in it. Allocated with the first output. */
let sharedBlock: Buffer | null = null;

/**
 * Reads the output of a command from the pieces that its launcher writes: `out`, `tail.1`,
 * `tail.2`, …
 *
 * This reader removes a piece when it opens the one after the next. `out` and the last two pieces
 * stay, so a later reader finds the beginning and the end of the output. The launcher lets the
 * command wait while too many pieces are there. The remover of a piece adds its number and its
 * length in bytes to the file `removed`, as one line.
 */
export class SpoolReader {
  readonly #folder: string;
  readonly #options: SpoolReaderOptions;
  /** The piece that is read, 0 for `out`, and its descriptor. */
  #number = 0;
  #open: number | null = null;

  constructor(folder: string, options: SpoolReaderOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  /** Passes on at most `bytesMax` of new output. Returns whether more may be available at once. */
  read(bytesMax: number, to: OutputReceiver): boolean {
    let remaining = bytesMax;
    while (remaining > 0) {
      // The next piece exists only after this one is complete: look for it first.
      const next = this.#findNext();
      const length = this.#readOnce(remaining, to);
      remaining -= length;
      if (length === 0 && (next === null || !this.#openNext(next, to))) return false;
    }
    return true;
  }

  close(): void {
    if (this.#open !== null) closeSync(this.#open);
    this.#open = null;
  }

  #at(number: number): string {
    return path.join(this.#folder, number === 0 ? 'out' : `tail.${number}`);
  }

  #readOnce(bytesMax: number, to: OutputReceiver): number {
    // The launcher creates the first piece with the command, or never if the disk is full.
    if (this.#open === null && existsSync(this.#at(0))) this.#open = openSync(this.#at(0), 'r');
    if (this.#open === null) return 0;
    sharedBlock ??= Buffer.alloc(READ_BYTES);
    const length = readSync(this.#open, sharedBlock, 0, Math.min(READ_BYTES, bytesMax), null);
    if (length > 0) to.bytes(Buffer.from(sharedBlock.subarray(0, length)));
    return length;
  }

  /** The next piece that exists, and the bytes between; null if there is none yet. */
  #findNext(): { readonly number: number; readonly missing: number } | null {
    let number = this.#number + 1;
    if (existsSync(this.#at(number))) return { number, missing: 0 };
    if (!this.#options.hasGaps) return null;
    let missing = 0;
    const removed = this.#readRemoved();
    for (let bytes = removed.get(number); bytes !== undefined; bytes = removed.get(number)) {
      if (existsSync(this.#at(number))) break;
      missing += bytes;
      number += 1;
    }
    return missing > 0 && existsSync(this.#at(number)) ? { number, missing } : null;
  }

  #openNext({ number, missing }: { number: number; missing: number }, to: OutputReceiver): boolean {
    const opened = openSync(this.#at(number), 'r');
    this.close();
    this.#open = opened;
    if (missing > 0) to.skipped(missing);
    // The pieces before a gap are gone: the launcher removes the oldest first.
    else if (this.#number > 1 && !this.#options.keepsPieces) this.#remove(this.#number - 1);
    this.#number = number;
    return true;
  }

  get #removedFile(): string {
    return path.join(this.#folder, 'removed');
  }

  /** Bytes of removed pieces by their number. */
  #readRemoved(): ReadonlyMap<number, number> {
    if (!existsSync(this.#removedFile)) return new Map();
    const lines = readFileSync(this.#removedFile, 'latin1').split('\n').slice(0, -1);
    return new Map(
      lines.map((line) => {
        const [number, bytes] = line.trim().split(/\s+/);
        return [Number(number), Number(bytes)];
      }),
    );
  }

  /** Removes a piece. Notes its length first, so that a crash in between loses no count. */
  #remove(number: number): void {
    const file = this.#at(number);
    if (!existsSync(file)) return;
    const line = `${number} ${statSync(file).size}\n`;
    const note = (): void => appendFileSync(this.#removedFile, line);
    const noted = attemptNow(note);
    rmSync(file, { force: true });
    // On a full disk the piece makes room for its note; only a later process reads that.
    if (noted.kind === 'fault') attemptNow(note);
  }
}
