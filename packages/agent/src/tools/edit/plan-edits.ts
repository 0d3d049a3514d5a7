/**
 * Applies several replacements to a text, all or none.
 *
 * Each is matched against the original text, and has exactly one place, as `find-places.ts`
 * defines. `replaceAll` has several, and they must match exactly. Replacements never overlap.
 *
 * From top to bottom: `planEdits`; one edit and its readings, since models write line numbers or
 * escapes into a text, or markers such as `// ... existing code ...` for omitted lines; remarks
 * about tolerated differences; and the new text, adapted to the file's indentation and characters.
 * "Requested" is what oldText says, in contrast to what the file has. `firstLine` of a place says
 * how the first line of oldText is indented: as the others (`asOthers`), not at all while they are
 * (`bare`), or deeper than in the file while they are as in the file (`deeper`).
 */

import {
  type EditReading,
  findStrayMarker,
  LONE_SURROGATE,
  type Removed,
  readEdit,
  splitAtMarkers,
} from './edit-readings.js';
import {
  describePlace,
  explainAmbiguous,
  explainAmbiguousPart,
  explainMissing,
  explainUnclear,
} from './edit-refusal.js';
import {
  type FirstLine,
  type FoundPart,
  findAll,
  findParts,
  findPlaces,
  type LinePair,
  type Places,
  partIndents,
  SearchedFile,
  type Span,
} from './find-places.js';
import {
  commonEnds,
  findEndings,
  getIndent,
  type IndentPair,
  isEmptyLine,
  type LineEnding,
  lineKey,
  lineTexts,
  plainCharacter,
  reindent,
  trimEndBlanks,
  withEnding,
} from './lines.js';

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
      /** The same places as offsets, in order. */
      readonly spans: readonly Span[];
    }
  | Refused;

type Refused = { readonly kind: 'refused'; readonly why: string };
/** `index`: of its edit. */
type Replacement = Span & { readonly text: string; readonly index: number };
type PlannedEdit =
  | {
      readonly kind: 'planned';
      readonly replacements: readonly Replacement[];
      readonly remarks: readonly string[];
    }
  | Refused;

/** One edit; `name` is `edits[INDEX]` for messages. */
type Request = {
  readonly file: SearchedFile;
  readonly edit: TextEdit;
  readonly index: number;
  readonly name: string;
};

/** After so many refused edits the rest is not checked. */
const REFUSALS_MAX = 3;
const PLACES_SHOWN = 10;

const refuse = (why: string): Refused => ({ kind: 'refused', why });

/** The text after all edits, or the refusals of the first faulty edits. */
export const planEdits = (text: string, edits: readonly TextEdit[]): PlannedEdits => {
  const file = new SearchedFile(text);
  const fitting: Extract<PlannedEdit, { kind: 'planned' }>[] = [];
  const refusals: string[] = [];
  for (const [index, edit] of edits.entries()) {
    const planned = planEdit({ file, edit, index, name: `edits[${index}]` });
    if (planned.kind === 'planned') fitting.push(planned);
    else refusals.push(planned.why);
    if (refusals.length === REFUSALS_MAX) break;
  }
  if (refusals.length > 0) return refuse(refusals.join('\n'));
  const replacements = fitting.flatMap((one) => one.replacements).sort((a, b) => a.start - b.start);
  const pieces: string[] = [];
  let previous: Replacement | null = null;
  for (const next of replacements) {
    if (previous !== null && next.start < previous.end) {
      const places = `${describePlace(file, previous)} and ${describePlace(file, next)}`;
      return refuse(
        `edits[${previous.index}] and edits[${next.index}] overlap (${places}). Make them ` +
          'one edit.',
      );
    }
    pieces.push(text.slice(previous?.end ?? 0, next.start), next.text);
    previous = next;
  }
  const shown = replacements.slice(0, PLACES_SHOWN).map((one) => describePlace(file, one));
  return {
    kind: 'planned',
    text: [...pieces, text.slice(previous?.end ?? 0)].join(''),
    count: replacements.length,
    remarks: fitting.flatMap(({ remarks }) => remarks),
    places: [...new Set(shown)].join(', '),
    spans: replacements,
  };
};

