import { type Cursor, isEnd, peek, skipBlanks, skipComment, unclear } from './cursor.js';
import { readExpansion } from './read-words.js';

/** Reads the body of a here-document with an unquoted delimiter, in which substitutions run as in double quotes. */
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
export const readNewline = (cursor: Cursor): void => {
  cursor.at++;
  const waiting = cursor.pending;
  cursor.pending = [];
  for (const { delimiter, quoted, stripTabs } of waiting) {
    const start = cursor.at;
    for (let lineAt = start; ; ) {
      if (lineAt >= cursor.limit) throw unclear(`the here-document ${delimiter} has no end`);
      const newline = cursor.text.indexOf('\n', lineAt);
      const lineEnd = newline < 0 || newline >= cursor.limit ? cursor.limit : newline;
      const line = cursor.text.slice(lineAt, lineEnd);
      if ((stripTabs ? line.replace(/^\t+/, '') : line) === delimiter) {
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
export const skipLines = (cursor: Cursor): void => {
  for (;;) {
    skipBlanks(cursor);
    skipComment(cursor);
    if (peek(cursor) !== '\n') return;
    readNewline(cursor);
  }
};
