/**
 * Markdown as rows of the terminal.
 *
 * From top to bottom: `renderMarkdown`; its blocks, tables and words; `createBlocks`, which divides
 * a stream, so that finished blocks are printed while the rest may still change; and colours of
 * code. `Safe` is text that can't control the terminal.
 */

import type { MarkedToken, Token, Tokens } from 'marked';
import {
  countColumns,
  fitWords,
  harmless,
  type Look,
  padded,
  paint,
  type Style,
  TAB,
  unbroken,
  wrapText,
  wrapWords,
} from './paint.js';
import { joinSafe, keepStyles, type Safe, safe } from './safe-text.js';

/** Divides a text into its blocks. */
type Lexer = (text: string) => readonly MarkedToken[];

/**
 * The parser of a library. It is loaded after the first paint, which needs none. Earlier text is
 * shown as it is.
 */
let lexer: Lexer | null = null;

/** No extension of the parser is used, so it returns no other tokens. */
const known = (tokens: readonly Token[]): readonly MarkedToken[] => tokens as MarkedToken[];

/** Text that is struck out stands between two tildes, not between single ones: `~5` to `~9`. */
const STRUCK = /^~~(?=\S)([^\n]*?\S)~~(?!~)/;

/** Resolves when `renderMarkdown` can parse. The parser is part of the program and always loads. */
export const loadMarkdown = async (): Promise<void> => {
  if (lexer !== null) return;
  const { Marked } = await import('marked');
  const marked = new Marked({
    tokenizer: {
      // Shown as it is written: the link that it belongs to may stand in another block.
      def: () => undefined,
      del(text) {
        const [raw, struck] = STRUCK.exec(text) ?? [];
        if (raw === undefined || struck === undefined) return undefined;
        return { type: 'del', raw, text: struck, tokens: this.lexer.inlineTokens(struck) };
      },
    },
  });
  lexer = (text) => known(marked.lexer(text));
};

/**
 * `printed`: finished, for the scroll-back. A line of code and a long address are one line each,
 * with nothing before it, which the terminal wraps: a copy is what was written.
 * `rows`: finished, in rows of at most the given columns. `streaming`: the same without colours of
 * code, since more text may change them.
 */
type MarkdownForm = 'printed' | 'rows' | 'streaming';

/** A text as rows, or as printed lines. */
export const renderMarkdown = (
  look: Look,
  text: string,
  columns: number,
  form: MarkdownForm,
): readonly Safe[] => {
  const shown = harmless(text.replace(/^[\r\n]+|\s+$/g, '').replaceAll('\t', TAB));
  if (shown === '') return [];
  if (lexer === null) return form === 'printed' ? shown.split('\n') : wrapText(shown, columns);
  const page = { look, columns, form };
  return stackBlocks(lexer(shown), page).flatMap((line) => layLine(line, page));
};

/** Where blocks are laid out. */
type Page = { readonly look: Look; readonly columns: number; readonly form: MarkdownForm };

/** A line before it is broken into rows. Nothing stands before code. */
type Line =
  | { readonly kind: 'code'; readonly text: Safe }
  | {
      readonly kind: 'words';
      readonly text: Safe;
      /** Before its first row, and before the further ones. */
      readonly first: Safe;
      readonly further: Safe;
    };

const wordsLine = (text: Safe, further = safe``): Line => ({
  kind: 'words',
  text,
  first: safe``,
  further,
});
const EMPTY_LINE = wordsLine(safe``);
/** However deep a list is, its text gets so many columns. */
const WORDS_COLUMNS_MIN = 8;

const layLine = (line: Line, { columns, form }: Page): readonly Safe[] => {
  if (line.kind === 'code') return form === 'printed' ? [line.text] : wrapText(line.text, columns);
  const { text, first, further } = line;
  const before = Math.max(countColumns(first), countColumns(further));
  const room = Math.max(WORDS_COLUMNS_MIN, columns - before);
  const rows = form === 'printed' ? wrapWords(text, room) : fitWords(text, room);
  const whole = rows.map((row, index) => safe`${index === 0 ? first : further}${row}`.trimEnd());
  return form === 'printed' ? whole : whole.flatMap((row) => wrapText(row, columns));
};

