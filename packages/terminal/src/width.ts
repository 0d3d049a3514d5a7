import { beginStyle, CLOSE_STYLES } from './escapes.js';
import { columnsOfGrapheme, graphemesOf } from './graphemes.js';
import { cutSafe, joinSafe, type Safe, safe } from './safe-text.js';
import { endOf } from './theme.js';

/** Counts columns of text and breaks it into rows. Colours (CSI … m) and hyperlinks (OSC 8) have no width. */

const ESCAPE = /\u001b\[[\d;]*m|\u001b\]8;[^\u0007\u001b]*(?:\u0007|\u001b\\)/y;
const ESCAPES = new RegExp(ESCAPE.source, 'g');
/** Combining characters. Only text with them needs the slow segmenter. */
const COMPOSED = /[\u200d\ufe0f\u{1f1e6}-\u{1f1ff}\u{1f3fb}-\u{1f3ff}]/u;
const PLAIN = /^[ -~]*$/;

/** The graphemes of text without escapes. */
const piecesOfText = (text: string): Iterable<string> => (COMPOSED.test(text) ? graphemesOf(text) : text);

export const columnsOf = (text: string): number => {
  const bare = text.includes('\u001b') ? text.replace(ESCAPES, '') : text;
  if (PLAIN.test(bare)) return bare.length;
  let columns = 0;
  for (const sign of piecesOfText(bare)) columns += columnsOfGrapheme(sign);
  return columns;
};

type Piece = { readonly text: string; readonly columns: number };

/** Escapes and graphemes, in order. */
function* piecesOf(line: string): Generator<Piece> {
  let at = 0;
  while (at < line.length) {
    ESCAPE.lastIndex = at;
    const found = ESCAPE.exec(line)?.[0];
    if (found !== undefined) {
      yield { text: found, columns: 0 };
      at += found.length;
      continue;
    }
    const next = line.indexOf('\u001b', at + 1);
    const plain = line.slice(at, next < 0 ? line.length : next);
    for (const sign of piecesOfText(plain)) yield { text: sign, columns: columnsOfGrapheme(sign) };
    at += plain.length;
  }
}

const TAB = '    ';
/** Codes that only end a style. */
const ENDS = new Set(['22', '23', '24', '29', '39', '49']);

const cutText = (text: string, columns: number): string => {
  const flat = text.replaceAll('\t', TAB);
  if (columnsOf(flat) <= columns) return flat;
  let cut = '';
  let used = 0;
  for (const piece of piecesOf(flat)) {
    if (used + piece.columns > columns - 1) break;
    cut += piece.text;
    used += piece.columns;
  }
  return `${cut}…${cut.includes('\u001b') ? CLOSE_STYLES : ''}`;
};

/** Cuts a line to `columns`, with an ellipsis for the missing part. Colours are closed. */
export const cutLine = (line: Safe, columns: number): Safe =>
  joinSafe(cutSafe(line, (text) => [cutText(text, columns)]));

/** The active colours after `code`. */
const colourWith = (on: readonly string[], sequence: string): readonly string[] => {
  const code = /^\u001b\[([\d;]*)m$/.exec(sequence)?.[1];
  if (code === undefined) return on;
  if (code === '' || code === '0') return [];
  const left = on.filter((other) => endOf(other) !== code);
  return left.length < on.length || ENDS.has(code) ? left : [...on, code];
};

const wrapLine = (line: string, columns: number): readonly string[] => {
  if (columnsOf(line) <= columns) return [line];
  const rows: string[] = [];
  let row = '';
  let used = 0;
  let on: readonly string[] = [];
  for (const piece of piecesOf(line)) {
    if (used + piece.columns > columns) {
      rows.push(on.length === 0 ? row : row + CLOSE_STYLES);
      row = on.map(beginStyle).join('');
      used = 0;
    }
    row += piece.text;
    used += piece.columns;
    if (piece.columns === 0) on = colourWith(on, piece.text);
  }
  return [...rows, row];
};

/** Breaks `text` into rows of at most `columns`. A colour continues in the next row of its line. */
export const wrapText = (text: Safe, columns: number): readonly Safe[] =>
  cutSafe(text, (whole) =>
    whole
      .replaceAll('\t', TAB)
      .split('\n')
      .flatMap((line) => wrapLine(line, Math.max(2, columns))),
  );

/** Like `wrapText`, but breaks between words. For text without escapes. */
export const wrapWords = (text: Safe, columns: number): readonly Safe[] =>
  text.split('\n').flatMap((line) => {
    const rows: Safe[] = [];
    let row = safe``;
    for (const word of line.split(/(?<= )(?=[^ ])/)) {
      if (row.trim() !== '' && columnsOf((row + word).trimEnd()) > columns) {
        rows.push(row.trimEnd());
        row = safe``;
      }
      row = safe`${row}${word}`;
    }
    return [...rows, row.trimEnd()].flatMap((whole) => wrapText(whole, columns));
  });

/** Wrapped words, indented, for a window of `columns`. */
export const indentWords = (text: Safe, columns: number): Safe =>
  joinSafe(
    wrapWords(text, columns - 3).map((row) => safe`  ${row}`),
    safe`\n`,
  );
