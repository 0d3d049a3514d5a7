import type { ParsedCommand } from '../../machine/call.js';

/** Matches the words of rules with the words of commands. */

type Words = ParsedCommand['words'];

/** The name of a program without its folder. */
export const programName = (word: string): string => word.slice(word.lastIndexOf('/') + 1);

/** Whether the command begins with exactly these words. A word computed at run time matches none. */
export const beginsWith = (words: Words, prefix: readonly string[]): boolean =>
  prefix.every((word, index) => words[index] === word);

/** `maybe`: a word that is computed at run time stands where the rule has a word. */
export type RuleMatch = 'yes' | 'no' | 'maybe';

const isOption = (word: string | null | undefined): boolean =>
  word?.startsWith('-') === true && word.length > 1;

/**
 * Whether the rule's words follow the program in order, with only options and their values between them:
 * `git -C x push` matches `git push`.
 */
const matchArguments = (words: Words, rest: readonly string[]): RuleMatch => {
  let at = 1;
  for (const wanted of rest) {
    for (;;) {
      const word = words[at];
      if (word === undefined) return 'no';
      if (word === null) return 'maybe';
      if (word === wanted) break;
      const isValue = isOption(words[at - 1]);
      if (!isOption(word) && !isValue) return 'no';
      at++;
    }
    at++;
  }
  return 'yes';
};

const matchWords = (words: Words, rule: readonly string[]): RuleMatch => {
  const [program, ...rest] = rule;
  const [first] = words;
  if (first === undefined || program === undefined) return 'no';
  if (first === null) return 'maybe';
  const isSame = first === program || (!program.includes('/') && programName(first) === program);
  return isSame ? matchArguments(words, rest) : 'no';
};

/**
 * Whether a rule that asks or denies matches the command. A wrapper such as `timeout` is also matched at each of its
 * words, where the wrapped command may begin.
 */
export const matchCommand = ({ words, runs, mayRun }: ParsedCommand, rule: readonly string[]): RuleMatch => {
  const isWrapper = runs !== undefined || mayRun !== undefined;
  const places = isWrapper ? words.map((_, index) => words.slice(index)) : [words];
  const meetings = places.map((place, index) =>
    index > 0 && place[0] === null ? 'no' : matchWords(place, rule),
  );
  if (meetings.includes('yes')) return 'yes';
  return meetings.includes('maybe') ? 'maybe' : 'no';
};