// ---- Blocks ----

/** Blocks with an empty line between them. A list right below a text stays there. */
const stackBlocks = (tokens: readonly MarkedToken[], page: Page): readonly Line[] => {
  const lines: Line[] = [];
  let before: MarkedToken['type'] = 'space';
  for (const token of tokens) {
    const block = blockLines(token, page);
    const isTight = token.type === 'list' && (before === 'text' || before === 'paragraph');
    if (lines.length > 0 && block.length > 0 && !isTight) lines.push(EMPTY_LINE);
    lines.push(...block);
    before = token.type;
  }
  return lines;
};

const RULE_COLUMNS_MAX = 80;

const blockLines = (token: MarkedToken, page: Page): readonly Line[] => {
  const { look, columns } = page;
  switch (token.type) {
    case 'space':
      return [];
    case 'code':
      return codeLines(token, page);
    case 'heading':
      return [wordsLine(headingText(token, look))];
    case 'table':
      return tableLines(token, page);
    case 'hr': {
      const rule = safe`─`.repeat(Math.min(columns, RULE_COLUMNS_MAX));
      return [wordsLine(paint(look, 'dim', rule))];
    }
    case 'blockquote': {
      const bar = safe`${paint(look, 'dim', safe`│`)} `;
      return withPrefix(
        stackBlocks(known(token.tokens), { ...page, columns: columns - QUOTE_COLUMNS }),
        bar,
        bar,
      );
    }
    case 'list':
      return listLines(token, page);
    default:
      return [wordsLine(inlineText([token], look))];
  }
};

const QUOTE_COLUMNS = 2;

const codeLines = ({ text, lang = '' }: Tokens.Code, { look, form }: Page): readonly Line[] => {
  const code = keepStyles(text);
  const lines = form === 'streaming' ? code.split('\n') : highlightCode(look, code, lang);
  return lines.map((line) => ({ kind: 'code', text: line }));
};

const headingText = ({ depth, tokens }: Tokens.Heading, look: Look): Safe => {
  const styles: readonly Style[] =
    depth === 1 ? ['heading', 'bold', 'underline'] : ['heading', 'bold'];
  const signs = depth < 3 ? '' : `${'#'.repeat(depth)} `;
  return safe`${paintAll(look, styles, signs)}${inlineText(known(tokens), look, styles)}`;
};

/** Lines with something before each; code stays alone in its lines. */
const withPrefix = (lines: readonly Line[], first: Safe, further: Safe): readonly Line[] =>
  lines.map((line, index) =>
    line.kind === 'code'
      ? line
      : {
          ...line,
          first: safe`${index === 0 ? first : further}${line.first}`,
          further: safe`${further}${line.further}`,
        },
  );

const listLines = ({ items, ordered, start }: Tokens.List, page: Page): readonly Line[] => {
  const lines: Line[] = [];
  for (const [index, item] of items.entries()) {
    const bullet = ordered ? `${(start === '' ? 1 : start) + index}. ` : '- ';
    const box = item.task ? `[${item.checked === true ? 'x' : ' '}] ` : '';
    const marker = keepStyles(bullet + box);
    const inner = { ...page, columns: page.columns - marker.length };
    const block = stackBlocks(known(item.tokens), inner);
    // The marker is alone in its row before code.
    const marked = block[0]?.kind === 'words' ? block : [EMPTY_LINE, ...block];
    if (lines.at(-1)?.kind === 'code') lines.push(EMPTY_LINE);
    lines.push(
      ...withPrefix(marked, paint(page.look, 'mark', marker), safe` `.repeat(marker.length)),
    );
  }
  return lines;
};

// ---- Tables ----

type Align = Tokens.Table['align'][number];

