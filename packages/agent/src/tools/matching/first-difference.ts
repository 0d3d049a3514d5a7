import { foldTypography, indentOf, type TextLine, trimEndBlanks } from './text-lines.js';

/** Describes the first difference between a text and the nearest lines of the file. */

/** How many lines ahead to look for a line that the other side lacks. */
const AHEAD_MAX = 30;
const QUOTED_MAX = 60;

const NAMES: Readonly<Record<string, string>> = {
  '\u00a0': 'no-break blank',
  '\u2018': 'left single quote',
  '\u2019': 'right single quote',
  '\u201c': 'left double quote',
  '\u201d': 'right double quote',
  '\u2013': 'en dash',
  '\u2014': 'em dash',
  '\u200b': 'zero width blank',
  '\ufeff': 'byte order mark',
  '\r': 'carriage return',
};

const codeOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

const counted = (count: number, noun: string): string => (count === 1 ? `a ${noun}` : `${count} ${noun}s`);

/** Spaces and tabs in order: `a tab and 2 blanks`. */
const sayBlanks = (text: string): string => {
  const runs = text.match(/\t+| +|[^\t ]/g) ?? [];
  const said = runs.map((run) => {
    if (run.startsWith('\t')) return counted(run.length, 'tab');
    if (run.startsWith(' ')) return counted(run.length, 'blank');
    return `a ${NAMES[run] ?? 'character'} (${codeOf(run)})`;
  });
  return said.length > 4 ? `${said.slice(0, 4).join(', ')} and more` : said.join(' and ');
};

const isBlank = (text: string): boolean => trimEndBlanks(foldTypography(text)) === '';

/**
 * A piece of a line with its blanks and special characters named. Long pieces are not cut, because the redactor would not
 * recognise half of a secret.
 */
const sayPiece = (text: string): string => {
  if (text === '') return 'nothing';
  if (isBlank(text)) return sayBlanks(text);
  if (text.length > QUOTED_MAX) return `${text.length} characters`;
  const [special] = text.match(/[^\u0020-\u007e]/u) ?? [];
  const name = special === undefined ? '' : ` (${NAMES[special] ?? codeOf(special)})`;
  return `\`${text}\`${special !== undefined && text.length <= 12 ? name : ''}`;
};

