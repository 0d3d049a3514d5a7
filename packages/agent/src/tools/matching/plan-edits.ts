import { endingsOf, type LineEnding, withEnding } from '../files/line-endings.js';
import { adapt, type Difference, differencesOf } from './adapt-text.js';
import { type EditReading, type Removed, readingsOf } from './edit-readings.js';
import { sayAmbiguous, sayAmbiguousPart, sayMissing, sayPlace, sayUnclear } from './edit-refusal.js';
import { type FoundPart, findAll, findParts, findPlaces, type Places, type Span } from './find-places.js';
import { type SearchedFile, searchedFile } from './searched-file.js';
import { segmentsOf, strayMarker } from './split-at-omissions.js';

/**
 * Applies several replacements to a text, all or none.
 *
 * 1. Each is matched against the original text. Replacements never overlap.
 * 2. Each has exactly one place, as `find-places.ts` defines. `replaceAll` has several, and they must match exactly.
 */

export type TextEdit = {
  readonly oldText: string;
  readonly newText: string;
  readonly replaceAll?: boolean;
};

export type PlannedEdits =
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