const CELL_BORDER = safe` │ `;
/** A cell of words that may be broken has at least so many columns. */
const CELL_COLUMNS_MIN = 10;

/** Columns that a cell needs, so that no word of it is broken. */
const longestWord = (cell: Safe): number =>
  Math.max(...wrapWords(cell, CELL_COLUMNS_MIN).map(countColumns));

/**
 * The width of each column; null if a word would have to be broken. The widest columns give up
 * first.
 */
const columnWidths = (
  grid: readonly (readonly Safe[])[],
  room: number,
): readonly number[] | null => {
  const measure = (count: (cell: Safe) => number): readonly number[] =>
    (grid[0] ?? []).map((_, column) =>
      Math.max(1, ...grid.map((row) => count(row[column] ?? safe``))),
    );
  const natural = measure(countColumns);
  const needed = measure(longestWord);
  for (let limit = Math.max(...natural); limit > 0; limit -= 1) {
    const widths = natural.map((width, column) =>
      Math.max(Math.min(width, limit), Math.min(width, needed[column] ?? 1)),
    );
    if (widths.reduce((sum, width) => sum + width, 0) <= room) return widths;
  }
  return null;
};

const alignCell = (text: Safe, columns: number, align: Align): Safe => {
  const free = columns - countColumns(text);
  const before = align === 'right' ? free : align === 'center' ? Math.floor(free / 2) : 0;
  return padded(safe`${safe` `.repeat(Math.max(0, before))}${text}`, columns);
};

/** A row of cells, in as many lines as its highest cell has. */
const rowLines = (
  cells: readonly Safe[],
  widths: readonly number[],
  align: readonly Align[],
): readonly Line[] => {
  const wrapped = cells.map((cell, column) => fitWords(cell, widths[column] ?? 1));
  const height = Math.max(...wrapped.map(({ length }) => length));
  return Array.from({ length: height }, (_, index) =>
    wordsLine(
      joinSafe(
        wrapped.map((rows, column) =>
          alignCell(rows[index] ?? safe``, widths[column] ?? 1, align[column] ?? null),
        ),
        CELL_BORDER,
      ).trimEnd(),
    ),
  );
};

/** Rows of a table one below the other, each cell with its heading: for a narrow window. */
const recordLines = (head: readonly Safe[], rows: readonly (readonly Safe[])[]): readonly Line[] =>
  rows.flatMap((cells, index) => [
    ...(index === 0 ? [] : [EMPTY_LINE]),
    ...cells.map((cell, column) => {
      const name = head[column] ?? safe``;
      return wordsLine(name === '' ? cell : safe`${name}: ${cell}`.trimEnd(), safe`  `);
    }),
  ]);

const tableLines = (
  { header, rows, align }: Tokens.Table,
  { look, columns }: Page,
): readonly Line[] => {
  const cells = (row: readonly Tokens.TableCell[], styles: readonly Style[]): readonly Safe[] =>
    row.map(({ tokens }) => inlineText(known(tokens), look, styles));
  const head = cells(header, ['bold']);
  const body = rows.map((row) => cells(row, []));
  const borders = CELL_BORDER.length * (head.length - 1);
  const widths = columnWidths([head, ...body], columns - borders);
  if (widths === null) return recordLines(head, body);
  const rule = joinSafe(
    widths.map((width) => safe`─`.repeat(width)),
    safe`─┼─`,
  );
  return [
    ...rowLines(head, widths, align),
    wordsLine(rule),
    ...body.flatMap((row) => rowLines(row, widths, align)),
  ];
};

// ---- Words ----

/** Text in several styles. Each line of it ends them, because lines are wrapped one by one. */
const paintAll = (look: Look, styles: readonly Style[], text: string): Safe =>
  joinSafe(
    keepStyles(text)
      .split('\n')
      .map((line) => styles.reduceRight((painted, style) => paint(look, style, painted), line)),
    safe`\n`,
  );

/** Where a link leads, if its text does not say it: an address that is hidden can mislead. */
const linkTarget = ({ href, text }: Tokens.Link | Tokens.Image): string =>
  [text, `mailto:${text}`, `http://${text}`].includes(href) ? '' : ` (${href})`;