const HALF_CHARACTER = '.newText has half a character (a lone surrogate).';

/** Tries all readings of an edit, the literal one first. */
const planEdit = (request: Request): PlannedEdit => {
  const { file, edit, name } = request;
  if (LONE_SURROGATE.test(edit.newText)) return refuse(name + HALF_CHARACTER);
  if (edit.oldText === '') return planEmpty(request);
  const all = edit.replaceAll === true ? planAll(request) : null;
  if (all !== null) return all;
  const readings = readEdit(edit.oldText, edit.newText).filter(({ oldText }) => oldText !== '');
  for (const plan of [planReading, planMarked]) {
    for (const reading of readings) {
      const planned = plan(request, reading);
      if (planned !== null) return planned;
    }
  }
  const texts = readings.map(({ oldText }) => oldText);
  return refuse(explainMissing(file, `${name}.oldText is not in the file.`, texts, edit.newText));
};

/** An empty oldText has a place only in an empty file. */
const planEmpty = ({ file, edit, index, name }: Request): PlannedEdit => {
  if (file.text === '') {
    return {
      kind: 'planned',
      replacements: [{ start: 0, end: 0, text: edit.newText, index }],
      remarks: [],
    };
  }
  // the first lines are shown, to give one of them
  const place = { start: 0, end: file.lines[Math.min(2, file.lines.length - 1)]?.end ?? 0 };
  const why =
    `${name}.oldText is empty, which says nothing about where. Give a line to put the new text ` +
    'beside, or write the whole file.';
  return refuse(explainUnclear(file, why, place));
};

/** Plans `replaceAll`; null if the text has no exact place. */
const planAll = (request: Request): PlannedEdit | null => {
  const { file, edit, index } = request;
  const match = findAll(file, edit.oldText);
  if (match === null) return null;
  const replacements = match.places.map(({ start, end }) => ({
    start,
    end,
    text: fitEndings(file, edit.newText, start),
    index,
  }));
  const remarks = describeDifferences(request, { ...edit, removed: 'nothing' }, [match.first]);
  return { kind: 'planned', replacements, remarks };
};

/** Plans one reading; null if it matches nowhere. */
const planReading = (request: Request, reading: EditReading): PlannedEdit | null => {
  const { file, edit, name } = request;
  const wholeLines =
    reading.removed === 'lineNumbers' || reading.removed === 'escapesAndLineNumbers';
  const match = findPlaces(file, reading.oldText, wholeLines);
  // a newText of null is refused there
  const planned = planFound(request, reading, match, [reading.newText ?? '']);
  if (planned?.kind !== 'planned') return planned;
  const stray = findStrayMarker(edit.oldText, edit.newText);
  if (stray === null) return planned;
  const why =
    `${name}.newText has \`${stray}\`, and oldText has no such marker: write the lines out, or ` +
    'give it in both texts.';
  return refuse(explainUnclear(file, why, planned.replacements[0] ?? { start: 0, end: 0 }));
};

/** Plans a reading whose markers stand for omitted lines. */
const planMarked = (request: Request, reading: EditReading): PlannedEdit | null => {
  const { file, name } = request;
  const split = splitAtMarkers(reading.oldText, reading.newText ?? '');
  if (split.kind === 'none') return null;
  if (split.kind === 'refused') {
    const why = `${name}.newText ${split.why}.`;
    return refuse(explainMissing(file, why, [reading.oldText], ''));
  }
  const match = findParts(file, split.oldParts);
  const planned = planFound(request, reading, match, split.newParts);
  if (planned?.kind !== 'planned' || match.kind !== 'matched') return planned;
  // the lines between the parts, which the markers stand for
  const gaps = match.parts.slice(1).flatMap(({ start }, at) => {
    const before = match.parts[at]?.end ?? start;
    return start > before ? [describePlace(file, { start: before, end: start })] : [];
  });
  const fate =
    split.newParts.length === split.oldParts.length ? 'stay as they are' : 'are replaced, too';
  const remark =
    `${name}: its markers stand for ` +
    `${gaps.length === 0 ? 'nothing' : `${gaps.join(', ')}, which ${fate}`}.`;
  return { ...planned, remarks: [...planned.remarks, remark] };
};

