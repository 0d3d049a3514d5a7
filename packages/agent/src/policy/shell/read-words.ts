/**
 * Reads the words of a shell text as bash does. Quotes are removed; a word that is known only at
 * run time is null.
 *
 * From top to bottom: the findings in a text, and the cursor that moves through it; words;
 * expansions and arithmetic; and quotes. read-statements.ts reads the commands around the words.
 * Syntax that is not understood as bash understands it ends the reading with `Unclear`.
 */

// ---- Findings and the cursor ----

/** The text can't be read as bash would read it. Only `readCommands` catches this. */
export class Unclear extends Error {}

/**
 * A word after quote removal. `text` is null if it is known only at run time. `pattern` is present
 * if the word expands to file names: characters that were quoted are escaped in it.
 */
export type Word = {
  readonly text: string | null;
  readonly pattern?: string;
  readonly start: number;
  readonly end: number;
};

/**
 * When a command of a list runs. `always`; `and`, `or`: depending on how the one before it ended;
 * `apart`: in a separate process, as a part of a pipeline, in the background or in a substitution,
 * so that it changes no variable of the shell.
 */
export type Flow = 'always' | 'and' | 'or' | 'apart';

/** A simple command in the text. `start` is the offset of its first word. */
export type SimpleCommand = {
  readonly start: number;
  readonly flow: Flow;
  /** As in `ParsedCommand`. */
  readonly folder?: string;
  readonly words: readonly Word[];
  readonly assignments: readonly Assignment[];
  readonly writes: readonly (string | null)[];
  /** Indexes of `writes` that only append. */
  readonly appends: readonly number[];
  /** Files that its redirections read, without names that are computed at run time. */
  readonly readsFrom: readonly string[];
  /**
   * Its input. `stdin`: that of the text. `a text`: a here-document in which nothing is
   * substituted. `a text or file`: anything else.
   */
  readonly reads: 'stdin' | 'a text' | 'a text or file';
};

export type Assignment = {
  readonly name: string;
  /** As it is written: `name=value`. */
  readonly raw: string;
  /** The text, or the elements of a list; null if it is known only at run time, or adds. */
  readonly value: string | readonly string[] | null;
};

/**
 * Offsets: of the quote, and of the text between the marks of the substitution. `end` is null until
 * it is read to its end.
 */
export type QuotedSubstitution = {
  readonly quote: number;
  readonly start: number;
  readonly end: number | null;
};

type HereDocument = {
  readonly delimiter: string;
  /** The delimiter is quoted, so that nothing in the body is substituted. */
  readonly quoted: boolean;
  /** `<<-`: tabs at the beginning of a line do not count. */
  readonly stripTabs: boolean;
};

/**
 * Findings in a text. `evaluates`: it evaluates arithmetic, which runs substitutions in the values
 * of variables.
 */
export type Findings = {
  readonly commands: SimpleCommand[];
  readonly functions: string[];
  /** It has a loop, a condition, a group, a subshell or a function. */
  hasCompound: boolean;
  evaluates: boolean;
  /** It has syntax that other shells read as other commands: `$'…'`, `((…))`, `[[`, `&>`. */
  isBashOnly: boolean;
  /** Command substitutions in double quotes; one that was not read to its end is the last. */
  readonly quoted: QuotedSubstitution[];
  /** A literal text contains a substitution, which runs only if the text is evaluated. */
  quotesSubstitution: boolean;
};

/** A place in a shell text, with the findings before it. */
export type Cursor = {
  readonly text: string;
  at: number;
  /** Offset at which reading ends. */
  limit: number;
  /** Levels of nesting around this place. */
  depth: number;
  /** Here-documents whose bodies follow after this line. */
  pending: HereDocument[];
  readonly findings: Findings;
  /**
   * Reads a list of commands up to one of `ends`, which it does not consume. It comes along with
   * the cursor, since it is defined in read-statements.ts, which imports this file.
   */
  readonly readList: (cursor: Cursor, ends: readonly string[]) => void;
};

const DEPTH_MAX = 50;
const COMMANDS_MAX = 500;

export const unclear = (why: string): Unclear => new Unclear(why);

export const peek = (cursor: Cursor, ahead = 0): string =>
  cursor.at + ahead < cursor.limit ? (cursor.text[cursor.at + ahead] ?? '') : '';

