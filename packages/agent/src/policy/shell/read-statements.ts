/**
 * Parses a shell text as bash does, without running it: `readCommands` returns the commands that
 * bash would run, or why they can't be determined.
 *
 * From top to bottom: the whole text; tests (`[[ … ]]`); lists, pipelines and compound commands;
 * simple commands with their redirections; and here-documents. read-words.ts parses single words. A
 * cursor is a position in the text, with the findings before it.
 *
 * Unknown syntax makes the whole text unclear, so that the policy asks: a wrong guess would let a
 * command run unseen.
 */

import { changesShell } from '../programs/shells.js';
import {
  type Assignment,
  addCommand,
  type Cursor,
  deeper,
  type Findings,
  type Flow,
  isAt,
  isEnd,
  isMeta,
  markFlow,
  markFolder,
  nested,
  peek,
  type QuotedSubstitution,
  readArithmetic,
  readExpansion,
  readWord,
  skipBlanks,
  skipComment,
  Unclear,
  unclear,
  type Word,
} from './read-words.js';

/** The commands that bash would run for a text, or why they can't be determined. */
export type ShellReading =
  | (Findings & { readonly kind: 'read' })
  | {
      readonly kind: 'unclear';
      readonly why: string;
      /** The substitution in double quotes in which the reading ended. */
      readonly within?: QuotedSubstitution;
    };

/**
 * Bash removes escaped line breaks first: `$`, a line break and `(` are a substitution, and `<`, a
 * line break and `(` are one, too.
 */
