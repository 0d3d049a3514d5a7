import { type FoundPart, indentPairsOf, type LinePair } from './find-places.js';
import { type IndentPair, reindent } from './indentation.js';
import { foldTypography, indentOf, keyOf, linesOf, plainOf, trimEndBlanks } from './lines.js';

/**
 * The new text as it belongs into the file, where the old one was found in spite of differences.
 *
 * A line that the edit leaves as it was keeps the file's characters. Any other is changed in the way in which the
 * lines of the old text differ from those of the file, if that is one way.
 */

export type Difference = 'blanks' | 'indentation' | 'typography';

export type AdaptedText =
  | { readonly kind: 'adapted'; readonly texts: readonly string[] }
  /** The indentation of the new text can be read in two ways, or in none. */
  | { readonly kind: 'unclear' };

const bodyOf = (line: string): string => trimEndBlanks(line.slice(indentOf(line).length));
const tailOf = (line: string): string => line.slice(trimEndBlanks(line).length);
const isEmpty = (line: string): boolean => trimEndBlanks(foldTypography(line)) === '';

/** Differences between the given lines and those of the file. */
export const differencesOf = (pairs: readonly LinePair[]): ReadonlySet<Difference> => {
  const found = new Set<Difference>();
  for (const { given, file } of pairs) {
    if (given === file) continue;
    if (tailOf(given) !== tailOf(file)) found.add('blanks');
    if (isEmpty(given)) continue;
    if (indentOf(given) !== indentOf(file)) found.add('indentation');
    if (bodyOf(given) !== bodyOf(file) || leadOf(given) !== indentOf(given)) found.add('typography');
  }
  return found;
};

/** The blanks at the beginning as they are. */
const leadOf = (line: string): string => line.slice(0, indentOf(line).length);

// ---- Indentation ----

/** In which of the two the new text is indented. */
type Side = 'given' | 'file' | 'unclear';

/** In which of the two a line of the new text stands, indentation included; null if in both or in none. */
const knownSide = (pairs: readonly LinePair[], line: string | undefined): 'given' | 'file' | null => {
  if (line === undefined) return null;
  const key = keyOf(line, { typography: 'folded', indentation: 'exact' });
  const isKey = (other: string): boolean =>
    keyOf(other, { typography: 'folded', indentation: 'exact' }) === key;
  const isGiven = pairs.some(({ given }) => isKey(given));
  if (isGiven === pairs.some(({ file }) => isKey(file))) return null;
  return isGiven ? 'given' : 'file';
};

/** By the indentation of the first line; by that of the others where the first one says nothing. */
const sideByIndents = (pairs: readonly IndentPair[], indents: readonly string[]): Side => {
  const [given, file] = [new Set(pairs.map((pair) => pair.given)), new Set(pairs.map((pair) => pair.file))];
  const hasGiven = indents.some((indent) => given.has(indent) && !file.has(indent));
  const hasFile = indents.some((indent) => file.has(indent) && !given.has(indent));
  const [first] = indents;
  const [top] = pairs;
  if (top !== undefined && top.given !== top.file) {
    if (first === top.given) return 'given';
    if (first === top.file) return hasGiven ? 'unclear' : 'file';
  }
  if (hasGiven && hasFile) return 'unclear';
  return hasFile ? 'file' : 'given';
};

type Indents = (indent: string) => string;
type ReadIndents = { readonly side: 'given' | 'file' | 'same'; readonly of: Indents } | 'unclear';

/** New indentation for each line of the new text. */
const readIndents = (pairs: readonly LinePair[], lines: readonly string[], inside: boolean): ReadIndents => {
  const same: ReadIndents = { side: 'same', of: (indent) => indent };
  const indentPairs = indentPairsOf(inside ? pairs.slice(1) : pairs);
  if (indentPairs.every(({ given, file }) => given === file)) return same;
  const filled = (inside ? lines.slice(1) : lines).filter((line) => !isEmpty(line));
  const indents = filled.map(indentOf);
  const side = knownSide(pairs, filled[0]) ?? sideByIndents(indentPairs, indents);
  if (side === 'unclear') return 'unclear';
  if (side === 'file') return { side, of: (indent) => indent };
  const table = reindent(indentPairs, [...new Set(indents)]);
  return table === null ? 'unclear' : { side, of: (indent) => table.get(indent) ?? indent };
};

// ---- Characters ----

type Characters = { readonly of: (text: string) => string };

/** Quotes go together: who writes one kind of them in typographic form writes the other so, too. */
const familyOf = (plain: string): string => (plain === "'" ? '"' : plain);

