import type { Frame } from '../frame-type.js';
import { type Choice, type CompletionList, chosenBy, offerRows, ranked } from '../input/completion.js';
import type { Pressed } from '../input/key.js';
import { makeSafe, type Safe, safe } from '../safe-text.js';

/** A list to choose from: arrows move, letters filter, Enter selects, Escape closes. */
export type Picker = {
  readonly title: string;
  readonly all: readonly Choice[];
  readonly words: string;
  /** null if no choice matches. */
  readonly offer: CompletionList | null;
};

const offerOf = (all: readonly Choice[], words: string): CompletionList | null => {
  const choices = ranked(words, all);
  return choices.length === 0
    ? null
    : { stem: { kind: 'command', start: 0, words, quoted: false }, choices, chosen: 0 };
};

export const openPicker = (title: string, all: readonly Choice[]): Picker => ({
  title,
  all,
  words: '',
  offer: offerOf(all, ''),
});

/** Result of a key: the changed picker, or the index of the selected choice. */
export type PickerResult =
  | { readonly kind: 'open'; readonly picker: Picker }
  | { readonly kind: 'taken'; readonly index: number };

const withWords = (picker: Picker, words: string): PickerResult => ({
  kind: 'open',
  picker: { ...picker, words, offer: offerOf(picker.all, words) },
});

export const pick = (picker: Picker, pressed: Pressed): PickerResult => {
  const same: PickerResult = { kind: 'open', picker };
  if (pressed.kind === 'paste') return same;
  const { name, text } = pressed.key;
  const { offer, words, all } = picker;
  if (text !== '') return withWords(picker, words + text);
  if (name === 'backspace') return withWords(picker, words.slice(0, -1));
  if (offer === null) return same;
  if (name === 'up' || name === 'down')
    return { kind: 'open', picker: { ...picker, offer: chosenBy(offer, name === 'up' ? -1 : 1) } };
  const taken = offer.choices[offer.chosen];
  return name === 'enter' && taken !== undefined ? { kind: 'taken', index: all.indexOf(taken) } : same;
};

export const pickerFrame = (picker: Picker, columns: number, mark: (row: Safe) => Safe): Frame => {
  const row = makeSafe(`${picker.title} ${picker.words}`);
  const offered = picker.offer === null ? [safe`  nothing fits`] : offerRows(picker.offer, columns, mark);
  const hint = safe`  ↑ ↓ move · type to filter · Enter selects · Escape closes`;
  return {
    rows: [row.slice(0, columns - 1), ...offered, hint.slice(0, columns - 1)],
    cursor: { row: 0, column: Math.min(row.length, columns - 1) },
  };
};
