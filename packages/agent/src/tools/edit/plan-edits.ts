/**
 * Applies several replacements to a text, all or none.
 *
 * 1. Each is matched against the original text. Replacements never overlap.
 * 2. Each has exactly one place, as `find-places.ts` defines. `replaceAll` has several, and they must match exactly.
 */

import { type EditReading, type Removed, readingsOf, segmentsOf, strayMarker } from './edit-readings.js';
import { sayAmbiguous, sayAmbiguousPart, sayMissing, sayPlace, sayUnclear } from './edit-refusal.js';
import {
  type FoundPart,
  findAll,
  findParts,
  findPlaces,
  indentPairsOf,
  type LinePair,
  type Places,
  type SearchedFile,
  type Span,
  searchedFile,
} from './find-places.js';
import {
  endingsOf,
  foldTypography,
  type IndentPair,
  indentOf,
  keyOf,
  type LineEnding,
  linesOf,
  plainOf,
  reindent,
  trimEndBlanks,
  withEnding,
} from './lines.js';

export type TextEdit = {
  readonly oldText: string;
  readonly newText: string;
  readonly replaceAll?: boolean;
};

type PlannedEdits =
  | {
      readonly kind: 'planned';
      readonly text: string;
      readonly count: number;
      /** Tolerated differences, one sentence each. */
      readonly remarks: readonly string[];
      /** The changed places for people: `lines 3-5`. */
      readonly places: string;
    }
  | { readonly kind: 'refused'; readonly why: string };

type Replacement = Span & { readonly text: string; readonly index: number };
type PlannedEdit =
  | {
      readonly kind: 'planned';
      readonly replacements: readonly Replacement[];
      readonly remarks: readonly string[];
    }
  | { readonly kind: 'refused'; readonly why: string };

type Asked = {
  readonly file: SearchedFile;
  readonly edit: TextEdit;
  readonly index: number;
  readonly name: string;
};

/** After so many refused edits the rest is not checked. */
const REFUSALS_MAX = 3;
const LONE_SURROGATE = /\p{Surrogate}/u;

const refused = (why: string): PlannedEdit => ({ kind: 'refused', why });

// ---- Line endings ----

/** The line ending at this place; null for a file without line breaks. */
const endingAt = (file: SearchedFile, start: number): LineEnding | null => {
  if (file.lines.length < 2) return null;
  const index = Math.min(file.lineNumberAt(start), file.lines.length - 1) - 1;
  return file.text[file.lines[index]?.end ?? 0] === '\r' ? '\r\n' : '\n';
};

const fitEndings = (file: SearchedFile, text: string, start: number): string => {
  const ending = text.includes('\n') ? endingAt(file, start) : null;
  return ending === null ? text : withEnding(text, ending);
};

// ---- Remarks ----

const REMOVED: Readonly<Record<Removed, string>> = {
  nothing: '',
  lineNumbers: 'the line numbers were removed.',
  escapes: 'one level of escapes was removed.',
  escapesAndLineNumbers: 'one level of escapes and the line numbers were removed.',
};
const OVERLOOKED: Readonly<Record<Difference, string>> = {
  blanks: 'matched lines that differ in blanks at their ends.',
  indentation: 'matched lines that are indented differently; newText got the indentation of the file.',
  typography: 'matched with other quotes, dashes or blanks; unchanged ones stay as the file has them.',
};

const remarksOf = (
  { file, edit, name }: Asked,
  reading: EditReading,
  parts: readonly FoundPart[],
): string[] => {
  const there = parts.map(({ start, end }) => file.text.slice(start, end)).join('');
  const [fileEndings, givenEndings] = [endingsOf(there), endingsOf(reading.oldText)];
  const differences = differencesOf(parts.flatMap(({ pairs }) => pairs));
  const remarks = (['blanks', 'indentation', 'typography'] as const)
    .filter((one) => differences.has(one))
    .map((one) => `${name} ${OVERLOOKED[one]}`);
  if (reading.removed !== 'nothing') remarks.unshift(`${name}: ${REMOVED[reading.removed]}`);
  if (parts.some(({ lacksBreak }) => lacksBreak))
    remarks.push(`${name}: the file ends without a line break.`);
  if (fileEndings !== givenEndings && fileEndings !== 'none' && givenEndings !== 'none') {
    remarks.push(`${name} matched with other line endings; those of the file are kept.`);
  } else if (endingsOf(fitEndings(file, edit.newText, parts[0]?.start ?? 0)) !== endingsOf(edit.newText)) {
    remarks.push(`${name}.newText got the line endings of the file.`);
  }
  return remarks;
};

// ---- One edit ----

