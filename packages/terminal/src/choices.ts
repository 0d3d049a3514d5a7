/**
 * Lists of choices in the terminal. `Safe` is text that can't control the terminal.
 *
 * From top to bottom: the word before the cursor; its completions, the best first; the rows of a
 * list; and a list to pick from.
 */

import type { Pressed } from './keys.js';
import type { Frame } from './live-area.js';
import { countColumns, cutLine, dropLast, graphemeEnd, padded } from './paint.js';
import { makeSafe, type Safe, safe } from './safe-text.js';

export type Choice = {
  /** A command without its slash, a path, or the name of anything else to choose. */
  readonly text: string;
  /** A description, shown beside the text. */
  readonly about: string;
  /** A command that needs no more words: Enter on it in the list runs it. */
  readonly runs?: true;
};

/** A word before the cursor that has completions. */
export type CompletionStem = {
  readonly kind: 'command' | 'file';
  /** Start of the word, including its first character (`/` or `@`). */
  readonly start: number;
  /** What is typed after the first character, and after the quote. */
  readonly words: string;
  /** Whether the word begins with a quote, as in `@"my file`. Spaces then belong to the word. */
  readonly quoted: boolean;
};

/** The word before the cursor, if it can be completed. */
export const stemAt = (text: string, cursor: number): CompletionStem | null => {
  const before = text.slice(0, cursor);
  const command = /^\/([\w:-]*)$/.exec(before)?.[1];
  if (command !== undefined) return { kind: 'command', start: 0, words: command, quoted: false };
  const quoted = /(?:^|\s)@"([^"\n]*)$/.exec(before)?.[1];
  if (quoted !== undefined)
    return { kind: 'file', start: cursor - quoted.length - 2, words: quoted, quoted: true };
  const bare = /(?:^|\s)@([^\s@"][^\s@]*|)$/.exec(before)?.[1];
  return bare === undefined
    ? null
    : { kind: 'file', start: cursor - bare.length - 1, words: bare, quoted: false };
};

const BOUNDARY = /[/\-_. :]/;

/**
 * Score of `text` for a fuzzy search; null if `text` lacks the letters of `words` in this order.
 * Higher for letters in a row, letters at the start of a word and letters in the file's own name;
 * lower for long texts.
 */
const scoreMatch = (words: string, text: string): number | null => {
  const [pattern, there] = [words.toLowerCase(), text.toLowerCase()];
  const name = there.lastIndexOf('/', there.length - 2) + 1;
  // All letters in a row beat any other match: most in the file's name, less in its folder.
  const whole = there.indexOf(pattern, name);
  if (whole >= 0) return 1_000 - text.length / 10 + (whole === name ? 100 : 0);
  const anywhere = there.indexOf(pattern);
  if (anywhere >= 0) return 500 - text.length / 10;
  let score = 0;
  let at = -1;
  for (const letter of pattern) {
    const next = there.indexOf(letter, at + 1);
    if (next < 0) return null;
    score += next === at + 1 ? 8 : BOUNDARY.test(there[next - 1] ?? '/') ? 6 : 1;
    at = next;
  }
  return score - text.length / 10;
};

const COMPLETIONS_MAX = 50;

/** The choices that match, best first. Choices with the same score keep their order. */
export const rankChoices = (
  words: string,
  choices: readonly Choice[],
  most = COMPLETIONS_MAX,
): readonly Choice[] =>
  words === ''
    ? choices.slice(0, most)
    : choices
        .map((choice) => ({ choice, score: scoreMatch(words, choice.text) }))
        .filter((rated): rated is typeof rated & { readonly score: number } => rated.score !== null)
        .sort((a, b) => b.score - a.score)
        .slice(0, most)
        .map(({ choice }) => choice);

/** Choices, at least one, and the index of the selected one. */
type ChoiceList = { readonly choices: readonly Choice[]; readonly chosen: number };
export type CompletionList = ChoiceList & { readonly stem: CompletionStem };

/** The list with the next or the previous choice selected; the ends are joined. */
export const moveSelection = <List extends ChoiceList>(list: List, by: -1 | 1): List => ({
  ...list,
  chosen: (list.chosen + by + list.choices.length) % list.choices.length,
});

/** Text and cursor after the selected word has replaced the stem. */
export const applyCompletion = (
  text: string,
  cursor: number,
  { stem, choices, chosen }: CompletionList,
): { readonly text: string; readonly cursor: number } => {
  const word = choices[chosen]?.text ?? '';
  // A path that contains a quote can't be quoted.
  const quote =
    stem.kind === 'file' && (stem.quoted || /\s/.test(word)) && !word.includes('"') ? '"' : '';
  const start = (stem.kind === 'command' ? '/' : '@') + quote + word;
  // a closing quote that is already there is replaced
  const rest = text.slice(cursor).slice(stem.quoted && text[cursor] === '"' ? 1 : 0);
  // After a folder the user types on, inside the quotes; after anything else comes a space.
  const isFolder = word.endsWith('/');
  const after = isFolder || /^\s/.test(rest) ? '' : ' ';
  return {
    text: text.slice(0, stem.start) + start + quote + after + rest,
    cursor: stem.start + start.length + (isFolder ? 0 : quote.length + after.length),
  };
};

/** Whether the text already equals the selected completion. */
export const isTyped = (text: string, cursor: number, offer: CompletionList): boolean =>
  applyCompletion(text, cursor, offer).text.trimEnd() === text.trimEnd();

const ROWS_MAX = 6;

/** Of a long path the end tells more than the beginning. */
const cutBeginning = (text: Safe, columns: number): Safe => {
  let end = text;
  while (countColumns(end) >= columns) end = end.slice(graphemeEnd(end, 0));
  return safe`…${end}`;
};

/** The rows of a list around the selected choice. `mark` highlights that choice. */
export const offerRows = (
  { choices, chosen }: ChoiceList,
  columns: number,
  mark: (row: Safe) => Safe,
): readonly Safe[] => {
  const first = Math.max(0, Math.min(chosen - 2, choices.length - ROWS_MAX));
  const shown = choices
    .slice(first, first + ROWS_MAX)
    .map(({ text, about }) => ({ text: makeSafe(text), about: makeSafe(about) }));
  // Descriptions keep at most half of the window; a long name may take the rest.
  const aboutWide = Math.max(...shown.map(({ about }) => countColumns(about)));
  const wide = Math.min(
    Math.max(...shown.map(({ text }) => countColumns(text))),
    Math.max(10, columns - 5 - Math.floor(Math.min(aboutWide, columns / 2))),
  );
  return shown.map(({ text, about }, index) => {
    const isChosen = first + index === chosen;
    const name = padded(countColumns(text) > wide ? cutBeginning(text, wide) : text, wide);
    const sign = isChosen ? safe`›` : safe` `;
    const row = cutLine(safe`${sign} ${name}  ${about}`.trimEnd(), columns - 1);
    return isChosen ? mark(row) : row;
  });
};

/** A list to choose from: arrows move, letters filter, Enter selects. Its owner takes Escape. */
export type Picker = {
  readonly title: string;
  readonly all: readonly Choice[];
  /** Typed letters: only choices that have all of them in this order are shown. */
  readonly words: string;
  /** null if no choice matches. */
  readonly list: ChoiceList | null;
};

/** The choices that match. */
const listChoices = (all: readonly Choice[], words: string, chosen = 0): ChoiceList | null => {
  const choices = rankChoices(words, all, all.length);
  return choices.length === 0 ? null : { choices, chosen };
};

/**
 * `current`: index of the choice on which the cursor stands first, so that Enter keeps it; -1 is
 * the first.
 */
export const openPicker = (title: string, all: readonly Choice[], current = 0): Picker => ({
  title,
  all,
  words: '',
  list: listChoices(all, '', Math.max(0, Math.min(current, all.length - 1))),
});

/** Result of a key: the changed picker, or the index of the selected choice. */
type PickerResult =
  | { readonly kind: 'open'; readonly picker: Picker }
  | { readonly kind: 'taken'; readonly index: number };

const withWords = (picker: Picker, words: string): PickerResult => ({
  kind: 'open',
  picker: { ...picker, words, list: listChoices(picker.all, words) },
});

/** The picker after a key, or the choice that the key selects. */
export const pick = (picker: Picker, pressed: Pressed): PickerResult => {
  const same: PickerResult = { kind: 'open', picker };
  if (pressed.kind === 'paste') return same;
  const { name, text } = pressed.key;
  const { list, words, all } = picker;
  if (text !== '') return withWords(picker, words + text);
  if (name === 'backspace') return withWords(picker, dropLast(words));
  if (list === null) return same;
  if (name === 'up' || name === 'down')
    return {
      kind: 'open',
      picker: { ...picker, list: moveSelection(list, name === 'up' ? -1 : 1) },
    };
  const choice = list.choices[list.chosen];
  return name === 'enter' && choice !== undefined
    ? { kind: 'taken', index: all.indexOf(choice) }
    : same;
};

/** The rows of a picker. `mark` highlights the selected choice. */
export const pickerFrame = (picker: Picker, columns: number, mark: (row: Safe) => Safe): Frame => {
  const row = makeSafe(`${picker.title} ${picker.words}`);
  const choices =
    picker.list === null ? [safe`  nothing fits`] : offerRows(picker.list, columns, mark);
  const keys = safe`  ↑ ↓ move · type to filter · Enter selects · Escape closes`;
  const hint =
    keys.length < columns
      ? keys
      : cutLine(safe`  ↑ ↓ · Enter selects · Escape closes`, columns - 1);
  return {
    rows: [cutLine(row, columns - 1), ...choices, hint],
    cursor: { row: 0, column: Math.min(countColumns(row), columns - 1) },
  };
};