/** Turns the match of one reading into replacements; null without a match. */
const planFound = (
  request: Request,
  reading: EditReading,
  match: Places,
  texts: readonly string[],
): PlannedEdit | null => {
  const { file, name, edit, index } = request;
  if (match.kind === 'missing') return null;
  if (match.kind === 'ambiguous') {
    const { places, anchor } = match;
    if (anchor !== undefined) return refuse(explainAmbiguousPart(file, name, places, anchor));
    const [first] = places;
    const exact = first !== undefined && file.text.startsWith(edit.oldText, first.start);
    return refuse(explainAmbiguous(file, name, places, exact));
  }
  const whole = joinParts(match.parts);
  if (whole === null) return null;
  if (reading.newText === null) {
    const how =
      reading.removed === 'lineNumbers'
        ? 'its line numbers removed'
        : 'one level of escapes removed';
    const why =
      `${name}.oldText matches with ${how}, but newText can be read in two ways. Give both ` +
      'texts as the file has them.';
    return refuse(explainUnclear(file, why, whole));
  }
  if (LONE_SURROGATE.test(reading.newText)) return refuse(name + HALF_CHARACTER);
  const parts = texts.length === match.parts.length ? match.parts : [whole];
  const rest = parts.at(-1)?.rest ?? '';
  if (rest !== '' && texts.at(-1)?.trimEnd().endsWith(rest)) {
    const why =
      `${name}: oldText is indented differently from the file and ends within a line, whose end ` +
      'newText has, too. Give whole lines in both texts.';
    return refuse(explainUnclear(file, why, whole));
  }
  const adapted = adaptTexts(texts, parts);
  if (adapted === null) {
    const why =
      `${name}: oldText is indented differently from the file, and the indentation of newText ` +
      `fits neither way alone. Give both texts with the file's indentation.`;
    return refuse(explainUnclear(file, why, whole));
  }
  const replacements = parts.map(({ start, end }, at) => ({
    start,
    end,
    text: fitEndings(file, adapted[at] ?? '', start),
    index,
  }));
  return {
    kind: 'planned',
    replacements,
    remarks: describeDifferences(request, reading, match.parts),
  };
};

/** The range from the first part to the last one. */
const joinParts = (parts: readonly FoundPart[]): FoundPart | null => {
  const [first] = parts;
  const last = parts.at(-1);
  if (first === undefined || last === undefined) return null;
  const pairs = parts.flatMap((part) => part.pairs);
  return { ...last, start: first.start, firstLine: first.firstLine, pairs };
};

/** The text with the line endings of the file at this place. */
const fitEndings = (file: SearchedFile, text: string, start: number): string => {
  if (!text.includes('\n') || file.lines.length < 2) return text;
  const line = file.lines[Math.min(file.lineNumberAt(start), file.lines.length - 1) - 1];
  const ending: LineEnding = file.text[line?.end ?? 0] === '\r' ? '\r\n' : '\n';
  return withEnding(text, ending);
};

// ---- Remarks about tolerated differences ----

const REMOVED: Readonly<Record<Exclude<Removed, 'nothing'>, string>> = {
  lineNumbers: 'the line numbers were removed.',
  escapes: 'one level of escapes was removed.',
  escapesAndLineNumbers: 'one level of escapes and the line numbers were removed.',
};
const BLANKS = 'matched lines that differ in blanks at their ends.';
const INDENTATION =
  'matched lines that are indented differently; newText got the indentation of the file.';
const TYPOGRAPHY =
  'matched with other quotes, dashes or blanks; unchanged ones stay as the file has them.';

