import { graphemeEnd, graphemeStart } from '../graphemes.js';
import type { Key } from './key.js';

/**
 * The typed text as an immutable value.
 *
 * 1. `cursor` is between 0 and the length of `text`, never inside a grapheme.
 * 2. Unknown keys change nothing. Control characters never get into the text.
 * 3. A long paste is one character in `text`, its mark. `wholeText` contains the paste unchanged.
 */
export type Editor = {
  readonly text: string;
  readonly cursor: number;
  /** Long pastes, by the number of their mark. */
  readonly folds: readonly string[];
  /** The last cut text, for Ctrl-Y. */
  readonly killed: string;
  /** Undo steps, newest last. */
  readonly past: readonly Moment[];
  /** Letters typed in a row are one undo step. */
  readonly doing: 'typing' | 'other';
};

type Moment = { readonly text: string; readonly cursor: number };

/** Noncharacters of Unicode: real text never contains them, and the cursor moves over one in a single step. */
const MARK_FIRST = 0xfdd0;
const MARKS = 32;
const MARK = /[\ufdd0-\ufdef]/g;

const FOLD_LINES = 10;
const FOLD_CHARACTERS = 1_000;
const PAST_MAX = 200;

export const emptyEditor: Editor = {
  text: '',
  cursor: 0,
  folds: [],
  killed: '',
  past: [],
  doing: 'other',
};

const foldAt = (editor: Editor, mark: string): string => editor.folds[mark.charCodeAt(0) - MARK_FIRST] ?? '';

/** The text to send, with pastes in full. */
export const wholeText = (editor: Editor): string =>
  editor.text.replace(MARK, (mark) => foldAt(editor, mark));

export const labelOf = (editor: Editor, mark: string): string => {
  const fold = foldAt(editor, mark);
  const lines = fold.split('\n').length;
  const size = lines > FOLD_LINES ? `+${lines} lines` : `${fold.length} characters`;
  return `[paste #${mark.charCodeAt(0) - MARK_FIRST + 1} ${size}]`;
};

export const isMark = (sign: string): boolean => /^[\ufdd0-\ufdef]$/.test(sign);

/** The text for the screen, with labels in place of marks. */
export const shownText = (editor: Editor): string =>
  editor.text.replace(MARK, (mark) => labelOf(editor, mark));

const remember = (editor: Editor): readonly Moment[] => [
  ...editor.past.slice(-PAST_MAX + 1),
  { text: editor.text, cursor: editor.cursor },
];

const changed = (editor: Editor, text: string, cursor: number): Editor => ({
  ...editor,
  text,
  cursor,
  past: remember(editor),
  doing: 'other',
});

const moved = (editor: Editor, cursor: number): Editor => ({ ...editor, cursor, doing: 'other' });

/** Replaces the text. Undo brings the old text back. */
export const withText = (editor: Editor, text: string, cursor = text.length): Editor =>
  changed(editor, text, Math.min(cursor, text.length));

export const withCursor = (editor: Editor, cursor: number): Editor => moved(editor, cursor);

/** The editor after its text was sent. */
export const afterSend = (editor: Editor): Editor => ({ ...emptyEditor, killed: editor.killed });

const insert = (editor: Editor, text: string): Editor =>
  changed(
    editor,
    editor.text.slice(0, editor.cursor) + text + editor.text.slice(editor.cursor),
    editor.cursor + text.length,
  );

const typeText = (editor: Editor, text: string): Editor => {
  const after = insert(editor, text);
  const goesOn = editor.doing === 'typing' && !/\s/.test(text);
  return { ...after, past: goesOn ? editor.past : after.past, doing: 'typing' };
};

const cut = (editor: Editor, from: number, to: number): Editor =>
  from === to ? editor : changed(editor, editor.text.slice(0, from) + editor.text.slice(to), from);

const kill = (editor: Editor, from: number, to: number): Editor =>
  from === to ? editor : { ...cut(editor, from, to), killed: editor.text.slice(from, to) };

const lineStart = ({ text, cursor }: Editor): number => text.lastIndexOf('\n', cursor - 1) + 1;
const lineEnd = ({ text, cursor }: Editor): number => {
  const end = text.indexOf('\n', cursor);
  return end < 0 ? text.length : end;
};
const wordStart = ({ text, cursor }: Editor): number => text.slice(0, cursor).search(/\S*\s*$/);
const wordEnd = ({ text, cursor }: Editor): number =>
  cursor + (/^\s*\S*/.exec(text.slice(cursor))?.[0].length ?? 0);
const before = ({ text, cursor }: Editor): number => graphemeStart(text, cursor);
const after = ({ text, cursor }: Editor): number => graphemeEnd(text, cursor);

