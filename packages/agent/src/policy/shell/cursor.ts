/**
 * A position in a shell text, with the findings up to there.
 *
 * 1. Syntax that the reader does not understand as bash does ends the reading with `Unclear`. Nothing is guessed.
 * 2. The body of a here-document is read at the newline after its operator, as in bash.
 */

/** The text can't be read as bash would read it. Only `readCommands` catches this. */
export class Unclear extends Error {}

/**
 * A word after quote removal. `text` is null if it is known only at run time. `pattern` is present if the word expands
 * to file names: characters that were quoted are escaped in it.
 */
export type Word = {
  readonly text: string | null;
  readonly pattern?: string;
  readonly start: number;
  readonly end: number;
};

/** A simple command in the text. `start` is the offset of its first word. */
export type SimpleCommand = {
  readonly start: number;
  readonly words: readonly Word[];
  readonly assignments: readonly Assignment[];
  readonly writes: readonly (string | null)[];
  /** Indexes of `writes` that only append. */
  readonly appends: readonly number[];
  readonly reads: 'own input' | 'a text or file';
};

export type Assignment = { readonly name: string; readonly raw: string };

type HereDocument = { readonly delimiter: string; readonly quoted: boolean; readonly stripTabs: boolean };

/** Findings in a text. `evaluates`: it evaluates arithmetic, which runs substitutions in the values of variables. */
export type Findings = {
  readonly commands: SimpleCommand[];
  readonly functions: string[];
  evaluates: boolean;
  /** A literal text contains a substitution, which runs only if the text is evaluated. */
  quotesSubstitution: boolean;
};

export type Cursor = {
  readonly text: string;
  at: number;
  /** Offset at which reading ends. */
  limit: number;
  depth: number;
  pending: HereDocument[];
  readonly findings: Findings;
  /** Reads a list of commands up to one of `ends`, which it does not consume. */
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
  deeper(cursor, read);
  if (cursor.pending.length > 0) throw unclear('a here-document has no body where one should be');
  if (outer.length > 0 && cursor.text.slice(start, cursor.at).includes('\n'))
    throw unclear('a here-document begins before a substitution of several lines');
  cursor.pending = outer;
};

export const addCommand = ({ findings }: Cursor, command: SimpleCommand): void => {
  if (findings.commands.length >= COMMANDS_MAX) throw unclear(`it has more than ${COMMANDS_MAX} commands`);
  findings.commands.push(command);
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
