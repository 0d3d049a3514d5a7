/** The mistakes that models make when they repeat a file's text. */

import type { TrueEdit } from './corpus.js';
import type { Random } from './random.js';

/** Both texts as lines; a mistake changes both in the same way, or the old one only. */
export type Texts = {
  readonly oldLines: readonly string[];
  readonly newLines: readonly string[];
  /** Line breaks of the old text and the new one. */
  readonly joined: string;
  readonly newJoined: string;
};

/** Null if the mistake does not apply to the edit. */
export type Mistake = (texts: Texts, edit: TrueEdit, random: Random) => Texts | null;

const both = (
  texts: Texts,
  random: Random,
  change: (lines: readonly string[]) => readonly string[],
): Texts => ({
  ...texts,
  oldLines: change(texts.oldLines),
  newLines: random.below(4) === 0 ? texts.newLines : change(texts.newLines),
});

const filled = (line: string): boolean => line.trim() !== '';
const indentOf = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? '';
const usesTabs = ({ text }: TrueEdit): boolean => /^\t/m.test(text);

const trailingBlanks: Mistake = (texts, _edit, random) => {
  const tail = random.pick([' ', '  ', '\t']);
  const often = 1 + random.below(3);
  return both(texts, random, (lines) =>
    lines.map((line, index) => (index % often === 0 ? `${line}${tail}` : line)),
  );
};

const otherEndings: Mistake = (texts, { ending }) => {
  const joined = ending === '\n' ? '\r\n' : '\n';
  return { ...texts, joined, newJoined: joined };
};

const indentedMore: Mistake = (texts, edit, random) => {
  const more = usesTabs(edit) ? '\t\t' : '  ';
  return both(texts, random, (lines) =>
    lines.map((line) => (filled(line) ? `${more}${line}` : line)),
  );
};

const dedented: Mistake = (texts, _edit, random) => {
  const depths = [...texts.oldLines, ...texts.newLines]
    .filter(filled)
    .map((line) => indentOf(line).length);
  const most = Math.min(...depths);
  const less = random.below(2) === 0 ? most : Math.min(most, 2);
  return less === 0
    ? null
    : both(texts, random, (lines) =>
        lines.map((line) => line.slice(Math.min(less, indentOf(line).length))),
      );
};

const unitOf = (text: string): number => {
  const depths = text
    .split('\n')
    .flatMap((line) => (/^ +[^ *]/.test(line) ? [indentOf(line).length] : []));
  return depths.length > 0 && depths.every((depth) => depth % 4 === 0) ? 4 : 2;
};

const otherBlanks: Mistake = (texts, edit, random) => {
  if (!texts.oldLines.some((line) => indentOf(line).length > 1 || line.startsWith('\t')))
    return null;
  const unit = usesTabs(edit) ? random.pick([2, 4]) : unitOf(edit.text);
  const swap = (line: string): string => {
    const indent = indentOf(line);
    const swapped = usesTabs(edit)
      ? indent.replaceAll('\t', ' '.repeat(unit))
      : indent.replaceAll(' '.repeat(unit), '\t');
    return swapped + line.slice(indent.length);
  };
  const changed = both(texts, random, (lines) => lines.map(swap));
  return changed.oldLines.join('\n') === texts.oldLines.join('\n') ? null : changed;
};