const undo = (editor: Editor): Editor => {
  const moment = editor.past.at(-1);
  return moment === undefined
    ? editor
    : { ...editor, ...moment, past: editor.past.slice(0, -1), doing: 'other' };
};

type Change = (editor: Editor) => Editor;

const toStart: Change = (editor) => moved(editor, lineStart(editor));
const toEnd: Change = (editor) => moved(editor, lineEnd(editor));
const toLeft: Change = (editor) => moved(editor, before(editor));
const toRight: Change = (editor) => moved(editor, after(editor));
const wordLeft: Change = (editor) => moved(editor, wordStart(editor));
const wordRight: Change = (editor) => moved(editor, wordEnd(editor));
const eraseLeft: Change = (editor) => cut(editor, before(editor), editor.cursor);
const eraseRight: Change = (editor) => cut(editor, editor.cursor, after(editor));
const killWord: Change = (editor) => kill(editor, wordStart(editor), editor.cursor);
/** At the end of a line Ctrl-K removes the line break, so that pressing it again continues with the next line. */
const killRest: Change = (editor) =>
  kill(editor, editor.cursor, lineEnd(editor) === editor.cursor ? after(editor) : lineEnd(editor));

const controls: Readonly<Record<string, Change>> = {
  a: toStart,
  e: toEnd,
  b: toLeft,
  f: toRight,
  u: (editor) => kill(editor, lineStart(editor), editor.cursor),
  k: killRest,
  w: killWord,
  h: eraseLeft,
  d: eraseRight,
  y: (editor) => (editor.killed === '' ? editor : insert(editor, editor.killed)),
  j: (editor) => insert(editor, '\n'),
  _: undo,
  '-': undo,
  left: wordLeft,
  right: wordRight,
  backspace: killWord,
  delete: (editor) => kill(editor, editor.cursor, wordEnd(editor)),
  home: (editor) => moved(editor, 0),
  end: (editor) => moved(editor, editor.text.length),
};

const alts: Readonly<Record<string, Change>> = {
  b: wordLeft,
  f: wordRight,
  left: wordLeft,
  right: wordRight,
  backspace: killWord,
  d: (editor) => kill(editor, editor.cursor, wordEnd(editor)),
};

const plain: Readonly<Record<string, Change>> = {
  left: toLeft,
  right: toRight,
  home: toStart,
  end: toEnd,
  backspace: eraseLeft,
  delete: eraseRight,
};

const changeOf = ({ name, control, alt }: Key): Change | undefined => {
  if (control && alt) return undefined;
  if (control) return controls[name];
  return alt ? alts[name] : plain[name];
};

const withoutControls = (text: string): string =>
  text
    .replace(/\r\n?/g, '\n')
    .replace(/[^\P{Cc}\n\t]/gu, '')
    .replace(MARK, '\ufffd');

/** The editor after a key; unchanged for unknown keys. The composer handles Enter, Escape, Tab, Up and Down. */
export const applyKey = (editor: Editor, key: Key): Editor => {
  if (key.text !== '') return typeText(editor, withoutControls(key.text));
  return changeOf(key)?.(editor) ?? editor;
};

/** Breaks the line at the cursor. A backslash before the cursor, typed to ask for the break, is removed. */
export const breakLine = (editor: Editor): Editor => {
  const start = editor.text[editor.cursor - 1] === '\\' ? editor.cursor - 1 : editor.cursor;
  const text = `${editor.text.slice(0, start)}\n${editor.text.slice(editor.cursor)}`;
  return changed(editor, text, start + 1);
};

/** Inserts a word at the cursor, with spaces around it where there are none. */
export const insertWord = (editor: Editor, word: string): Editor => {
  const [left, right] = [editor.text.slice(0, editor.cursor), editor.text.slice(editor.cursor)];
  const begun = `${left}${/\S$/.test(left) ? ' ' : ''}${word}${/^\s/.test(right) ? '' : ' '}`;
  return changed(editor, begun + right, begun.length);
};

/** Inserts a paste without its control characters; a long one as a mark. */
export const insertPaste = (editor: Editor, given: string): Editor => {
  const text = withoutControls(given);
  const long = text.length > FOLD_CHARACTERS || text.split('\n').length > FOLD_LINES;
  const number = editor.folds.length;
  if (!long || number >= MARKS) return text === '' ? editor : insert(editor, text);
  const folded = { ...editor, folds: [...editor.folds, text] };
  return insert(folded, String.fromCharCode(MARK_FIRST + number));
};

/** Inserts a word for a paste. The first undo restores the pasted text, the second one removes it. */
export const insertPasteAs = (editor: Editor, given: string, word: string): Editor => {
  const raw = insertPaste(editor, given);
  return { ...insertWord(editor, word), folds: raw.folds, past: remember(raw) };
};
