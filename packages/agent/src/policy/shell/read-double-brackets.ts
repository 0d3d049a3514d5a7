import { type Cursor, isAt, isMeta, peek, skipBlanks, unclear } from './cursor.js';
import { skipLines } from './here-documents.js';
import { readExpansion, readWord } from './read-words.js';

/** Operators that evaluate their operands as arithmetic, substitutions in them included. */
const EVALUATING = /^(-eq|-ne|-lt|-le|-gt|-ge|-v|-R)$/;

/** The pattern after `=~`: a word that may contain parentheses and bars. */
const readPattern = (cursor: Cursor): void => {
  let open = 0;
  for (;;) {
    const char = peek(cursor);
    if (char === '' || char === '\n') throw unclear('[[ is not closed');
    if (open === 0 && (char === ' ' || char === '\t')) return;
    if (char === '(') open++;
    if (char === ')' && --open < 0) throw unclear('the pattern after =~ has a parenthesis too many');
    if (char === '\\') cursor.at += 2;
    else if (char === '$' && /^\$[)\s|]/.test(cursor.text.slice(cursor.at, cursor.at + 2))) cursor.at++;
    else if (char === '$' || char === '`') readExpansion(cursor, 'bare');
    else if (char === "'" || char === '"') readWord(cursor);
    else cursor.at++;
  }
};

/** Reads `[[ … ]]` after its first word. It runs nothing except the substitutions in it. */
export const readTest = (cursor: Cursor): void => {
  for (;;) {
    skipLines(cursor);
    if (isAt(cursor, ']]') && isMeta(peek(cursor, 2))) break;
    const two = cursor.text.slice(cursor.at, Math.min(cursor.limit, cursor.at + 2));
    if (two === '&&' || two === '||') cursor.at += 2;
    else if (!two.endsWith('(') && /^[<>]/.test(two)) cursor.at++;
    else if (/^[()]/.test(two)) cursor.at++;
    else readOperand(cursor);
  }
  cursor.at += 2;
};

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
