/**
 * A scripted model that was refused. It reads the refusal and nothing else: the file it does not
 * see again. It makes the change that it meant, as its two texts tell it, on the lines that the
 * refusal shows.
 */

export type Attempt = { readonly oldText: string; readonly newText: string };

type ShownLine = { readonly number: number; readonly text: string };

const NUMBERED = /^(\d+)\t(.*)$/;

/** The lines that a refusal shows, in groups that stand together. */
const findGroups = (refusal: string): readonly (readonly ShownLine[])[] => {
  const groups: ShownLine[][] = [];
  for (const line of refusal.split('\n')) {
    const [, digits, text] = NUMBERED.exec(line) ?? [];
    if (digits === undefined || text === undefined) continue;
    const number = Number(digits);
    const group = groups.at(-1);
    if (group?.at(-1)?.number === number - 1) group.push({ number, text });
    else groups.push([{ number, text }]);
  }
  return groups;
};

const getIndent = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? '';
const toPlain = (text: string): string =>
  text
    .replace(/[\u2018\u2019]/g, "'")
    .replace(/[\u201c\u201d]/g, '"')
    .replace(/\r/g, '');

/**
 * Its own text as it meant it: without the numbers, the escapes and the quotes that it sees are not
 * in the file.
 */
const readMeaning = (text: string): readonly string[] => {
  const unescaped = !text.includes('\n') && text.includes('\\n') ? unescapeText(text) : text;
  const lines = toPlain(unescaped).split('\n');
  const numbered = lines.every((line) => line === '' || /^ *\d+[\t\u2192]/.test(line));
  return numbered ? lines.map((line) => line.replace(/^ *\d+[\t\u2192]/, '')) : lines;
};

const unescapeText = (text: string): string => {
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    return text.replaceAll('\\n', '\n'); // only its line breaks were escaped
  }
};