const SPLIT_OPERATOR = /(\$|[(<>&|;](?=(\\\n)+[-(<>&|;]))\\\n/;

/** Maximum length of a text, in characters. */
const LENGTH_MAX = 20_000;

/** Reads a whole text as bash does. No text makes it throw. */
export const readCommands = (text: string): ShellReading => {
  if (text.length > LENGTH_MAX)
    return { kind: 'unclear', why: `it is longer than ${LENGTH_MAX} characters` };
  const findings: Findings = {
    commands: [],
    functions: [],
    hasCompound: false,
    evaluates: false,
    isBashOnly: false,
    quoted: [],
    quotesSubstitution: false,
  };
  const cursor: Cursor = {
    text,
    at: 0,
    limit: text.length,
    depth: 0,
    pending: [],
    findings,
    readList,
  };
  try {
    if (SPLIT_OPERATOR.test(text)) throw unclear('an escaped line break stands in an operator');
    readList(cursor, []);
  } catch (error) {
    if (!(error instanceof Unclear)) throw error;
    const within = findings.quoted.find(({ end }) => end === null);
    return {
      kind: 'unclear',
      why: error.message,
      ...(within === undefined ? {} : { within }),
    };
  }
  if (cursor.pending.length > 0) return { kind: 'unclear', why: 'a here-document has no body' };
  return { kind: 'read', ...findings };
};

// ---- Tests: [[ … ]] ----

/** Operators that evaluate their operands as arithmetic, substitutions in them included. */
const EVALUATING = /^(-eq|-ne|-lt|-le|-gt|-ge|-v|-R)$/;

/** The pattern after `=~`: a word that may contain parentheses and bars. */
const readPattern = (cursor: Cursor): void => {
  let open = 0;
  for (;;) {
    const char = peek(cursor);
    if (char === '' || char === '\n') throw unclear('[[ is not closed');
    if (open === 0 && (char === ' ' || char === '\t')) return;
    if (/^[<>]\(/.test(cursor.text.slice(cursor.at, cursor.at + 2)))
      throw unclear('the pattern after =~ has a process substitution');
    if (char === '(') open++;
    if (char === ')' && --open < 0)
      throw unclear('the pattern after =~ has a parenthesis too many');
    if (char === '\\') cursor.at += 2;
    else if (char === '$' && /^\$[)\s|]/.test(cursor.text.slice(cursor.at, cursor.at + 2)))
      cursor.at++;
    else if (char === '$' || char === '`') readExpansion(cursor, 'bare');
    else if (char === "'" || char === '"') readWord(cursor);
    else cursor.at++;
  }
};

/** Reads `[[ … ]]` after its first word. It runs nothing except the substitutions in it. */
const readTest = (cursor: Cursor): void => {
  cursor.findings.isBashOnly = true;
  for (;;) {
    skipLines(cursor);
    // a meta character ends a word
    if (isAt(cursor, ']]') && isMeta(peek(cursor, 2))) break;
    const two = cursor.text.slice(cursor.at, Math.min(cursor.limit, cursor.at + 2));
    if (two === '&&' || two === '||') cursor.at += 2;
    // `<(` begins a substitution, `<` alone compares
    else if (!two.endsWith('(') && /^[<>]/.test(two)) cursor.at++;
    else if (/^[()]/.test(two)) cursor.at++;
    else readOperand(cursor);
  }
  cursor.at += 2;
};

/** Reads a word within `[[ … ]]`, and the pattern behind `=~`. */
const readOperand = (cursor: Cursor): void => {
  const { start, end } = readWord(cursor);
  const operator = cursor.text.slice(start, end);
  if (start === end) throw unclear(`[[ has the character ${JSON.stringify(peek(cursor))}`);
  if (peek(cursor) === '(') throw unclear('[[ has an extended pattern');
  if (EVALUATING.test(operator)) cursor.findings.evaluates = true;
  if (operator !== '=~') return;
  skipBlanks(cursor);
  readPattern(cursor);
};

// ---- Lists, pipelines and compound commands ----

/** Whether this reserved word stands here, unquoted and complete. */
const isWord = (cursor: Cursor, word: string): boolean => {
  const after = cursor.text[cursor.at + word.length] ?? '';
  return isAt(cursor, word) && (isMeta(after) || cursor.at + word.length >= cursor.limit);
};

const takeWord = (cursor: Cursor, word: string): void => {
  skipLines(cursor);
  if (!isWord(cursor, word)) throw unclear(`'${word}' is missing`);
  cursor.at += word.length;
};

/** Whether an operator or a reserved word stands here. */
const isEndHere = (cursor: Cursor, end: string): boolean =>
  /^\w/.test(end) || end === '}' ? isWord(cursor, end) : isAt(cursor, end);

const isAtEnd = (cursor: Cursor, ends: readonly string[]): boolean =>
  ends.some((end) => isEndHere(cursor, end)) || (ends.length === 0 && isEnd(cursor));

/**
 * Reads commands up to one of `ends`, which it does not consume, or up to the end of the text if
 * there are none.
 */
const readList = (cursor: Cursor, ends: readonly string[]): void => {
  for (;;) {
    skipLines(cursor);
    if (isAtEnd(cursor, ends)) return;
    if (isEnd(cursor)) throw unclear(`'${ends[0] ?? ''}' is missing`);
    const before = cursor.findings.commands.length;
    readAndOr(cursor);
    skipBlanks(cursor);
    const isBackground = peek(cursor) === '&' && peek(cursor, 1) !== '&';
    // apart: in a subshell, so that it changes no variable of the shell
    if (isBackground) markFlow(cursor, before, 'apart');
    if (peek(cursor) === '\n') readNewline(cursor);
    else if (
      isBackground ||
      (peek(cursor) === ';' && peek(cursor, 1) !== ';' && peek(cursor, 1) !== '&')
    )
      cursor.at++;
    else if (!isAtEnd(cursor, ends) && !isEnd(cursor))
      throw unclear(`the character ${JSON.stringify(peek(cursor))} stands where none can`);
  }
};

/** Reads pipelines that are joined by `&&` and `||`. */
const readAndOr = (cursor: Cursor): void => {
  let folder: string | null = null;
  for (let flow: Flow = 'always'; ; ) {
    const before = cursor.findings.commands.length;
    const start = cursor.at;
    readPipeline(cursor);
    if (flow !== 'always') markFlow(cursor, before, flow);
    skipBlanks(cursor);
    if (flow === 'or') folder = null;
    else if (folder !== null || isAt(cursor, '&&'))
      folder = markFolder(cursor, { start, from: before }, folder);
    if (!isAt(cursor, '&&') && !isAt(cursor, '||')) return;
    flow = isAt(cursor, '&&') ? 'and' : 'or';
    cursor.at += 2;
    skipLines(cursor);
  }
};

const readPipeline = (cursor: Cursor): void => {
  if (isWord(cursor, '!')) {
    cursor.at++;
    skipBlanks(cursor);
  }
  const before = cursor.findings.commands.length;
  for (let parts = 1; ; parts++) {
    deeper(cursor, () => readCommand(cursor)); // refuses a text that is nested too deeply
    if (parts > 1) markFlow(cursor, before, 'apart');
    skipBlanks(cursor);
    if (peek(cursor) !== '|' || peek(cursor, 1) === '|') return;
    cursor.at += peek(cursor, 1) === '&' ? 2 : 1;
    skipLines(cursor);
  }
};

/** Reads a list up to one of these words, consumes the word and returns it. */
const readBlock = (cursor: Cursor, ...words: readonly string[]): string => {
  readList(cursor, words);
  const end = words.find((word) => isWord(cursor, word)) ?? '';
  cursor.at += end.length;
  return end;
};

const readIf = (cursor: Cursor): void => {
  for (let next = 'elif'; next === 'elif'; ) {
    readBlock(cursor, 'then');
    next = readBlock(cursor, 'elif', 'else', 'fi');
    if (next === 'else') readBlock(cursor, 'fi');
  }
};

const readWhile = (cursor: Cursor): void => {
  readBlock(cursor, 'do');
  readBlock(cursor, 'done');
};

const readFor = (cursor: Cursor): void => {
  skipBlanks(cursor);
  if (isAt(cursor, '((')) {
    cursor.at += 2;
    // `a; b; c))`
    for (const close of [';', ';', '))']) readArithmetic(cursor, close);
  } else {
    const name = readWord(cursor);
    if (name.text === null || !/^[A-Za-z_]\w*$/.test(name.text))
      throw unclear('a loop has no name');
    if (name.text === 'PATH' || changesShell(name.text))
      throw unclear(`a loop sets ${name.text}, which changes what commands mean`);
    skipLines(cursor);
    if (isWord(cursor, 'in')) {
      cursor.at += 2;
      let hasWord = true;
      while (hasWord) {
        skipBlanks(cursor);
        skipComment(cursor);
        const { start, end } = readWord(cursor);
        hasWord = end > start;
      }
    }
  }
  skipBlanks(cursor);
  if (peek(cursor) === ';') cursor.at++;
  takeWord(cursor, 'do');
  readBlock(cursor, 'done');
};

const readCase = (cursor: Cursor): void => {
  skipBlanks(cursor);
  readWord(cursor);
  takeWord(cursor, 'in');
  for (;;) {
    skipLines(cursor);
    if (isWord(cursor, 'esac')) break;
    if (peek(cursor) === '(') cursor.at++;
    readPatterns(cursor);
    readList(cursor, [';;', ';&', 'esac']);
    if (isWord(cursor, 'esac')) break;
    cursor.at += isAt(cursor, ';;&') ? 3 : 2;
  }
  cursor.at += 'esac'.length;
};

const readPatterns = (cursor: Cursor): void => {
  for (;;) {
    skipBlanks(cursor);
    const { start, end } = readWord(cursor);
    if (start === end) throw unclear('a case has no pattern');
    skipBlanks(cursor);
    if (peek(cursor) !== '|' && peek(cursor) !== ')')
      throw unclear('the pattern of a case goes on oddly');
    if (cursor.text[cursor.at++] === ')') return;
  }
};

const defineFunction = (cursor: Cursor, name: string): void => {
  cursor.findings.functions.push(name);
  cursor.findings.hasCompound = true;
  skipLines(cursor);
  if (!isWord(cursor, '{') && peek(cursor) !== '(') throw unclear('a function has an odd body');
  readCommand(cursor);
};

const readFunction = (cursor: Cursor): void => {
  skipBlanks(cursor);
  const { text } = readWord(cursor);
  if (text === null || text === '') throw unclear('a function has no name');
  skipBlanks(cursor);
  const parens = /^\([ \t]*\)/.exec(cursor.text.slice(cursor.at, cursor.limit));
  cursor.at += parens?.[0].length ?? 0;
  defineFunction(cursor, text);
};

/** Compound commands by their first word. */
const compounds: readonly (readonly [word: string, read: (cursor: Cursor) => void])[] = [
  ['{', (cursor) => void readBlock(cursor, '}')],
  ['if', readIf],
  ['while', readWhile],
  ['until', readWhile],
  ['for', readFor],
  ['select', readFor],
  ['case', readCase],
  ['function', readFunction],
  ['[[', readTest],
];
/** Reserved words with which no command begins here. */
const RESERVED = ['then', 'elif', 'else', 'fi', 'do', 'done', 'esac', '}', ']]', 'coproc', '!'];

/** Reads `(list)` or `((arithmetic))`. */
const readParenthesis = (cursor: Cursor): void => {
  if (isAt(cursor, '((')) {
    cursor.at += 2;
    cursor.findings.evaluates = true;
    cursor.findings.isBashOnly = true;
    readArithmetic(cursor, '))');
    return;
  }
  cursor.at++;
  readList(cursor, [')']);
  cursor.at++;
};

/** Reads a compound or simple command, or the definition of a function. */
function readCommand(cursor: Cursor): void {
  skipBlanks(cursor);
  const compound = compounds.find(([word]) => isWord(cursor, word));
  const [word] = compound ?? [''];
  if (peek(cursor) === '(' || compound !== undefined) cursor.findings.hasCompound = true;
  if (peek(cursor) === '(') readParenthesis(cursor);
  else if (compound !== undefined) {
    cursor.at += word.length;
    compound[1](cursor);
  } else {
    const reserved = RESERVED.find((one) => isWord(cursor, one));
    if (reserved !== undefined) throw unclear(`'${reserved}' stands where a command begins`);
    const read = readSimpleCommand(cursor);
    if (read.kind === 'function') defineFunction(cursor, read.name);
    return;
  }
  // the body of a function is read as a command, with its redirections
  if (word !== 'function') readRedirections(cursor);
}

// ---- Simple commands: assignments, words and redirections ----

/** Builtins whose arguments may assign lists: `declare x=(a b)`. */
const DECLARING = new Set(['declare', 'typeset', 'local', 'export', 'readonly']);
const ASSIGNMENT = /^([A-Za-z_]\w*)(\[[^\]]*\])?\+?=/;
const OPERATOR = /^(&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|<|>)/;

/** Whether the shell may open a network connection instead of a file. */
const maybeSocket = (raw: string, path: string | null): boolean =>
  !raw.startsWith('<(') && (path === null || /^\/dev\/(tcp|udp)\//.test(path));

type Redirections = {
  readonly writes: (string | null)[];
  /** Indexes of `writes` that only append. */
  readonly appends: number[];
  readonly readsFrom: string[];
  /**
   * The input of the command. `a text`: a here-document in which nothing is replaced, and no
   * other input. A file stays counted, although the last redirection wins.
   */
  reads: 'stdin' | 'a text' | 'a text or file';
};

/** Reads the delimiter of a here-document, whose body follows after the line. True if quoted. */
const readDelimiter = (cursor: Cursor, stripTabs: boolean): boolean => {
  const { start, end } = readWord(cursor);
  const raw = cursor.text.slice(start, end);
  if (!/^([\w.-]+|'[^'\n]*'|"[^"\\$`\n]*"|\\[\w.-]+)$/.test(raw))
    throw unclear('the delimiter of a here-document is not plain');
  const quoted = /^['"\\]/.test(raw);
  const delimiter = raw.replace(/^\\/, '').replace(/^(['"])(.*)\1$/, '$2');
  cursor.pending.push({ delimiter, quoted, stripTabs });
  return quoted;
};

/** Reads a redirection; false if none begins here. */
const readRedirection = (cursor: Cursor, redirections: Redirections): boolean => {
  const rest = cursor.text.slice(cursor.at, Math.min(cursor.limit, cursor.at + 100));
  const descriptor = /^(\d*)(?=[<>])/.exec(rest)?.[0].length ?? 0;
  if (/^\{\w+\}[<>]/.test(rest))
    throw unclear('{name}> opens a descriptor that is numbered at run time');
  const operator = OPERATOR.exec(rest.slice(descriptor))?.[0];
  if (operator === undefined) return false;
  if (/^[<>]\(/.test(rest.slice(descriptor))) {
    if (descriptor > 0) throw unclear('a number stands before a process substitution');
    return false;
  }
  cursor.at += descriptor + operator.length;
  if (operator.startsWith('&')) cursor.findings.isBashOnly = true;
  skipBlanks(cursor);
  if (operator === '<<' || operator === '<<-') {
    const isPlain = readDelimiter(cursor, operator === '<<-') && redirections.reads === 'stdin';
    redirections.reads = isPlain ? 'a text' : 'a text or file';
    return true;
  }
  const { text, start, end } = readWord(cursor);
  if (start === end) throw unclear(`${operator} has no target`);
  const isCopy =
    (operator === '>&' || operator === '<&') && text !== null && /^(\d+-?|-)$/.test(text);
  if (operator.startsWith('<')) redirections.reads = 'a text or file';
  if (isCopy || operator === '<<<') return true;
  // a read that may open a connection counts as a write, so that the policy sees its target
  if ((operator !== '<' && operator !== '<&') || maybeSocket(cursor.text.slice(start, end), text)) {
    if (operator.endsWith('>>')) redirections.appends.push(redirections.writes.length);
    redirections.writes.push(text);
  } else if (text !== null) redirections.readsFrom.push(text);
  return true;
};

/** Reads the redirections after a compound command, and records them as a command without words. */
const readRedirections = (cursor: Cursor): void => {
  const redirections: Redirections = { writes: [], appends: [], readsFrom: [], reads: 'stdin' };
  const start = cursor.at;
  do skipBlanks(cursor);
  while (readRedirection(cursor, redirections));
  if (redirections.writes.length + redirections.readsFrom.length > 0)
    addCommand(cursor, {
      start,
      words: [],
      assignments: [],
      ...redirections,
      reads: 'a text or file',
    });
};

/** Reads `(a b)` after `name=`: its elements, or null if they are determined at run time. */
const readArray = (cursor: Cursor): readonly string[] | null => {
  cursor.at++;
  const elements: (string | null)[] = [];
  // nested: commands in it are substitutions, and a here-document that begins in it ends in it
  nested(cursor, () => {
    for (;;) {
      skipLines(cursor);
      if (peek(cursor) === ')') break;
      const { text, shape, start, end } = readWord(cursor);
      if (start === end) throw unclear('a list is not closed');
      // `[2]=c` sets the element at an index, which is arithmetic
      const isSubscript = shape.startsWith('[');
      if (isSubscript && !/^\[\d*\]/.test(shape)) cursor.findings.evaluates = true;
      elements.push(isSubscript ? null : text);
    }
  });
  cursor.at++;
  // bash goes on with the same word: `#` begins no comment there
  if (!isMeta(peek(cursor))) throw unclear('a word goes on behind a list');
  return elements.every((element) => element !== null) ? elements : null;
};

/** The value after `name=`; null if it is determined at run time, adds, or sets one element. */
const assignedValue = (
  { text }: Word,
  [head, , subscript]: RegExpExecArray,
  list: readonly string[] | null,
): Assignment['value'] => {
  if (subscript !== undefined || head.endsWith('+=')) return null;
  return list ?? text?.slice(head.length) ?? null;
};

/** A subscript like `x[i]=` is arithmetic. */
const noteSubscript = (cursor: Cursor, start: number): void => {
  const subscript = /^[A-Za-z_]\w*\[([^\]]*)\]/.exec(cursor.text.slice(start, cursor.at))?.[1];
  if (subscript === undefined || /^[\d@*]*$/.test(subscript)) return;
  cursor.findings.evaluates = true;
};

const endsCommand = (cursor: Cursor): boolean => {
  const char = peek(cursor);
  return char === '' || ';\n|)'.includes(char) || (char === '&' && !isAt(cursor, '&>'));
};

type CommandHead =
  | { readonly kind: 'command' }
  | { readonly kind: 'function'; readonly name: string };

/** The function's name if a first word begins a definition, `name ()`; otherwise null. */
const functionName = (cursor: Cursor, { text: name }: Word): string | null => {
  if (peek(cursor) !== '(') return null;
  const parens = /^\([ \t]*\)/.exec(cursor.text.slice(cursor.at, cursor.limit));
  if (name === null || parens === null) throw unclear('a parenthesis stands where none can');
  cursor.at += parens[0].length;
  return name;
};

/** Reads one simple command, or the head of a function definition. */
const readSimpleCommand = (cursor: Cursor): CommandHead => {
  const start = cursor.at;
  const words: Word[] = [];
  const assignments: Assignment[] = [];
  const redirections: Redirections = { writes: [], appends: [], readsFrom: [], reads: 'stdin' };
  for (;;) {
    skipBlanks(cursor);
    skipComment(cursor);
    if (endsCommand(cursor)) break;
    if (readRedirection(cursor, redirections)) continue;
    const standsAlone =
      words.length === 0 && assignments.length === 0 && redirections.writes.length === 0;
    const word = readWord(cursor);
    // the shape has blanks for quoted parts: `"a=b"` assigns nothing
    const assigned = ASSIGNMENT.exec(word.shape);
    const takesList = words.length === 0 || DECLARING.has(words[0]?.text ?? '');
    const isList =
      assigned !== null && takesList && peek(cursor) === '(' && word.shape.endsWith('=');
    const list = isList ? readArray(cursor) : null;
    if (assigned !== null && words.length === 0) {
      noteSubscript(cursor, word.start);
      const value = isList && list === null ? null : assignedValue(word, assigned, list);
      const raw = cursor.text.slice(word.start, cursor.at);
      assignments.push({ name: assigned[1] ?? '', raw, value });
      continue;
    }
    if (word.start === cursor.at)
      throw unclear(`the character ${JSON.stringify(peek(cursor))} stands where none can`);
    const read = isList ? { ...word, text: null, end: cursor.at } : word;
    words.push(read);
    skipBlanks(cursor);
    const name = standsAlone ? functionName(cursor, read) : null;
    if (name !== null) return { kind: 'function', name };
  }
  const isEmpty =
    words.length === 0 && assignments.length === 0 && redirections.writes.length === 0;
  if (isEmpty && redirections.reads === 'stdin') throw unclear('a command is missing');
  addCommand(cursor, {
    start: words[0]?.start ?? start,
    words,
    assignments,
    ...redirections,
  });
  return { kind: 'command' };
};

// ---- Here-documents ----

/**
 * Reads the body of a here-document with an unquoted delimiter, in which substitutions run as in
 * double quotes.
 */
const readBody = (cursor: Cursor, end: number): void => {
  const { limit } = cursor;
  cursor.limit = end;
  while (!isEnd(cursor)) {
    const char = peek(cursor);
    if (char === '\\') cursor.at += 2;
    else if (char === '$' || char === '`') readExpansion(cursor, 'quoted');
    else cursor.at++;
  }
  cursor.limit = limit;
  if (cursor.at > end) throw unclear('a here-document ends in a backslash');
  cursor.at = end;
};

/** Reads a newline, and the bodies of the here-documents that began before it. */
const readNewline = (cursor: Cursor): void => {
  cursor.at++;
  const { pending } = cursor;
  cursor.pending = [];
  for (const { delimiter, quoted, stripTabs } of pending) {
    const start = cursor.at;
    for (let lineAt = start; ; ) {
      if (lineAt >= cursor.limit) throw unclear(`the here-document ${delimiter} has no end`);
      const newline = cursor.text.indexOf('\n', lineAt);
      const lineEnd = newline < 0 || newline >= cursor.limit ? cursor.limit : newline;
      const line = cursor.text.slice(lineAt, lineEnd);
      const bare = stripTabs ? line.replace(/^\t+/, '') : line;
      // In a substitution bash ends the body there: `EOF)`, and even `EOFx (y)`.
      if (bare.startsWith(delimiter) && bare.includes(')', delimiter.length))
        throw unclear(`a line of the here-document ${delimiter} may end it before its last line`);
      if (bare === delimiter) {
        if (!quoted) readBody(cursor, lineAt);
        cursor.at = Math.min(lineEnd + 1, cursor.limit);
        break;
      }
      if (!quoted && /(^|[^\\])(\\\\)*\\$/.test(line))
        throw unclear('a line of a here-document goes on in the next one');
      lineAt = lineEnd + 1;
    }
  }
};

/** Skips blanks, newlines and comments between commands. */
const skipLines = (cursor: Cursor): void => {
  for (;;) {
    skipBlanks(cursor);
    skipComment(cursor);
    if (peek(cursor) !== '\n') return;
    readNewline(cursor);
  }
};
