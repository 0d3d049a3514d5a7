/**
 * The line that the user types, as a value: text, place of the cursor, and what was typed before.
 *
 * 1. `cursor` lies between 0 and the length of `text`, never inside a surrogate pair.
 * 2. A key that means nothing changes nothing; control characters never get into the text.
 */
export type Line = {
  readonly text: string;
  readonly cursor: number;
  readonly past: readonly string[];
  /** Index into `past` while older lines are looked at; its length otherwise. */
  readonly shown: number;
  /** The line that was left to look at older ones. */
  readonly draft: string;
};

/** As node:readline reports it; `text` is what the key types. */
export type Key = {
  readonly name: string;
  readonly text: string;
  readonly control: boolean;
  readonly alt: boolean;
};

export const emptyLine = (past: readonly string[] = []): Line => ({
  text: '',
  cursor: 0,
  past,
  shown: past.length,
  draft: '',
});

export const withText = (line: Line, text: string): Line => ({ ...line, text, cursor: text.length });

/** The line after it was sent: empty, and remembered. */
export const submitted = (line: Line): Line =>
  emptyLine(
    line.text.trim() === '' || line.past.at(-1) === line.text ? line.past : [...line.past, line.text],
  );

const before = (line: Line): number => {
  const code = line.text.charCodeAt(line.cursor - 1);
  return Math.max(0, line.cursor - (code >= 0xdc00 && code <= 0xdfff ? 2 : 1));
};

const after = (line: Line): number => {
  const code = line.text.charCodeAt(line.cursor);
  return Math.min(line.text.length, line.cursor + (code >= 0xd800 && code <= 0xdbff ? 2 : 1));
};

const wordBefore = (line: Line): number => line.text.slice(0, line.cursor).search(/\S*\s*$/);
const wordAfter = (line: Line): number =>
  line.cursor + (/^\s*\S*/.exec(line.text.slice(line.cursor))?.[0].length ?? 0);

const cut = (line: Line, from: number, to: number): Line => ({
  ...line,
  text: line.text.slice(0, from) + line.text.slice(to),
  cursor: from,
});

const insert = (line: Line, text: string): Line => ({
  ...line,
  text: line.text.slice(0, line.cursor) + text + line.text.slice(line.cursor),
  cursor: line.cursor + text.length,
});

const look = (line: Line, by: -1 | 1): Line => {
  const shown = line.shown + by;
  if (shown < 0 || shown > line.past.length) return line;
  const draft = line.shown === line.past.length ? line.text : line.draft;
  const text = shown === line.past.length ? draft : (line.past[shown] ?? '');
  return { ...line, draft, shown, text, cursor: text.length };
};

const controls: Readonly<Record<string, (line: Line) => Line>> = {
  a: (line) => ({ ...line, cursor: 0 }),
  e: (line) => ({ ...line, cursor: line.text.length }),
  b: (line) => ({ ...line, cursor: before(line) }),
  f: (line) => ({ ...line, cursor: after(line) }),
  u: (line) => cut(line, 0, line.cursor),
  k: (line) => cut(line, line.cursor, line.text.length),
  w: (line) => cut(line, wordBefore(line), line.cursor),
  h: (line) => cut(line, before(line), line.cursor),
  p: (line) => look(line, -1),
  n: (line) => look(line, 1),
  j: (line) => insert(line, '\n'),
  left: (line) => ({ ...line, cursor: wordBefore(line) }),
  right: (line) => ({ ...line, cursor: wordAfter(line) }),
};

const plain: Readonly<Record<string, (line: Line) => Line>> = {
  left: (line) => ({ ...line, cursor: before(line) }),
  right: (line) => ({ ...line, cursor: after(line) }),
  home: (line) => ({ ...line, cursor: 0 }),
  end: (line) => ({ ...line, cursor: line.text.length }),
  up: (line) => look(line, -1),
  down: (line) => look(line, 1),
  backspace: (line) => cut(line, before(line), line.cursor),
  delete: (line) => cut(line, line.cursor, after(line)),
  tab: (line) => insert(line, '  '),
};

const isText = (text: string): boolean =>
  text !== '' && !/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(text);

/** The line after a key. Enter, Escape, Ctrl-C and Ctrl-D are not the line's business. */
export const typed = (line: Line, key: Key): Line => {
  const move = key.control ? controls[key.name] : plain[key.name];
  if (move !== undefined && !key.alt) return move(line);
  if (key.alt && key.name === 'backspace') return cut(line, wordBefore(line), line.cursor);
  return !key.control && !key.alt && isText(key.text) ? insert(line, key.text) : line;
};

/** Pasted text goes in as it is, control characters left out. */
export const pasted = (line: Line, text: string): Line =>
  insert(line, text.replace(/\r\n?/g, '\n').replace(/[^\P{Cc}\n\t]/gu, ''));
