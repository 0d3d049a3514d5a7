/**
 * Shapes check unknown values before they are used as a type.
 *
 * 1. A shape is tied to a type: a shape that forgets a field or a member of a union does not
 *    compile.
 * 2. Checking always ends, also for cycles and for values of any depth. It throws only if the value
 *    does, by a getter or a proxy; `faultIn` never throws.
 * 3. An object may have only the fields that its shape names: an unknown field would be kept
 *    unchecked. A field that is present and undefined is refused too: a spread would copy it.
 *
 * From top to bottom: what a shape is; faults, which say what is wrong where; shapes of single
 * values; of lists and objects; of unions; and of any JSON.
 */

/** The path to the wrong part, from outside to inside, what it is and what it must be. */
type ShapeFault = {
  readonly path: readonly (string | number)[];
  readonly must: string;
  readonly is: string;
};

/** Checks a value: null for a T. `of` ties the shape to its type and is never set. */
export type Shape<T> = {
  check(value: unknown): ShapeFault | null;
  /**
   * Copies an object without the fields that the shape does not name; absent from shapes without
   * objects.
   */
  trim?(value: unknown): unknown;
  /** Marks the most frequent shape, which is checked without a call for speed. */
  readonly isText?: true;
  readonly of?: (value: T) => T;
};

/** A field that may be left out. */
type Optional<T> = { readonly shape: Shape<T>; readonly optional: 'yes' };
/** An object without fields fits `Pick<T, K>` only if K may be left out. */
type Field<T, K extends keyof T> =
  Record<never, never> extends Pick<T, K> ? Optional<Exclude<T[K], undefined>> : Shape<T[K]>;
/** One shape for each field of T. */
export type Fields<T> = { readonly [K in keyof T]-?: Field<T, K> };

/** A number from 0 whose sums stay finite. */
export type NonNegative = number;
/** A whole number from 0. */
export type Count = number;
/** A whole number from 1. */
export type CountFromOne = number;
/** A number from 0 to 1. */
export type Share = number;

// ---- Faults ----

const LONGEST_QUOTE = 40;

/** Describes a value briefly. */
const describeValue = (value: unknown): string => {
  switch (typeof value) {
    case 'undefined':
      return 'missing';
    case 'string':
      return value.length <= LONGEST_QUOTE
        ? JSON.stringify(value)
        : `${JSON.stringify(value.slice(0, LONGEST_QUOTE))}…`;
    case 'number':
    case 'boolean':
      return String(value);
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? 'a list' : 'an object';
    default:
      return `a ${typeof value}`;
  }
};

/** A fault of the value as a whole. */
export const shapeFault = (value: unknown, must: string): ShapeFault => ({
  path: [],
  must,
  is: describeValue(value),
});
/** A fault of an inner value, seen from the value around it. */
const within = (place: string | number, inner: ShapeFault): ShapeFault => ({
  ...inner,
  path: [place, ...inner.path],
});

const IS_FIELD = /^[A-Za-z_$][\w$]*$/;

/** `usage[2].tokens` */
const pathText = (path: ShapeFault['path']): string => {
  let place = '';
  for (const part of path) {
    if (!IS_FIELD.test(String(part))) place += `[${describeValue(part)}]`;
    else place += place === '' ? part : `.${part}`;
  }
  return place;
};

/**
 * Describes the fault of a value, or null: `usage.inputTokens is NaN; it must be a finite number`.
 */
export const faultIn = <T>(shape: Shape<T>, value: unknown, whole: string): string | null => {
  try {
    const fault = shape.check(value);
    if (fault === null) return null;
    const place = pathText(fault.path);
    return `${place === '' ? whole : place} is ${fault.is}; it must be ${fault.must}`;
  } catch {
    // Nothing is lost: a value that can't be read (a throwing getter, a revoked proxy) is refused
    // with this reason.
    return `${whole} can't be read: looking at one of its fields throws`;
  }
};

// ---- Single values ----

