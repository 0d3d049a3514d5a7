import { joinSafe, makeSafe, type Safe } from '../safe-text.js';

/**
 * Text of which nothing may be hidden, as rows of a window.
 *
 * 1. Every character is seen: what is invisible, steers a terminal or reorders text, and blanks where they could hide
 *    something, stand there as marks. A mark can't be imitated: its brackets are marked themselves.
 * 2. No row is wider than the window, whatever the terminal thinks of the width of a sign: all beyond ASCII counts two.
 */

/** A run of blanks from this length on is a mark; so is each run at the end of a line. */
const BLANKS_MIN = 5;
/** Signs that are drawn above or below a letter; more of them than this are marks. */
const COMBINING_MAX = 2;

const PLAIN = /^[!-~]$/;
const SEEN = /^[\p{L}\p{N}\p{P}\p{S}]$/u;
const COMBINING = /^\p{M}$/u;
const UNSEEN = /^[\p{Default_Ignorable_Code_Point}\u27e8\u27e9\u2400-\u2426\u2800\ufffc]$/u;
const LETTER = /^[\p{L}\p{M}]$/u;

/** A sign or a mark, and the columns it may take. */
type Piece = { readonly text: string; readonly columns: number; readonly mark: boolean };

const markOf = (character: string): string => {
  const point = character.codePointAt(0) ?? 0;
  if (point < 0x20) return String.fromCodePoint(0x2400 + point);
  if (point === 0x7f) return '␡';
  return `⟨U+${point.toString(16).toUpperCase().padStart(4, '0')}⟩`;
};

const mark = (text: string): Piece => ({ text, columns: text.length, mark: true });
const markCharacter = (character: string): Piece => {
  const text = markOf(character);
  // pictures of controls are drawn two wide by some
  return { text, columns: text.length === 1 ? 2 : text.length + 2, mark: true };
};

const blanks = (length: number, isEnd: boolean): readonly Piece[] => {
  if (length >= BLANKS_MIN || isEnd)
    return [
      {
        ...mark(`⟨${length} ${length === 1 ? 'blank' : 'blanks'}⟩`),
        columns: `⟨${length} blanks⟩`.length + 2,
      },
    ];
  return Array.from({ length }, () => ({ text: ' ', columns: 1, mark: false }));
};

/** The signs of one line. */
const piecesOf = (line: string): readonly Piece[] => {
  const pieces: Piece[] = [];
  let run = 0;
  let combined = 0;
  let before = '';
  for (const character of line) {
    if (character === ' ') {
      run += 1;
      continue;
    }
    if (run > 0) pieces.push(...blanks(run, false));
    run = 0;
    const combines = COMBINING.test(character);
    combined = combines ? combined + 1 : 0;
    if (PLAIN.test(character)) pieces.push({ text: character, columns: 1, mark: false });
    else if (SEEN.test(character) && !UNSEEN.test(character))
      pieces.push({ text: character, columns: 2, mark: false });
    else if (combines && !UNSEEN.test(character) && combined <= COMBINING_MAX && LETTER.test(before))
      pieces.push({ text: character, columns: 2, mark: false });
    else pieces.push(markCharacter(character));
    before = pieces.at(-1)?.mark === true ? '' : character;
  }
  if (run > 0) pieces.push(...blanks(run, true));
  return pieces;
};

/** A piece that is wider than a row, in parts. */
const split = ({ text, mark: isMark }: Piece, columns: number): readonly Piece[] => {
  const size = Math.max(1, Math.floor(columns / 2));
  const parts: Piece[] = [];
  for (let at = 0; at < text.length; at += size)
    parts.push({ text: text.slice(at, at + size), columns: size * 2, mark: isMark });
  return parts;
};

/** Styles a mark. */
export type ShowMark = (mark: Safe) => Safe;

const drawn = (pieces: readonly Piece[], show: ShowMark): Safe => {
  const parts: Safe[] = [];
  let plain = '';
  const flush = (): void => {
    if (plain !== '') parts.push(makeSafe(plain));
    plain = '';
  };
  for (const { text, mark: isMark } of pieces) {
    if (isMark) {
      flush();
      parts.push(show(makeSafe(text)));
    } else plain += text;
  }
  flush();
  return joinSafe(parts);
};

/** Like `revealLine`, but breaks between words. For Pawl's own sentences; the blank at a break is not drawn. */
export const revealWords = (line: string, columns: number, show: ShowMark): readonly Safe[] => {
  const lines: string[] = [];
  let row = '';
  for (const word of line.split(/(?<=[^ ]) (?=[^ ])/)) {
    const longer = row === '' ? word : `${row} ${word}`;
    if (row !== '' && revealLine(longer, columns, show).length > 1) {
      lines.push(row);
      row = word;
    } else row = longer;
  }
  return [...lines, row].flatMap((one) => revealLine(one, columns, show));
};

/** One line of text as rows of at most `columns`; an empty line is one empty row. */
export const revealLine = (line: string, columns: number, show: ShowMark): readonly Safe[] => {
  const rows: Safe[] = [];
  let row: Piece[] = [];
  let used = 0;
  const room = Math.max(BLANKS_MIN + 4, columns);
  for (const whole of piecesOf(line)) {
    for (const piece of whole.columns > room ? split(whole, room) : [whole]) {
      if (used + piece.columns > room) {
        // a blank at the end of a row can't be seen: it begins the next one
        const end = row.findLastIndex(({ text }) => text !== ' ') + 1;
        rows.push(drawn(row.slice(0, end), show));
        row = row.slice(end);
        used = row.length;
      }
      row.push(piece);
      used += piece.columns;
    }
  }
  return [...rows, drawn(row, show)];
};