/** Characters that end a word. Pieces are never cut inside a word, and so never inside a key or token. */
const WORD_END = /[\s"'`,;(){}<>[\]]/;

type Pieces = { readonly column: number; readonly file: string; readonly given: string };

/** The differing parts of two lines, extended to whole words. */
const differing = (file: string, given: string): Pieces => {
  const most = Math.min(file.length, given.length);
  let before = 0;
  while (before < most && file[before] === given[before]) before += 1;
  let after = 0;
  while (after < most - before && file.at(-1 - after) === given.at(-1 - after)) after += 1;
  const column = before + 1;
  const isWord = (line: string, at: number): boolean =>
    at >= 0 && at < line.length && !WORD_END.test(line[at] ?? '');
  const begins = isWord(file, before) || isWord(given, before);
  const ends = isWord(file, file.length - 1 - after) || isWord(given, given.length - 1 - after);
  if (begins) while (isWord(file, before - 1)) before -= 1;
  if (ends) while (isWord(file, file.length - after)) after -= 1;
  return {
    column,
    file: file.slice(before, file.length - after),
    given: given.slice(before, given.length - after),
  };
};

/** Describes the difference between the given line and the file's line; null if they are equal. */
const lineDifference = (file: TextLine, number: number, given: string): string | null => {
  if (file.text === given) return null;
  const [fileIndent, givenIndent] = [indentOf(file.text), indentOf(given)];
  const [fileBody, givenBody] = [file.text.slice(fileIndent.length), given.slice(givenIndent.length)];
  if (trimEndBlanks(fileBody) === trimEndBlanks(givenBody) && fileIndent !== givenIndent) {
    const [there, wanted] = [fileIndent, givenIndent].map((one) =>
      one === '' ? 'no blanks' : sayBlanks(one),
    );
    return `line ${number}: the file has ${there} at its beginning, oldText has ${wanted}`;
  }
  const pieces = differing(trimEndBlanks(fileBody), trimEndBlanks(givenBody));
  if (pieces.file === '' && pieces.given === '') {
    const [there, wanted] = [file.text, given].map((line) => line.slice(trimEndBlanks(line).length));
    return `line ${number}: the file has ${sayPiece(there ?? '')} at its end, oldText has ${sayPiece(wanted ?? '')}`;
  }
  const column = fileIndent.length + pieces.column;
  return `line ${number}, column ${column}: the file has ${sayPiece(pieces.file)}, oldText has ${sayPiece(pieces.given)}`;
};

/** The line without tolerated differences, which are never the reason for a refusal. */
const plain = (line: string): string => foldTypography(trimEndBlanks(line)).trim();

const distanceTo = (lines: readonly string[], from: number, wanted: string): number => {
  for (let ahead = 1; ahead <= AHEAD_MAX && from + ahead < lines.length; ahead++) {
    if (lines[from + ahead] === wanted) return ahead;
  }
  return Number.POSITIVE_INFINITY;
};

const quoteLine = (line: string): string => (line.trim() === '' ? 'an empty line' : sayPiece(line.trim()));

type Compared = {
  readonly file: readonly TextLine[];
  readonly given: readonly string[];
  readonly offset: number;
};

/** Describes a mismatch: a line that only one side has, or different content. */
const mismatch = ({ file, given, offset }: Compared, at: number, index: number): string => {
  const [there, wanted] = [file[at], given[index]];
  const number = offset + at + 1;
  if (there === undefined)
    return `line ${number} is behind the end of the file, oldText goes on with ${quoteLine(wanted ?? '')}`;
  const fileKeys = file.map(({ text }) => plain(text));
  const givenKeys = given.map(plain);
  const bothGoOn =
    fileKeys[at + 1] !== undefined && fileKeys[at + 1] === givenKeys[index + 1] && fileKeys[at + 1] !== '';
  const missing = distanceTo(fileKeys, at, givenKeys[index] ?? '');
  const added = distanceTo(givenKeys, index, fileKeys[at] ?? '');
  if (!bothGoOn && missing < Number.POSITIVE_INFINITY && missing <= added && givenKeys[index] !== '') {
    const lines = missing === 1 ? `line ${number}` : `lines ${number}-${number + missing - 1}`;
    return `${lines} of the file: oldText does not have ${missing === 1 ? quoteLine(there.text) : `these ${missing} lines`}`;
  }
  if (!bothGoOn && added < Number.POSITIVE_INFINITY && fileKeys[at] !== '') {
    return `before line ${number} oldText has ${quoteLine(wanted ?? '')}, which is not there in the file`;
  }
  return lineDifference(there, number, wanted ?? '') ?? `line ${number} differs`;
};

/**
 * The first difference in content; if there is none, the first one in blanks. `first`: index of the file's line where the
 * text would begin. Line numbers in the message count from 1.
 */
export const firstDifference = (
  lines: readonly TextLine[],
  first: number,
  given: readonly string[],
): string => {
  const file = lines.slice(first, first + given.length + AHEAD_MAX);
  for (const [index, wanted] of given.entries()) {
    const there = file[index];
    const [fileKey, key] = [there === undefined ? null : plain(there.text), plain(wanted)];
    if (fileKey === key) continue;
    const isEdge =
      index === 0 ? fileKey?.endsWith(key) : index === given.length - 1 && fileKey?.startsWith(key);
    if (isEdge === true && key !== '') continue;
    return mismatch({ file, given, offset: first }, index, index);
  }
  for (const [index, wanted] of given.entries()) {
    const there = file[index];
    const difference = there === undefined ? null : lineDifference(there, first + index + 1, wanted);
    if (difference !== null) return difference;
  }
  return `line ${first + 1} is where it would begin`;
};
