import type { Json, JsonObject } from '@pawl/agent/machine/message';

/** A field with different values; an absent value is missing in that session. */
export type FieldDifference = { readonly field: string; readonly a?: Json; readonly b?: Json };

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value);

const own = (owner: JsonObject, name: string): Json | undefined =>
  Object.hasOwn(owner, name) ? owner[name] : undefined;

/** Whether two values are the same scalar, or both are missing. */
const isSame = (a: Json | undefined, b: Json | undefined): boolean => Object.is(a, b) || a === b;

function* walk(
  field: string,
  a: Json | undefined,
  b: Json | undefined,
): Generator<FieldDifference, undefined> {
  if (isSame(a, b)) return;
  if (isObject(a) && isObject(b)) {
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)]))
      yield* walk(field === '' ? name : `${field}.${name}`, own(a, name), own(b, name));
  } else if (isList(a) && isList(b)) {
    for (let index = 0; index < Math.max(a.length, b.length); index += 1)
      yield* walk(`${field}[${index}]`, a[index], b[index]);
  } else yield { field, ...(a === undefined ? {} : { a }), ...(b === undefined ? {} : { b }) };
}

/** The fields in which two values differ, in order. The nesting of the values must be bounded. */
export const fieldDifferences = (a: Json, b: Json): readonly FieldDifference[] => [...walk('', a, b)];
