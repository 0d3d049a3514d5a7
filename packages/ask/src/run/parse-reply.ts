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
  const hidden = parity.fences === 'ignored' ? fences : [];
  return { blocks, final: parity.finalForms === 'on' ? findFinalForm(text, hidden) : null };
};

/**
 * Finds Markdown's fenced blocks in one pass over the lines of a text.
 *
 * 1. A fence is three or more backticks or tildes, indented or not. Only as many of the same, or
 *    more, and nothing else on the line, close it: so a block can show other blocks.
 * 2. An unclosed block extends to the end of the text.
 * 3. The indentation of the opening fence is removed from the lines of the block, as far as they
 *    have it.
 */

type CodeBlock = {
  /** The text after the opening fence: `repl`, `js title=x`, or empty. */
  readonly info: string;
  readonly text: string;
  readonly closed: 'yes' | 'no';
  /** Start and end offsets of the block in the text, including its fences. */
  readonly from: number;
  readonly to: number;
};

type Opening = {
  readonly indent: number;
  readonly mark: string;
  readonly size: number;
  readonly info: string;
};

const isBlank = (code: number): boolean => code === 32 || code === 9;

const skip = (line: string, from: number, is: (code: number) => boolean): number => {
  let index = from;
  while (index < line.length && is(line.charCodeAt(index))) index += 1;
  return index;
};

const fenceSizeMin = 3;

/**
 * The opening fence in a line, or null. A backtick after a fence of backticks makes it inline code.
 */
const readOpening = (line: string): Opening | null => {
  const indent = skip(line, 0, isBlank);
  const mark = line[indent];
  if (mark !== '`' && mark !== '~') return null;
  const end = skip(line, indent, (code) => code === mark.charCodeAt(0));
  if (end - indent < fenceSizeMin) return null;
  const info = line.slice(end).trim();
  return mark === '`' && info.includes('`') ? null : { indent, mark, size: end - indent, info };
};

const closes = (line: string, { mark, size }: Opening): boolean => {
  const start = skip(line, 0, isBlank);
  const end = skip(line, start, (code) => code === mark.charCodeAt(0));
  return end - start >= size && skip(line, end, isBlank) === line.length;
};

const unindent = (line: string, indent: number): string => {
  let count = 0;
  while (count < indent && isBlank(line.charCodeAt(count))) count += 1;
  return line.slice(count);
};

type Line = { readonly text: string; readonly from: number; readonly to: number };

/** Lines without their LF or CR LF; the offsets include it. */
function* readLines(text: string): Generator<Line> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from);
    const to = end < 0 ? text.length : end + 1;
    const content = end < 0 ? text.length : end;
    const isWindows = content > from && text.charCodeAt(content - 1) === 13;
    yield { text: text.slice(from, isWindows ? content - 1 : content), from, to };
    from = to;
  }
}

/** All blocks in order. */
const findFences = (text: string): readonly CodeBlock[] => {
  const fences: CodeBlock[] = [];
  let open: (Opening & { readonly from: number; readonly lines: string[] }) | null = null;
  const end = (closed: CodeBlock['closed'], to: number): void => {
    if (open === null) return;
    fences.push({ info: open.info, text: open.lines.join('\n'), closed, from: open.from, to });
    open = null;
  };
  for (const line of readLines(text)) {
    if (open === null) {
      const opening = readOpening(line.text);
      if (opening !== null) open = { ...opening, from: line.from, lines: [] };
    } else if (closes(line.text, open)) end('yes', line.to);
    else open.lines.push(unindent(line.text, open.indent));
  }
  end('no', text.length);
  return fences;
};

/**
 * Parses FINAL(text) and FINAL_VAR(name) at the start of a line, seed 004's forms of an answer.
 *
 * 1. FINAL_VAR wins over FINAL. Of several of one kind, the last complete one counts.
 * 2. It ends at the balancing parenthesis. Parentheses after a backslash or in quotes do not count
 *    (a quote after a letter or digit, as in "it's", opens nothing). If that finds no end, quotes
 *    are ignored.
 * 3. Linear time: only the last `triesMax` of each kind are tried.
 */

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
