/**
 * Markdown as rows of the terminal.
 *
 * From top to bottom: `renderMarkdown`; `createBlocks`, which divides a stream, so that finished
 * blocks are printed while the rest may still change; and colours of code. `Safe` is text that
 * can't control the terminal.
 */

import { harmless, type Look, paint, type Style, wrapText } from './paint.js';
import { joinSafe, keepStyles, type Safe, safe } from './safe-text.js';

/**
 * The renderer of a library. Loading it takes as long as everything else together, so it is loaded
 * after the first paint. Earlier text is shown as it is.
 */
type Component = typeof import('@earendil-works/pi-tui/dist/components/markdown.js');

let component: Component | null = null;

/**
 * Resolves when `renderMarkdown` can render. The renderer is part of the program, so loading
 * doesn't fail.
 */
export const loadMarkdown = async (): Promise<void> => {
  if (component !== null) return;
  const [loaded, { setCapabilities }] = await Promise.all([
    import('@earendil-works/pi-tui/dist/components/markdown.js'),
    import('@earendil-works/pi-tui/dist/terminal-image.js'),
  ]);
  // Show addresses in full: not every terminal can open links, and a hidden address can mislead.
  setCapabilities({ images: null, trueColor: false, hyperlinks: false });
  component = loaded;
};

/** A text as rows of at most `columns`. Code is coloured only if the text is `finished`. */
export const renderMarkdown = (
  look: Look,
  text: string,
  columns: number,
  finished: boolean,
): readonly Safe[] => {
  const shown = harmless(text.replace(/^[\r\n]+|\s+$/g, ''));
  if (shown === '') return [];
  const code = codeRows(look, shown, columns, finished);
  if (code !== null) return code;
  if (component === null) return wrapText(shown, columns);
  // 0, 0: no padding
  const rows = new component.Markdown(shown, 0, 0, createTheme(look, finished))
    .render(columns)
    .filter((row) => !row.includes(FENCE_ROW))
    .map(trimmed);
  // The renderer doesn't break tables that are wider than the window. They are broken here.
  return rows.flatMap((row) => wrapText(row, columns));
};

/**
 * Stands for a code fence in the renderer's output; such rows are dropped. A private character: in
 * a text `harmless` has replaced it with a visible mark.
 */
const FENCE_ROW = '\ue0f1';

/** The colours of the renderer. Code of a finished text gets its own colours. */
const createTheme = (look: Look, finished: boolean) => {
  const style = (name: Style) => (text: string) => paint(look, name, keepStyles(text));
  return {
    heading: style('heading'),
    link: style('link'),
    linkUrl: style('dim'),
    code: style('code'),
    codeBlock: (text: string) => text,
    codeBlockBorder: () => FENCE_ROW,
    quote: (text: string) => text,
    quoteBorder: style('dim'),
    hr: style('dim'),
    listBullet: style('mark'),
    bold: style('bold'),
    italic: style('italic'),
    strikethrough: style('struck'),
    underline: style('underline'),
    codeBlockIndent: '  ',
    ...(finished
      ? {
          highlightCode: (code: string, language?: string) => [
            ...highlightCode(look, keepStyles(code), language ?? ''),
          ],
        }
      : {}),
  };
};

/** Removes spaces at the end of a row, also before codes that end a colour. */
const trimmed = (row: string): Safe => keepStyles(row.replace(/[ ]+((?:\u001b\[[\d;]*m)*)$/, '$1'));

/** A block that is a single fence, open or closed: its indent, mark, language and code. */
const FENCED = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)(?:\n|$)([\s\S]*)$/;

const CODE_INDENT = safe`  `;

/** The code before the closing fence; null if more text follows the fence. */
const withoutClosing = (body: string, mark: string): string | null => {
  const lines = body.split('\n');
  const end = lines.findIndex((line) => closesFence(line, mark));
  if (end < 0) return body;
  return lines.slice(end + 1).some((line) => line.trim() !== '')
    ? null
    : lines.slice(0, end).join('\n');
};

/** Continues long lines in indented rows. */
const wrapCode = (line: Safe, columns: number): readonly Safe[] => {
  const [first = safe``, ...rest] = wrapText(line, columns);
  if (rest.length === 0) return [first];
  return [
    first,
    ...wrapText(joinSafe(rest), Math.max(2, columns - 2)).map((row) => safe`  ${row}`),
  ];
};

/** Code without its fences, indented; null if the text is more than code. */
const codeRows = (
  look: Look,
  shown: string,
  columns: number,
  finished: boolean,
): readonly Safe[] | null => {
  const [, mark, language = '', body = ''] = FENCED.exec(shown) ?? [];
  if (mark === undefined) return null;
  const bare = withoutClosing(body, mark);
  if (bare === null) return null;
  const code = keepStyles(bare.replaceAll('\t', '    '));
  const lines = finished ? highlightCode(look, code, language) : code.split('\n');
  const room = Math.max(8, columns - CODE_INDENT.length);
  return lines
    .flatMap((line) => wrapCode(line, room))
    .map((row) => safe`${CODE_INDENT}${row}`.trimEnd());
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

/** What the next line stands in. `mark`: the fence that a line must repeat to end the code. */
type Inside =
  | { readonly kind: 'nothing' }
  /** `list`: the fence belongs to a list item. */
  | { readonly kind: 'fence'; readonly mark: string; readonly list: boolean }
  /** `blank`: the last line was blank. Any line but an item or an indented one then ends it. */
  | { readonly kind: 'list'; readonly blank: boolean }
  | { readonly kind: 'text' };

const NOTHING: Inside = { kind: 'nothing' };
const LIST: Inside = { kind: 'list', blank: false };

/** The fence that begins in this line, possibly inside a list item. */
const fenceIn = (line: string, list: boolean): Inside | null => {
  const mark = FENCE.exec(list ? line.replace(/^(?:\s|[-*+]\s|\d{1,9}[.)]\s)+/, '') : line)?.[1];
  return mark === undefined ? null : { kind: 'fence', mark, list };
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
    case 'list':
      return inList(line, inside.blank);
    case 'fence':
      if (!closesFence(line, inside.mark)) return { inside, ends: 'no' };
      return inside.list ? { inside: LIST, ends: 'no' } : { inside: NOTHING, ends: 'after' };
    default:
      return inside satisfies never;
  }
};

/** Divides streamed Markdown. It reads each character once. */
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
  const known = scanners.get(source) ?? new RegExp(source, 'g');
  scanners.set(source, known);
  return known;
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
