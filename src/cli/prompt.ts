import { fstatSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { usageStop } from './flags.js';

/**
 * The prompt of a turn without a terminal.
 *
 * 1. Stdin is read where the user says so, by `-` or by giving no prompt, and never otherwise: scripts, CI and cron
 *    hand down pipes that never end, and loops read their list from it.
 * 2. What is piped in beside a prompt is never ignored in silence.
 * 3. What is piped in beside words is no prompt but what it is about: it names no pictures of this machine to be sent.
 */

export type Prompt = {
  readonly text: string;
  /** The part of it that the user wrote as a prompt. */
  readonly typed: string;
};

/** All of standard input as UTF-8 text. */
const readStdin = async (): Promise<string> => {
  if (process.stdin.isTTY)
    throw usageStop('No prompt: write it after -p, or pipe it in: echo "prompt" | pawl -p -');
  const decoder = new StringDecoder('utf8');
  let text = '';
  for await (const piece of process.stdin) text += decoder.write(Buffer.from(piece));
  return text + decoder.end();
};

/** A pipe or a file with something in it; not a terminal, a socket, /dev/null or what was closed. */
const isPipedIn = (): boolean => {
  try {
    const input = fstatSync(0);
    return input.isFIFO() || (input.isFile() && input.size > 0);
  } catch {
    return false; // there is no stdin at all
  }
};

/** `-` as the first or the last word stands for stdin, which comes after the other words and a blank line. */
export const readPrompt = async (words: readonly string[]): Promise<Prompt> => {
  const fromStdin = words.length === 0 || words[0] === '-' || words.at(-1) === '-';
  const given = words
    .filter((word, index) => !(word === '-' && (index === 0 || index === words.length - 1)))
    .join(' ');
  if (fromStdin) {
    const text = [given, await readStdin()].filter((part) => part.trim() !== '').join('\n\n');
    return { text, typed: given.trim() === '' ? text : given };
  }
  if (isPipedIn())
    process.stderr.write('pawl: stdin is not read; to add it to the prompt: pawl -p "prompt" -\n');
  return { text: given, typed: given };
};
