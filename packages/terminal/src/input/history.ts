/** History of sent texts with the current position. An immutable value. */
export type History = {
  /** Oldest first. */
  readonly texts: readonly string[];
  /** Index in `texts` of the text on the screen; the length of `texts` for the draft. */
  readonly shown: number;
  /** The text that the user was typing before going back in the history. */
  readonly draft: string;
};

const TEXTS_MAX = 1_000;

export const historyOf = (texts: readonly string[]): History => {
  const kept = texts.slice(-TEXTS_MAX);
  return { texts: kept, shown: kept.length, draft: '' };
};

/** Adds a sent text, unless it repeats the last one. */
export const addSent = (history: History, text: string): History =>
  historyOf(text.trim() === '' || history.texts.at(-1) === text ? history.texts : [...history.texts, text]);

/** Adds older texts, such as those of the history file, which arrive late. */
export const addEarlier = (history: History, texts: readonly string[]): History => {
  const all = historyOf([...texts, ...history.texts]);
  const behind = history.texts.length - history.shown;
  return { ...all, shown: all.texts.length - behind, draft: history.draft };
};

export type HistoryStep = { readonly history: History; readonly text: string };

/** The text before or after the one on the screen; null if there is none. After the newest text comes the draft. */
export const stepThrough = (history: History, by: -1 | 1, current: string): HistoryStep | null => {
  const shown = history.shown + by;
  if (shown < 0 || shown > history.texts.length) return null;
  const leaves = history.shown === history.texts.length;
  const draft = leaves ? current : history.draft;
  const text = history.texts[shown] ?? draft;
  return { history: { ...history, shown, draft }, text };
};

/** Leaves the history: the text on the screen becomes the draft. */
export const leaveHistory = (history: History): History => ({ ...history, shown: history.texts.length });

/** Index of the newest text before `below` that contains `words`, or null. */
export const findBefore = (history: History, words: string, below = history.texts.length): number | null => {
  if (words === '') return null;
  const wanted = words.toLowerCase();
  for (let index = Math.min(below, history.texts.length) - 1; index >= 0; index -= 1) {
    if (history.texts[index]?.toLowerCase().includes(wanted)) return index;
  }
  return null;
};
