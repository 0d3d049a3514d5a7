import { type FoundPart, indentPairsOf, type LinePair } from './find-places.js';
import { type IndentPair, reindent } from './indentation.js';
import { foldTypography, indentOf, keyOf, linesOf, plainOf, trimEndBlanks } from './text-lines.js';

/**
 * Adapts the new text to the file if the old text matched only with tolerated differences.
 *
 * A line that the edit does not change keeps the file's characters. In all other lines, the differences between the old
 * text and the file are repeated, if they follow one consistent pattern.
 */

export type Difference = 'blanks' | 'indentation' | 'typography';

export type AdaptedText =
  | { readonly kind: 'adapted'; readonly texts: readonly string[] }
  /** The indentation of the new text is ambiguous or contradictory. */
  | { readonly kind: 'unclear' };

const bodyOf = (line: string): string => trimEndBlanks(line.slice(indentOf(line).length));
const tailOf = (line: string): string => line.slice(trimEndBlanks(line).length);
const isEmpty = (line: string): boolean => trimEndBlanks(foldTypography(line)) === '';

/** The differences between the lines of the old text and those of the file. */
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

/** Leading spaces and tabs, unchanged. */
const leadOf = (line: string): string => line.slice(0, indentOf(line).length);

// ---- Indentation ----

/** Whether the new text is indented like the given old text or like the file. */
type Side = 'given' | 'file' | 'unclear';

/** Which side contains this line of the new text, including its indentation; null for both or none. */
const knownSide = (pairs: readonly LinePair[], line: string | undefined): 'given' | 'file' | null => {
  if (line === undefined) return null;
  const key = keyOf(line, { typography: 'folded', indentation: 'exact' });
  const isKey = (other: string): boolean =>
    keyOf(other, { typography: 'folded', indentation: 'exact' }) === key;
  const isGiven = pairs.some(({ given }) => isKey(given));
  if (isGiven === pairs.some(({ file }) => isKey(file))) return null;
  return isGiven ? 'given' : 'file';
};

/** Decides by the indentation of the first line, and by the other lines if the first one is inconclusive. */
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

/** The new indentation for each line of the new text. */
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

/** Groups quotes: a text with typographic quotes of one kind usually has typographic quotes of the other kind too. */
const familyOf = (plain: string): string => (plain === "'" ? '"' : plain);

/** Groups of typographic characters in the old text for which the file has plain ones. */
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

/** The file's character for each character of the old text, if it is always the same. */
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

/** Applies `of` to the changed part of a line. The unchanged part keeps the file's characters. */
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

/** The file's line for each old line that occurs only once. */
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

/** Maps trailing spaces: removed where the old text has them and the file does not. */
const tailReader = (pairs: readonly LinePair[]): ((tail: string) => string) => {
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

/** Without the last line break if the file has none there. */
const withoutBreak = (lines: readonly string[], { lacksBreak }: FoundPart): readonly string[] =>
  lacksBreak && lines.length > 1 && lines.at(-1) === '' ? lines.slice(0, -1) : lines;

/** The new text of each part, with `\n` line breaks. The pattern of differences is taken from all parts together. */
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
  const ways: Ways = { indents, characters: readCharacters(all), tails: tailReader(all) };
  return join(parts.map((part, index) => adaptPart(given[index] ?? [], part, ways)));
};

const linesIn = (text: string): readonly string[] => linesOf(text).map((line) => line.text);