/** One sentence for each kind of difference that was tolerated. */
const describeDifferences = (
  { file, edit, name }: Request,
  reading: EditReading,
  parts: readonly FoundPart[],
): readonly string[] => {
  const remarks: string[] = [];
  if (reading.removed !== 'nothing') remarks.push(`${name}: ${REMOVED[reading.removed]}`);
  const pairs = parts
    .flatMap((part) => part.pairs)
    .filter(({ requested, file: there }) => requested !== there);
  const filled = pairs.filter(({ requested }) => !isEmptyLine(requested));
  if (pairs.some((pair) => getTail(pair.requested) !== getTail(pair.file)))
    remarks.push(`${name} ${BLANKS}`);
  if (filled.some((pair) => getIndent(pair.requested) !== getIndent(pair.file)))
    remarks.push(`${name} ${INDENTATION}`);
  const hasOtherCharacters = ({ requested, file: there }: LinePair): boolean =>
    getBody(requested) !== getBody(there) || getLead(requested) !== getIndent(requested);
  if (filled.some(hasOtherCharacters)) remarks.push(`${name} ${TYPOGRAPHY}`);
  if (parts.some(({ lacksBreak }) => lacksBreak))
    remarks.push(`${name}: the file ends without a line break.`);
  const there = parts.map(({ start, end }) => file.text.slice(start, end)).join('');
  const fileEndings = findEndings(there);
  const requestedEndings = findEndings(reading.oldText);
  const fitted = fitEndings(file, edit.newText, parts[0]?.start ?? 0);
  if (fileEndings !== requestedEndings && fileEndings !== 'none' && requestedEndings !== 'none') {
    remarks.push(`${name} matched with other line endings; those of the file are kept.`);
  } else if (findEndings(fitted) !== findEndings(edit.newText)) {
    remarks.push(`${name}.newText got the line endings of the file.`);
  }
  return remarks;
};

// ---- The new text, adapted to the file ----

/** Leading spaces and tabs, unchanged. */
const getLead = (line: string): string => line.slice(0, getIndent(line).length);
/** Without indentation and trailing blanks. */
const getBody = (line: string): string => trimEndBlanks(line.slice(getIndent(line).length));
/** Trailing blanks. */
const getTail = (line: string): string => line.slice(trimEndBlanks(line).length);

/**
 * The new text of each part, with `\n` line breaks, if the old text matched only with tolerated
 * differences. A line that the edit does not change keeps the file's characters. In all other
 * lines, the differences between the old text and the file are repeated, if all parts together
 * follow one consistent pattern. Null: the indentation of the new text is ambiguous or
 * contradictory.
 */
const adaptTexts = (
  newTexts: readonly string[],
  parts: readonly FoundPart[],
): readonly string[] | null => {
  const pairs = parts.flatMap((part) => part.pairs);
  const texts = parts.map(({ lacksBreak }, index) => {
    const lines = lineTexts(newTexts[index] ?? '');
    return lacksBreak && lines.length > 1 && lines.at(-1) === '' ? lines.slice(0, -1) : lines;
  });
  if (pairs.every(({ requested, file }) => requested === file))
    return texts.map((lines) => lines.join('\n'));
  const indents = learnIndents(pairs, texts.flat(), parts[0]?.firstLine ?? 'asOthers');
  if (indents === null) return null;
  const pattern: Pattern = {
    indents,
    adaptCharacters: learnCharacters(pairs),
    adaptTail: learnTails(pairs),
  };
  return parts.map((part, index) => adaptPart(texts[index] ?? [], part, pattern).join('\n'));
};

/** How the file differs from the old text, to be repeated in the new text. */
type Pattern = {
  readonly indents: Indents;
  adaptCharacters(text: string): string;
  adaptTail(tail: string): string;
};

/** The lines of one part of the new text, adapted. */
const adaptPart = (
  lines: readonly string[],
  { pairs, firstLine }: FoundPart,
  { indents, adaptCharacters, adaptTail }: Pattern,
): readonly string[] => {
  // newText is indented as the file: a line that equals one of oldText may yet be a changed one
  const unchanged = indents.side === 'file' ? new Map<string, string>() : unchangedLines(pairs);
  // a line that the file has here already stays as it is
  const fileLines = new Set(indents.side === 'same' ? pairs.map(({ file }) => file) : []);
  const adaptIndent = (line: string, kind: FirstLine): string => {
    if (kind === 'bare') return getLead(line); // the file's indentation stands before the place
    return kind === 'deeper' ? getIndent(pairs[0]?.file ?? '') : indents.adapt(getIndent(line));
  };
  return lines.map((line, index) => {
    // newText has the first line of oldText again
    const isDeeperLine = firstLine === 'deeper' && index === 0 && line === pairs[0]?.requested;
    const same = isDeeperLine ? pairs[0]?.file : unchanged.get(line);
    const whole = same ?? (fileLines.has(line) ? line : undefined);
    if (whole !== undefined) return whole;
    if (isEmptyLine(line)) return adaptTail(line);
    const indent = adaptIndent(line, index === 0 ? firstLine : 'asOthers');
    const pair = lines.length === pairs.length ? pairs[index] : undefined;
    return indent + adaptBody(getBody(line), pair, adaptCharacters) + adaptTail(getTail(line));
  });
};

