/** Splits text into lines, and reduces lines to what a comparison uses. */

export type TextLine = {
  /** The text without its line break. */
  readonly text: string;
  readonly start: number;
  /** Offset before the line break. */
  readonly end: number;
  /** Offset after the line break; for the last line the same as `end`. */
  readonly next: number;
};

/** Splits at `\n` and `\r\n`. A text that ends with a line break has an empty last line. */
export const linesOf = (text: string): readonly TextLine[] => {
  const lines: TextLine[] = [];
  let start = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', start)) {
    const end = at > start && text[at - 1] === '\r' ? at - 1 : at;
    lines.push({ text: text.slice(start, end), start, end, next: at + 1 });
    start = at + 1;
  }
  lines.push({ text: text.slice(start), start, end: text.length, next: text.length });
  return lines;
};

const FOLDED: ReadonlyMap<string, string> = new Map(
  (
    [
      ["'", '\u2018\u2019\u201a\u201b\u2032\u2039\u203a\u00b4\uff07'],
      ['"', '\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02'],
      ['-', '\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d'],
      [' ', '\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000'],
    ] as const
  ).flatMap(([plain, typographic]) => [...typographic].map((one) => [one, plain] as const)),
);
const NOT_ASCII = /[\u0080-\uffff]/g;

/** The plain character for a typographic quote, dash or space; null for any other. */
export const plainOf = (character: string): string | null => FOLDED.get(character) ?? null;

/** Replaces typographic quotes, dashes and spaces with plain ones. The length stays the same. */
export const foldTypography = (text: string): string =>
  text.replace(NOT_ASCII, (character) => FOLDED.get(character) ?? character);

const isBlank = (text: string, at: number): boolean => {
  const unit = text.charCodeAt(at);
  return unit === 0x20 || unit === 0x09 || unit === 0x0b || unit === 0x0c;
};

/** Without trailing spaces and tabs. */
export const trimEndBlanks = (text: string): string => {
  let end = text.length;
  while (end > 0 && isBlank(text, end - 1)) end -= 1;
  return text.slice(0, end);
};

/** Leading spaces and tabs, with typographic spaces as plain ones. */
export const indentOf = (line: string): string => {
  let end = 0;
  let folded = false;
  for (; end < line.length; end++) {
    if (isBlank(line, end)) continue;
    if (line.charCodeAt(end) < 0x80 || FOLDED.get(line[end] ?? '') !== ' ') break;
    folded = true;
  }
  const indent = line.slice(0, end);
  return folded ? foldTypography(indent) : indent;
};

/** Which differences matter when two lines are compared. */
export type Comparison = {
  /** `folded`: typographic characters equal their plain counterparts. */
  readonly typography: 'folded' | 'exact';
  readonly indentation: 'ignored' | 'exact';
};

/** Lines with the same key are equal apart from trailing spaces. */
export const keyOf = (line: string, { typography, indentation }: Comparison): string => {
  const folded = typography === 'folded' ? foldTypography(line) : line;
  const trimmed = trimEndBlanks(folded);
  return indentation === 'ignored' ? trimmed.slice(indentOf(trimmed).length) : trimmed;
};
