import { harmless, type Look, oneLine, paint } from '../paint-text.js';
import { makeSafe, type Safe, safe } from '../safe-text.js';
import { wrapWords } from '../width.js';

/** The model's reasoning: its last rows while it streams, one line afterwards. */
export type ReasoningRow = {
  add(text: string): void;
  rows(columns: number): readonly Safe[];
  /** Ends the reasoning: its one line, and its whole text. null without reasoning. */
  end(): { readonly row: Safe; readonly whole: readonly Safe[] } | null;
};

const LIVE_ROWS = 2;

const TITLE = '· thought: ';

/** The first words, without the Markdown marks of reasoning summaries. */
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
