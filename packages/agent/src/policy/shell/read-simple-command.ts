import {
  type Assignment,
  addCommand,
  type Cursor,
  isAt,
  nested,
  peek,
  skipBlanks,
  skipComment,
  unclear,
  type Word,
} from './cursor.js';
import { skipLines } from './here-documents.js';
import { readWord } from './read-words.js';

/** Reads simple commands: assignments, words and redirections in any order. */

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
  takesInput: boolean;
};

const readDelimiter = (cursor: Cursor, stripTabs: boolean): void => {
  const { start, end } = readWord(cursor);
  const raw = cursor.text.slice(start, end);
  if (!/^([\w.-]+|'[^'\n]*'|"[^"\\$`\n]*"|\\[\w.-]+)$/.test(raw))
    throw unclear('the delimiter of a here-document is not plain');
  const quoted = /^['"\\]/.test(raw);
  const delimiter = raw.replace(/^\\/, '').replace(/^(['"])(.*)\1$/, '$2');
  cursor.pending.push({ delimiter, quoted, stripTabs });
};

/** Reads a redirection; false if none begins here. */
const readRedirection = (cursor: Cursor, found: Redirections): boolean => {
  const rest = cursor.text.slice(cursor.at, Math.min(cursor.limit, cursor.at + 100));
  const descriptor = /^(\d*)(?=[<>])/.exec(rest)?.[0].length ?? 0;
  if (/^\{\w+\}[<>]/.test(rest)) throw unclear('{name}> opens a descriptor that is numbered at run time');
  const operator = OPERATOR.exec(rest.slice(descriptor))?.[0];
  if (operator === undefined) return false;
  if (/^[<>]\(/.test(rest.slice(descriptor))) {
    if (descriptor > 0) throw unclear('a number stands before a process substitution');
    return false;
  }
  cursor.at += descriptor + operator.length;
  skipBlanks(cursor);
  if (operator === '<<' || operator === '<<-') {
    readDelimiter(cursor, operator === '<<-');
    found.takesInput = true;
    return true;
  }
  const { text, start, end } = readWord(cursor);
  if (start === end) throw unclear(`${operator} has no target`);
  const isCopy = (operator === '>&' || operator === '<&') && text !== null && /^(\d+-?|-)$/.test(text);
  if (operator.startsWith('<') && operator !== '<>') found.takesInput = true;
  if (isCopy || operator === '<<<') return true;
  if ((operator !== '<' && operator !== '<&') || maybeSocket(cursor.text.slice(start, end), text)) {
    if (operator.endsWith('>>')) found.appends.push(found.writes.length);
    found.writes.push(text);
  }
  return true;
};

/** Reads the redirections after a compound command, and records them as a command without words. */
export const readRedirections = (cursor: Cursor): void => {
  const found: Redirections = { writes: [], appends: [], takesInput: false };
  const start = cursor.at;
  do skipBlanks(cursor);
  while (readRedirection(cursor, found));
  if (found.writes.length > 0)
    addCommand(cursor, {
      start,
      words: [],
      assignments: [],
      writes: found.writes,
      appends: found.appends,
      reads: 'a text or file',
    });
};

/** Reads `(a b)` after `name=`. */
const readList = (cursor: Cursor): void => {
  cursor.at++;
  nested(cursor, () => {
    for (;;) {
      skipLines(cursor);
      if (peek(cursor) === ')') break;
      const { start, end } = readWord(cursor);
      if (start === end) throw unclear('a list is not closed');
    }
  });
  cursor.at++;
};

const readSubscripted = (cursor: Cursor, start: number): void => {
  const subscript = /^[A-Za-z_]\w*\[([^\]]*)\]/.exec(cursor.text.slice(start, cursor.at))?.[1];
  if (subscript === undefined || /^[\d@*]*$/.test(subscript)) return;
  cursor.findings.evaluates = true;
};

const isRedirection = (cursor: Cursor): boolean => isAt(cursor, '&>');

const endsCommand = (cursor: Cursor): boolean => {
  const char = peek(cursor);
  return char === '' || (';\n|)'.includes(char) && char !== '') || (char === '&' && !isRedirection(cursor));
};

export type CommandHead = { readonly kind: 'command' } | { readonly kind: 'function'; readonly name: string };

/** The function's name if the words begin a definition, `name ()`; otherwise null. */
const definedName = (cursor: Cursor, words: readonly Word[], isFirst: boolean): string | null => {
  if (!isFirst || peek(cursor) !== '(') return null;
  const name = words[0]?.text;
  const parens = /^\([ \t]*\)/.exec(cursor.text.slice(cursor.at, cursor.limit));
  if (name == null || parens === null || words.length !== 1)
    throw unclear('a parenthesis stands where none can');
  cursor.at += parens[0].length;
  return name;
};

/** Reads one simple command, or the head of a function definition. */
export const readSimpleCommand = (cursor: Cursor): CommandHead => {
  const start = cursor.at;
  const words: Word[] = [];
  const assignments: Assignment[] = [];
  const found: Redirections = { writes: [], appends: [], takesInput: false };
  for (;;) {
    skipBlanks(cursor);
    skipComment(cursor);
    if (endsCommand(cursor)) break;
    if (readRedirection(cursor, found)) continue;
    const isPlain = words.length === 0 && assignments.length === 0 && found.writes.length === 0;
    const word = readWord(cursor);
    const assigned = ASSIGNMENT.exec(word.shape);
    const takesList = words.length === 0 || DECLARING.has(words[0]?.text ?? '');
    const isList = assigned !== null && takesList && peek(cursor) === '(' && word.shape.endsWith('=');
    if (isList) readList(cursor);
    if (assigned !== null && words.length === 0) {
      readSubscripted(cursor, word.start);
      assignments.push({ name: assigned[1] ?? '', raw: cursor.text.slice(word.start, cursor.at) });
      continue;
    }
    if (word.start === cursor.at)
      throw unclear(`the character ${JSON.stringify(peek(cursor))} stands where none can`);
    words.push(isList ? { ...word, text: null, end: cursor.at } : word);
    skipBlanks(cursor);
    const name = definedName(cursor, words, isPlain);
    if (name !== null) return { kind: 'function', name };
  }
  const isNothing = words.length === 0 && assignments.length === 0 && found.writes.length === 0;
  if (isNothing && !found.takesInput) throw unclear('a command is missing');
  addCommand(cursor, {
    start: words[0]?.start ?? start,
    words,
    assignments,
    writes: found.writes,
    appends: found.appends,
    reads: found.takesInput ? 'a text or file' : 'own input',
  });
  return { kind: 'command' };
};
