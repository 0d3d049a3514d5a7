import { harmless, type Look, oneLine, paint } from '../print.js';
import { makeSafe, type Safe, safe } from '../safe-text.js';
import { wrapWords } from '../width.js';

/** Reasoning of the model: its last rows while it streams, then one line. */
export type ReasoningRow = {
  add(text: string): void;
  rows(columns: number): readonly Safe[];
  /** One line, and the whole text; null without reasoning. */
  end(): { readonly row: Safe; readonly whole: readonly Safe[] } | null;
};

const LIVE_ROWS = 2;

const TITLE = '· thought: ';

/** Its first words, without the marks of Markdown that summaries of thoughts have. */
const beginning = (text: Safe, columns: number): Safe =>
  oneLine(text.replace(/[*_`#]+/g, ''), Math.max(8, columns));

export const createReasoningRow = (look: Look): ReasoningRow => {
  let text = '';
  return {
    add(more) {
      text += more;
    },
    rows(columns) {
      const end = text
        .slice(-columns * (LIVE_ROWS + 2))
        .replace(/\s+/g, ' ')
        .trim();
      if (end === '') return [];
      return wrapWords(makeSafe(end), columns - 2)
        .slice(-LIVE_ROWS)
        .map((row) => paint(look, 'dim', safe`│ ${row}`));
    },
    end() {
      const whole = harmless(text).trim();
      text = '';
      if (whole === '') return null;
      return {
        row: paint(look, 'dim', safe`· thought: ${beginning(whole, look.columns - TITLE.length - 3)}`),
        whole: wrapWords(whole, look.columns - 2).map((row) => paint(look, 'dim', safe`│ ${row}`)),
      };
    },
  };
};