export const text: Shape<string> = {
  check: (value) => (typeof value === 'string' ? null : shapeFault(value, 'a text')),
  isText: true,
};
export const bool: Shape<boolean> = {
  check: (value) => (typeof value === 'boolean' ? null : shapeFault(value, 'true or false')),
};
/** A finite number of any sign, such as a time. */
export const finite: Shape<number> = {
  check: (value) => (Number.isFinite(value) ? null : shapeFault(value, 'a finite number')),
};
/** A number from 0 whose sums stay finite. */
export const amount: Shape<number> = {
  check: (value) =>
    typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
      ? null
      : shapeFault(value, 'a finite number from 0'),
};
export const count: Shape<number> = {
  check: (value) =>
    typeof value === 'number' && value >= 0 && Number.isSafeInteger(value)
      ? null
      : shapeFault(value, 'a whole number from 0'),
};
/** From 0 to `most`. */
export const countTo = (most: number): Shape<number> => {
  const must = `a whole number from 0 to ${most}`;
  return {
    check: (value) =>
      typeof value === 'number' && value >= 0 && value <= most && Number.isInteger(value)
        ? null
        : shapeFault(value, must),
  };
};
export const countFromOne: Shape<number> = {
  check: (value) =>
    typeof value === 'number' && value >= 1 && Number.isSafeInteger(value)
      ? null
      : shapeFault(value, 'a whole number from 1'),
};
/** From 0 to 1. */
export const share: Shape<number> = {
  check: (value) =>
    typeof value === 'number' && value >= 0 && value <= 1
      ? null
      : shapeFault(value, 'a number from 0 to 1'),
};

/** One of these texts. Every member of T must be named: `oneOf<'a' | 'b'>({ a: 1, b: 1 })`. */
export const oneOf = <T extends string>(all: Readonly<Record<T, 1>>): Shape<T> => {
  const known = new Set<unknown>(Object.keys(all));
  const must = `one of ${[...known].join(', ')}`;
  return { check: (value) => (known.has(value) ? null : shapeFault(value, must)) };
};

/** The value without fields that its shape does not name. */
export const trimmed = <T>(shape: Shape<T>, value: unknown): unknown =>
  shape.trim === undefined ? value : shape.trim(value);

export const nullable = <T>(shape: Shape<T>): Shape<T | null> => ({
  check: (value) => (value === null ? null : shape.check(value)),
  trim: (value) => trimmed(shape, value),
});

/** One shape or the other, for values without fields. A fault names both. */
export const either = <A, B>(one: Shape<A>, other: Shape<B>): Shape<A | B> => ({
  check(value) {
    if (one.check(value) === null) return null;
    const fault = other.check(value);
    // No shape takes a symbol, so its fault says what the value must be.
    const must = [one, other].map((shape) => shape.check(Symbol('none'))?.must ?? '').join(', or ');
    return fault === null ? null : { ...fault, must };
  },
});

// ---- Lists and objects ----

export const list = <T>(shape: Shape<T>): Shape<readonly T[]> => ({
  check(value) {
    if (!Array.isArray(value)) return shapeFault(value, 'a list');
    for (let index = 0; index < value.length; index++) {
      const fault = shape.check(value[index]);
      if (fault !== null) return within(index, fault);
    }
    return null;
  },
  trim: (value) => (Array.isArray(value) ? value.map((item) => trimmed(shape, item)) : value),
});

export const optional = <T>(shape: Shape<T>): Optional<T> => ({ shape, optional: 'yes' });

type Loose = Readonly<Record<string, unknown>>;
/** A field of an object. */
type Row = {
  readonly key: string;
  readonly shape: Shape<unknown>;
  readonly isText: boolean;
  readonly isOptional: boolean;
};

const createRows = (fields: object): readonly Row[] =>
  // `Fields` is a mapped type: its values are shapes and optional ones, of whatever types.
  Object.entries(fields as Readonly<Record<string, Shape<unknown> | Optional<unknown>>>).map(
    ([key, field]) => {
      const shape = 'optional' in field ? field.shape : field;
      return { key, shape, isText: shape.isText ?? false, isOptional: 'optional' in field };
    },
  );

export const isRecord = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Checks the fields of an object. `tag`: a field that is already checked, or null. */
const checkRows = (rows: readonly Row[], value: Loose, tag: string | null): ShapeFault | null => {
  let expected = tag === null ? 0 : 1;
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index] as Row; // inside the list
    const field = value[row.key];
    if (row.isOptional && field === undefined) continue;
    expected += 1;
    if (row.isText && typeof field === 'string') continue;
    const fault = row.shape.check(field);
    if (fault !== null) return within(row.key, fault);
  }
  let fieldCount = 0;
  // Fields that are present and undefined are counted, too: they are refused.
  for (const _ in value) fieldCount += 1;
  return fieldCount === expected ? null : extraField(rows, value, tag);
};

/** The fault of a field that no row names. */
const extraField = (rows: readonly Row[], value: Loose, tag: string | null): ShapeFault | null => {
  const known = new Set(rows.map(({ key }) => key));
  if (tag !== null) known.add(tag);
  for (const key in value) {
    if (!known.has(key))
      return {
        path: [key],
        must: `left out: the fields are ${[...known].join(', ')}`,
        is: 'not known',
      };
    if (value[key] === undefined) return { path: [key], must: 'left out', is: 'undefined' };
  }
  return null;
};