/** `styles`: those of the text around; the innermost one is the last. */
const inlineText = (
  tokens: readonly MarkedToken[],
  look: Look,
  styles: readonly Style[] = [],
): Safe => {
  const nested = (inner: readonly Token[], ...more: readonly Style[]): Safe =>
    inlineText(known(inner), look, [...styles, ...more]);
  const pieces = tokens.map((token): Safe => {
    switch (token.type) {
      case 'text':
        return token.tokens === undefined
          ? paintAll(look, styles, token.text)
          : nested(token.tokens);
      case 'paragraph':
        return nested(token.tokens);
      case 'strong':
        return nested(token.tokens, 'bold');
      case 'em':
        return nested(token.tokens, 'italic');
      case 'del':
        return nested(token.tokens, 'struck');
      case 'codespan':
        return unbroken(paintAll(look, [...styles, 'code'], token.text));
      case 'link':
        return safe`${nested(token.tokens, 'link', 'underline')}${paintAll(look, [...styles, 'dim'], linkTarget(token))}`;
      case 'image':
        return safe`${paintAll(look, styles, token.text)}${paintAll(look, [...styles, 'dim'], linkTarget(token))}`;
      case 'br':
        return safe`\n`;
      case 'escape':
        return paintAll(look, styles, token.text);
      default:
        return paintAll(look, styles, token.raw.trim());
    }
  });
  return joinSafe(pieces);
};

/** The blocks of code in a text, as they were written. */
export const codeBlocks = async (text: string): Promise<readonly string[]> => {
  await loadMarkdown();
  const blocksIn = (tokens: readonly MarkedToken[]): readonly string[] =>
    tokens.flatMap((token) => {
      if (token.type === 'code') return [token.text];
      if (token.type === 'list') return token.items.flatMap((item) => blocksIn(known(item.tokens)));
      return token.type === 'blockquote' ? blocksIn(known(token.tokens)) : [];
    });
  return lexer === null ? [] : blocksIn(lexer(text));
};

// ---- Blocks of a stream ----

/**
 * `createBlocks` divides streamed Markdown into finished blocks and an unfinished rest.
 *
 * 1. The pieces joined are the text: nothing is lost or changed.
 * 2. A block is finished when later text can't change its look. A blank line ends a paragraph, a
 *    quote or a table; the end of its line ends a heading; the closing fence ends a code block; a
 *    line outside of the list ends a list.
 */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}#{1,6}(?:\s|$)/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const INDENTED = /^(?: {2,}|\t)/;
const INDENTED_CODE = /^(?: {4,}|\t)/;

/** What the next line stands in. `mark`: the fence that a line must repeat to end the code. */
type Inside =
  | { readonly kind: 'nothing' }
  /** `isInList`: the fence belongs to a list item. */
  | { readonly kind: 'fence'; readonly mark: string; readonly isInList: boolean }
  /** Code without a fence: blank lines belong to it. */
  | { readonly kind: 'indentedCode' }
  /** `blank`: the last line was blank. Any line but an item or an indented one then ends it. */
  | { readonly kind: 'list'; readonly blank: boolean }
  | { readonly kind: 'text' };

const NOTHING: Inside = { kind: 'nothing' };
const LIST: Inside = { kind: 'list', blank: false };

/** The fence that begins in this line, possibly inside a list item. */
const fenceIn = (line: string, isInList: boolean): Inside | null => {
  const mark = FENCE.exec(
    isInList ? line.replace(/^(?:\s|[-*+]\s|\d{1,9}[.)]\s)+/, '') : line,
  )?.[1];
  return mark === undefined ? null : { kind: 'fence', mark, isInList };
};

/** Whether the line has only the fence's character, at least as often as the opening fence. */
const closesFence = (line: string, mark: string): boolean => {
  const bare = line.trim();
  return bare.length >= mark.length && bare === (mark[0] ?? '').repeat(bare.length);
};

