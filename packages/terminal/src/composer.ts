/**
 * The input line: what each key does to the typed text, and the rows that show it.
 *
 * From top to bottom: `Composer`, which holds the text and offers completions; `History`, the sent
 * texts; `Editor`, the text with its cursor as an immutable value; and the layout of the text in
 * rows. `Safe` is text that can't control the terminal. A mark is the one character that stands in
 * the text for a long paste; on the screen it is a label, such as `[paste #1 +30 lines]`.
 */

import {
  applyCompletion,
  type Choice,
  type CompletionList,
  type CompletionStem,
  isTyped,
  moveSelection,
  offerRows,
  rankChoices,
  stemAt,
} from './choices.js';
import type { Key, Pressed } from './keys.js';
import type { Frame } from './live-area.js';
import { countColumns, dropLast, graphemeEnd, graphemeStart, splitGraphemes } from './paint.js';
import { joinSafe, makeSafe, type Safe, safe } from './safe-text.js';

/** Source of completions. The composer drops results that no longer belong to the current text. */
type Completer = {
  readonly commands: readonly Choice[];
  /**
   * Files that match. After `signal` is aborted the result is ignored, so it may come late or
   * reject.
   */
  files(words: string, signal: AbortSignal): Promise<readonly Choice[]>;
};

/** What a key asks for beyond editing the text. */
export type ComposerResult =
  /** Send. `shown`: the text with labels for long pastes. `later`: after the current turn. */
  | {
      readonly kind: 'submit';
      readonly text: string;
      readonly shown: string;
      readonly mode: 'now' | 'later';
    }
  /** Insert the picture from the clipboard. Terminals can't paste pictures. */
  | { readonly kind: 'picture' }
  /** Change to the next preset (a named set of permissions). */
  | { readonly kind: 'preset' }
  /** Open the list of a command: models, or earlier sessions. */
  | { readonly kind: 'list'; readonly command: 'model' | 'resume' }
  | { readonly kind: 'none' };

const NONE: ComposerResult = { kind: 'none' };

/**
 * The word to insert for a paste, such as `@shot.png` for a path; null if there is none. `before`:
 * text left of the cursor.
 */
export type NamePaste = (pasted: string, before: string) => string | null;

/**
 * A search in the history. `index`: of the text that matches. `before`, `position`: the editor
 * and the place in the history when the search began.
 */
type Search = {
  readonly words: string;
  readonly index: number | null;
  readonly before: Editor;
  readonly position: number;
};

/**
 * The input line: editor, history, history search, completion.
 *
 * 1. Text is only removed by Enter or by the user's own edits. Up brings back a sent text, and a
 *    draft that was left for an older text.
 * 2. Completion changes the text only on Tab, or on Enter if the selected word differs from the
 *    typed one. Enter then also sends a command that needs no more words.
 */
export class Composer {
  readonly #completer: Completer;
  readonly #redraw: () => void;
  readonly #namePaste: NamePaste;
  #editor: Editor = emptyEditor;
  #history: History = createHistory([]);
  /** The open completion list. */
  #offer: CompletionList | null = null;
  #search: Search | null = null;
  /** The request for a list of files that has not arrived. */
  #asking: AbortController | null = null;
  /** Width at the last drawing, to move the cursor by rows. */
  #columns = 80;

  /** `redraw` is called for a change that no key caused: a list of files has arrived. */
  constructor(completer: Completer, redraw: () => void, namePaste: NamePaste = () => null) {
    this.#completer = completer;
    this.#redraw = redraw;
    this.#namePaste = namePaste;
  }

