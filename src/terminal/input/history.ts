/** History of typed texts, and the position in it. An immutable value. */
export type History = {
  /** Oldest first. */
  readonly texts: readonly string[];
  /** Index into `texts` while older texts are looked at; its length otherwise. */
  readonly shown: number;
  /** The text that was left to look at older ones. */
  readonly draft: string;
};

const TEXTS_MAX = 1_000;

export const historyOf = (texts: readonly string[]): History => {
  const kept = texts.slice(-TEXTS_MAX);
  return { texts: kept, shown: kept.length, draft: '' };
};

/** The history after `text` was sent; nothing twice in a row. */
export const remembered = (history: History, text: string): History =>
  historyOf(text.trim() === '' || history.texts.at(-1) === text ? history.texts : [...history.texts, text]);

/** Earlier texts that became known late, such as those of a file. */
export const preceded = (history: History, texts: readonly string[]): History => {
  const all = historyOf([...texts, ...history.texts]);
  const behind = history.texts.length - history.shown;
  return { ...all, shown: all.texts.length - behind, draft: history.draft };
};

export type Looked = { readonly history: History; readonly text: string };

/** The text one earlier or later than `current`; null where there is none. The draft comes back at the end. */
export const looked = (history: History, by: -1 | 1, current: string): Looked | null => {
  const shown = history.shown + by;
  if (shown < 0 || shown > history.texts.length) return null;
  const leaves = history.shown === history.texts.length;
  const draft = leaves ? current : history.draft;
  const text = history.texts[shown] ?? draft;
  return { history: { ...history, shown, draft }, text };
};

/** Nothing is looked at any more: the text at hand is a draft of its own. */
export const atEnd = (history: History): History => ({ ...history, shown: history.texts.length });

/** The newest text before `below` that holds `words`; its index, or null. */
export const found = (history: History, words: string, below = history.texts.length): number | null => {
  if (words === '') return null;
  const wanted = words.toLowerCase();
  for (let index = Math.min(below, history.texts.length) - 1; index >= 0; index -= 1) {
    if (history.texts[index]?.toLowerCase().includes(wanted)) return index;
  }
  return null;
};