/** What the line after this one stands in, and whether a block ends before or after this one. */
type Step = { readonly inside: Inside; readonly ends: 'before' | 'after' | 'no' };

/** A line that begins a block. */
const beginBlock = (line: string): Step => {
  if (line.trim() === '') return { inside: NOTHING, ends: 'after' };
  if (INDENTED_CODE.test(line)) return { inside: { kind: 'indentedCode' }, ends: 'no' };
  const fence = fenceIn(line, false);
  if (fence !== null) return { inside: fence, ends: 'no' };
  if (HEADING.test(line) || RULE.test(line)) return { inside: NOTHING, ends: 'after' };
  if (ITEM.test(line)) return { inside: fenceIn(line, true) ?? LIST, ends: 'no' };
  return { inside: { kind: 'text' }, ends: 'no' };
};

const inList = (line: string, blank: boolean): Step => {
  if (line.trim() === '') return { inside: { kind: 'list', blank: true }, ends: 'no' };
  if (RULE.test(line) || HEADING.test(line)) return { ...beginBlock(line), ends: 'before' };
  if (ITEM.test(line) || INDENTED.test(line))
    return { inside: fenceIn(line, true) ?? LIST, ends: 'no' };
  if (blank || FENCE.test(line)) return { ...beginBlock(line), ends: 'before' };
  return { inside: LIST, ends: 'no' };
};

/** In text a row of dashes ends nothing: it makes a heading of the line above. */
const inText = (line: string): Step => {
  if (line.trim() === '') return { inside: NOTHING, ends: 'after' };
  // a list right below a text is one block with it
  if (ITEM.test(line)) return { inside: fenceIn(line, true) ?? LIST, ends: 'no' };
  return FENCE.test(line) || HEADING.test(line)
    ? { ...beginBlock(line), ends: 'before' }
    : { inside: { kind: 'text' }, ends: 'no' };
};

const stepOver = (inside: Inside, line: string): Step => {
  switch (inside.kind) {
    case 'nothing':
      return beginBlock(line);
    case 'text':
      return inText(line);
    case 'indentedCode':
      return line.trim() === '' || INDENTED_CODE.test(line)
        ? { inside, ends: 'no' }
        : { ...beginBlock(line), ends: 'before' };
    case 'list':
      return inList(line, inside.blank);
    case 'fence':
      if (!closesFence(line, inside.mark)) return { inside, ends: 'no' };
      return inside.isInList ? { inside: LIST, ends: 'no' } : { inside: NOTHING, ends: 'after' };
    default:
      return inside satisfies never;
  }
};

/** Divides streamed Markdown. It reads each finished line once. */
type Blocks = {
  /** Adds text. Returns the blocks that it finishes. */
  add(text: string): readonly string[];
  /** The unfinished block. */
  rest(): string;
  /** Returns the unfinished block and starts a new one. */
  take(): string;
};

export const createBlocks = (): Blocks => {
  let inside: Inside = NOTHING;
  /** Text of the unfinished block: its complete lines, then the line that is still streaming. */
  let lines = '';
  let line = '';
  const ended: string[] = [];

  const end = (): void => {
    if (lines !== '') ended.push(lines);
    lines = '';
  };

  const takeLine = (whole: string): void => {
    const next = stepOver(inside, whole.replace(/\r?\n$/, ''));
    if (next.ends === 'before') end();
    lines += whole;
    inside = next.inside;
    // The line has ended the block before it. If it is a heading, its own block ends with it.
    if (next.ends === 'after' || (next.ends === 'before' && inside.kind === 'nothing')) end();
  };

  return {
    add(text) {
      const parts = (line + text).split(/(?<=\n)/);
      line = parts.at(-1)?.endsWith('\n') === false ? (parts.pop() ?? '') : '';
      for (const part of parts) takeLine(part);
      return ended.splice(0);
    },
    rest: () => lines + line,
    take() {
      const rest = lines + line;
      lines = '';
      line = '';
      inside = NOTHING;
      return rest;
    },
  };
};