  /** The typed text, with pastes in full. */
  get text(): string {
    return wholeText(this.#editor);
  }

  /** Names that can be typed after `/`. */
  get commandNames(): readonly string[] {
    return this.#completer.commands.map(({ text }) => text);
  }

  get isEmpty(): boolean {
    return this.#editor.text === '';
  }

  /** Whether a completion list or a search is open. Escape then closes it and does nothing else. */
  get isOpen(): boolean {
    return this.#offer !== null || this.#search !== null;
  }

  /** Replaces the text. Undo brings the old text back. */
  setText(text: string): void {
    this.#close();
    this.#takeEdit(withWhole(this.#editor, text));
  }

  /** Inserts a word at the cursor. */
  putWord(word: string): void {
    this.#close();
    this.#takeEdit(insertWord(this.#editor, word));
  }

  /** Empties the line and returns its text, which the history keeps: Up brings it back. */
  putAside(): string {
    const { text } = this;
    this.setText('');
    this.#history = addSent(this.#history, text);
    return text;
  }

  /** Adds texts of earlier sessions to the history. */
  addEarlier(texts: readonly string[]): void {
    this.#history = addEarlier(this.#history, texts);
  }

  /** Closes the list or the search. Closing a search restores the text from before it. */
  escape(): void {
    if (this.#search !== null) {
      this.#history = moveTo(this.#history, this.#search.position, this.text);
      this.#editor = this.#search.before;
    }
    this.#close();
  }

  /** A key or a paste. */
  take(pressed: Pressed): ComposerResult {
    if (pressed.kind === 'paste') {
      this.#close();
      this.#paste(pressed.text);
      return NONE;
    }
    const { key } = pressed;
    if (this.#search !== null && this.#takeAtSearch(this.#search, key)) return NONE;
    if (this.#offer !== null && this.#takeAtOffer(this.#offer, key)) return NONE;
    return this.#takeKey(key);
  }

  /** The rows to draw. `highlight` styles the selected completion. */
  frame(columns: number, rowsMax: number, highlight: (row: Safe) => Safe): Frame {
    this.#columns = columns;
    const drawn = editorFrame(this.#editor, columns, rowsMax);
    if (this.#search !== null) {
      const { words, index } = this.#search;
      const none = index === null && words !== '' ? safe` (nothing found)` : safe``;
      return {
        rows: [...drawn.rows, safe`  search: ${makeSafe(words)}${none}`.slice(0, columns - 1)],
        cursor: drawn.cursor,
      };
    }
    const offered = this.#offer === null ? [] : offerRows(this.#offer, columns, highlight);
    return { rows: [...drawn.rows, ...offered], cursor: drawn.cursor };
  }

  #close(): void {
    this.#asking?.abort();
    this.#asking = null;
    this.#offer = null;
    this.#search = null;
  }

  #paste(text: string): void {
    const word = this.#namePaste(text, this.#editor.text.slice(0, this.#editor.cursor));
    this.#takeEdit(
      word === null ? insertPaste(this.#editor, text) : insertPasteAs(this.#editor, text, word),
    );
  }

  /** The text after an edit is the draft from then on. */
  #takeEdit(edited: Editor): void {
    this.#editor = edited;
    this.#history = leaveHistory(this.#history);
  }

  #takeKey(key: Key): ComposerResult {
    if (key.control && !key.alt && key.name === 'v') return { kind: 'picture' };
    if (key.name === 'enter') return this.#enter(key);
    if (key.name === 'tab' && key.shift) return { kind: 'preset' };
    if (key.alt && !key.control) {
      if (key.name === 'p') return { kind: 'list', command: 'model' };
      if (key.name === 'r') return { kind: 'list', command: 'resume' };
    }
    if (key.name === 'tab') {
      this.#complete();
      return NONE;
    }
    if (key.name === 'up' || (key.control && key.name === 'p')) this.#move(-1);
    else if (key.name === 'down' || (key.control && key.name === 'n')) this.#move(1);
    else if (key.control && key.name === 'r') this.#beginSearch();
    else this.#edit(key);
    return NONE;
  }

  /** Edits the text, and completes the word that it then ends with. */
  #edit(key: Key): void {
    const edited = applyKey(this.#editor, key);
    if (edited.text === this.#editor.text) {
      // the cursor has moved: the list no longer belongs to the word before it
      if (edited !== this.#editor) this.#close();
      this.#editor = edited;
      return;
    }
    this.#takeEdit(edited);
    this.#complete();
  }

  /** Sends the text, or breaks the line. */
  #enter(key: Key): ComposerResult {
    // A typed backslash asks for a line break on terminals that don't tell Shift+Enter from Enter.
    const behindBackslash = this.#editor.text[this.#editor.cursor - 1] === '\\';
    const breaks = key.shift || key.control || (behindBackslash && !key.alt);
    if (breaks) {
      this.#close();
      this.#takeEdit(breakLine(this.#editor));
      return NONE;
    }
    this.#close();
    const text = this.text;
    const shown = shownText(this.#editor);
    const { draft } = this.#history;
    this.#history = addSent(this.#history, text);
    this.#editor = afterSend(this.#editor);
    // An older text was sent unchanged: restore the draft that was left for it.
    if (draft !== '') this.#editor = withWhole(this.#editor, draft);
    return { kind: 'submit', text, shown, mode: key.alt ? 'later' : 'now' };
  }

  /** Moves a row up or down; from the first or last row, through the history. */
  #move(by: -1 | 1): void {
    const after = movedByRow(this.#editor, by, this.#columns);
    if (after !== null) {
      this.#editor = after;
      return;
    }
    const { texts, draft } = this.#history;
    const position = this.#history.position + by;
    if (position < 0 || position > texts.length) return;
    // After the newest text comes the draft.
    this.#show(position, texts[position] ?? draft);
  }

  /** Shows a text of the history, or the draft. */
  #show(position: number, text: string): void {
    this.#history = moveTo(this.#history, position, this.text);
    this.#editor = withWhole(this.#editor, text);
  }