export const isAt = (cursor: Cursor, expected: string): boolean =>
  cursor.at + expected.length <= cursor.limit && cursor.text.startsWith(expected, cursor.at);

export const isEnd = (cursor: Cursor): boolean => cursor.at >= cursor.limit;

/** Characters that end a word. */
export const isMeta = (char: string): boolean => char === '' || ' \t\n;&|<>()'.includes(char);

/** Reads one nesting level deeper, up to DEPTH_MAX. */
export const deeper = (cursor: Cursor, read: () => void): void => {
  if (++cursor.depth > DEPTH_MAX) throw unclear(`it is nested deeper than ${DEPTH_MAX} levels`);
  read();
  cursor.depth--;
};

/** Reads a substitution. Here-documents that begin in it must end in it. */
export const nested = (cursor: Cursor, read: () => void): void => {
  const outer = cursor.pending;
  cursor.pending = [];
  const start = cursor.at;
  const before = cursor.findings.commands.length;
  deeper(cursor, read);
  markFlow(cursor, before, 'apart');
  if (cursor.pending.length > 0) throw unclear('a here-document has no body where one should be');
  if (outer.length > 0 && cursor.text.slice(start, cursor.at).includes('\n'))
    throw unclear('a here-document begins before a substitution of several lines');
  cursor.pending = outer;
};

export const addCommand = ({ findings }: Cursor, command: Omit<SimpleCommand, 'flow'>): void => {
  if (findings.commands.length >= COMMANDS_MAX)
    throw unclear(`it has more than ${COMMANDS_MAX} commands`);
  findings.commands.push({ ...command, flow: 'always' });
};

/** Marks the commands that were added from this index on. What runs apart stays so. */
export const markFlow = ({ findings: { commands } }: Cursor, from: number, flow: Flow): void => {
  for (const [index, command] of commands.entries())
    if (index >= from && command.flow !== 'apart') commands[index] = { ...command, flow };
};

/** A command that may go to another folder, or runs one that does. */
const MOVES = /\b(cd|pushd|popd)\b/;

/**
 * Whether one of these commands may change the folder of those behind it. A word that is known only
 * at run time does not count.
 */
export const changesFolder = (
  commands: readonly { readonly words: readonly (string | null)[] }[],
): boolean => commands.some(({ words }) => words.some((word) => MOVES.test(word ?? '')));

/**
 * Marks the commands from this index on, which a pipeline at `start` has, with the folder of the
 * `cd` or `pushd` before them. Returns the folder for those behind `&&`; null: not certain.
 */
export const markFolder = (
  { findings: { commands } }: Cursor,
  { start, from }: { readonly start: number; readonly from: number },
  folder: string | null,
): string | null => {
  const added = commands.slice(from);
  const texts = added.map(({ words }) => ({ words: words.map(({ text }) => text) }));
  if (changesFolder(texts)) {
    const [name, target, ...others] = texts[0]?.words ?? [];
    const isPlain = added.length === 1 && added[0]?.start === start && others.length === 0;
    const goes = /^(cd|pushd)$/.test(name ?? '');
    return isPlain && goes && target != null && /^[^-+]/.test(target) ? target : null;
  }
  if (folder !== null)
    for (const [index, command] of added.entries()) commands[from + index] = { folder, ...command };
  return folder;
};

/** Skips blanks, and backslash-newline pairs, which bash removes. */
export const skipBlanks = (cursor: Cursor): void => {
  for (;;) {
    if (peek(cursor) === ' ' || peek(cursor) === '\t') cursor.at++;
    else if (isAt(cursor, '\\\n')) cursor.at += 2;
    else return;
  }
};

/** Skips a comment up to its newline, if one begins here. */
export const skipComment = (cursor: Cursor): void => {
  if (peek(cursor) !== '#') return;
  while (!isEnd(cursor) && peek(cursor) !== '\n') cursor.at++;
};

// ---- Words ----

/** From the first `open` to the last `close`. An expression for it takes n² steps. */
const between = (shape: string, open: string, close: string): string => {
  const start = shape.indexOf(open);
  return start < 0 ? '' : shape.slice(start, shape.lastIndexOf(close) + 1);
};