/** Families of typographic characters that stand for plain ones: that is how the old text has them. */
const foldedFamilies = (seen: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> => {
  const folded = new Set<string>();
  const kept = new Set<string>();
  for (const [given, files] of seen) {
    const plain = plainOf(given);
    if (plain === null) continue;
    for (const file of files) (file === plain ? folded : kept).add(familyOf(plain));
  }
  return new Set([...folded].filter((family) => !kept.has(family)));
};

/** Replacement of each character of the old text, where it is always the same. */
const readCharacters = (pairs: readonly LinePair[]): Characters => {
  const seen = new Map<string, Set<string>>();
  for (const { given, file } of pairs) {
    const [from, to] = [bodyOf(given), bodyOf(file)];
    if (from.length !== to.length) continue;
    for (let at = 0; at < from.length; at++) {
      const [one = '', other = ''] = [from[at], to[at]];
      if (one !== other || plainOf(one) !== null || foldTypography(other) !== other) {
        seen.set(one, (seen.get(one) ?? new Set()).add(other));
      } else seen.get(one)?.add(other);
    }
  }
  if (seen.size === 0) return { of: (text) => text };
  const families = foldedFamilies(seen);
  const become = (one: string): string => {
    const files = seen.get(one);
    if (files?.size === 1) return [...files][0] ?? one;
    const plain = plainOf(one);
    return files === undefined && plain !== null && families.has(familyOf(plain)) ? plain : one;
  };
  return { of: (text) => [...text].map(become).join('') };
};

/** The changed part of a line by `of`; what it has in common with the old line as the file has it. */
const changeLine = (line: string, pair: LinePair | undefined, { of }: Characters): string => {
  if (pair === undefined) return of(line);
  const [given, file] = [bodyOf(pair.given), bodyOf(pair.file)];
  if (given.length !== file.length || given === file) return of(line);
  const most = Math.min(given.length, line.length);
  let before = 0;
  while (before < most && given[before] === line[before]) before += 1;
  let after = 0;
  while (after < most - before && given.at(-1 - after) === line.at(-1 - after)) after += 1;
  const middle = line.slice(before, line.length - after);
  return file.slice(0, before) + of(middle) + file.slice(file.length - after);
};

// ---- Together ----

/** The file's line for each old one that stands for one line only. */
const keptLines = (pairs: readonly LinePair[]): ReadonlyMap<string, string> => {
  const kept = new Map<string, string>();
  const doubtful = new Set<string>();
  for (const { given, file } of pairs) {
    if ((kept.get(given) ?? file) !== file) doubtful.add(given);
    kept.set(given, file);
  }
  for (const line of doubtful) kept.delete(line);
  return kept;
};

/** New trailing blanks of a line; none where the old text has them and the file does not. */
const readTails = (pairs: readonly LinePair[]): ((tail: string) => string) => {
  const seen = new Map<string, Set<string>>();
  for (const { given, file } of pairs) {
    const tail = tailOf(given);
    if (tail !== '') seen.set(tail, (seen.get(tail) ?? new Set()).add(tailOf(file)));
  }
  return (tail) => {
    const files = seen.get(tail);
    if (files?.size === 1) return [...files][0] ?? tail;
    return files?.has('') === true ? '' : tail;
  };
};

type Ways = {
  readonly indents: Exclude<ReadIndents, 'unclear'>;
  readonly characters: Characters;
  readonly tails: (tail: string) => string;
};

const adaptPart = (
  lines: readonly string[],
  part: FoundPart,
  { indents, characters, tails }: Ways,
): readonly string[] => {
  const kept = indents.side === 'file' ? new Map<string, string>() : keptLines(part.pairs);
  const fileLines = indents.side === 'same' ? new Set(part.pairs.map(({ file }) => file)) : new Set<string>();
  const sameCount = lines.length === part.pairs.length;
  return lines.map((line, index) => {
    const whole = kept.get(line);
    if (whole !== undefined) return whole;
    if (fileLines.has(line)) return line;
    if (isEmpty(line)) return tails(line);
    const indent = part.inside && index === 0 ? leadOf(line) : indents.of(indentOf(line));
    const pair = sameCount ? part.pairs[index] : undefined;
    return indent + changeLine(bodyOf(line), pair, characters) + tails(tailOf(line));
  });
};

/** Without the last line break, where the file has none. */
const withoutBreak = (lines: readonly string[], { lacksBreak }: FoundPart): readonly string[] =>
  lacksBreak && lines.length > 1 && lines.at(-1) === '' ? lines.slice(0, -1) : lines;

/**
 * The new text of each part, with `\n` as its line breaks. How the old text differs from the file is seen from all parts
 * together.
 */
export const adapt = (newTexts: readonly string[], parts: readonly FoundPart[]): AdaptedText => {
  const all = parts.flatMap(({ pairs }) => pairs);
  const given = parts.map((part, index) => withoutBreak(linesIn(newTexts[index] ?? ''), part));
  const join = (texts: readonly (readonly string[])[]): AdaptedText => ({
    kind: 'adapted',
    texts: texts.map((lines) => lines.join('\n')),
  });
  if (all.every((pair) => pair.given === pair.file)) return join(given);
  const indents = readIndents(all, given.flat(), parts[0]?.inside ?? false);
  if (indents === 'unclear') return { kind: 'unclear' };
  const ways: Ways = { indents, characters: readCharacters(all), tails: readTails(all) };
  return join(parts.map((part, index) => adaptPart(given[index] ?? [], part, ways)));
};

const linesIn = (text: string): readonly string[] => linesOf(text).map((line) => line.text);