  #beginSearch(): void {
    const { position } = this.#history;
    this.#search = { words: '', index: null, before: this.#editor, position };
  }

  /** A key while a completion list is open. Returns whether nothing else is to be done for it. */
  #takeAtOffer(offer: CompletionList, key: Key): boolean {
    const { text, cursor } = this.#editor;
    const isBack = key.name === 'up' || (key.name === 'tab' && key.shift);
    if (isBack || key.name === 'down') {
      this.#offer = moveSelection(offer, isBack ? -1 : 1);
      return true;
    }
    const takes = key.name === 'tab' || (key.name === 'enter' && !key.alt && !key.shift);
    // Where the selected word is typed already, Enter sends the text.
    if (!takes || (key.name === 'enter' && isTyped(text, cursor, offer))) return false;
    const completion = applyCompletion(text, cursor, offer);
    this.#close();
    this.#takeEdit(withText(this.#editor, completion.text, completion.cursor));
    // `runs`: a command that needs no more words. Enter then sends it too.
    const isLastWord = completion.text.slice(completion.cursor).trim() === '';
    if (key.name === 'enter' && offer.choices[offer.chosen]?.runs && isLastWord) return false;
    // a folder: its files are offered next
    if (completion.text[completion.cursor - 1] === '/') this.#complete();
    return true;
  }

  /** A key during a search. Returns whether nothing else is to be done for it. */
  #takeAtSearch(search: Search, key: Key): boolean {
    const again = key.control && key.name === 'r';
    if (key.text === '' && key.name !== 'backspace' && !again) {
      this.#search = null; // the key then acts on the text that the search found
      return false;
    }
    const words = key.name === 'backspace' ? dropLast(search.words) : search.words + key.text;
    // Ctrl-R again: searches on before the text that was found, and stays at it if there is none.
    const below = again && search.index !== null ? search.index : undefined;
    const index = findBefore(this.#history, words, below);
    const text = index === null ? undefined : this.#history.texts[index];
    this.#search = { ...search, words, index: index ?? (again ? search.index : null) };
    if (index !== null && text !== undefined) this.#show(index, text);
    return true;
  }

  /** Opens the completion list for the word before the cursor. */
  #complete(): void {
    this.#asking?.abort();
    this.#asking = null;
    const stem = stemAt(this.#editor.text, this.#editor.cursor);
    if (stem === null) {
      this.#offer = null;
      return;
    }
    if (stem.kind === 'command')
      this.#openList(stem, rankChoices(stem.words, this.#completer.commands));
    else {
      // Until the files come, the list has those of the earlier one that still match.
      this.#openList(stem, rankChoices(stem.words, this.#offer?.choices ?? []));
      this.#askFiles(stem);
    }
  }

  #askFiles(stem: CompletionStem): void {
    const asking = new AbortController();
    this.#asking = asking;
    const offer = (choices: readonly Choice[]): void => {
      if (asking.signal.aborted) return;
      this.#openList(stem, choices);
      this.#redraw();
    };
    // Without a list of files the typed word simply stays as it is.
    this.#completer.files(stem.words, asking.signal).then(offer, () => offer([]));
  }

  #openList(stem: CompletionStem, choices: readonly Choice[]): void {
    this.#offer = choices.length === 0 ? null : { stem, choices, chosen: 0 };
  }
}

// ---- The history ----