/** A last line that may still become a fence, a rule or a table. It is hidden until then. */
const UNCLEAR = /(?:^|\n)[ \t]*(?:[`~]{1,2}|#{1,6}|[-*_=+]+|\d{1,9}[.)]?|\|[^\n]*|>)[ \t]*$/;

/** The unfinished block without an ambiguous last line. */
export const clearPart = (rest: string): string => {
  const unclear = UNCLEAR.exec(rest);
  return unclear === null ? rest : rest.slice(0, unclear.index);
};

// ---- Colours of code ----

/**
 * Code is coloured by the features that languages share: comments, strings, numbers, keywords. This
 * knows no grammars and is sometimes wrong. In return it needs no import and works on unfinished
 * code; libraries with grammars take 70 to 190 ms to load and warm up.
 *
 * A family are languages with the same signs for comments: slashes, a hash, dashes, or tags.
 */
type Family = 'slash' | 'hash' | 'dash' | 'markup' | 'diff' | 'none';

const FAMILIES: Readonly<Record<Exclude<Family, 'slash'>, string>> = {
  hash:
    'py python sh bash shell zsh fish console rb ruby yaml yml toml ini conf dockerfile make ' +
    'makefile perl pl r elixir ex nix cmake powershell ps1 graphql',
  dash: 'sql lua haskell hs elm ada vhdl',
  markup: 'html xml svg vue markup',
  diff: 'diff patch',
  none: 'text txt plain plaintext markdown md log output csv tsv mermaid tree',
};
const FAMILY_BY_NAME = new Map<string, Family>();
for (const [family, names] of Object.entries(FAMILIES)) {
  // the keys are of that type
  for (const name of names.split(' ')) FAMILY_BY_NAME.set(name, family as Family);
}

const COMMENTS: Readonly<Record<'slash' | 'hash' | 'dash' | 'markup', string>> = {
  slash: '\\/\\/.*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)',
  hash: '(?<![\\w$&\\\\])#.*',
  dash: '--.*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)',
  markup: '<!--[\\s\\S]*?(?:-->|$)',
};
const LONG_STRING = `"""[\\s\\S]*?(?:"""|$)|'''[\\s\\S]*?(?:'''|$)`;
const DOUBLE = `"(?:\\\\.|[^"\\\\\\n])*"`;
const SINGLE = `'(?:\\\\.|[^'\\\\\\n])*'`;
/**
 * One quoted character, for languages where a lone quote means something else, such as a lifetime
 * in Rust.
 */
const CHARACTER = `'(?:\\\\.[^'\\n]*|[^'\\\\\\n])'`;
const BACKTICK = '`(?:\\\\.|[^`\\\\])*`';
const NUMBER = '(?<![\\w$])\\d[\\w.]*';
const WORD = '[A-Za-z_$][\\w$]*';

const KEYWORDS = new Set(
  (
    'abstract and as assert async await begin break case catch class const continue debugger ' +
    'def default defer del delete ' +
    'do done elif else elsif end ensure enum esac except export extends extern fi final ' +
    'finally fn for foreach from func ' +
    'function global go goto if impl implements import in instanceof interface internal is ' +
    'lambda let local loop match mod ' +
    'module move mut namespace new nil none nonlocal not null of operator or override ' +
    'package pass private protected pub ' +
    'public raise readonly ref require rescue return satisfies select self static struct ' +
    'super switch template then this ' +
    'throw throws trait try type typealias typedef typeof undefined union unless unsafe ' +
    'until use using val var virtual ' +
    'void volatile when where while with yield true false True False None int long short ' +
    'char bool boolean float double string unsigned echo set'
  ).split(' '),
);
/** Words that are keywords only in SQL: elsewhere they often name variables. */
const SQL_KEYWORDS = new Set(
  (
    'insert update into values create table alter drop index join left right inner outer on ' +
    'group by order having limit distinct primary key references'
  ).split(' '),
);
/** Keywords of SQL are often written in capitals. */
const isKeyword = (word: string, family: Family): boolean =>
  KEYWORDS.has(word) ||
  (family === 'dash' && (KEYWORDS.has(word.toLowerCase()) || SQL_KEYWORDS.has(word.toLowerCase())));

