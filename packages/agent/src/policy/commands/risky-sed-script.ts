import type { ParsedCommand } from '../../machine/call.js';

type Words = ParsedCommand['words'];

const OPTION =
  /^(-[nErsuz]+|-e|--(quiet|silent|regexp-extended|null-data|separate|unbuffered|posix|debug|expression))$/;
const ADDRESS = /^(\d+|\$|\/[^/\n\\]*\/)?(,(\d+|\$|\/[^/\n\\]*\/))?/;

/** Whether a script can only print, delete, quit and replace. `s///e` runs its result, `w` writes files. */
const isPlain = (script: string): boolean => {
  const command = script.replace(ADDRESS, '');
  if (/^[pdq]$/.test(command)) return true;
  const delimiter = /^s([/|#,:@])/.exec(command)?.[1];
  if (delimiter === undefined || /[\n;{}]/.test(command)) return false;
  const parts = command.replace(/\\./gs, '').split(delimiter);
  return parts.length === 4 && /^[gpiI\d]*$/.test(parts[3] ?? '');
};

/** Whether a word of `sed` may run a program or write a file. */
export const isRiskyInSed = (word: string, words: Words, index: number): boolean => {
  const isOption = (one: string | null | undefined): boolean => one?.startsWith('-') === true;
  if (isOption(word)) return !OPTION.test(word);
  const before = words[index - 1];
  if (before === '-e' || before === '--expression') return !isPlain(word);
  const isGiven = words.some((one) => one === '-e' || one === '--expression');
  const isFirst = words.findIndex((one, at) => at > 0 && !isOption(one)) === index;
  return !isGiven && isFirst && !isPlain(word);
};
