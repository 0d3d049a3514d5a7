/**
 * The list of what a rewind can take back, newest first; a point is a row of it. Arrows move the
 * selection, letters filter, Enter takes the selected point; whoever shows the list closes it at
 * Escape. A bar marks what would be taken back with the selected row: all that came later. The
 * same list asks the question after it: what to take back (files, conversation, or both).
 */

import type { Pressed } from './keys.js';
import type { Frame } from './live-area.js';
import { countColumns, cutLine, dropLast, fitWords, oneLine } from './paint.js';
import { joinSafe, makeSafe, type Safe, safe } from './safe-text.js';

/**
 * A row of the list: a turn (all since an input of the user), the calls of one reply in it, or an
 * answer to that question. `when`: the time of a turn; empty for others. `about`: what a turn or
 * its calls have changed, or what the answer does.
 */
export type ListedPoint = {
  readonly kind: 'turn' | 'calls' | 'answer';
  readonly when: string;
  readonly text: string;
  readonly about: string;
};

export type PointList = {
  readonly title: string;
  readonly all: readonly ListedPoint[];
  /** Index in `all` of the selected row. */
  readonly selected: number;
  /** Typed letters: only rows that contain them are shown. */
  readonly filter: string;
  /** What Enter and Tab do; without it Enter alone takes a point. */
  readonly keys: PointKeys | null;
};

/** A sentence about the keys, for wide and for narrow windows. */
type PointKeys = { readonly wide: string; readonly narrow: string };

/** The selected row, and the key that took it. */
export type TakenPoint = { readonly index: number; readonly key: 'enter' | 'tab' };

/** Result of a key: the changed list, or the selected row. */
type PointListResult =
  | { readonly kind: 'open'; readonly list: PointList }
  | ({ readonly kind: 'taken' } & TakenPoint);

export const openPointList = (
  title: string,
  all: readonly ListedPoint[],
  selected = 0,
  keys: PointKeys | null = null,
): PointList => ({ title, all, selected, filter: '', keys });

/** Indices of the rows that contain the typed letters. */
const matching = ({ all, filter }: PointList): readonly number[] =>
  all.flatMap(({ text, about }, index) =>
    `${text} ${about}`.toLowerCase().includes(filter.toLowerCase()) ? [index] : [],
  );

/** The list with other letters. The selected row stays selected if it is still shown. */
const withFilter = (list: PointList, filter: string): PointList => {
  const filtered = { ...list, filter };
  const indices = matching(filtered);
  if (indices.includes(list.selected)) return filtered;
  const next = indices.find((index) => index > list.selected) ?? indices.at(-1);
  return next === undefined ? filtered : { ...filtered, selected: next };
};

const PAGE = 8;
const STEPS: Readonly<Record<string, number>> = {
  up: -1,
  down: 1,
  pageup: -PAGE,
  pagedown: PAGE,
  home: Number.NEGATIVE_INFINITY,
  end: Number.POSITIVE_INFINITY,
};

const isShown = (list: PointList): boolean => matching(list).includes(list.selected);

/** The list after a key, or the row that the key takes. */
export const pressAtPoints = (list: PointList, pressed: Pressed): PointListResult => {
  const same: PointListResult = { kind: 'open', list };
  if (pressed.kind === 'paste') return same;
  const { name, text } = pressed.key;
  if (text !== '') return { kind: 'open', list: withFilter(list, list.filter + text) };
  if (name === 'backspace') return { kind: 'open', list: withFilter(list, dropLast(list.filter)) };
  if (name === 'enter' || (name === 'tab' && list.keys !== null))
    return isShown(list) ? { kind: 'taken', index: list.selected, key: name } : same;
  const step = Object.hasOwn(STEPS, name) ? (STEPS[name] ?? 0) : 0;
  const indices = matching(list);
  const at = indices.indexOf(list.selected);
  if (step === 0 || at < 0) return same;
  const next = indices[Math.max(0, Math.min(at + step, indices.length - 1))];
  return next === undefined ? same : { kind: 'open', list: { ...list, selected: next } };
};

/** From this width on, changes stand beside the title; below it, under it, and hints are short. */
const WIDE_COLUMNS = 70;
const TIME_COLUMNS = 6;

const padded = (text: Safe, columns: number): Safe =>
  safe`${text}${safe` `.repeat(Math.max(0, columns - countColumns(text)))}`;

type RowLayout = {
  readonly columns: number;
  readonly isWide: boolean;
  /** Whether any row has a time; all rows of a wide list then leave room for it. */
  readonly times: boolean;
  readonly titleColumns: number;
};

/** Spaces before a title: calls are indented, since they belong to a turn. */
const indentBefore = ({ kind }: ListedPoint): Safe => (kind === 'calls' ? safe`  ` : safe``);

/** The text on one line, not cut. */
const flat = (text: string): Safe => oneLine(text, Number.POSITIVE_INFINITY);

/** Columns that the titles take, for all rows alike. */
const layoutFor = (all: readonly ListedPoint[], columns: number): RowLayout => {
  const times = all.some(({ when }) => when !== '');
  const longest = Math.max(
    0,
    ...all.map((point) => countColumns(safe`${indentBefore(point)}${flat(point.text)}`)),
  );
  const titleColumns = Math.min(longest, Math.floor(columns * 0.42));
  return { columns, isWide: columns >= WIDE_COLUMNS, times, titleColumns };
};

