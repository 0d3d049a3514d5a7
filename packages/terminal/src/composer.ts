/** The input line: editor, history of sent texts, search, completion. */

import {
  type Choice,
  type CompletionList,
  type CompletionStem,
  chosenBy,
  completed,
  isTyped,
  offerRows,
  ranked,
  stemAt,
} from './choices.js';
import {
  afterSend,
  applyKey,
  breakLine,
  type Editor,
  editorFrame,
  emptyEditor,
  insertPaste,
  insertPasteAs,
  insertWord,
  movedByRow,
  shownText,
  wholeText,
  withText,
} from './editor.js';
import type { Key, Pressed } from './keys.js';
import type { Frame } from './live-area.js';
import { makeSafe, type Safe, safe } from './safe-text.js';

/** Source of completions. The composer drops results that no longer belong to the current text. */
type Completer = {
  readonly commands: readonly Choice[];
  /** Files that match. After `signal` is aborted the result is ignored, so it may come late or reject. */
  files(words: string, signal: AbortSignal): Promise<readonly Choice[]>;
};

/** What a key asks for beyond editing the text. */
export type ComposerResult =
  | { readonly kind: 'submit'; readonly text: string; readonly shown: string; readonly mode: 'now' | 'later' }
  /** Insert the picture from the clipboard. Terminals can't paste pictures. */
  | { readonly kind: 'paste' }
  | { readonly kind: 'none' };

const NONE: ComposerResult = { kind: 'none' };

/** The word to insert for a paste, such as `@shot.png` for a path; null if there is none. `before`: text left of the cursor. */
export type NamePaste = (pasted: string, before: string) => string | null;

type Search = { readonly words: string; readonly index: number | null; readonly before: Editor };

/**
 * The input line: editor, history, history search, completion.
 *
 * 1. Text is only removed by Enter or by the user's own edits. Up brings back a sent text.
 * 2. Completion changes the text only on Tab, or on Enter if the selected word differs from the typed one.
 */
export class Composer {
  readonly #completer: Completer;
  readonly #changed: () => void;
  readonly #namePaste: NamePaste;
  #editor: Editor = emptyEditor;
  #history: History = createHistory([]);
  #offer: CompletionList | null = null;
  #search: Search | null = null;
  #asking: AbortController | null = null;
  #columns = 80;

  /** `changed` is called for a change that no key caused: a list of files has arrived. */
  constructor(completer: Completer, changed: () => void, namePaste: NamePaste = () => null) {
    this.#completer = completer;
    this.#changed = changed;
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
    this.#editor = withText(this.#editor, text);
  }

  /** Inserts a word at the cursor. */
  putWord(word: string): void {
    this.#close();
    this.#editor = insertWord(this.#editor, word);
    this.#history = leaveHistory(this.#history);
  }

  /** Adds texts of earlier sessions to the history. */
  addEarlier(texts: readonly string[]): void {
    this.#history = addEarlier(this.#history, texts);
  }

  /** Closes the list or the search. Closing a search restores the text from before it. */
  escape(): void {
    if (this.#search !== null) {
      this.#editor = this.#search.before;
      this.#history = leaveHistory(this.#history);
    }
    this.#close();
  }

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

  frame(columns: number, rowsMax: number, mark: (row: Safe) => Safe): Frame {
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
    const offered = this.#offer === null ? [] : offerRows(this.#offer, columns, mark);
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
    this.#editor = word === null ? insertPaste(this.#editor, text) : insertPasteAs(this.#editor, text, word);
    this.#history = leaveHistory(this.#history);
  }

  #takeKey(key: Key): ComposerResult {
    if (key.control && !key.alt && key.name === 'v') return { kind: 'paste' };
    if (key.name === 'enter') return this.#enter(key);
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

  #edit(key: Key): void {
    const before = this.#editor;
    this.#editor = applyKey(before, key);
    if (this.#editor.text === before.text) {
      if (this.#editor !== before) this.#close();
      return;
    }
    this.#history = leaveHistory(this.#history);
    this.#complete();
  }

  #enter(key: Key): ComposerResult {
    const behindBackslash = this.#editor.text[this.#editor.cursor - 1] === '\\';
    if (key.shift || key.control || (behindBackslash && !key.alt)) {
      this.#close();
      this.#editor = breakLine(this.#editor);
      return NONE;
    }
    this.#close();
    const text = this.text;
    const shown = shownText(this.#editor);
    const { draft, shown: at, texts } = this.#history;
    this.#history = addSent(this.#history, text);
    this.#editor = afterSend(this.#editor);
    // The user sent an older text: restore the draft that was left for it.
    if (at < texts.length && draft !== '') this.#editor = withText(this.#editor, draft);
    return { kind: 'submit', text, shown, mode: key.alt ? 'later' : 'now' };
  }