const whole = (parts: readonly FoundPart[]): FoundPart | null => {
  const [first] = parts;
  const last = parts.at(-1);
  if (first === undefined || last === undefined) return null;
  const pairs = parts.flatMap((part) => part.pairs);
  return { ...first, end: last.end, pairs, lacksBreak: last.lacksBreak };
};

/** Replaces each part of one place with its text. */
const replaceParts = (
  { file, index, name }: Asked,
  parts: readonly FoundPart[],
  texts: readonly string[],
): PlannedEdit => {
  const adapted = adapt(texts, parts);
  if (adapted.kind === 'unclear') {
    const why = `${name}: oldText is indented differently from the file, and the indentation of newText fits neither way alone. Give both texts with the file's indentation.`;
    return refused(sayUnclear(file, why, whole(parts) ?? { start: 0, end: 0 }));
  }
  const replacements = parts.map(({ start, end }, at) => ({
    start,
    end,
    text: fitEndings(file, adapted.texts[at] ?? '', start),
    index,
  }));
  return { kind: 'planned', replacements, remarks: [] };
};

const withRemarks = (planned: PlannedEdit, remarks: readonly string[]): PlannedEdit =>
  planned.kind === 'refused' ? planned : { ...planned, remarks };

/** Turns the match of one reading into replacements; null without a match. */
const planFound = (
  asked: Asked,
  reading: EditReading,
  found: Places,
  texts: readonly string[],
): PlannedEdit | null => {
  const { file, name, edit } = asked;
  if (found.kind === 'missing') return null;
  if (found.kind === 'ambiguous') {
    if (found.anchor !== undefined) return refused(sayAmbiguousPart(file, name, found.places, found.anchor));
    const [first] = found.places;
    const exact = first !== undefined && file.text.startsWith(edit.oldText, first.start);
    return refused(sayAmbiguous(file, name, found.places, exact));
  }
  const { parts } = found;
  const all = whole(parts);
  if (all === null) return null;
  if (reading.newText === null) {
    const why = `${name}.oldText matches with ${reading.removed === 'lineNumbers' ? 'its line numbers removed' : 'one level of escapes removed'}, but newText can be read in two ways. Give both texts as the file has them.`;
    return refused(sayUnclear(file, why, all));
  }
  const remarks = remarksOf(asked, reading, parts);
  if (texts.length === parts.length) return withRemarks(replaceParts(asked, parts, texts), remarks);
  return withRemarks(replaceParts(asked, [all], texts), remarks);
};

const planReading = (asked: Asked, reading: EditReading): PlannedEdit | null => {
  const { file, edit, name } = asked;
  const wholeLines = reading.removed === 'lineNumbers' || reading.removed === 'escapesAndLineNumbers';
  const planned = planFound(asked, reading, findPlaces(file, reading.oldText, wholeLines), [
    reading.newText ?? '',
  ]);
  if (planned?.kind !== 'planned') return planned;
  const stray = strayMarker(edit.oldText, edit.newText);
  if (stray === null) return planned;
  const [first] = planned.replacements;
  const why = `${name}.newText has \`${stray}\`, and oldText has no such marker: write the lines out, or give it in both texts.`;
  return refused(sayUnclear(file, why, first ?? { start: 0, end: 0 }));
};

/** Plans a reading whose markers stand for omitted lines. */
const planMarked = (asked: Asked, reading: EditReading): PlannedEdit | null => {
  const { file, name } = asked;
  const segmented = segmentsOf(reading.oldText, reading.newText ?? '');
  if (segmented.kind === 'none') return null;
  const parts = segmented.kind === 'segments' ? segmented.oldParts : [];
  if (segmented.kind === 'refused') {
    return refused(
      sayMissing(file, name, [reading.oldText], '').replace(
        `${name}.oldText is not in the file.`,
        `${name}.newText ${segmented.why}.`,
      ),
    );
  }
  const found = findParts(file, parts);
  const planned = planFound(asked, reading, found, segmented.newParts);
  if (planned?.kind !== 'planned' || found.kind !== 'found') return planned;
  const gaps = found.parts.slice(1).flatMap(({ start }, at) => {
    const before = found.parts[at]?.end ?? start;
    return start > before ? [sayPlace(file, { start: before, end: start })] : [];
  });
  const fate = segmented.newParts.length === parts.length ? 'stay as they are' : 'are replaced, too';
  const remark = `${name}: its markers stand for ${gaps.length === 0 ? 'nothing' : `${gaps.join(', ')}, which ${fate}`}.`;
  return { ...planned, remarks: [...planned.remarks, remark] };
};

