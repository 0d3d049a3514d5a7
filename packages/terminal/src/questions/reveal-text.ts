import { joinSafe, makeSafe, type Safe } from '../safe-text.js';

/**
 * Lays out text so that nothing in it can hide.
 *
 * 1. Every character is visible. Marks stand for invisible characters, characters that control a terminal or reorder
 *    text, and runs of spaces. Text can't imitate a mark: brackets of marks in the text are marked themselves.
 * 2. No row is wider than the window on any terminal: every character beyond ASCII counts as two columns.
 */

/** A run of at least this many spaces becomes a mark, and so does every run at the end of a line. */
const BLANKS_MIN = 5;
/** Combining characters on one letter. The ones beyond this number become marks. */
const COMBINING_MAX = 2;

const PLAIN = /^[!-~]$/;
const SEEN = /^[\p{L}\p{N}\p{P}\p{S}]$/u;
const COMBINING = /^\p{M}$/u;
const UNSEEN = /^[\p{Default_Ignorable_Code_Point}\u27e8\u27e9\u2400-\u2426\u2800\ufffc]$/u;
const LETTER = /^[\p{L}\p{M}]$/u;

/** A character or a mark, and the most columns it can take. */
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
  // Some terminals draw pictures of control characters two columns wide.
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

/** Divides a piece that is wider than a row. */
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

/** Like `revealLine`, but breaks between words and drops the space at a break. For Pawl's own sentences. */
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

/** One line as rows of at most `columns`. An empty line is one empty row. */
export const revealLine = (line: string, columns: number, show: ShowMark): readonly Safe[] => {
  const rows: Safe[] = [];
  let row: Piece[] = [];
  let used = 0;
  const room = Math.max(BLANKS_MIN + 4, columns);
  for (const whole of piecesOf(line)) {
    for (const piece of whole.columns > room ? split(whole, room) : [whole]) {
      if (used + piece.columns > room) {
        // A space at the end of a row is invisible, so it starts the next row.
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
