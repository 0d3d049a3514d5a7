import { fstatSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { safe } from '@pawl/terminal/safe-text';
import { writeError } from '@pawl/terminal/write';
import { usageStop } from '../flags.js';

/**
 * Reads the prompt of a turn without a terminal.
 *
 * 1. `-`, or no prompt at all, waits for stdin to its end.
 * 2. With a prompt, stdin is added to it if it is a file, or a pipe that delivers or ends within a second. A silent pipe
 *    is ignored with a warning: scripts, CI and cron hand down pipes that never end.
 * 3. Piped text beside a prompt is its subject, not the prompt: paths of pictures in it are not attached.
 */

export type Prompt = {
  readonly text: string;
  /** The part of `text` that the user wrote. Only pictures named here are attached. */
  readonly typed: string;
};

export const refuseEmpty = ({ text }: Prompt): void => {
  if (text.trim() === '') throw usageStop('The prompt is empty.');
};

/** A pipe beside a prompt is ignored if nothing comes within this time. */
const SILENCE_MS = 1_000;

/** No model reads more at once. Larger texts belong into a file that tools can search. */
const CHARACTERS_MAX = 20_000_000;

/** All of stdin as UTF-8 text; null if nothing came within `silenceMs`. */
const readStdin = (silenceMs: number | null): Promise<string | null> => {
  const decoder = new StringDecoder('utf8');
  const input = process.stdin;
  let text = '';
  return new Promise((resolve, reject) => {
    const settle = (read: string | null): void => {
      if (timer !== null) clearTimeout(timer);
      input.off('data', take).off('end', end).off('error', reject);
      resolve(read);
    };
    const giveUp = (): void => {
      input.pause();
      settle(null);
    };
    const refuse = (): void => {
      input.off('data', take).off('end', end).off('error', reject).destroy();
      const most = `${CHARACTERS_MAX / 1_000_000} million characters`;
      reject(
        usageStop(
          `The piped input is too large for a prompt: at most ${most}. Write it to a file and name the file in the prompt.`,
        ),
      );
    };
    let timer = silenceMs === null ? null : setTimeout(giveUp, silenceMs);
    const take = (piece: Buffer): void => {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      text += decoder.write(piece);
      if (text.length > CHARACTERS_MAX) refuse();
    };
    const end = (): void => settle(text + decoder.end());
    input.on('data', take).on('end', end).on('error', reject);
  });
};

/** Whether stdin is a pipe, a socket or a file that is not empty, rather than a terminal, /dev/null or closed. */
const isPipedIn = (): boolean => {
  try {
    const input = fstatSync(0);
    return input.isFIFO() || input.isSocket() || (input.isFile() && input.size > 0);
  } catch {
    return false; // stdin is closed
  }
};

const joined = (parts: readonly string[]): string => parts.filter((part) => part.trim() !== '').join('\n\n');

/** Reads the prompt. `-` as the first or last word stands for stdin, which follows the other words after a blank line. */
export const readPrompt = async (words: readonly string[]): Promise<Prompt> => {
  const waits = words.length === 0 || words[0] === '-' || words.at(-1) === '-';
  const given = words
    .filter((word, index) => !(word === '-' && (index === 0 || index === words.length - 1)))
    .join(' ');
  if (waits) {
    if (process.stdin.isTTY)
      throw usageStop('There is no prompt. Write it after -p, or pipe it in: echo "prompt" | pawl -p -');
    const text = joined([given, (await readStdin(null)) ?? '']);
    return { text, typed: given.trim() === '' ? text : given };
  }
  // Piped text doesn't make up for an empty prompt: that is an error of the caller.
  if (given.trim() === '' || !isPipedIn()) return { text: given, typed: given };
  const piped = await readStdin(SILENCE_MS);
  if (piped === null)
    writeError(
      safe`pawl: stdin is a pipe without data, so it is ignored. To wait for it: pawl -p "prompt" - ; to silence this: < /dev/null\n`,
    );
  return { text: joined([given, piped ?? '']), typed: given };
};
