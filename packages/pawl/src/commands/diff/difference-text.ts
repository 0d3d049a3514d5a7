import type { Json } from '@pawl/agent/machine/message';
import { type Look, paint } from '@pawl/terminal/paint-text';
import { makeSafe, type Safe, safe, safeJson } from '@pawl/terminal/safe-text';
import { columnsOf, cutLine, wrapWords } from '@pawl/terminal/width';
import type { FieldDifference } from './field-differences.js';

/** Fields with different values, as lines that fit the window. */

const FIELDS_SHOWN = 8;
/** Characters before the difference that a cut text still shows, as a share of its line. */
const LEAD_SHARE = 0.3;
const ASCII_END = 0x7f;

type Texts = { readonly a: string; readonly b: string };

/** UTF-16 units before the first difference; never in the middle of a character. */
const sameStart = ({ a, b }: Texts): number => {
  const end = Math.min(a.length, b.length);
  let at = 0;
  while (at < end && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  const isLow = (text: string): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00;
  return at > 0 && (isLow(a) || isLow(b)) ? at - 1 : at;
};

/** A text as JSON that fits `columns`, cut around the place `at`. Hidden characters are escaped. */
const around = (text: string, at: number, columns: number): Safe => {
  const from = text.length <= columns - 2 ? 0 : Math.max(0, at - Math.floor(columns * LEAD_SHARE));
  const begin = (text.charCodeAt(from) & 0xfc00) === 0xdc00 ? from + 1 : from;
  const json = safeJson(text.slice(begin, begin + columns));
  const lead = begin > 0 ? safe`…` : safe``;
  const isCut = begin + columns < text.length;
  return cutLine(isCut ? safe`${lead}${json.slice(0, -1)}…` : safe`${lead}${json}`, columns);
};

const codePoint = (text: string, at: number): string => {
  const code = text.codePointAt(at);
  return code === undefined ? 'end' : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
};

/** Where two long texts part, and the characters there if they may look alike. */
const placeOf = ({ a, b }: Texts, at: number): string => {
  const isPlain = [a, b].every((text) => (text.codePointAt(at) ?? 0) < ASCII_END);
  const characters = isPlain ? '' : ` (${codePoint(a, at)}, ${codePoint(b, at)})`;
  return at === 0 && isPlain ? '' : ` from character ${at + 1}${characters}`;
};

const valueLine = (value: Json | undefined, columns: number): Safe => {
  if (value === undefined) return safe`(absent)`;
  return typeof value === 'string' ? around(value, 0, columns) : cutLine(safeJson(value), columns);
};

const linesOf = (look: Look, { field, a, b }: FieldDifference): readonly Safe[] => {
  const columns = Math.max(20, look.columns);
  const room = columns - 6;
  const isText = typeof a === 'string' && typeof b === 'string';
  const at = isText ? sameStart({ a, b }) : 0;
  const place = isText ? placeOf({ a, b }, at) : '';
  const [left, right] = isText
    ? [around(a, at, room), around(b, at, room)]
    : [valueLine(a, room), valueLine(b, room)];
  return [
    ...wrapWords(makeSafe(`${field}${place}`), columns - 2).map((row) => safe`  ${row}`),
    safe`    ${paint(look, 'red', safe`A ${left}`)}`,
    safe`    ${paint(look, 'green', safe`B ${right}`)}`,
  ];
};

/** The judged calls repeat what the message says: they are left out where the message differs already. */
const isRepeated = ({ field }: FieldDifference): boolean =>
  /^calls\[\d+\]\.(?:input|facts|title)/.test(field);

const isEmpty = (value: Json | undefined): boolean =>
  value === null || value === '' || value === false || (Array.isArray(value) && value.length === 0);

/** A line for each field of two events of different types, without the empty ones. */
const linesOfTypes = (look: Look, fields: readonly FieldDifference[]): readonly Safe[] => {
  const columns = Math.max(20, look.columns);
  const lineOf = (name: string, field: string, value: Json | undefined): readonly Safe[] =>
    value === undefined || isEmpty(value)
      ? []
      : [cutLine(safe`  ${makeSafe(`${name} ${field}`)}: ${safeJson(value).slice(0, 4 * columns)}`, columns)];
  return [
    ...fields.flatMap(({ field, a }) => lineOf('A', field, a)).map((line) => paint(look, 'red', line)),
    ...fields.flatMap(({ field, b }) => lineOf('B', field, b)).map((line) => paint(look, 'green', line)),
  ];
};

export const fieldLines = (look: Look, fields: readonly FieldDifference[]): readonly Safe[] => {
  if (fields.some(({ field }) => field === 'type'))
    return linesOfTypes(
      look,
      fields.filter(({ field }) => field !== 'type'),
    );
  const inMessage = fields.some(({ field }) => field.startsWith('message.'));
  const told = fields.filter((one) => !(inMessage && isRepeated(one)));
  const left = told.length - FIELDS_SHOWN;
  const lines = told.slice(0, FIELDS_SHOWN).flatMap((one) => linesOf(look, one));
  if (left <= 0) return lines;
  const note = cutLine(safe`  … ${left} more: --json has all of them`, Math.max(20, look.columns));
  return [...lines, paint(look, 'dim', note)];
};

/** Columns that a mark takes, for texts that hang below it. */
export const hanging = (mark: Safe, rows: readonly Safe[]): readonly Safe[] =>
  rows.map((row, index) =>
    index === 0 ? safe`${mark}${row}` : safe`${safe` `.repeat(columnsOf(mark))}${row}`,
  );