/** History of sent texts with the current position. An immutable value. */
type History = {
  /** Oldest first. */
  readonly texts: readonly string[];
  /** Index in `texts` of the text on the screen; the length of `texts` for the draft. */
  readonly position: number;
  /** What was typed before the user went back to an older text; empty while it is on the screen. */
  readonly draft: string;
};

const TEXTS_MAX = 1_000;

const createHistory = (texts: readonly string[]): History => {
  const newest = texts.slice(-TEXTS_MAX);
  return { texts: newest, position: newest.length, draft: '' };
};

/** Adds a sent text, unless it repeats the last one. */
const addSent = (history: History, text: string): History =>
  createHistory(
    text.trim() === '' || history.texts.at(-1) === text ? history.texts : [...history.texts, text],
  );

/**
 * Adds older texts, such as those of the history file, which arrive late. They stand before all
 * others, so the position is kept by its distance from the end.
 */
const addEarlier = (history: History, texts: readonly string[]): History => {
  const all = createHistory([...texts, ...history.texts]);
  const behind = history.texts.length - history.position;
  return { ...all, position: all.texts.length - behind, draft: history.draft };
};

/** The history at another text. `current`: the text on the screen; a draft stays. */
const moveTo = (history: History, position: number, current: string): History => {
  const { length } = history.texts;
  const draft = history.position === length ? current : history.draft;
  return { ...history, position, draft: position === length ? '' : draft };
};

/**
 * Leaves the history: the text on the screen becomes the draft. One that was left for it becomes
 * the newest text.
 */
const leaveHistory = (history: History): History =>
  history.draft === ''
    ? { ...history, position: history.texts.length }
    : addSent(history, history.draft);

/** Index of the newest text before `below` that contains `words`, or null. */
const findBefore = (
  history: History,
  words: string,
  below = history.texts.length,
): number | null => {
  if (words === '') return null;
  const pattern = words.toLowerCase();
  for (let index = Math.min(below, history.texts.length) - 1; index >= 0; index -= 1) {
    if (history.texts[index]?.toLowerCase().includes(pattern)) return index;
  }
  return null;
};

// ---- The editor ----

/**
 * The typed text as an immutable value.
 *
 * 1. `cursor` is between 0 and the length of `text`, never inside a grapheme.
 * 2. Unknown keys change nothing. Control characters never get into the text.
 * 3. A long paste is folded: one character in `text`, its mark. `wholeText` has the paste itself.
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
  /** What the last key did. Letters typed in a row are one undo step. */
  readonly doing: 'typing' | 'other';
};

/** Text and cursor at an earlier time, for undo. */
type Moment = { readonly text: string; readonly cursor: number };

/**
 * Marks of folded pastes are noncharacters of Unicode: real text never contains them, and the
 * cursor moves over one in a single step.
 */
const MARK_FIRST = 0xfdd0;
const MARKS = 32;
const MARK = /[\ufdd0-\ufdef]/g;

/** Longer pastes are folded. */
const FOLD_LINES = 10;
const FOLD_CHARACTERS = 1_000;
/** Longer texts are folded whenever they come into the line. */
const SHOWN_CHARACTERS_MAX = 20_000;
/** Undo steps to keep. */
const PAST_MAX = 200;

export const emptyEditor: Editor = {
  text: '',
  cursor: 0,
  folds: [],
  killed: '',
  past: [],
  doing: 'other',
};

const foldAt = (editor: Editor, mark: string): string =>
  editor.folds[mark.charCodeAt(0) - MARK_FIRST] ?? '';

/** The text to send, with pastes in full. */
export const wholeText = (editor: Editor): string =>
  editor.text.replace(MARK, (mark) => foldAt(editor, mark));

const pasteLabel = (editor: Editor, mark: string): string => {
  const fold = foldAt(editor, mark);
  const lines = fold.split('\n').length;
  const size = lines > FOLD_LINES ? `+${lines} lines` : `${fold.length} characters`;
  return `[paste #${mark.charCodeAt(0) - MARK_FIRST + 1} ${size}]`;
};

const isMark = (sign: string): boolean => /^[\ufdd0-\ufdef]$/.test(sign);

/** The text for the screen, with labels in place of marks. */
export const shownText = (editor: Editor): string =>
  editor.text.replace(MARK, (mark) => pasteLabel(editor, mark));

