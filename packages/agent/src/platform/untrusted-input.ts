/** Input that others control: bounded JSON, tables, secrets, marks of our own values, lists. */

import { timingSafeEqual } from 'node:crypto';
import type { JsonObject } from '@pawl/machine/kernel/shape';

export type JsonLimits = {
  /** Maximum nesting of arrays and objects. */
  readonly depthMax: number;
  readonly charactersMax: number;
};

type BoundedJson =
  | { readonly kind: 'ok'; readonly value: unknown }
  | { readonly kind: 'invalid'; readonly why: 'syntax' | 'tooDeep' | 'tooLong' };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Index behind the string that begins at `start`. */
const endOfString = (text: string, start: number): number => {
  let index = start + 1;
  while (index < text.length) {
    const unit = text.charCodeAt(index);
    if (unit === QUOTE) return index + 1;
    index += unit === BACKSLASH ? 2 : 1;
  }
  return index;
};

/** Whether brackets outside of strings nest deeper than `depthMax`. One pass, no recursion. */
const isDeeper = (text: string, depthMax: number): boolean => {
  let depth = 0;
  let index = 0;
  while (index < text.length) {
    const unit = text.charCodeAt(index);
    if (unit === QUOTE) {
      index = endOfString(text, index);
      continue;
    }
    if (unit === OPEN_ARRAY || unit === OPEN_OBJECT) depth += 1;
    if (unit === CLOSE_ARRAY || unit === CLOSE_OBJECT) depth -= 1;
    if (depth > depthMax) return true;
    index += 1;
  }
  return false;
};

/** Like JSON.parse, but refuses a text that exceeds the limits. */
export const parseBounded = (
  text: string,
  { depthMax, charactersMax }: JsonLimits,
): BoundedJson => {
  if (text.length > charactersMax) return { kind: 'invalid', why: 'tooLong' };
  if (isDeeper(text, depthMax)) return { kind: 'invalid', why: 'tooDeep' };
  try {
    return { kind: 'ok', value: JSON.parse(text) };
  } catch {
    return { kind: 'invalid', why: 'syntax' }; // nothing is lost: the caller has the text
  }
};

/**
 * Where a text stops being JSON: its line and column, or the words of JSON.parse if they name no
 * place; empty for valid JSON.
 */
export const whereInvalid = (text: string): string => {
  try {
    JSON.parse(text);
    return '';
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    const position = /at position (\d+)/.exec(words)?.[1];
    if (position === undefined) return words;
    const before = text.slice(0, Number(position)).split('\n');
    return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
  }
};

/** An object that a text in TOML, JSON or YAML holds: no list, and no date. */
export type ParsedTable = Readonly<Record<string, unknown>>;

export const isTable = (value: unknown): value is ParsedTable =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/**
 * Compares a text with a secret; the time tells nothing of where they differ. An empty or missing
 * text is never the secret.
 */
export const isSameSecret = (given: string | null | undefined, secret: string): boolean => {
  const one = Buffer.from(given ?? '');
  const other = Buffer.from(secret);
  return one.length > 0 && one.length === other.length && timingSafeEqual(one, other);
};

const marked = new WeakSet<object>();

/**
 * Marks a model or a tool of Pawl itself: what it gives is trusted by its type, and not checked. A
 * copy of it has no mark.
 */
export const markOwn = <T extends object>(part: T): T => {
  marked.add(part);
  return part;
};
export const isOwn = (part: object): boolean => marked.has(part);

/** JSON from outside that is not checked yet. */
export type Loose = { readonly [key: string]: unknown };

/** Also true for an array. */
export const isObject = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null;

export const isJsonObject = (value: unknown): value is JsonObject =>
  isObject(value) && !Array.isArray(value);

/** The object under a key, or an empty object. */
export const objectIn = (value: unknown, key: string | number): Loose => {
  const field = isObject(value) ? value[key] : undefined;
  return isObject(field) ? field : {};
};

/** The objects of a list; none if the value is no list. */
export const listIn = (value: unknown): readonly Loose[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

/** Null for anything but a text, and for an empty one. */
export const asText = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Null for anything but a whole number from 0 on. */
export const asCount = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;

// ---- Lists ----

/** The texts of a list; none if the value is no list. */
export const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

const NAME_MAX = 80;

/** A name that others have chosen, for a line to the user. */
export const shortName = (name: string): string => name.slice(0, NAME_MAX).replace(/\p{C}/gu, '?');

/**
 * Judges each member of a list alone, so that a bad one takes no other with it. `read` returns a
 * member, or why it can't be used; `leftOut` has a line for each of those, in which a member
 * without a name has its number. A value that is no list is one line too.
 */
export const readMembers = <T extends object>(
  list: unknown,
  noun: string,
  read: (member: ParsedTable) => T | string,
): { readonly members: readonly T[]; readonly leftOut: readonly string[] } => {
  if (!Array.isArray(list)) {
    const isAbsent = list === undefined || list === null;
    return {
      members: [],
      leftOut: isAbsent ? [] : [`the ${noun}s are left out: they are no list`],
    };
  }
  const members: T[] = [];
  const leftOut: string[] = [];
  for (const [index, raw] of list.entries()) {
    const member = isTable(raw) ? read(raw) : `it is ${raw === null ? 'null' : 'no object'}`;
    if (typeof member !== 'string') members.push(member);
    else {
      const name = isTable(raw) ? (asText(raw.name) ?? asText(raw.uri)) : null;
      leftOut.push(
        `the ${noun} ${shortName(name ?? `number ${index + 1}`)} is left out: ${member}`,
      );
    }
  }
  return { members, leftOut };
};
