import { type Cursor, deeper, isAt, isEnd, isMeta, peek, skipBlanks, unclear } from './cursor.js';
import { readNewline, skipLines } from './here-documents.js';
import { readTest } from './read-double-brackets.js';
import { readRedirections, readSimpleCommand } from './read-simple-command.js';
import { readArithmetic, readWord } from './read-words.js';

/** Reads lists, pipelines and compound commands. */

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

const isOperator = (end: string): boolean => !/^\w/.test(end) && end !== '}';
const standsHere = (cursor: Cursor, end: string): boolean =>
  isOperator(end) ? isAt(cursor, end) : isWord(cursor, end);

const isAtEnd = (cursor: Cursor, ends: readonly string[]): boolean =>
  ends.some((end) => standsHere(cursor, end)) || (ends.length === 0 && isEnd(cursor));

/** Reads commands up to one of `ends`, which it does not consume, or up to the end of the text if there are none. */
export const readList = (cursor: Cursor, ends: readonly string[]): void => {
  for (;;) {
    skipLines(cursor);
    if (isAtEnd(cursor, ends)) return;
    if (isEnd(cursor)) throw unclear(`'${ends[0] ?? ''}' is missing`);
    readAndOr(cursor);
    skipBlanks(cursor);
    if (peek(cursor) === '\n') readNewline(cursor);
    else if (
      (peek(cursor) === ';' && peek(cursor, 1) !== ';' && peek(cursor, 1) !== '&') ||
      (peek(cursor) === '&' && peek(cursor, 1) !== '&')
    )
      cursor.at++;
    else if (!isAtEnd(cursor, ends) && !isEnd(cursor))
      throw unclear(`the character ${JSON.stringify(peek(cursor))} stands where none can`);
  }
};

const readAndOr = (cursor: Cursor): void => {
  for (;;) {
    readPipeline(cursor);
    skipBlanks(cursor);
    if (!isAt(cursor, '&&') && !isAt(cursor, '||')) return;
    cursor.at += 2;
    skipLines(cursor);
  }
};

const readPipeline = (cursor: Cursor): void => {
  if (isWord(cursor, '!')) {
    cursor.at++;
    skipBlanks(cursor);
  }
  for (;;) {
    deeper(cursor, () => readCommand(cursor));
    skipBlanks(cursor);
    if (peek(cursor) !== '|' || peek(cursor, 1) === '|') return;
    cursor.at += peek(cursor, 1) === '&' ? 2 : 1;
    skipLines(cursor);
  }
};

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
    readArithmeticParts(cursor);
  } else {
    const name = readWord(cursor);
    if (name.text === null || !/^[A-Za-z_]\w*$/.test(name.text)) throw unclear('a loop has no name');
    skipLines(cursor);
    if (isWord(cursor, 'in')) {
      cursor.at += 2;
      readWords(cursor);
    }
  }
  skipBlanks(cursor);
  if (peek(cursor) === ';') cursor.at++;
  takeWord(cursor, 'do');
  readBlock(cursor, 'done');
};

/** `a; b; c))` */
const readArithmeticParts = (cursor: Cursor): void => {
  readArithmetic(cursor, ';');
  readArithmetic(cursor, ';');
  readArithmetic(cursor, '))');
};

const readWords = (cursor: Cursor): void => {
  for (;;) {
    skipBlanks(cursor);
    const { start, end } = readWord(cursor);
    if (start === end) return;
  }
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
    if (peek(cursor) !== '|' && peek(cursor) !== ')') throw unclear('the pattern of a case goes on oddly');
    if (cursor.text[cursor.at++] === ')') return;
  }
};

const defineFunction = (cursor: Cursor, name: string): void => {
  cursor.findings.functions.push(name);
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
/** Words that bash treats as syntax at the start of a command. */
const RESERVED = ['then', 'elif', 'else', 'fi', 'do', 'done', 'esac', 'in', '}', ']]', 'coproc', '!'];

const readParenthesis = (cursor: Cursor): void => {
  if (isAt(cursor, '((')) {
    cursor.at += 2;
    cursor.findings.evaluates = true;
    readArithmetic(cursor, '))');
    return;
  }
  cursor.at++;
  readList(cursor, [')']);
  cursor.at++;
};

function readCommand(cursor: Cursor): void {
  skipBlanks(cursor);
  const compound = compounds.find(([word]) => isWord(cursor, word));
  const [word] = compound ?? [''];
  if (peek(cursor) === '(') readParenthesis(cursor);
  else if (compound !== undefined) {
    cursor.at += word.length;
    compound[1](cursor);
  } else {
    const reserved = RESERVED.find((one) => isWord(cursor, one));
    if (reserved !== undefined && reserved !== 'in')
      throw unclear(`'${reserved}' stands where a command begins`);
    const read = readSimpleCommand(cursor);
    if (read.kind === 'function') defineFunction(cursor, read.name);
    return;
  }
  if (word !== 'function') readRedirections(cursor);
}