/** The undo steps with the present text as the newest one. */
const remember = (editor: Editor): readonly Moment[] => [
  ...editor.past.slice(-PAST_MAX + 1),
  { text: editor.text, cursor: editor.cursor },
];

/** The editor with another text. The present text becomes an undo step. */
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

/** As `withText`; a text that is too long to be laid out at each key is folded. */
const withWhole = (editor: Editor, text: string): Editor => {
  if (text.length <= SHOWN_CHARACTERS_MAX) return withText(editor, text);
  const folded = insertPaste({ ...editor, text: '', cursor: 0 }, text);
  return { ...folded, past: remember(editor) };
};

/** The editor after its text was sent. */
export const afterSend = ({ killed, folds }: Editor): Editor => ({
  ...emptyEditor,
  killed,
  // its marks stand for long pastes
  folds: [...killed].some(isMark) ? folds : [],
});

const insert = (editor: Editor, text: string): Editor =>
  changed(
    editor,
    editor.text.slice(0, editor.cursor) + text + editor.text.slice(editor.cursor),
    editor.cursor + text.length,
  );

/** Typed letters continue the last undo step; a space begins a new one. */
const typeText = (editor: Editor, text: string): Editor => {
  const after = insert(editor, text);
  const goesOn = editor.doing === 'typing' && !/\s/.test(text);
  return { ...after, past: goesOn ? editor.past : after.past, doing: 'typing' };
};

const cut = (editor: Editor, from: number, to: number): Editor =>
  from === to ? editor : changed(editor, editor.text.slice(0, from) + editor.text.slice(to), from);

/** Like `cut`, and keeps the text for Ctrl-Y. */
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
const previousAt = ({ text, cursor }: Editor): number => graphemeStart(text, cursor);
const nextAt = ({ text, cursor }: Editor): number => graphemeEnd(text, cursor);

const undo = (editor: Editor): Editor => {
  const moment = editor.past.at(-1);
  return moment === undefined
    ? editor
    : { ...editor, ...moment, past: editor.past.slice(0, -1), doing: 'other' };
};

type Change = (editor: Editor) => Editor;

const toStart: Change = (editor) => moved(editor, lineStart(editor));
const toEnd: Change = (editor) => moved(editor, lineEnd(editor));
const toLeft: Change = (editor) => moved(editor, previousAt(editor));
const toRight: Change = (editor) => moved(editor, nextAt(editor));
const wordLeft: Change = (editor) => moved(editor, wordStart(editor));
const wordRight: Change = (editor) => moved(editor, wordEnd(editor));
const eraseLeft: Change = (editor) => cut(editor, previousAt(editor), editor.cursor);
const eraseRight: Change = (editor) => cut(editor, editor.cursor, nextAt(editor));
const killWord: Change = (editor) => kill(editor, wordStart(editor), editor.cursor);
/**
 * At the end of a line Ctrl-K removes the line break, so that pressing it again continues with the
 * next line.
 */
const killRest: Change = (editor) =>
  kill(editor, editor.cursor, lineEnd(editor) === editor.cursor ? nextAt(editor) : lineEnd(editor));

/** Removes the start of the line; at the start of a line the line break before it. */
const killBefore: Change = (editor) => {
  const start = lineStart(editor);
  return kill(editor, start === editor.cursor ? Math.max(0, start - 1) : start, editor.cursor);
};

