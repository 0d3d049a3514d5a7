import { usageStop } from './flags.js';

/** Flag handling beyond the parser: prompts that look like flags, and flag names of other agents. */

const PROMPT_FLAGS = ['-p', '--print'];

/**
 * Joins the prompt to its flag: `-p X` becomes `--print=X`. A prompt may come from a script's variable and begin with
 * `-`; it must never be read as a flag. A prompt that equals one of our flags is ambiguous, and throws a usage error.
 * `flags` lists every flag of the program, such as `--json` and `-V`.
 */
export const tiePrompt = (words: readonly string[], flags: readonly string[]): readonly string[] => {
  const end = words.indexOf('--');
  const index = words.findIndex((word, at) => PROMPT_FLAGS.includes(word) && (end < 0 || at < end));
  const prompt = words[index + 1];
  if (index < 0 || prompt === undefined || !/^-./.test(prompt) || prompt === '--') return words;
  if (flags.includes(prompt.split('=')[0] ?? ''))
    throw usageStop(
      `'${prompt}' after ${words[index]} could be the prompt or a flag.\nIf it is a flag: pawl ${prompt} ${words[index]} "prompt"\nIf it is the prompt: pawl ${words[index]} -- "${prompt}"`,
    );
  return [...words.slice(0, index), `--print=${prompt}`, ...words.slice(index + 2)];
};

/** Flags of other agents, and the flag that does the same here. */
const elsewhere: Readonly<Record<string, string>> = {
  '--max-turns': '--max-rounds',
  '--max-steps': '--max-rounds',
  '--max-iterations': '--max-rounds',
  '--max-budget-usd': '--max-usd',
  '--max-cost': '--max-usd',
  '--timeout': '--max-minutes',
  '--output-format': '--json',
  '--permission-mode': '--preset',
  '--approval-mode': '--preset',
  '--ask-for-approval': '--preset',
  '--full-auto': '--preset auto',
  '--yolo': '--preset auto',
  '--dangerously-skip-permissions': '--preset auto',
  '--cwd': '--workspace',
  '--cd': '--workspace',
  '--session': '--resume',
};

/** The parser's error for an unknown flag. It suggests our flag with the same effect rather than one with a similar name. */
export const withAdvice = (complaint: string): string => {
  const flag = /unknown option '(--[\w-]+)/.exec(complaint)?.[1] ?? '';
  if (!Object.hasOwn(elsewhere, flag)) return complaint;
  return `${complaint.replace(/\n?\(Did you mean .*\?\)/, '').trimEnd()}\n(Did you mean ${elsewhere[flag]}?)\n`;
};
