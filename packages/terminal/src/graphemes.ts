import { eastAsianWidth } from 'get-east-asian-width';

/** Splits text into graphemes (the characters that a person sees) and counts their columns. */

let segmenter: Intl.Segmenter | null = null;

/** Creates the segmenter with the first text beyond ASCII: creating it takes longer than drawing a screen. */
const graphemesBeyondAscii = (text: string): readonly string[] => {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
};

const ASCII = /^[\u0000-\u007f]*$/;

/** The graphemes of a text. Each has one or more code points. */
export const graphemesOf = (text: string): readonly string[] =>
  ASCII.test(text) ? text.split('') : graphemesBeyondAscii(text);

/** Characters that combine with others into one grapheme. */
const COMPOSED = /[\u200d\ufe0f\u{1f1e6}-\u{1f1ff}\u{1f3fb}-\u{1f3ff}]/u;
const NO_WIDTH = /^[\p{Mark}\p{Default_Ignorable_Code_Point}\p{Control}]$/u;

const columnsOfPoint = (character: string): number =>
  NO_WIDTH.test(character) ? 0 : eastAsianWidth(character.codePointAt(0) ?? 0);

export const columnsOfGrapheme = (sign: string): number => {
  if (sign >= ' ' && sign <= '~' && sign.length === 1) return 1;
  if (COMPOSED.test(sign)) return 2;
  let columns = 0;
  for (const character of sign) columns += columnsOfPoint(character);
  return columns;
};

/** End of the grapheme at `at`; at the end of the text its length. */
export const graphemeEnd = (text: string, at: number): number => {
  const lineEnd = text.indexOf('\n', at);
  const [first] = graphemesOf(text.slice(at, lineEnd === at ? at + 1 : lineEnd < 0 ? text.length : lineEnd));
  return Math.min(text.length, at + (first?.length ?? 0));
};

/** Start of the grapheme that ends at `at`; at the start of the text 0. */
export const graphemeStart = (text: string, at: number): number => {
  const lineStart = at > 0 && text[at - 1] === '\n' ? at - 1 : text.lastIndexOf('\n', at - 1) + 1;
  const last = graphemesOf(text.slice(lineStart, at)).at(-1);
  return Math.max(0, at - (last?.length ?? 0));
};
