import { formatSeconds, harmless, type Look, paint } from './print.js';
import { wrapWords } from './width.js';

/** What the model thinks before it answers: its last rows while it does, then one line. */
export type Thought = {
  add(text: string, at: number): void;
  rows(columns: number): readonly string[];
  /** One line about it, and the whole of it; null if there was none. */
  end(at: number): { readonly row: string; readonly whole: readonly string[] } | null;
};

const LIVE_ROWS = 2;

export const createThought = (look: Look): Thought => {
  let text = '';
  let since = 0;
  return {
    add(more, at) {
      if (text === '') since = at;
      text += more;
    },
    rows(columns) {
      const end = harmless(text.slice(-columns * (LIVE_ROWS + 2))).trim();
      if (end === '') return [];
      return wrapWords(end.replace(/\s+/g, ' '), columns - 2)
        .slice(-LIVE_ROWS)
        .map((row) => paint(look, 'dim', `│ ${row}`));
    },
    end(at) {
      const whole = harmless(text).trim();
      text = '';
      if (whole === '') return null;
      return {
        row: paint(look, 'dim', `· thought for ${formatSeconds(at - since)}`),
        whole: wrapWords(whole, look.columns - 2).map((row) => paint(look, 'dim', `│ ${row}`)),
      };
    },
  };
};
