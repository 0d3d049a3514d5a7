/**
 * Reads a model's reply in code mode: the programs in it, which are run, and a final answer, which
 * ends the run. `parity` are settings in which we differ from seed 004, a published text about such
 * runs.
 */

import { type CodeBlock, findFences, readLines } from '@pawl/agent/platform/text';
import type { Language, Parity } from './settings.js';

/** A parsed reply: programs to run, and an answer. Parsing takes linear time for any text. */
type Parsed = {
  /** In order. The last may be cut off in the middle (`closed: 'no'`). */
  readonly blocks: readonly { readonly code: string; readonly closed: 'yes' | 'no' }[];
  readonly final: FinalForm | null;
};

/**
 * `repl`, alone or with attributes: ```repl title="x"```, ```{repl}```; not `replace`, not
 * `repl-session`.
 */
const isProgram = ({ info }: CodeBlock): boolean => /^\{?\.?repl(?![\w-])/i.test(info);

/** Tags that models write for programs in place of `repl`. */
const languageTags: Readonly<Record<Language, readonly string[]>> = {
  javascript: ['javascript', 'js', 'typescript', 'ts'],
  python: ['python', 'python3', 'py'],
};

const isIn =
  (language: Language) =>
  ({ info }: CodeBlock): boolean => {
    const [, tag = ''] = /^\{?\.?(\w+)(?![\w-])/.exec(info) ?? [];
    return languageTags[language].includes(tag.toLowerCase());
  };

/** The programs of a reply. A language's own tags count only where nothing is tagged `repl`. */
const findPrograms = (
  fences: readonly CodeBlock[],
  tags: Parity['tags'],
  language: Language | undefined,
): readonly CodeBlock[] => {
  const programs = fences.filter(isProgram);
  return programs.length > 0 || tags !== 'language' || language === undefined
    ? programs
    : fences.filter(isIn(language));
};

export const parseReply = (
  text: string,
  parity: Pick<Parity, 'finalForms' | 'fences' | 'tags'>,
  language?: Language,
): Parsed => {
  const fences = findFences(text);
  const blocks = findPrograms(fences, parity.tags, language).map((fence) => ({
    code: fence.text,
    closed: fence.closed,
  }));
  // fences in which FINAL does not count
  const hidden = parity.fences === 'ignored' ? fences : [];
  return { blocks, final: parity.finalForms === 'on' ? findFinalForm(text, hidden) : null };
};

// ---- Final forms: FINAL(text) and FINAL_VAR(name) at the start of a line, as in seed 004 ----
//
// 1. FINAL_VAR wins over FINAL. Of several of one kind, the last complete one counts.
// 2. It ends at the balancing parenthesis. Parentheses after a backslash or in quotes do not count
//    (a quote after a letter or digit, as in "it's", opens nothing). If that finds no end, quotes
//    are ignored.
// 3. Linear time: only the last `triesMax` of each kind are tried.

/** A final answer in a reply: FINAL(text), or FINAL_VAR(name), which names a variable. */
export type FinalForm =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'variable'; readonly name: string };

const triesMax = 8;

const quotes = new Set(['"', "'", '`']);
const isWord = (character: string): boolean => /[\p{L}\p{N}]/u.test(character);

/** Offset of the parenthesis that closes the one just before `start`; -1 if there is none. */
const findClosing = (text: string, start: number, quoting: 'quotes' | 'plain'): number => {
  let depth = 1;
  let quote = '';
  for (let index = start; index < text.length; index++) {
    const character = text.charAt(index);
    if (character === '\\') index += 1;
    else if (quote !== '') quote = character === quote ? '' : quote;
    else if (quoting === 'quotes' && quotes.has(character)) {
      if (!isWord(text.charAt(index - 1))) quote = character;
    } else if (character === '(') depth += 1;
    else if (character === ')') {
      depth -= 1;
      if (depth === 0) return index;
    }
  }
  return -1;
};

const contentFrom = (text: string, start: number): string | null => {
  const quoted = findClosing(text, start, 'quotes');
  const end = quoted >= 0 ? quoted : findClosing(text, start, 'plain');
  return end < 0 ? null : text.slice(start, end).trim();
};

/** Offsets of the content after each `word` at the start of a line. */
const findStarts = (
  text: string,
  word: string,
  fences: readonly CodeBlock[],
): readonly number[] => {
  const starts: number[] = [];
  let fence = 0;
  for (const line of readLines(text)) {
    while ((fences[fence]?.to ?? Number.POSITIVE_INFINITY) <= line.from) fence += 1;
    if ((fences[fence]?.from ?? Number.POSITIVE_INFINITY) <= line.from) continue;
    const written = line.text.trimStart();
    if (written.startsWith(word))
      starts.push(line.from + line.text.length - written.length + word.length);
  }
  return starts;
};

const lastContent = (text: string, word: string, fences: readonly CodeBlock[]): string | null => {
  const starts = findStarts(text, word, fences);
  for (const start of starts.slice(-triesMax).toReversed()) {
    const content = contentFrom(text, start);
    if (content !== null) return content;
  }
  return null;
};

const unquoted = (name: string): string =>
  name.length > 1 && quotes.has(name.charAt(0)) && name.endsWith(name.charAt(0))
    ? name.slice(1, -1).trim()
    : name;

/** The final answer in a text outside of `fences`; null if there is none. */
const findFinalForm = (text: string, fences: readonly CodeBlock[]): FinalForm | null => {
  const variable = lastContent(text, 'FINAL_VAR(', fences);
  if (variable !== null) return { kind: 'variable', name: unquoted(variable) };
  const content = lastContent(text, 'FINAL(', fences);
  return content === null ? null : { kind: 'text', text: content };
};