/** The rows of one point, after the mark in front of it. */
const pointRows = (
  point: ListedPoint,
  { columns, isWide, times, titleColumns }: RowLayout,
): readonly Safe[] => {
  const about = flat(point.about);
  const indent = indentBefore(point);
  if (!isWide) {
    const when = point.when === '' ? safe`` : padded(makeSafe(point.when), TIME_COLUMNS);
    const title = cutLine(safe`${when}${indent}${flat(point.text)}`, columns);
    if (about === '') return [title];
    if (point.kind !== 'answer') return [title, cutLine(safe`${indent}  ${about}`, columns)];
    return [title, ...fitWords(about, columns - 2).map((row) => safe`  ${row}`)];
  }
  const when = times ? padded(makeSafe(point.when), TIME_COLUMNS) : safe``;
  const room = columns - countColumns(when) - 2;
  // A long title takes the room that its changes leave. An answer's title does not: all texts
  // about answers begin in the same column.
  const rest = point.kind === 'answer' ? 0 : room - countColumns(about);
  const titleRoom = Math.max(titleColumns, rest);
  const title = padded(cutLine(safe`${indent}${flat(point.text)}`, titleRoom), titleColumns);
  const left = room - countColumns(title);
  if (point.kind !== 'answer') return [safe`${when}${title}  ${cutLine(about, left)}`];
  // What an answer does is shown in full.
  return fitWords(about, left).map((row, index) =>
    index === 0 ? safe`${title}  ${row}` : safe`${padded(safe``, titleColumns)}  ${row}`,
  );
};

/**
 * The points around the selected one whose rows fit into `room`. `blocks`: the rows of each.
 * Points above and below are added in turns, so that the selected one is in the middle.
 */
const pointsAround = (
  blocks: readonly (readonly Safe[])[],
  selected: number,
  room: number,
): readonly [first: number, end: number] => {
  const height = (index: number): number => blocks[index]?.length ?? 0;
  let [first, end] = [selected, selected + 1];
  let left = room - height(selected);
  for (;;) {
    const below = end < blocks.length && height(end) <= left;
    const above = first > 0 && height(first - 1) <= left;
    if (!below && !above) return [first, end];
    if (above && (!below || selected - first < end - selected)) left -= height(--first);
    else left -= height(end++);
  }
};

/** The rows below the list that name the keys. `keys` of the list get a row of their own. */
const hintRows = ({ keys }: PointList, { columns, isWide }: RowLayout): readonly Safe[] => {
  const move = isWide ? safe`↑ ↓ move · type to filter` : safe`↑ ↓`;
  const keyRows = keys === null ? [] : [makeSafe(isWide ? keys.wide : keys.narrow)];
  const choose = keys === null ? safe` · Enter chooses` : safe``;
  return [...keyRows, safe`${move}${choose} · Escape closes`].map(
    (row) => safe`  ${cutLine(row, columns)}`,
  );
};

/**
 * The list: at most half of the window, but at least three rows of points. `mark` highlights the
 * selected one.
 */
export const pointListFrame = (
  list: PointList,
  window: { readonly columns: number; readonly rows: number },
  mark: (row: Safe) => Safe,
): Frame => {
  const columns = window.columns - 1;
  const indices = matching(list);
  const layout = layoutFor(list.all, columns - 2);
  const hint = hintRows(list, layout);
  const room = Math.max(3, Math.floor(window.rows / 2) - 1 - hint.length);
  const blocks = indices.flatMap((index) => {
    const point = list.all[index];
    return point === undefined ? [] : [pointRows(point, layout).slice(0, room)];
  });
  // Places count the rows that match the filter; indices count all rows.
  const at = indices.indexOf(list.selected);
  const [first, end] = at < 0 ? [0, 0] : pointsAround(blocks, at, room);
  const isPart = end - first < indices.length;
  const number = at >= 0 && isPart ? ` (${at + 1} of ${indices.length})` : '';
  const typed = makeSafe(`${number} ${list.filter}`);
  const title = cutLine(makeSafe(list.title), Math.max(8, columns - countColumns(typed)));
  const head = safe`${title}${typed}`;
  const rows = blocks.slice(first, end).flatMap((block, offset) => {
    const place = first + offset;
    const index = indices[place];
    const kind = index === undefined ? undefined : list.all[index]?.kind;
    // Answers are alternatives: choosing one takes back none of those above it.
    const isLater = place < at && kind !== 'answer';
    const sign = place === at ? safe`› ` : isLater ? safe`│ ` : safe`  `;
    const signed = block.map((row, line) =>
      joinSafe([line === 0 || isLater ? sign : safe`  `, row]).trimEnd(),
    );
    return place === at ? signed.map(mark) : signed;
  });
  return {
    rows: [cutLine(head, columns), ...(rows.length === 0 ? [safe`  nothing fits`] : rows), ...hint],
    cursor: { row: 0, column: Math.min(countColumns(head), columns) },
  };
};