/** The file's line for each old line that stands for only one. */
const unchangedLines = (pairs: readonly LinePair[]): ReadonlyMap<string, string> => {
  const seen = valuesByKey(pairs.map(({ requested, file }) => [requested, file]));
  return new Map(
    [...seen].flatMap(([requested, files]) =>
      files.size === 1 ? [[requested, [...files][0] ?? '']] : [],
    ),
  );
};

/**
 * Adapts the characters of the changed part of a line. The unchanged part keeps the file's
 * characters.
 */
const adaptBody = (
  line: string,
  pair: LinePair | undefined,
  adaptCharacters: Pattern['adaptCharacters'],
): string => {
  const requested = getBody(pair?.requested ?? '');
  const file = getBody(pair?.file ?? '');
  if (requested.length !== file.length || requested === file) return adaptCharacters(line);
  const [before, after] = commonEnds(requested, line);
  const middle = adaptCharacters(line.slice(before, line.length - after));
  return file.slice(0, before) + middle + file.slice(file.length - after);
};

/**
 * How to indent lines of the new text. `side`: whether they are indented as in the old text
 * (`requested`), as in the file, or as in both (`same`). Of a part that is `deeper` only the first
 * line differs, so the others are the same.
 */
type Indents = { readonly side: 'requested' | 'file' | 'same'; adapt(indent: string): string };

/** The new indentation for each line of the new text; null if it is unclear. */
const learnIndents = (
  pairs: readonly LinePair[],
  lines: readonly string[],
  firstLine: FirstLine,
): Indents | null => {
  const indentPairs = partIndents({ pairs, firstLine });
  if (firstLine === 'deeper') return learnDeeperFirst(pairs, lines);
  if (indentPairs.every(({ requested, file }) => requested === file))
    return { side: 'same', adapt: (one) => one };
  const others = firstLine === 'bare' ? lines.slice(1) : lines;
  const filled = others.filter((line) => !isEmptyLine(line));
  const indents = filled.map(getIndent);
  const side = sideWithLine(pairs, filled[0]) ?? sideByIndents(indentPairs, indents);
  if (side === 'unclear') return null;
  if (side === 'file') return { side, adapt: (one) => one };
  const distinct = [...new Set(indents)];
  // `reindent` moves indentations by the difference between oldText and the file
  const table =
    reindent(indentPairs, distinct) ??
    (staysAtMargin(indentPairs, indents)
      ? reindent(
          indentPairs,
          distinct.filter((indent) => indent !== ''),
        )
      : null);
  return table === null ? null : { side, adapt: (one) => table.get(one) ?? one };
};

/**
 * Whether lines without indentation keep none: the others move to the left, and these lie between
 * them, as directives and text in strings do.
 */
const staysAtMargin = (pairs: readonly IndentPair[], indents: readonly string[]): boolean =>
  indents[0] !== '' &&
  indents.at(-1) !== '' &&
  pairs.every(({ requested, file }) => requested !== file && requested.startsWith(file));

/** Only the first line of the old text is indented too deep: lines like it get its indentation. */
const learnDeeperFirst = (
  [first, ...rest]: readonly LinePair[],
  lines: readonly string[],
): Indents | null => {
  const deep = getIndent(first?.requested ?? '');
  const file = getIndent(first?.file ?? '');
  const top = getIndent(lines[0] ?? '');
  if (top !== deep && top !== file) return null;
  const isOnlyFirst = rest.every(({ requested }) => getIndent(requested) !== deep);
  return { side: 'same', adapt: (one) => (one === deep && isOnlyFirst ? file : one) };
};