const planAll = (asked: Asked): PlannedEdit | null => {
  const { file, edit, index } = asked;
  const found = findAll(file, edit.oldText);
  if (found === null) return null;
  const replacements = found.places.map(({ start, end }) => ({
    start,
    end,
    text: fitEndings(file, edit.newText, start),
    index,
  }));
  const literal: EditReading = { ...edit, removed: 'nothing' };
  return { kind: 'planned', replacements, remarks: remarksOf(asked, literal, [found.first]) };
};

const planEmpty = ({ file, edit, index, name }: Asked): PlannedEdit => {
  if (file.text === '') {
    return { kind: 'planned', replacements: [{ start: 0, end: 0, text: edit.newText, index }], remarks: [] };
  }
  const end = Math.min(2, file.lines.length - 1);
  const place = { start: 0, end: file.lines[end]?.end ?? 0 };
  const why = `${name}.oldText is empty, which says nothing about where. Give a line to put the new text beside, or write the whole file.`;
  return refused(sayUnclear(file, why, place));
};

const planEdit = (asked: Asked): PlannedEdit => {
  const { file, edit, name } = asked;
  if (LONE_SURROGATE.test(edit.newText))
    return refused(`${name}.newText has half a character (a lone surrogate).`);
  if (edit.oldText === '') return planEmpty(asked);
  const all = edit.replaceAll === true ? planAll(asked) : null;
  if (all !== null) return all;
  const readings = readingsOf(edit.oldText, edit.newText).filter(({ oldText }) => oldText !== '');
  for (const plan of [planReading, planMarked]) {
    for (const reading of readings) {
      const planned = plan(asked, reading);
      if (planned !== null) return planned;
    }
  }
  return refused(
    sayMissing(
      file,
      name,
      readings.map(({ oldText }) => oldText),
      edit.newText,
    ),
  );
};

// ---- All edits ----

const overlapIn = (file: SearchedFile, sorted: readonly Replacement[]): string | null => {
  for (const [at, next] of sorted.entries()) {
    const previous = sorted[at - 1];
    if (previous === undefined || next.start >= previous.end) continue;
    return `edits[${previous.index}] and edits[${next.index}] overlap (${sayPlace(file, previous)} and ${sayPlace(file, next)}). Make them one edit.`;
  }
  return null;
};

const apply = (text: string, replacements: readonly Replacement[]): string => {
  const pieces: string[] = [];
  let at = 0;
  for (const { start, end, text: replacement } of replacements) {
    pieces.push(text.slice(at, start), replacement);
    at = end;
  }
  return [...pieces, text.slice(at)].join('');
};

/** The text after all edits, or the refusals of the first faulty edits. */
export const planEdits = (text: string, edits: readonly TextEdit[]): PlannedEdits => {
  const file = searchedFile(text);
  const fitting: Extract<PlannedEdit, { kind: 'planned' }>[] = [];
  const whys: string[] = [];
  for (const [index, edit] of edits.entries()) {
    const planned = planEdit({ file, edit, index, name: `edits[${index}]` });
    if (planned.kind === 'planned') fitting.push(planned);
    else whys.push(planned.why);
    if (whys.length === REFUSALS_MAX) break;
  }
  if (whys.length > 0) return { kind: 'refused', why: whys.join('\n') };
  const replacements = fitting.flatMap((one) => one.replacements).sort((a, b) => a.start - b.start);
  const overlap = overlapIn(file, replacements);
  if (overlap !== null) return { kind: 'refused', why: overlap };
  return {
    kind: 'planned',
    text: apply(text, replacements),
    count: fitting.reduce((sum, one) => sum + one.replacements.length, 0),
    remarks: fitting.flatMap(({ remarks }) => remarks),
    places: [...new Set(replacements.slice(0, 10).map((one) => sayPlace(file, one)))].join(', '),
  };
};

/**
 * Adapts the new text to the file if the old text matched only with tolerated differences.
 *
 * A line that the edit does not change keeps the file's characters. In all other lines, the differences between the old
 * text and the file are repeated, if they follow one consistent pattern.
 */

type Difference = 'blanks' | 'indentation' | 'typography';

type AdaptedText =
  | { readonly kind: 'adapted'; readonly texts: readonly string[] }
  /** The indentation of the new text is ambiguous or contradictory. */
  | { readonly kind: 'unclear' };

const bodyOf = (line: string): string => trimEndBlanks(line.slice(indentOf(line).length));
const tailOf = (line: string): string => line.slice(trimEndBlanks(line).length);
const isEmpty = (line: string): boolean => trimEndBlanks(foldTypography(line)) === '';

/** The differences between the lines of the old text and those of the file. */
const differencesOf = (pairs: readonly LinePair[]): ReadonlySet<Difference> => {
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
const adapt = (newTexts: readonly string[], parts: readonly FoundPart[]): AdaptedText => {
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