/** Keys with Control, with Alt, and alone. */
const controls: Readonly<Record<string, Change>> = {
  a: toStart,
  e: toEnd,
  b: toLeft,
  f: toRight,
  u: killBefore,
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

const bareKeys: Readonly<Record<string, Change>> = {
  left: toLeft,
  right: toRight,
  home: toStart,
  end: toEnd,
  backspace: eraseLeft,
  delete: eraseRight,
};

const findChange = ({ name, control, alt }: Key): Change | undefined => {
  if (control && alt) return undefined;
  if (control) return controls[name];
  return alt ? alts[name] : bareKeys[name];
};

/** Text that may be typed or pasted: no control characters, and no marks of folded pastes. */
const withoutControls = (text: string): string =>
  text
    .replace(/\r\n?/g, '\n')
    .replace(/[^\P{Cc}\n\t]/gu, '')
    .replace(MARK, '\ufffd');

/**
 * The editor after a key; unchanged for unknown keys. The composer handles Enter, Escape, Tab, Up
 * and Down.
 */
export const applyKey = (editor: Editor, key: Key): Editor => {
  if (key.text !== '') return typeText(editor, withoutControls(key.text));
  return findChange(key)?.(editor) ?? editor;
};

/**
 * Breaks the line at the cursor. A backslash before the cursor, typed to ask for the break, is
 * removed.
 */
export const breakLine = (editor: Editor): Editor => {
  const start = editor.text[editor.cursor - 1] === '\\' ? editor.cursor - 1 : editor.cursor;
  const text = `${editor.text.slice(0, start)}\n${editor.text.slice(editor.cursor)}`;
  return changed(editor, text, start + 1);
};

/** Inserts a word at the cursor, with spaces around it where there are none. */
const insertWord = (editor: Editor, word: string): Editor => {
  const [head, tail] = [editor.text.slice(0, editor.cursor), editor.text.slice(editor.cursor)];
  const start = `${head}${/\S$/.test(head) ? ' ' : ''}${word}${/^\s/.test(tail) ? '' : ' '}`;
  return changed(editor, start + tail, start.length);
};

/** Inserts a paste without its control characters; a long one as a mark, while there are marks. */
export const insertPaste = (editor: Editor, pasted: string): Editor => {
  const text = withoutControls(pasted);
  const long = text.length > FOLD_CHARACTERS || text.split('\n').length > FOLD_LINES;
  const number = editor.folds.length;
  if (!long || number >= MARKS) return text === '' ? editor : insert(editor, text);
  const folded = { ...editor, folds: [...editor.folds, text] };
  return insert(folded, String.fromCharCode(MARK_FIRST + number));
};

/** An editor that holds this text, with nothing of it folded. */
export const openEditor = (text: string): Editor => insert(emptyEditor, withoutControls(text));

/**
 * Inserts a word for a paste. The first undo restores the pasted text, the second one removes it.
 */
const insertPasteAs = (editor: Editor, pasted: string, word: string): Editor => {
  const raw = insertPaste(editor, pasted);
  return { ...insertWord(editor, word), folds: raw.folds, past: remember(raw) };
};

// ---- Layout of the typed text in screen rows ----

/** Moves the cursor one row up or down; null at the first or last row. */
export const movedByRow = (editor: Editor, by: -1 | 1, columns: number): Editor | null => {
  const rows = layOut(editor, roomIn(columns));
  const index = findRow(rows, editor.cursor);
  const [here, there] = [rows[index], rows[index + by]];
  if (here === undefined || there === undefined) return null;
  const column = findColumn(here, editor.cursor);
  const sign = there.graphemes.find((candidate) => candidate.column >= column);
  // In the middle of a line the end of a row is the start of the next one: a cursor there would
  // be drawn in the next row.
  const isBroken = rows[index + by + 1]?.start === there.end;
  const last = isBroken ? there.graphemes.at(-1)?.at : there.end;
  return moved(editor, sign?.at ?? last ?? there.end);
};

/** At most `rowsMax` rows around the cursor. `↑` and `↓` stand where rows are left out. */
export const editorFrame = (
  editor: Editor,
  columns: number,
  rowsMax: number,
  prompt = safe`>`,
): Frame & { readonly cursor: NonNullable<Frame['cursor']> } => {
  const rows = layOut(editor, roomIn(columns));
  const at = findRow(rows, editor.cursor);
  const first = Math.max(0, Math.min(at - Math.floor(rowsMax / 2), rows.length - rowsMax));
  const visible = rows.slice(first, first + rowsMax);
  const firstSign = (index: number): Safe => {
    if (index === 0 && first > 0) return safe`↑`;
    if (index === visible.length - 1 && first + rowsMax < rows.length) return safe`↓`;
    return first + index === 0 ? prompt : safe` `;
  };
  const row = rows[at];
  return {
    rows: visible.map((each, index) => safe`${firstSign(index)} ${each.shown}`),
    cursor: {
      row: at - first,
      column: PROMPT + (row === undefined ? 0 : findColumn(row, editor.cursor)),
    },
  };
};

/** One row, and the range of text in it. `shown`: as it is drawn. */
type Row = {
  readonly shown: Safe;
  readonly start: number;
  /** Where each grapheme begins: in the text, and in the row. */
  readonly graphemes: readonly { readonly at: number; readonly column: number }[];
  /** Column after the last grapheme. */
  readonly columns: number;
  readonly end: number;
};

/** A row that is being filled. */
type OpenRow = {
  shown: Safe;
  start: number;
  graphemes: { at: number; column: number }[];
  columns: number;
};

const openRowAt = (start: number): OpenRow => ({
  shown: safe``,
  start,
  graphemes: [],
  columns: 0,
});

type Piece = { readonly text: Safe; readonly columns: number };

/**
 * One grapheme as it is drawn: an invisible character as a visible sign (safe-text.ts), a folded
 * paste as its label.
 */
const drawGrapheme = (editor: Editor, from: number, until: number, room: number): Piece => {
  const sign = editor.text.slice(from, until);
  if (sign === '\t') return { text: safe`    `, columns: 4 };
  if (!isMark(sign)) {
    // Whether a joiner (an invisible character) gets such a sign depends on the character after it.
    const within = makeSafe(
      editor.text.slice(from, /[\u200c\u200d]$/.test(sign) ? until + 2 : until),
    );
    const text = within.startsWith(sign) ? within.slice(0, sign.length) : makeSafe(sign);
    const shown = countColumns(text) > room ? safe`·` : text;
    return { text: shown, columns: countColumns(shown) };
  }
  const label = makeSafe(pasteLabel(editor, sign)).slice(0, room);
  return { text: label, columns: label.length };
};

/** Break position of a full row: after its last space, or at the end if it has none. */
const breakPoint = (text: string, row: OpenRow): number => {
  const space = row.graphemes.findLastIndex(({ at }) => text[at] === ' ');
  return space < 0 ? row.graphemes.length : space + 1;
};

/**
 * The rows of one line of the text. A full row is broken after its last space: the graphemes behind
 * the break move to the next row.
 */
const layLine = (editor: Editor, start: number, end: number, room: number): readonly Row[] => {
  const rows: Row[] = [];
  let at = start;
  let row = openRowAt(start);
  const close = (rowEnd: number): void => void rows.push({ ...row, end: rowEnd });
  for (const sign of splitGraphemes(editor.text.slice(start, end))) {
    const piece = drawGrapheme(editor, at, at + sign.length, room);
    while (row.columns + piece.columns > room && row.graphemes.length > 0) {
      const count = breakPoint(editor.text, row);
      const behind = row.graphemes.slice(count);
      const [first] = behind;
      const next = openRowAt(first?.at ?? at);
      for (const [index, { at: from }] of behind.entries()) {
        const until = behind[index + 1]?.at ?? at;
        append(next, from, drawGrapheme(editor, from, until, room));
      }
      row = cutAfter(editor, row, count, room);
      close(next.start);
      row = next;
    }
    append(row, at, piece);
    at += sign.length;
  }
  close(end);
  return rows;
};

/** Adds a grapheme to a row: this changes `row`. */
const append = (row: OpenRow, at: number, piece: Piece): void => {
  row.graphemes.push({ at, column: row.columns });
  row.shown = joinSafe([row.shown, piece.text]);
  row.columns += piece.columns;
};

/** The row with only its first `count` graphemes. */
const cutAfter = (editor: Editor, row: OpenRow, count: number, room: number): OpenRow => {
  if (count === row.graphemes.length) return row;
  const shorter = openRowAt(row.start);
  for (const [index, { at }] of row.graphemes.slice(0, count).entries()) {
    const until = row.graphemes[index + 1]?.at ?? at + 1;
    append(shorter, at, drawGrapheme(editor, at, until, room));
  }
  return shorter;
};

const layOut = (editor: Editor, room: number): readonly Row[] => {
  const rows: Row[] = [];
  let start = 0;
  for (const line of editor.text.split('\n')) {
    rows.push(...layLine(editor, start, start + line.length, room));
    start += line.length + 1;
  }
  return rows;
};

/** The row of the cursor; where two rows meet at it, the lower one. */
const findRow = (rows: readonly Row[], cursor: number): number =>
  Math.max(
    0,
    rows.findLastIndex((row) => row.start <= cursor),
  );

const findColumn = (row: Row, cursor: number): number =>
  row.graphemes.find(({ at }) => at >= cursor)?.column ?? row.columns;

/** Columns of the prompt (`> `) before each row. */
const PROMPT = 2;

/** Columns for the text: one is left for the cursor after it. */
const roomIn = (columns: number): number => Math.max(4, columns - PROMPT - 1);