const curlyQuotes: Mistake = (texts, _edit, random) => {
  if (!texts.oldLines.some((line) => /['"]/.test(line))) return null;
  const curl = (line: string): string => {
    let open = false;
    return line.replaceAll("'", '\u2019').replace(/"/g, () => {
      open = !open;
      return open ? '\u201c' : '\u201d';
    });
  };
  return both(texts, random, (lines) => lines.map(curl));
};

const lineNumbers: Mistake = (texts, { first }, random) => {
  const arrow = random.below(3) === 0;
  const number = (line: string, index: number): string =>
    arrow
      ? `${String(first + index + 1).padStart(6)}\u2192${line}`
      : `${first + index + 1}\t${line}`;
  return both(texts, random, (lines) => lines.map(number));
};

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

/** In a line that both texts have, if there is one. */
const oneCharacter: Mistake = (texts, { text }, random) => {
  const shared = texts.oldLines.filter(
    (line) => texts.newLines.includes(line) && /[a-z]{3}/.test(line),
  );
  const line =
    shared.length > 0 ? random.pick(shared) : texts.oldLines.find((one) => /[a-z]{3}/.test(one));
  if (line === undefined) return null;
  const at = random.pick([...line.matchAll(/[a-z]/g)].map(({ index }) => index));
  const letter = LETTERS[(LETTERS.indexOf(line[at] ?? 'a') + 1 + random.below(25)) % 26] ?? 'q';
  const wrong = line.slice(0, at) + letter + line.slice(at + 1);
  const replace = (lines: readonly string[]): readonly string[] =>
    lines.map((one) => (one === line ? wrong : one));
  const changed = {
    ...texts,
    oldLines: replace(texts.oldLines),
    newLines: replace(texts.newLines),
  };
  return text.includes(changed.oldLines.join('\n')) ? null : changed;
};

/** A line in the middle that both texts should have. */
const lineLeftOut: Mistake = (texts, { text }, random) => {
  const inner = texts.oldLines
    .slice(1, -1)
    .filter((line) => filled(line) && texts.newLines.includes(line));
  const unique = inner.filter(
    (line) => texts.oldLines.indexOf(line) === texts.oldLines.lastIndexOf(line),
  );
  if (unique.length === 0) return null;
  const left = random.pick(unique);
  const drop = (lines: readonly string[]): readonly string[] =>
    lines.filter((line) => line !== left);
  const changed = { ...texts, oldLines: drop(texts.oldLines), newLines: drop(texts.newLines) };
  return text.includes(changed.oldLines.join('\n')) ? null : changed;
};

const markerFor = (file: string, random: Random): string => {
  if (/\.(md|html)$/.test(file)) return '<!-- ... existing code ... -->';
  if (file.endsWith('.css')) return '/* ... existing code ... */';
  return random.pick([
    '// ... existing code ...',
    '// ...',
    '/* ... existing code ... */',
    '\u2026 existing code \u2026',
    '# ... existing code ...',
  ]);
};

/** The middle third of what both texts have stands as a marker, in both or in the old one only. */
const existingCode: Mistake = (texts, { file }, random) => {
  const { oldLines, newLines } = texts;
  let before = 0;
  while (before < oldLines.length && oldLines[before] === newLines[before]) before += 1;
  let after = 0;
  while (after < oldLines.length - before && oldLines.at(-1 - after) === newLines.at(-1 - after))
    after += 1;
  const marker = markerFor(file, random);
  const third = Math.floor(oldLines.length / 3);
  const cut = (from: number, until: number, shift: number): Texts | null => {
    if (until - from < 2) return null;
    const elide = (lines: readonly string[], by: number): readonly string[] => [
      ...lines.slice(0, from + by),
      marker,
      ...lines.slice(until + by),
    ];
    const shortened = { ...texts, oldLines: elide(oldLines, 0) };
    return random.below(4) === 0 ? shortened : { ...shortened, newLines: elide(newLines, shift) };
  };
  const shift = newLines.length - oldLines.length;
  const [from, until] = [third, oldLines.length - third];
  if (until <= before) return cut(from, until, 0);
  if (from >= oldLines.length - after) return cut(from, until, shift);
  return null; // the change is in the part that would be left out
};

const escapedTwice: Mistake = (texts, _edit, random) => {
  if (texts.joined !== '\n' || texts.oldLines.length < 2) return null;
  const whole = random.below(2) === 0;
  const escapeLine = (line: string): string => (whole ? JSON.stringify(line).slice(1, -1) : line);
  const escaped = { ...texts, oldLines: texts.oldLines.map(escapeLine), joined: '\\n' };
  if (random.below(4) === 0) return escaped;
  return { ...escaped, newLines: texts.newLines.map(escapeLine), newJoined: '\\n' };
};

/** The twelve kinds; those of `refused` are never to be overlooked. */
export const KINDS: readonly {
  readonly name: string;
  readonly mistake: Mistake;
  readonly refused: boolean;
}[] = [
  { name: 'exact', mistake: (texts) => texts, refused: false },
  { name: 'trailing blanks', mistake: trailingBlanks, refused: false },
  { name: 'CRLF', mistake: otherEndings, refused: false },
  { name: 'indented by two more', mistake: indentedMore, refused: false },
  { name: 'dedented', mistake: dedented, refused: false },
  { name: 'tabs for blanks', mistake: otherBlanks, refused: false },
  { name: 'curly quotes', mistake: curlyQuotes, refused: false },
  { name: 'line numbers copied', mistake: lineNumbers, refused: false },
  { name: 'one character wrong', mistake: oneCharacter, refused: true },
  { name: 'a line left out', mistake: lineLeftOut, refused: true },
  { name: '… existing code …', mistake: existingCode, refused: false },
  { name: '\\n escaped twice', mistake: escapedTwice, refused: false },
];

/** Mistakes that go together, in the order in which they are made. */
export const MIXTURES: readonly (readonly string[])[] = [
  ['indented by two more', 'curly quotes', 'trailing blanks'],
  ['dedented', 'curly quotes'],
  ['tabs for blanks', 'trailing blanks'],
  ['tabs for blanks', 'line numbers copied'],
  ['dedented', 'line numbers copied'],
  ['curly quotes', 'line numbers copied'],
  ['CRLF', 'indented by two more'],
  ['CRLF', 'curly quotes', 'line numbers copied'],
  ['dedented', '\\n escaped twice'],
  ['… existing code …', 'indented by two more'],
  ['… existing code …', 'curly quotes'],
  ['… existing code …', 'trailing blanks'],
];
