import type { Ran } from './oracle.js';
import { ALLOWED } from './strings.js';

const begins = (words: readonly string[], rule: readonly string[]): boolean =>
  rule.every((word, index) => word === words[index]);

/** A program of the PATH is known by its name; one that was started by another path is not it. */
const named = ([program = '', ...words]: readonly string[]): readonly string[] => [
  program.replace(/^(?:\/usr)?\/bin\//, ''),
  ...words,
];

/** What ran, or was done to files and variables, that no rule allows. */
export const notAllowed = (ran: Ran): Ran =>
  ran.filter((words) => !ALLOWED.some((rule) => begins(named(words), rule)));

/** How a policy that reads no commands would judge, for comparison: by the beginning of the text. */
export const naiveAllows = (text: string): boolean =>
  ALLOWED.some((rule) => `${text.trim()} `.startsWith(`${rule.join(' ')} `));