/** Whether unquoted characters become several words (`{a,b}`, `{1..3}`) or file names. */
const expands = (shape: string): boolean =>
  /,|\.\./.test(between(shape, '{', '}')) || /[*?]/.test(shape) || between(shape, '[', ']') !== '';

/**
 * Reads one word. `shape` is its unquoted text, in which each quoted part is a blank: it shows
 * which braces, patterns and keywords are syntax. The shape of `a"*"*` is `a *`.
 */
export const readWord = (cursor: Cursor): Word & { readonly shape: string } => {
  const start = cursor.at;
  let value = '';
  let shape = '';
  let pattern = '';
  let dynamic = false;
  const add = (text: string | null): void => {
    if (text === null) dynamic = true;
    else value += text;
    shape += ' ';
    pattern += (text ?? '').replace(/[\\*?[\]{},]/g, '\\$&');
  };
  for (;;) {
    const char = peek(cursor);
    if ((char === '<' || char === '>') && peek(cursor, 1) === '(') {
      cursor.at += 2;
      nested(cursor, () => cursor.readList(cursor, [')']));
      cursor.at++;
      add(null);
    } else if (isMeta(char)) break;
    else if (isAt(cursor, '\\\n')) throw unclear('an escaped line break stands in a word');
    else if (char === '\\') {
      if (peek(cursor, 1) === '') throw unclear('it ends in a backslash');
      add(peek(cursor, 1));
      cursor.at += 2;
    } else if (char === "'") add(readSingle(cursor));
    else if (char === '"') add(readDouble(cursor));
    else if (char === '$' || char === '`') add(readExpansion(cursor, 'bare'));
    else {
      value += char;
      shape += char;
      pattern += char;
      cursor.at++;
    }
  }
  noteSubstitution(cursor, value);
  const position = { start, end: cursor.at, shape };
  if (dynamic || shape.startsWith('~') || /[=:]~/.test(shape)) return { text: null, ...position };
  if (expands(shape)) return { text: null, pattern, ...position };
  return { text: value, ...position };
};

// ---- Expansions and arithmetic ----

/** Where an expansion stands: outside of quotes, or within double quotes. */
type Quoting = 'bare' | 'quoted';

/**
 * Reads an expansion at `$` or a backquote. Returns its literal value, or null if it is known only
 * at run time.
 */