const scanners = new Map<string, RegExp>();

/** The expression that finds comments, strings, numbers and words. Each is created only once. */
const findScanner = (family: keyof typeof COMMENTS, language: string): RegExp => {
  const single = /^(rs|rust|ml|ocaml)$/.test(language) ? CHARACTER : SINGLE;
  const source = `(${COMMENTS[family]})|(${LONG_STRING}|${DOUBLE}|${single}|${BACKTICK})|(${NUMBER})|(${WORD})`;
  const scanner = scanners.get(source) ?? new RegExp(source, 'g');
  scanners.set(source, scanner);
  return scanner;
};

/** A piece of code of one colour; null: that of other text. */
export type CodeToken = { readonly style: Style | null; readonly text: Safe };

const tokenize = (
  code: Safe,
  family: keyof typeof COMMENTS,
  language: string,
): readonly CodeToken[] => {
  const tokens: CodeToken[] = [];
  let at = 0;
  for (const match of code.matchAll(findScanner(family, language))) {
    const [{ length }, comment, string, number] = match;
    const text = code.slice(match.index, match.index + length);
    if (match.index > at) tokens.push({ style: null, text: code.slice(at, match.index) });
    at = match.index + length;
    if (comment !== undefined) tokens.push({ style: 'dim', text });
    else if (string !== undefined) tokens.push({ style: 'string', text });
    else if (number !== undefined) tokens.push({ style: 'number', text });
    else tokens.push({ style: isKeyword(text, family) ? 'keyword' : null, text });
  }
  return [...tokens, { style: null, text: code.slice(at) }];
};

const diffLine = (look: Look, line: Safe): Safe => {
  if (/^(\+\+\+|---) /.test(line)) return paint(look, 'dim', line);
  if (line.startsWith('+')) return paint(look, 'green', line);
  if (line.startsWith('-')) return paint(look, 'red', line);
  return line.startsWith('@@') ? paint(look, 'cyan', line) : line;
};

type Language = { readonly name: string; readonly family: Family };

/**
 * `language`: as after a code fence, or the ending of a file's name. Most languages have comments
 * with slashes, so an unknown one is taken for one of them.
 */
const findLanguage = (language: string): Language => {
  const name = (/^[\w+#-]+/.exec(language)?.[0] ?? '').toLowerCase();
  return { name, family: name === '' ? 'none' : (FAMILY_BY_NAME.get(name) ?? 'slash') };
};

/** A line within a long comment, as it is usually written. */
const INSIDE_COMMENT = /^\s*\*(?:[ /]|$)/;

/** One line of a file in its colours. `ending`: of the file's name. */
export const codeTokens = (line: Safe, ending: string): readonly CodeToken[] => {
  const { name, family } = findLanguage(ending);
  if (family === 'none' || family === 'diff') return [{ style: null, text: line }];
  if (family === 'slash' && INSIDE_COMMENT.test(line)) return [{ style: 'dim', text: line }];
  return tokenize(line, family, name);
};

/** The coloured lines of `code`; unchanged without a language, and for plain text. */
export const highlightCode = (look: Look, code: Safe, language: string): readonly Safe[] => {
  const { name, family } = findLanguage(language);
  const lines = code.split('\n');
  if (look.colour === 'no' || family === 'none') return lines;
  if (family === 'diff') return lines.map((line) => diffLine(look, line));
  // Each line ends its own colours, because lines are wrapped and cut one by one.
  const coloured = tokenize(code, family, name).map(({ style, text }) => {
    if (style === null) return text;
    const parts = text.split('\n').map((line) => paint(look, style, line));
    return joinSafe(parts, safe`\n`);
  });
  return joinSafe(coloured).split('\n');
};
