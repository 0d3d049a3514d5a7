/** Checks the keys of a table that a person has written: which values each takes, in words. */

import { nearestWord } from './text.js';
import { isTable, type ParsedTable } from './untrusted-input.js';

/** Which values a key takes; `form` follows the key in a message: "is true or false". */
export type Field = { readonly fits: (value: unknown) => boolean; readonly form: string };

export type TableFields = Readonly<Record<string, Field>>;

/** Longer than any key, so longer ones get no suggestion. */
const KEY_MAX = 60;

export const isTextTable = (value: unknown): value is Readonly<Record<string, string>> =>
  isTable(value) && Object.values(value).every((text) => typeof text === 'string');

export const SWITCH: Field = {
  fits: (value) => typeof value === 'boolean',
  form: 'is true or false, without quotes',
};

/**
 * The first key of a table that is unknown, or whose value does not fit; null if all do. `what`:
 * the thing that the table describes, as in "an MCP server". The text has no full stop.
 */
export const fieldFault = (
  table: ParsedTable,
  fields: TableFields,
  what: string,
): readonly [key: string, text: string] | null => {
  for (const [key, value] of Object.entries(table)) {
    const field = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (field?.fits(value) === true) continue;
    if (field !== undefined) return [key, field.form];
    const names = Object.keys(fields);
    const close = nearestWord(key.slice(0, KEY_MAX), names);
    const advice = close === undefined ? `There are ${names.join(', ')}` : `Did you mean ${close}?`;
    return [key, `is no setting of ${what}. ${advice}`];
  }
  return null;
};

/** A sentence about a key; "Did you mean …?" needs no full stop. */
export const faultSentence = (where: string, text: string): string =>
  `${where} ${text}.`.replace(/\?\.$/, '?');
