/**
 * Options of programs: which further words of a command a rule that allows it covers.
 *
 * `npm test` as a rule also allows `npm test --silent`, but not `npm test --prefix /elsewhere`.
 * `uncoveredWord` finds risky words and unknown options; `onlyReads` says whether a text only
 * reads. The rows of programs have both kinds of options. One that
 * is neither risky nor harmless counts as harmless only inside the sandbox.
 */

import type { ParsedCommand, ShellFacts } from './judged-call.js';
import { fileLossesIn } from './losses.js';
import { listWords, wordSet } from './paths.js';
import { isHarmlessOption, matchesOption, type Program, type Words } from './programs/program.js';
import { findRow } from './programs/program-table.js';

/**
 * The first word that an allowing rule with these words does not cover; null if it covers all.
 * `fenced`: the command stays in the sandbox, and only risky words count. `widened`: the rule lets
 * it reach more than the sandbox does, so an option must be known to be harmless.
 */
export const uncoveredWord = (
  words: Words,
  rule: readonly string[],
  reach: 'fenced' | 'widened',
): string | null =>
  riskyWord(words, rule.length) ?? (reach === 'widened' ? unknownOption(words, rule) : null);

/** Whether a word is risky by the row of its program. */
const isRisky = ({ risky = '' }: Program, word: string, words: Words, index: number): boolean =>
  typeof risky === 'function' ? risky(word, words, index) : matchesOption(word, risky);

/**
 * The first risky word after the words of the rule; null if there is none. A word that is known
 * only when it runs is judged elsewhere: no allowing rule covers it.
 */
const riskyWord = (words: Words, ruleLength: number): string | null => {
  const row = findRow(words[0]);
  if (row === undefined) return null;
  for (const [index, word] of words.entries()) {
    if (index < ruleLength || word === null) continue;
    if (isRisky(row, word, words, index)) return word;
  }
  return row.reads === 'always' ? writingWord(words, ruleLength) : null;
};

const PLAIN = { assignments: [], writes: [], program: null };

/** The first word after those of the rule with which the command writes a file (losses.ts). */
const writingWord = (words: Words, ruleLength: number): string | null => {
  const writes = (end: number): boolean =>
    fileLossesIn({ ...PLAIN, words: words.slice(0, end) }).length > 0;
  if (!writes(words.length) || writes(ruleLength)) return null;
  const at = words.findIndex((_, index) => writes(index + 1));
  return words[at] ?? null;
};

/**
 * The first option that is not known to be harmless and that the rule does not name; null if there
 * is none.
 */
const unknownOption = (words: Words, rule: readonly string[]): string | null => {
  const { reads, harmless = '' } = findRow(words[0]) ?? {};
  if (reads === 'always') return null;
  const known = typeof harmless === 'string' ? harmless : (harmless(words[1] ?? '') ?? '');
  const option = words.find((word) => {
    const text = word ?? '';
    return /^[-+]./.test(text) && !rule.includes(text) && !isHarmlessOption(text, known);
  });
  return option ?? null;
};

// ---- Commands that only read ----

/** Devices to which a command may write: nothing is lost there. */
export const DISCARDS = new Set(['/dev/null', '/dev/stdout', '/dev/stderr']);

/** Builtins of bash that change neither a file nor the meaning of a later word. */
const READING_BUILTINS = wordSet('cd echo pwd true false : test [ type exit');

/** The same, with those that set a variable by an option: `printf -v PATH`, `wait -p PATH`. */
export const isReadingBuiltin = (words: Words): boolean => {
  const [name, first] = words;
  if (name === 'printf') return /^[^-]/.test(first ?? '-');
  if (name === 'wait') return words.every((word) => word !== null && !/^-\w*p/.test(word));
  return READING_BUILTINS.has(name ?? '');
};

/** Folders in which every command may put a program. */
const OPEN_FOLDERS = listWords('/tmp /var/tmp /dev/shm');

/** Whether a program lies in a folder to which commands can write. */
export const isOpenPlace = (program: string, workspace: string): boolean => {
  for (const folder of [workspace, ...OPEN_FOLDERS])
    if (program.startsWith(`${folder}/`)) return true;
  return false;
};

/** Whether the words of a command, without its redirections, only read. */
const wordsRead = (words: Words): boolean => {
  const row = findRow(words[0]);
  const known = words.filter((word) => word !== null);
  // a word that is known only when it runs may be an option
  const isPlain = row?.risky === undefined || known.length === words.length;
  if (!isPlain || row?.reads === undefined || (words[0] ?? '').includes('/')) return false;
  return row.reads === 'always' ? riskyWord(words, 1) === null : row.reads(known);
};

/**
 * Whether a command only reads, by its words. The program must be a bare word that no folder to
 * which commands can write has: a file of the repository may have any name. `workspace`: its real
 * path.
 */
export const reads = (command: ParsedCommand, workspace: string): boolean => {
  const { words, assignments, writes, program } = command;
  if (assignments.length > 0 || writes.some((file) => !DISCARDS.has(file ?? ''))) return false;
  if (program === null) return isReadingBuiltin(words);
  return (
    !isOpenPlace(program, workspace) &&
    wordsRead(words) &&
    fileLossesIn({ ...command, writes: [] }).length === 0
  );
};

/**
 * Whether the commands of a text only read, by their words. In the sandbox the kernel keeps that:
 * such a command gets a workspace that is read-only (docs/decisions/0028).
 */
export const onlyReads = (
  { commands, unclear, indirect }: ShellFacts,
  workspace: string,
): boolean =>
  commands.length > 0 &&
  unclear === null &&
  indirect === undefined &&
  commands.every((command) => reads(command, workspace));
