/**
 * The only code that writes to stdout and stderr.
 *
 * 1. Text for people is `Safe` (it can't control the terminal), on a terminal or not. Apart from
 *    `writeWindow`, only styles (colours) control the terminal.
 * 2. A result for programs is written byte for byte, unless stdout is a terminal.
 * 3. A function returns after all is written, so an exit loses nothing.
 */

import { fstatSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { windowSize, wrapWords } from './paint.js';
import { cutSafe, joinSafe, keepStyles, makeSafe, type Safe, safe, safeJson } from './safe-text.js';

const STDOUT = 1;
const STDERR = 2;
/** Where output goes; stderr while stdout is reserved for a protocol. */
let output = STDOUT;
/** Pause between attempts to write to a slow reader. */
const PAUSE_MS = 5;

/** Returns after everything is written, however slow the reader is. */
const writeWhole = (descriptor: number, content: string | Buffer): void => {
  let rest = typeof content === 'string' ? Buffer.from(content, 'utf8') : content;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
      // EAGAIN: the reader's buffer is full. This waits without returning to the event loop.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
  }
};

/** Pawl's own signs, and one character of ASCII for each, so that columns stay. */
const ASCII_SIGNS: Readonly<Record<string, string>> = {
  '·': '-',
  '−': '-',
  '─': '-',
  '│': '|',
  '┆': ':',
  '⋮': ':',
  '›': '>',
  '▸': '>',
  '→': '>',
  '✓': '+',
  '✗': 'x',
  '×': 'x',
  '…': '~',
  '↑': '^',
  '↓': 'v',
  '’': "'",
};
const SIGNS = new RegExp(`[${Object.keys(ASCII_SIGNS).join('')}\u2800-\u28ff]`, 'g');

/** Whether the settings of the language name another encoding than UTF-8. */
const isAscii = ({ LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean => {
  const locale = LC_ALL || LC_CTYPE || LANG || '';
  return locale !== '' && !/utf-?8/i.test(locale);
};

/**
 * Replaces Pawl's own signs where the terminal shows no UTF-8 (`LANG=C`). Marks of invisible
 * characters stay: nothing in a text may look like them.
 */
export const inLocale = (text: Safe, environment: NodeJS.ProcessEnv = process.env): Safe =>
  isAscii(environment)
    ? joinSafe(cutSafe(text, (whole) => [whole.replace(SIGNS, (sign) => ASCII_SIGNS[sign] ?? '*')]))
    : text;

/** The text for a terminal without UTF-8 has other signs. A file or a pipe gets it unchanged. */
const forReader = (descriptor: number, text: Safe): Safe =>
  isatty(descriptor) ? inLocale(text) : text;

/**
 * Writes to stdout. Throws EPIPE if the reader is gone. `keepStyles` checks the text once more: the
 * type `Safe` does not exist at run time.
 */
export const writeOut = (text: Safe): void =>
  writeWhole(output, forReader(output, keepStyles(text)));

/** A terminal would break lines within words. */
const inWindow = (text: Safe): Safe => {
  const { columns } = windowSize(process.stderr.columns);
  return joinSafe(wrapWords(text, columns), safe`\n`);
};

/** Writes to stderr; in a window lines are broken between words. Ignores a reader that is gone. */
export const writeError = (text: Safe): void => {
  try {
    const safeText = keepStyles(text);
    writeWhole(STDERR, isatty(STDERR) ? inLocale(inWindow(safeText)) : safeText);
  } catch {
    // Nothing is lost: the session's journal has its events, and the exit code tells the result.
  }
};

/**
 * Writes to the terminal unchanged: the control sequences of paint.ts pass. If the terminal is
 * gone, SIGHUP ends the program.
 */
export const writeWindow = (text: Safe): void => {
  try {
    writeWhole(STDOUT, inLocale(text));
  } catch {
    // nothing is lost: the session's journal (its file of events) has it
  }
};

/**
 * Writes a result to stdout: unchanged to a file or pipe, made safe for a terminal. Throws EPIPE.
 */
export const writeResult = (text: string): void =>
  writeWhole(output, isatty(output) ? makeSafe(text) : text);

/** Writes a value to stdout as JSON. Throws EPIPE. */
export const writeJson = (value: unknown, indent = 0): void =>
  writeWhole(output, safe`${safeJson(value, indent)}\n`);

/**
 * Writes bytes to stdout without waiting for a slow reader: the promise resolves once they are
 * written.
 */
const openStdout = async (): Promise<(bytes: Uint8Array) => Promise<void>> => {
  const status = fstatSync(STDOUT);
  const isPipe = status.isFIFO() || status.isSocket();
  if (!isPipe) return async (bytes) => writeWhole(STDOUT, Buffer.from(bytes));
  const { Socket } = await import('node:net');
  const socket = new Socket({ fd: STDOUT, readable: false, writable: true });
  socket.on('error', () => undefined); // each write reports it
  return (bytes) =>
    new Promise((resolve, reject) =>
      socket.write(bytes, (error) => (error instanceof Error ? reject(error) : resolve())),
    );
};

/**
 * Reserves stdout for a protocol: its messages are written to the returned stream, and everything
 * else that would be printed there goes to stderr from now on. Writing fails once the reader is
 * gone.
 */
export const reserveStdout = async (): Promise<WritableStream<Uint8Array>> => {
  output = STDERR;
  const write = await openStdout();
  return new WritableStream({ write: (bytes) => write(bytes) });
};

// ---- Output of other code: libraries (`console`, process streams) and warnings of Node ----

/**
 * Makes output of other code safe for the screen. `console` uses the process streams too.
 */
export const routeStrayOutput = (): void => {
  routeStream('stdout');
  routeStream('stderr');
  if (process.listenerCount('warning') === 0) return; // the user turned warnings off
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) =>
    writeError(safe`${makeSafe(`${name}: ${message}`)}\n`),
  );
};

const WRITERS = { stdout: writeOut, stderr: writeError } as const;
type Stream = keyof typeof WRITERS;

/** Has the signature of `stream.write`: bytes or text, optional encoding, optional callback. */
const writeInto =
  (stream: Stream) =>
  (chunk: unknown, ...rest: readonly unknown[]): boolean => {
    WRITERS[stream](
      makeSafe(chunk instanceof Uint8Array ? Buffer.from(chunk).toString('utf8') : `${chunk}`),
    );
    const written = rest.at(-1);
    if (typeof written === 'function') process.nextTick(written);
    return true;
  };

/**
 * Replaces `write` of a process stream. Node creates the stream on first access, which takes time,
 * so it is replaced only then.
 */
const routeStream = (stream: Stream): void => {
  const known = Object.getOwnPropertyDescriptor(process, stream);
  const get = known?.get;
  if (get === undefined) return;
  Object.defineProperty(process, stream, {
    ...known,
    get: () => Object.assign(get.call(process), { write: writeInto(stream) }),
  });
};
