import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { keepStyles, makeSafe, type Safe, safe, safeJson } from './safe-text.js';

/**
 * The only place that writes to stdout and stderr.
 *
 * 1. Text for people is `Safe`, on a terminal or not. Besides the window itself, nothing but styles steers a terminal.
 * 2. A result for programs is written byte for byte, unless stdout is a terminal.
 * 3. Everything is written before a function returns, so that an exit loses nothing.
 */

const STDOUT = 1;
const STDERR = 2;
/** Between tries to write to a reader that is slow. */
const PAUSE_MS = 5;

const writeWhole = (descriptor: number, text: string): void => {
  let rest = Buffer.from(text, 'utf8');
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
  }
};

/** Writes to stdout. Throws EPIPE where nobody reads any more. */
export const writeOut = (text: Safe): void => writeWhole(STDOUT, keepStyles(text));

/** Writes to stderr. What nobody reads any more is no reason to fail. */
export const writeError = (text: Safe): void => {
  try {
    writeWhole(STDERR, keepStyles(text));
  } catch {
    // nothing is lost: the journal has what happened, the exit code says how it ended
  }
};

/** Writes to the terminal as it is, control sequences of escapes.ts included. One that is gone ends the program by SIGHUP. */
export const writeWindow = (text: Safe): void => {
  try {
    writeWhole(STDOUT, text);
  } catch {
    // nothing is lost: the journal has it
  }
};

/** Writes a result to stdout: unchanged into a file or pipe, made safe for a terminal. Throws EPIPE. */
export const writeResult = (text: string): void => writeWhole(STDOUT, isatty(STDOUT) ? makeSafe(text) : text);

/** Writes a value to stdout as JSON, in one line or indented. Throws EPIPE. */
export const writeJson = (value: unknown, indent = 0): void => writeOut(safe`${safeJson(value, indent)}\n`);