export const readExpansion = (cursor: Cursor, quoting: Quoting): string | null => {
  if (peek(cursor) === '`') {
    readBackquote(cursor, quoting);
    return null;
  }
  if (isAt(cursor, '$((')) {
    cursor.at += 3;
    nested(cursor, () => readArithmetic(cursor, '))'));
    return null;
  }
  const next = peek(cursor, 1);
  if (next === '(') {
    cursor.at += 2;
    nested(cursor, () => cursor.readList(cursor, [')']));
    cursor.at++;
    return null;
  }
  if (next === '{') {
    nested(cursor, () => readParameter(cursor, quoting));
    return null;
  }
  if (next === '[') throw unclear('$[…] is an old form of arithmetic');
  if (next === "'" && quoting === 'bare') return readAnsiC(cursor);
  if (next === '"' && quoting === 'bare') throw unclear('$"…" is translated at run time');
  const name = /^\$([A-Za-z_]\w*|[\d@*#?$!-])/.exec(cursor.text.slice(cursor.at, cursor.at + 200));
  cursor.at += name === null ? 1 : name[0].length;
  return name === null ? '$' : null;
};

/** Reads up to the first backquote, ignoring quotes in between, as bash does. */
const readBackquote = (cursor: Cursor, quoting: Quoting): void => {
  const end = cursor.text.indexOf('`', cursor.at + 1);
  if (end < 0 || end >= cursor.limit) throw unclear('a backquote is not closed');
  const inside = cursor.text.slice(cursor.at + 1, end);
  if (inside.includes('\\') || (quoting === 'quoted' && inside.includes('"')))
    throw unclear('escapes within backquotes are read twice');
  const { limit } = cursor;
  cursor.at++;
  cursor.limit = end;
  nested(cursor, () => cursor.readList(cursor, []));
  cursor.limit = limit;
  cursor.at = end + 1;
};

/** Reads `${…}`. Refuses forms that are evaluated again (`@P`, `${!name}`). */
const readParameter = (cursor: Cursor, quoting: Quoting): void => {
  cursor.at += 2;
  const rest = (): string => cursor.text.slice(cursor.at, cursor.limit);
  const counted = /^#(?=[\w@*?$!-])/.exec(rest());
  if (counted !== null) cursor.at++;
  const isIndirect = /^![A-Za-z_]/.test(rest());
  if (isIndirect) {
    const listed = /^!\w+(\[[@*]\]|[@*])\}/.exec(rest());
    if (listed === null) throw unclear('an expansion reads a variable that is named at run time');
    cursor.at += listed[0].length;
    return;
  }
  const name = NAME.exec(rest()) ?? /^(\d+|[@*#?$!-])/.exec(rest());
  if (name === null) throw unclear('an expansion in braces has no name');
  cursor.at += name[0].length;
  if (peek(cursor) === '[') readSubscript(cursor);
  if (peek(cursor) === '}') {
    cursor.at++;
    return;
  }
  const operator = /^(@[QEUuLAaKk](?=\})|:?[-=?+]|##?|%%?|\/[/#%]?|\^\^?|,,?|:)/.exec(rest());
  if (operator === null)
    throw unclear(`\${…} has an operator that is not known: ${rest().slice(0, 2)}`);
  cursor.at += operator[0].length;
  if (operator[0] === ':') cursor.findings.evaluates = true;
  readOperand(cursor, quoting);
  cursor.at++;
};

/** Reads `[…]` after the name of a list. */
const readSubscript = (cursor: Cursor): void => {
  cursor.at++;
  const all = /^[@*]\]/.exec(cursor.text.slice(cursor.at, cursor.limit));
  if (all === null) readArithmetic(cursor, ']');
  else cursor.at += 2;
};

/** Reads the word after the operator of `${name-word}`, up to its brace. */
const readOperand = (cursor: Cursor, quoting: Quoting): void => {
  while (peek(cursor) !== '}') {
    const char = peek(cursor);
    if (char === '') throw unclear('an expansion in braces is not closed');
    if (char === '\\') cursor.at += 2;
    else if (char === '$' || char === '`') readExpansion(cursor, quoting);
    else if (char === "'" && quoting === 'quoted')
      throw unclear('an expansion within double quotes has a single quote');
    else if (char === "'") readSingle(cursor);
    else if (char === '"') readDouble(cursor);
    else if (char === '{' || ((char === '<' || char === '>') && peek(cursor, 1) === '('))
      throw unclear(`\${…} has the characters ${char}${peek(cursor, 1)}`);
    else cursor.at++;
  }
};

const BRACKETS_MAX = 50;
const NAME = /^[A-Za-z_]\w*/;

/**
 * Reads an arithmetic expression up to `close`. Bash evaluates the names in it, and their values in
 * turn.
 */
export const readArithmetic = (cursor: Cursor, close: string): void => {
  let open = 0;
  for (;;) {
    const char = peek(cursor);
    if (char === '') throw unclear('an arithmetic expression is not closed');
    if (open === 0 && isAt(cursor, close)) {
      cursor.at += close.length;
      return;
    }
    if (char === '(' && ++open > BRACKETS_MAX)
      throw unclear('an arithmetic expression is nested too deeply');
    if (char === ')' && --open < 0) throw unclear('((…) is not read as arithmetic');
    if (char === '$' || char === '`') {
      readExpansion(cursor, 'quoted');
      cursor.findings.evaluates = true;
      continue;
    }
    if ('\'"\\;{}#'.includes(char) || char === '\n')
      throw unclear(`an arithmetic expression has the character ${JSON.stringify(char)}`);
    if (/[A-Za-z_]/.test(char)) cursor.findings.evaluates = true;
    cursor.at++;
  }
};

// ---- Quotes ----

/** The beginning of a substitution. */
const SUBSTITUTES = /\$[({[]|`/;

/** Notes a literal text with a substitution in it: it runs if the text is evaluated. */
const noteSubstitution = (cursor: Cursor, literal: string): string => {
  if (SUBSTITUTES.test(literal)) cursor.findings.quotesSubstitution = true;
  return literal;
};

/**
 * Refuses a multi-line quote while a here-document waits for its body, since versions of bash read
 * that differently.
 */
const refuseLines = ({ pending }: Cursor, quoted: string): void => {
  if (pending.length > 0 && quoted.includes('\n'))
    throw unclear('a here-document begins before a quote of several lines');
};

const readSingle = (cursor: Cursor): string => {
  const end = cursor.text.indexOf("'", cursor.at + 1);
  if (end < 0 || end >= cursor.limit) throw unclear('a single quote is not closed');
  const value = cursor.text.slice(cursor.at + 1, end);
  refuseLines(cursor, value);
  cursor.at = end + 1;
  return noteSubstitution(cursor, value);
};

/** Reads `$'…'`, whose escapes stand for characters. */
const readAnsiC = (cursor: Cursor): string => {
  const match = /^\$'((?:[^\\']|\\[\s\S])*)'/.exec(cursor.text.slice(cursor.at, cursor.limit));
  if (match === null) throw unclear("$' is not closed");
  refuseLines(cursor, match[0]);
  cursor.at += match[0].length;
  cursor.findings.isBashOnly = true;
  return noteSubstitution(cursor, decodeAnsiC(match[1] ?? ''));
};

/** Reads a text in double quotes; null if a part is known only at run time. */
const readDouble = (cursor: Cursor): string | null => {
  cursor.at++;
  const start = cursor.at;
  const { quoted } = cursor.findings;
  let value = '';
  let dynamic = false;
  while (peek(cursor) !== '"') {
    const char = peek(cursor);
    if (isEnd(cursor)) throw unclear('a double quote is not closed');
    if (char === '\\') {
      const next = peek(cursor, 1);
      if (next !== '\n') value += '$`"\\'.includes(next) ? next : `\\${next}`;
      cursor.at += 2;
    } else if (char === '$' || char === '`') {
      // how long the mark is that opens a command substitution; 0 for another expansion
      const opener = char === '`' ? 1 : isAt(cursor, '$(') && !isAt(cursor, '$((') ? 2 : 0;
      const at = { quote: start - 1, start: cursor.at + opener };
      const index = opener === 0 ? null : quoted.push({ ...at, end: null }) - 1;
      const literal = readExpansion(cursor, 'quoted');
      if (index !== null) quoted[index] = { ...at, end: cursor.at - 1 };
      if (literal === null) dynamic = true;
      else value += literal;
    } else {
      value += char;
      cursor.at++;
    }
  }
  refuseLines(cursor, cursor.text.slice(start, cursor.at));
  cursor.at++;
  noteSubstitution(cursor, value);
  return dynamic ? null : value;
};

/** Escapes of one letter. */
const SIMPLE: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  e: '\x1b',
  E: '\x1b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '?': '?',
};

/** Escapes with the number of a character. `\x`, `\u` and `\U` end after 2, 4 and 8 digits. */
const NUMBERED = /^(?:x([\da-fA-F]{1,2})|u([\da-fA-F]{1,4})|U([\da-fA-F]{1,8})|([0-7]{1,3}))/;

const ESCAPE = /\\([\s\S])/g;

/**
 * The value of the text between `$'` and `'`. Refuses unknown escapes, and numbers outside of
 * ASCII: what bash makes of them depends on the locale.
 */
const decodeAnsiC = (raw: string): string => {
  let value = '';
  let at = 0;
  ESCAPE.lastIndex = 0;
  for (let match = ESCAPE.exec(raw); match !== null; match = ESCAPE.exec(raw)) {
    value += raw.slice(at, match.index);
    const number = NUMBERED.exec(raw.slice(match.index + 1));
    if (number !== null) {
      const [all, byte, short, long, octal = ''] = number;
      const hex = byte ?? short ?? long;
      const code = hex === undefined ? Number.parseInt(octal, 8) : Number.parseInt(hex, 16);
      if (code === 0 || code >= 0x80) throw unclear(`$'…' has the escape \\${all}`);
      value += String.fromCharCode(code);
      at = match.index + 1 + all.length;
    } else {
      const meant = SIMPLE[match[1] ?? ''];
      if (meant === undefined) throw unclear(`$'…' has the escape \\${match[1]}`);
      value += meant;
      at = match.index + 2;
    }
    ESCAPE.lastIndex = at;
  }
  return value + raw.slice(at);
};