/** For each line of one list the index of its line in the other, in order, as many as possible. */
const align = (one: readonly string[], other: readonly string[]): readonly (number | null)[] => {
  const lengths = Array.from({ length: one.length + 1 }, () =>
    new Array<number>(other.length + 1).fill(0),
  );
  const at = (row: number, column: number): number => lengths[row]?.[column] ?? 0;
  for (let row = one.length - 1; row >= 0; row--) {
    for (let column = other.length - 1; column >= 0; column--) {
      const line = lengths[row];
      if (line === undefined) continue;
      line[column] =
        one[row] === other[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const aligned: (number | null)[] = [];
  let column = 0;
  for (let row = 0; row < one.length; row++) {
    while (
      column < other.length &&
      one[row] !== other[column] &&
      at(row, column + 1) >= at(row + 1, column)
    )
      column += 1;
    if (column < other.length && one[row] === other[column]) aligned.push(column++);
    else aligned.push(null);
  }
  return aligned;
};

/** Fills gaps of equal length on both sides: lines that differ stand for one another. */
const pairGaps = (
  aligned: readonly (number | null)[],
  count: number,
): readonly (number | null)[] => {
  const paired = [...aligned];
  let row = 0;
  while (row < paired.length) {
    if (paired[row] !== null) {
      row += 1;
      continue;
    }
    let end = row;
    while (end < paired.length && paired[end] === null) end += 1;
    const from = (paired[row - 1] ?? -1) + 1;
    const until = paired[end] ?? count;
    if (until - from === end - row) for (let at = row; at < end; at++) paired[at] = from + at - row;
    row = end;
  }
  return paired;
};

/** Applies the change of one line to the real line. */
const applyToLine = (oldLine: string, newLine: string, fileLine: string): string => {
  const most = Math.min(oldLine.length, newLine.length);
  let before = 0;
  while (before < most && oldLine[before] === newLine[before]) before += 1;
  let after = 0;
  while (after < most - before && oldLine.at(-1 - after) === newLine.at(-1 - after)) after += 1;
  const [gone, come] = [
    oldLine.slice(before, oldLine.length - after),
    newLine.slice(before, newLine.length - after),
  ];
  const [indent, body] = [getIndent(fileLine), fileLine.slice(getIndent(fileLine).length)];
  const shift = body.length - oldLine.length;
  const at = [before, before + shift].find((one) => one >= 0 && body.startsWith(gone, one));
  return (
    indent +
    (at === undefined ? newLine.trim() : body.slice(0, at) + come + body.slice(at + gone.length))
  );
};

const moveIndent = (
  line: string,
  oldLine: string | undefined,
  fileLine: string | undefined,
): string => {
  if (oldLine === undefined || fileLine === undefined || line.trim() === '') return line;
  return getIndent(line) === getIndent(oldLine) ? getIndent(fileLine) + line.trimStart() : line;
};

/** The change from one text to the other, made on the lines that are there. */
const applyChange = (
  oldLines: readonly string[],
  newLines: readonly string[],
  fileLines: readonly string[],
): readonly string[] => {
  const trimmed = (lines: readonly string[]): readonly string[] => lines.map((line) => line.trim());
  const inFile = pairGaps(align(trimmed(oldLines), trimmed(fileLines)), fileLines.length);
  const kept = pairGaps(align(trimmed(newLines), trimmed(oldLines)), oldLines.length);
  const result: string[] = [];
  let next = 0;
  const gone = new Set(oldLines.map((_, index) => index));
  for (const index of kept) if (index !== null) gone.delete(index);
  const goneThere = new Set([...gone].map((index) => inFile[index]));
  const passUntil = (at: number): void => {
    for (; next < at; next++) if (!goneThere.has(next)) result.push(fileLines[next] ?? '');
  };
  let last: number | null = null;
  for (const [index, line] of newLines.entries()) {
    const old: number | null = kept[index] ?? null;
    const place = old === null ? null : (inFile[old] ?? null);
    if (old !== null && place !== null) {
      passUntil(place);
      result.push(applyToLine((oldLines[old] ?? '').trim(), line.trim(), fileLines[place] ?? ''));
      next = place + 1;
      last = old;
    } else if (last !== null)
      result.push(moveIndent(line, oldLines[last], fileLines[inFile[last] ?? -1]));
    else result.push(moveIndent(line, oldLines[0], fileLines[inFile[0] ?? -1]));
  }
  passUntil(fileLines.length);
  return result;
};

/** Lines without the empty one behind the last line break. */
const readBody = (text: string): readonly string[] => {
  const lines = readMeaning(text);
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
};

const MARKER =
  /^\s*(?:\/\/|\/\*|#|<!--)?\s*(?:\.\.\.|\u2026)(?: existing code (?:\.\.\.|\u2026))?\s*(?:\*\/|-->)?$/;
const isMarker = (line: string): boolean => MARKER.test(line);

/** The two texts with the lines that are there in place of their marker, if they have one. */
const writeOut = (
  oldLines: readonly string[],
  newLines: readonly string[],
  fileLines: readonly string[],
): readonly [readonly string[], readonly string[]] => {
  const mark = oldLines.findIndex(isMarker);
  if (mark < 0) return [oldLines, newLines];
  const meantLines = fileLines.slice(mark, fileLines.length - (oldLines.length - mark - 1));
  const expand = (lines: readonly string[]): readonly string[] =>
    lines.flatMap((line) => (line.trim() === oldLines[mark]?.trim() ? meantLines : [line]));
  return [expand(oldLines), expand(newLines)];
};

/** What the model had read: the number of the block's first line, from 1, and of its lines. */
export type Read = { readonly line: number; readonly count: number };

/** The next attempt; null if the refusal shows no lines. */
export const repair = (
  { oldText, newText }: Attempt,
  refusal: string,
  { line, count }: Read,
): Attempt | null => {
  const groups = findGroups(refusal);
  const distance = (group: readonly ShownLine[]): number =>
    Math.min(...group.map(({ number }) => Math.abs(number - line)));
  const [group] = [...groups].sort((a, b) => distance(a) - distance(b));
  if (group === undefined) return null;
  const oldLines = readBody(oldText);
  const marked = oldLines.some(isMarker);
  const shown = marked
    ? group.filter(({ number }) => number >= line && number < line + count)
    : group;
  const fileLines = shown.map(({ text }) => text);
  const [before, after] = marked
    ? writeOut(oldLines, readBody(newText), fileLines)
    : [oldLines, readBody(newText)];
  const changed = applyChange(before, after, fileLines);
  return { oldText: fileLines.join('\n'), newText: changed.join('\n') };
};