/** A copy with only the fields of these rows. */
const trimRows = (rows: readonly Row[], value: Loose, tag: string | null): Loose => {
  const copy: Record<string, unknown> = tag === null ? {} : { [tag]: value[tag] };
  for (const { key, shape } of rows)
    if (Object.hasOwn(value, key)) copy[key] = trimmed(shape, value[key]);
  return copy;
};

/** The shape of an object, with those of its fields. */
export type ObjectShape<T> = Shape<T> & { readonly fields: Fields<T> };

export const object = <T extends object>(fields: Fields<T>): ObjectShape<T> => {
  const rows = createRows(fields);
  return {
    check: (value) =>
      isRecord(value) ? checkRows(rows, value, null) : shapeFault(value, 'an object'),
    trim: (value) => (isRecord(value) ? trimRows(rows, value, null) : value),
    fields,
  };
};

/** All fields may be left out. */
export const partly = <T extends object>(fields: Fields<T>): Fields<Partial<T>> =>
  Object.fromEntries(
    createRows(fields).map(({ key, shape }) => [key, optional(shape)]),
  ) as unknown as Fields<Partial<T>>; // the same keys, each optional

// ---- Unions ----

type KeyOf<T> = T extends unknown ? keyof T : never;
/** The members of T whose `tag` is V, without the tag. */
type Case<T, Tag extends KeyOf<T>, V> = T extends { readonly [K in Tag]: V } ? Omit<T, Tag> : never;

/** A union with the discriminant `tag`: one group of fields for each member. */
export const variant = <T extends object, const Tag extends KeyOf<T> & keyof T & string>(
  tag: Tag,
  cases: { readonly [V in T[Tag] & string]: Fields<Case<T, Tag, V>> },
): Shape<T> & { readonly cases: typeof cases } => {
  const rows = new Map<unknown, readonly Row[]>(
    Object.entries<object>(cases).map(([name, fields]) => [name, createRows(fields)]),
  );
  const must = `one of ${[...rows.keys()].join(', ')}`;
  return {
    check(value) {
      if (!isRecord(value)) return shapeFault(value, 'an object');
      const fields = rows.get(value[tag]);
      return fields === undefined
        ? within(tag, shapeFault(value[tag], must))
        : checkRows(fields, value, tag);
    },
    trim(value) {
      const fields = isRecord(value) ? rows.get(value[tag]) : undefined;
      return isRecord(value) && fields !== undefined ? trimRows(fields, value, tag) : value;
    },
    cases,
  };
};

/** The `type` of a value; null if it has none or can't be read. */
export const typeIn = (event: unknown): string | null => {
  try {
    const { type } = event as { readonly type?: unknown }; // null and undefined throw
    return typeof type === 'string' ? type : null;
  } catch {
    return null; // nothing is lost: callers refuse a value without a type
  }
};

// ---- Any JSON: tool arguments, provider metadata ----

/** Twice what models may nest. What stores, hashes and compares values recurses through them. */
const DEPTH_MAX = 200;
/** More than any real value has: one with more is a circle. */
const PARTS_MAX = 5_000_000;

/** Whether the value can be JSON; the parts of an object are checked apart. */
const isPlain = (value: unknown): boolean => {
  const type = typeof value;
  return type === 'string' || type === 'boolean' || type === 'object' || Number.isFinite(value);
};

const ENDLESS: ShapeFault = { path: [], must: 'JSON', is: 'too large' };
const TOO_DEEP: ShapeFault = {
  path: [],
  must: 'JSON',
  is: `a circle, or nested deeper than ${DEPTH_MAX} levels`,
};

/** Finds the first part that is not JSON. Iterative, since deep recursion would end the process. */
const checkJson = (root: object): ShapeFault | null => {
  const open: { readonly value: object; readonly depth: number }[] = [{ value: root, depth: 1 }];
  let parts = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next;
    if (depth > DEPTH_MAX) return TOO_DEEP;
    const isList = Array.isArray(value);
    for (const inner of isList ? value : Object.values(value)) {
      parts += 1;
      if (parts > PARTS_MAX) return ENDLESS;
      // Packages leave fields undefined; JSON leaves such fields out.
      if (inner === undefined && !isList) continue;
      if (!isPlain(inner)) return shapeFault(inner, 'JSON, with all that is in it');
      if (typeof inner === 'object' && inner !== null)
        open.push({ value: inner, depth: depth + 1 });
    }
  }
  return null;
};

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

/** Any JSON object. */
export const jsonObject = <T extends object>(): Shape<T> => ({
  check: (value) => (isRecord(value) ? checkJson(value) : shapeFault(value, 'an object')),
});
