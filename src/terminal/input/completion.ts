import { makeSafe, type Safe, safe } from '../safe-text.js';

/** Completion of commands and file names in the input line. Pure. */

export type Choice = { readonly text: string; readonly about: string };

/** A word before the cursor that has completions. */
export type CompletionStem = {
  readonly kind: 'command' | 'file';
  /** Where the word begins, its sign (`/`, `@`) included. */
  readonly start: number;
  readonly words: string;
  /** Whether it was begun with a quote, as `@"my file`: then blanks are part of it. */
  readonly quoted: boolean;
};

/** The word that stands before the cursor, if it is one that can be completed. */
export const stemAt = (text: string, cursor: number): CompletionStem | null => {
  const before = text.slice(0, cursor);
  const command = /^\/([\w-]*)$/.exec(before)?.[1];
  if (command !== undefined) return { kind: 'command', start: 0, words: command, quoted: false };
  const quoted = /(?:^|\s)@"([^"\n]*)$/.exec(before)?.[1];
  if (quoted !== undefined)
    return { kind: 'file', start: cursor - quoted.length - 2, words: quoted, quoted: true };
  const bare = /(?:^|\s)@([^\s@"][^\s@]*|)$/.exec(before)?.[1];
  return bare === undefined
    ? null
    : { kind: 'file', start: cursor - bare.length - 1, words: bare, quoted: false };
};

const BOUNDARY = /[/\-_. ]/;

/**
 * How well the letters of `words` are found in `text` in their order; null where they are not. Letters that follow each
 * other, begin a word, or stand in the file's own name count more; long texts count less.
 */
const fitOf = (words: string, text: string): number | null => {
  const [wanted, there] = [words.toLowerCase(), text.toLowerCase()];
  const name = there.lastIndexOf('/', there.length - 2) + 1;
  const whole = there.indexOf(wanted, name);
  if (whole >= 0) return 1_000 - text.length / 10 + (whole === name ? 100 : 0);
  const anywhere = there.indexOf(wanted);
  if (anywhere >= 0) return 500 - text.length / 10;
  let fit = 0;
  let at = -1;
  for (const letter of wanted) {
    const next = there.indexOf(letter, at + 1);
    if (next < 0) return null;
    fit += next === at + 1 ? 8 : BOUNDARY.test(there[next - 1] ?? '/') ? 6 : 1;
    at = next;
  }
  return fit - text.length / 10;
};

const CHOICES_MAX = 50;

/** The choices that fit, best first; of equal ones the order stays. */
export const ranked = (words: string, choices: readonly Choice[]): readonly Choice[] =>
  words === ''
    ? choices.slice(0, CHOICES_MAX)
    : choices
        .map((choice) => ({ choice, fit: fitOf(words, choice.text) }))
        .filter((rated): rated is typeof rated & { readonly fit: number } => rated.fit !== null)
        .sort((a, b) => b.fit - a.fit)
        .slice(0, CHOICES_MAX)
        .map(({ choice }) => choice);

/** The choices for a stem, and the index of the chosen one. */
export type CompletionList = {
  readonly stem: CompletionStem;
  /** Never empty. */
  readonly choices: readonly Choice[];
  readonly chosen: number;
};

export const chosenBy = (offer: CompletionList, by: -1 | 1): CompletionList => ({
  ...offer,
  chosen: (offer.chosen + by + offer.choices.length) % offer.choices.length,
});

/** The text and cursor with the chosen word in place of the stem. */
export const completed = (
  text: string,
  cursor: number,
  { stem, choices, chosen }: CompletionList,
): { readonly text: string; readonly cursor: number } => {
  const word = choices[chosen]?.text ?? '';
  // A path that holds a quote itself can't be quoted.
  const quote = stem.kind === 'file' && (stem.quoted || /\s/.test(word)) && !word.includes('"') ? '"' : '';
  const begun = (stem.kind === 'command' ? '/' : '@') + quote + word;
  const rest = text.slice(cursor).slice(stem.quoted && text[cursor] === '"' ? 1 : 0);
  // A folder is gone on with, inside its quotes; anything else is followed by a space.
  const isFolder = word.endsWith('/');
  const after = isFolder || /^\s/.test(rest) ? '' : ' ';
  return {
    text: text.slice(0, stem.start) + begun + quote + after + rest,
    cursor: stem.start + begun.length + (isFolder ? 0 : quote.length + after.length),
  };
};

/** Whether the text already equals the chosen completion. */
export const isSaid = (text: string, cursor: number, offer: CompletionList): boolean =>
  completed(text, cursor, offer).text.trimEnd() === text.trimEnd() && cursor <= text.length;

const ROWS_MAX = 6;

/** The rows of an offer around what is chosen. `mark` makes the chosen one stand out. */
export const offerRows = (
  { choices, chosen }: CompletionList,
  columns: number,
  mark: (row: Safe) => Safe,
): readonly Safe[] => {
  const first = Math.max(0, Math.min(chosen - 2, choices.length - ROWS_MAX));
  const shown = choices
    .slice(first, first + ROWS_MAX)
    .map(({ text, about }) => ({ text: makeSafe(text), about: makeSafe(about) }));
  const wide = Math.min(Math.max(...shown.map(({ text }) => text.length)), Math.max(10, columns - 4));
  return shown.map(({ text, about }, index) => {
    const isChosen = first + index === chosen;
    // of a long path the end says more
    const name = text.length > wide ? safe`…${text.slice(1 - wide)}` : text.padEnd(wide);
    const sign = isChosen ? safe`›` : safe` `;
    const row = safe`${sign} ${name}  ${about}`.trimEnd().slice(0, columns - 1);
    return isChosen ? mark(row) : row;
  });
};