/**
 * Which side contains this line of the new text, including its indentation; null for both or none.
 */
const sideWithLine = (
  pairs: readonly LinePair[],
  line: string | undefined,
): 'requested' | 'file' | null => {
  if (line === undefined) return null;
  const getKey = (one: string): string =>
    lineKey(one, { typography: 'folded', indentation: 'exact' });
  const key = getKey(line);
  const isRequested = pairs.some(({ requested }) => getKey(requested) === key);
  if (isRequested === pairs.some(({ file }) => getKey(file) === key)) return null;
  return isRequested ? 'requested' : 'file';
};

/**
 * Decides by the indentation of the first line, and by the other lines if the first one is
 * inconclusive.
 */
const sideByIndents = (
  pairs: readonly IndentPair[],
  indents: readonly string[],
): 'requested' | 'file' | 'unclear' => {
  const requested = new Set(pairs.map((pair) => pair.requested));
  const file = new Set(pairs.map((pair) => pair.file));
  const hasRequested = indents.some((indent) => requested.has(indent) && !file.has(indent));
  const hasFile = indents.some((indent) => file.has(indent) && !requested.has(indent));
  const [first] = indents;
  const [top] = pairs;
  if (top !== undefined && top.requested !== top.file) {
    if (first === top.requested) return 'requested';
    if (first === top.file) return hasRequested ? 'unclear' : 'file';
  }
  if (hasRequested && hasFile) return 'unclear';
  return hasFile ? 'file' : 'requested';
};

/** The file's character for each character of the old text, if it is always the same. */
const learnCharacters = (pairs: readonly LinePair[]): Pattern['adaptCharacters'] => {
  const counterparts = new Map<string, Set<string>>();
  for (const pair of pairs) {
    const requested = getBody(pair.requested);
    const file = getBody(pair.file);
    if (requested.length !== file.length) continue;
    for (let at = 0; at < requested.length; at++) {
      const [one = '', other = ''] = [requested[at], file[at]];
      counterparts.set(one, (counterparts.get(one) ?? new Set()).add(other));
    }
  }
  const isTelling = ([one, files]: readonly [string, ReadonlySet<string>]): boolean =>
    plainCharacter(one) !== null || files.size > 1 || !files.has(one);
  const seen = new Map([...counterparts].filter(isTelling));
  if (seen.size === 0) return (text) => text;
  const families = foldedFamilies(seen);
  const adapt = (one: string): string => {
    const files = seen.get(one);
    if (files?.size === 1) return [...files][0] ?? one;
    const plain = plainCharacter(one);
    return files === undefined && plain !== null && families.has(getQuoteFamily(plain))
      ? plain
      : one;
  };
  return (text) => [...text].map(adapt).join('');
};

/** Groups of typographic characters in the old text for which the file has plain ones. */
const foldedFamilies = (seen: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> => {
  const folded = new Set<string>();
  const other = new Set<string>();
  for (const [requested, files] of seen) {
    const plain = plainCharacter(requested);
    if (plain === null) continue;
    for (const file of files) (file === plain ? folded : other).add(getQuoteFamily(plain));
  }
  return new Set([...folded].filter((family) => !other.has(family)));
};

/**
 * Groups quotes: a text with typographic quotes of one kind usually has typographic quotes of the
 * other kind too.
 */
const getQuoteFamily = (plain: string): string => (plain === "'" ? '"' : plain);

/** Maps trailing spaces: removed where the old text has them and the file does not. */
const learnTails = (pairs: readonly LinePair[]): Pattern['adaptTail'] => {
  const tails = pairs.map(({ requested, file }) => [getTail(requested), getTail(file)] as const);
  const seen = valuesByKey(tails.filter(([requested]) => requested !== ''));
  return (tail) => {
    const files = seen.get(tail);
    if (files?.size === 1) return [...files][0] ?? tail;
    return files?.has('') === true ? '' : tail;
  };
};

const valuesByKey = (entries: readonly (readonly [string, string])[]) => {
  const values = new Map<string, Set<string>>();
  for (const [key, value] of entries) values.set(key, (values.get(key) ?? new Set()).add(value));
  return values;
};
