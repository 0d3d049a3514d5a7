/**
 * Makes the input schema of a foreign tool safe to declare. One schema that a provider refuses
 * fails every request.
 *
 * 1. Definitions in the schema stay where the provider takes them, and are inlined elsewhere; a
 *    definition that holds itself then means any value. Remote references are never fetched and
 *    mean any value.
 * 2. A schema that can't be made safe is replaced by one that accepts any object: it is not one of
 *    an object, too large or too deep, or has an odd reference or name of a field. The server still
 *    checks the input.
 *
 * A foreign tool is one of an MCP server.
 */

import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import { firstCharacters } from '../platform/text.js';
import { isJsonObject } from '../platform/untrusted-input.js';

const BYTES_MAX = 16 * 1024;
const DEPTH_MAX = 24;
const VALUES_MAX = 4_000;
const DESCRIPTION_MAX = 1_000;
/** The strictest provider's form of a field's name. */
const FIELD_NAME = /^[\w.-]{1,64}$/;

/** Keywords that providers refuse, and definitions, which are copied apart. */
const DROPPED = new Set(
  (
    '$schema $id $anchor $dynamicAnchor $dynamicRef $recursiveRef $recursiveAnchor $vocabulary ' +
    '$comment $defs definitions'
  ).split(' '),
);
/** Keywords whose keys are names of fields. */
const OF_FIELDS = new Set(['properties', 'patternProperties', 'dependentSchemas']);
/** Keywords whose values are no schemas. */
const OF_VALUES = new Set(['default', 'const', 'enum', 'examples']);

const isSchema = (value: Json): boolean => isJsonObject(value) || typeof value === 'boolean';
const isText = (value: Json): boolean => typeof value === 'string';
const isList = (value: Json, fits: (value: Json) => boolean): boolean =>
  Array.isArray(value) && value.length > 0 && value.every(fits);
const isTexts = (value: Json): boolean => isList(value, isText);
const isSchemas = (value: Json): boolean => isList(value, isSchema);
const isFields = (value: Json): boolean => isJsonObject(value);

/** The form of a keyword's value. One of another form is left out: providers refuse the request. */
const FORMS: Readonly<Record<string, (value: Json) => boolean>> = {
  $ref: isText,
  type: (value) => isText(value) || isTexts(value),
  title: isText,
  description: isText,
  format: isText,
  pattern: isText,
  required: isTexts,
  enum: (value) => isList(value, () => true),
  anyOf: isSchemas,
  oneOf: isSchemas,
  allOf: isSchemas,
  properties: isFields,
  patternProperties: isFields,
  dependentSchemas: isFields,
  items: (value) => isSchema(value) || isSchemas(value),
  additionalProperties: isSchema,
  not: isSchema,
  if: isSchema,
  then: isSchema,
  else: isSchema,
};

const hasForm = (key: string, value: Json): boolean =>
  !Object.hasOwn(FORMS, key) || FORMS[key]?.(value) !== false;

/** Providers refuse these at the top of a schema. */
const NOT_AT_TOP = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'then', 'else', 'enum', 'const'];

type SafeSchema = {
  readonly schema: JsonObject;
  /** What was changed beyond inlining, for the user; null if nothing was. */
  readonly note: string | null;
};

const ANY_OBJECT: JsonObject = { type: 'object' };

/** A schema has too many values, or is too deep. */
class TooLarge extends Error {}

/** A schema that every provider accepts. `kept`: every one that takes definitions. */
export const safeSchema = (
  raw: unknown,
  definitions: 'inlined' | 'kept' = 'inlined',
): SafeSchema => {
  if (!isJsonObject(raw)) return acceptAnyObject('is not an object');
  try {
    const walk: Walk = {
      root: raw,
      definitions: definitions === 'kept' ? new Set() : null,
      values: 0,
    };
    const copied = copy(walk, raw, 0, ['#']);
    if (!isJsonObject(copied) || (copied.type !== undefined && copied.type !== 'object'))
      return acceptAnyObject('is not one of an object');
    return fitTop({ ...copied, ...copyDefinitions(walk) });
  } catch (error) {
    if (error instanceof TooLarge) return acceptAnyObject('is too large or too deep');
    if (error instanceof URIError) return acceptAnyObject('has a reference that is not valid');
    throw error;
  }
};

/** Schemas without their definitions, so that each is copied once. */
const inlined = new WeakMap<JsonObject, JsonObject>();

/** A declared schema for a provider that takes no definitions. One without any stays as it is. */
export const withoutDefinitions = (schema: JsonObject): JsonObject => {
  if (schema.$defs === undefined && schema.definitions === undefined) return schema;
  const known = inlined.get(schema);
  if (known !== undefined) return known;
  const plain = safeSchema(schema).schema;
  inlined.set(schema, plain);
  return plain;
};