  /** Moves a row up or down; from the first or last row, through the history. */
  #move(by: -1 | 1): void {
    const moved = movedByRow(this.#editor, by, this.#columns);
    if (moved !== null) {
      this.#editor = moved;
      return;
    }
    const past = stepThrough(this.#history, by, this.text);
    if (past === null) return;
    this.#history = past.history;
    this.#editor = withText(this.#editor, past.text);
  }

  #beginSearch(): void {
    this.#search = { words: '', index: null, before: this.#editor };
    const { shown, texts } = this.#history;
    if (shown === texts.length) this.#history = { ...this.#history, draft: this.text };
  }

  #takeAtOffer(offer: CompletionList, key: Key): boolean {
    const { text, cursor } = this.#editor;
    if (key.name === 'up' || key.name === 'down') {
      this.#offer = chosenBy(offer, key.name === 'up' ? -1 : 1);
      return true;
    }
    const takes = key.name === 'tab' || (key.name === 'enter' && !key.alt && !key.shift);
    if (!takes || (key.name === 'enter' && isTyped(text, cursor, offer))) return false;
    const completion = completed(text, cursor, offer);
    this.#close();
    this.#editor = withText(this.#editor, completion.text, completion.cursor);
    if (completion.text[completion.cursor - 1] === '/') this.#complete();
    return true;
  }

  #takeAtSearch(search: Search, key: Key): boolean {
    const again = key.control && key.name === 'r';
    if (key.text === '' && key.name !== 'backspace' && !again) {
      this.#search = null; // the key then acts on the text that the search found
      return false;
    }
    const words = key.name === 'backspace' ? search.words.slice(0, -1) : search.words + key.text;
    const index = findBefore(this.#history, words, again && search.index !== null ? search.index : undefined);
    const text = index === null ? undefined : this.#history.texts[index];
    this.#search = { ...search, words, index: index ?? (again ? search.index : null) };
    if (index !== null && text !== undefined) {
      this.#history = { ...this.#history, shown: index };
      this.#editor = withText(this.#editor, text);
    }
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
    if (stem.kind === 'command') this.#show(stem, ranked(stem.words, this.#completer.commands));
    else this.#askFiles(stem);
  }

  #askFiles(stem: CompletionStem): void {
    const asking = new AbortController();
    this.#asking = asking;
    const shown = (choices: readonly Choice[]): void => {
      if (asking.signal.aborted) return;
      this.#show(stem, choices);
      this.#changed();
    };
    // Without a list of files the typed word simply stays as it is.
    this.#completer.files(stem.words, asking.signal).then(shown, () => shown([]));
  }

  #show(stem: CompletionStem, choices: readonly Choice[]): void {
    this.#offer = choices.length === 0 ? null : { stem, choices, chosen: 0 };
  }
}

/** History of sent texts with the current position. An immutable value. */
type History = {
  /** Oldest first. */
  readonly texts: readonly string[];
  /** Index in `texts` of the text on the screen; the length of `texts` for the draft. */
  readonly shown: number;
  /** The text that the user was typing before going back in the history. */
  readonly draft: string;
};

const TEXTS_MAX = 1_000;

const createHistory = (texts: readonly string[]): History => {
  const newest = texts.slice(-TEXTS_MAX);
  return { texts: newest, shown: newest.length, draft: '' };
};

/** Adds a sent text, unless it repeats the last one. */
const addSent = (history: History, text: string): History =>
  createHistory(
    text.trim() === '' || history.texts.at(-1) === text ? history.texts : [...history.texts, text],
  );

/** Adds older texts, such as those of the history file, which arrive late. */
const addEarlier = (history: History, texts: readonly string[]): History => {
  const all = createHistory([...texts, ...history.texts]);
  const behind = history.texts.length - history.shown;
  return { ...all, shown: all.texts.length - behind, draft: history.draft };
};

type HistoryStep = { readonly history: History; readonly text: string };

/** The text before or after the one on the screen; null if there is none. After the newest text comes the draft. */
const stepThrough = (history: History, by: -1 | 1, current: string): HistoryStep | null => {
  const shown = history.shown + by;
  if (shown < 0 || shown > history.texts.length) return null;
  const leaves = history.shown === history.texts.length;
  const draft = leaves ? current : history.draft;
  const text = history.texts[shown] ?? draft;
  return { history: { ...history, shown, draft }, text };
};

/** Leaves the history: the text on the screen becomes the draft. */
const leaveHistory = (history: History): History => ({ ...history, shown: history.texts.length });

/** Index of the newest text before `below` that contains `words`, or null. */
const findBefore = (history: History, words: string, below = history.texts.length): number | null => {
  if (words === '') return null;
  const pattern = words.toLowerCase();
  for (let index = Math.min(below, history.texts.length) - 1; index >= 0; index -= 1) {
    if (history.texts[index]?.toLowerCase().includes(pattern)) return index;
  }
  return null;
};