/** The part that a local path names; undefined for other references, or if there is none. */
const lookUp = (root: JsonObject, reference: string): unknown => {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined;
  let value: unknown = root;
  for (const name of reference.slice(1).split('/').slice(1)) {
    const key = decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
};

/** A copy in the making. `values`: how many it has so far. */
type Walk = {
  readonly root: JsonObject;
  /** References to the definitions that stay; null if they are inlined. */
  readonly definitions: Set<string> | null;
  values: number;
};

/** `#/$defs/name` */
const DEFINITION = /^#\/(\$defs|definitions)\/([A-Za-z][\w.-]*)$/;

/** Copies an object. `open`: the references that are being resolved around it. */
const copyObject = (
  walk: Walk,
  value: JsonObject,
  depth: number,
  open: readonly string[],
): Json => {
  const { $ref: reference } = value;
  if (typeof reference === 'string') {
    const isAlone = Object.keys(value).length === 1; // not every provider takes other keywords beside `$ref`
    const namesDefinition =
      DEFINITION.test(reference) && isJsonObject(lookUp(walk.root, reference));
    if (walk.definitions !== null && isAlone && namesDefinition) {
      walk.definitions.add(reference);
      return { $ref: reference };
    }
    const target = open.includes(reference) ? undefined : lookUp(walk.root, reference);
    const siblings = Object.fromEntries(Object.entries(value).filter(([key]) => key !== '$ref'));
    const resolved = isJsonObject(target)
      ? copy(walk, target, depth + 1, [...open, reference])
      : {};
    const rest = copyObject(walk, siblings, depth + 1, open);
    return { ...(isJsonObject(resolved) ? resolved : {}), ...(isJsonObject(rest) ? rest : {}) };
  }
  const copied: Record<string, Json> = {};
  for (const [key, part] of Object.entries(value)) {
    if (DROPPED.has(key) || key === '__proto__' || !hasForm(key, part)) continue;
    if (OF_VALUES.has(key)) copied[key] = part;
    else if (key === 'description' && typeof part === 'string')
      copied[key] = firstCharacters(part, DESCRIPTION_MAX);
    else if (OF_FIELDS.has(key) && isJsonObject(part))
      copied[key] = copyFields(walk, part, depth + 1, open);
    else copied[key] = copy(walk, part, depth + 1, open);
  }
  return copied;
};

/** Copies schemas by the names of fields, which may be those of keywords. */
const copyFields = (
  walk: Walk,
  fields: JsonObject,
  depth: number,
  open: readonly string[],
): JsonObject => {
  const copied: Record<string, Json> = {};
  for (const [name, schema] of Object.entries(fields))
    if (name !== '__proto__')
      copied[name] = isSchema(schema) ? copy(walk, schema, depth + 1, open) : {}; // any value
  return copied;
};

const copy = (walk: Walk, value: Json, depth: number, open: readonly string[]): Json => {
  walk.values += 1;
  if (walk.values > VALUES_MAX || depth > DEPTH_MAX) throw new TooLarge();
  if (Array.isArray(value)) return value.map((part: Json) => copy(walk, part, depth + 1, open));
  return isJsonObject(value) ? copyObject(walk, value, depth, open) : value;
};

/** The schema that accepts any object, and why. */
const acceptAnyObject = (why: string): SafeSchema => ({
  schema: ANY_OBJECT,
  note: `its input schema ${why}, so any object is accepted`,
});

/** The definitions that are referred to, also by each other. */
const copyDefinitions = (walk: Walk): JsonObject => {
  const places: Record<string, Record<string, Json>> = { $defs: {}, definitions: {} };
  for (const reference of walk.definitions ?? []) {
    const [, place = '', name = ''] = DEFINITION.exec(reference) ?? [];
    const definition = lookUp(walk.root, reference);
    const copies = places[place];
    if (copies !== undefined && isJsonObject(definition))
      copies[name] = copy(walk, definition, 1, [reference]);
  }
  return Object.fromEntries(
    Object.entries(places).filter(([, copies]) => Object.keys(copies).length > 0),
  );
};

/** Leaves out of a copied schema what providers refuse at its top. */
const fitTop = (copied: JsonObject): SafeSchema => {
  const allowed = Object.fromEntries(
    Object.entries(copied).filter(([key]) => !NOT_AT_TOP.includes(key)),
  );
  const isCut = Object.keys(allowed).length < Object.keys(copied).length;
  const { required, additionalProperties, ...others } = allowed;
  const properties = isJsonObject(others.properties) ? others.properties : {};
  const names = Object.keys(properties);
  const odd = names.find((name) => !FIELD_NAME.test(name));
  if (odd !== undefined)
    return acceptAnyObject(`has a field whose name providers refuse (${odd.slice(0, 40)})`);
  const needed = Array.isArray(required)
    ? required.filter((name) => names.includes(String(name)))
    : [];
  // The alternatives that were left out may have fields of their own, so others must be allowed.
  const schema: JsonObject = {
    ...others,
    type: 'object',
    properties,
    ...(needed.length === 0 ? {} : { required: needed }),
    ...(additionalProperties === undefined || isCut ? {} : { additionalProperties }),
  };
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > BYTES_MAX) return acceptAnyObject(`has ${bytes} bytes`);
  return {
    schema,
    note: isCut ? 'its input schema has alternatives at the top, which were left out' : null,
  };
};
