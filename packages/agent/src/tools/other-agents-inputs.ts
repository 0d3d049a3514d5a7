import type { Json, JsonObject } from '../machine/message.js';
import { type JsonLimits, parseBounded } from '../platform/base/parse-bounded-json.js';

/**
 * Translates input in the form of other agents' tools into ours, where it has only one meaning.
 *
 * This happens once, when a call is judged. Policy, question, journal and tool all see our form.
 */

export type InvalidField = { readonly kind: 'invalid'; readonly field: string; readonly why: string };
type Read<Value> = { readonly kind: 'ok'; readonly value: Value } | InvalidField;
export type ReadShape = (input: JsonObject) => Read<JsonObject>;

/** Our name of a field, and the names that others use for it. */
type Aliases = Readonly<Record<string, readonly string[]>>;

const PATH: Aliases = { path: ['file_path', 'filePath', 'absolute_path'] };
const CONTENT: Aliases = { content: ['file_text'] };
const COMMAND: Aliases = { timeoutMs: ['timeout_ms'], background: ['run_in_background'] };
const REPLACEMENT: Aliases = {
  oldText: ['old_string', 'oldString', 'old_str', 'old_text'],
  newText: ['new_string', 'newString', 'new_str', 'new_text'],
  replaceAll: ['replace_all'],
};

/** Fields that models add by habit to explain a call. They are accepted and ignored. */
export const IGNORED_FIELDS: readonly string[] = ['description', 'explanation'];

const NESTED_LIMITS: JsonLimits = { depthMax: 20, charactersMax: 8_000_000 };

const isObject = (value: Json): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const ok = <Value>(value: Value): Read<Value> => ({ kind: 'ok', value });
const invalid = (field: string, why: string): InvalidField => ({ kind: 'invalid', field, why });

/** Renames fields. Two names for one field with different values are refused. */
const rename = (input: JsonObject, aliases: Aliases, prefix = ''): Read<JsonObject> => {
  let renamed = input;
  for (const [name, others] of Object.entries(aliases)) {
    for (const other of others) {
      const { [other]: value, ...rest } = renamed;
      if (value === undefined) continue;
      const own = renamed[name];
      if (own !== undefined && JSON.stringify(own) !== JSON.stringify(value)) {
        return invalid(`${prefix}${other}`, `says something else than ${name}: give ${name} alone`);
      }
      renamed = { ...rest, [name]: value };
    }
  }
  return ok(renamed);
};

/** The array or object in a string of JSON; null for any other string. */
const parseNested = (text: string): Json => {
  const parsed = parseBounded(text, NESTED_LIMITS);
  if (parsed.kind !== 'ok' || typeof parsed.value !== 'object') return null;
  return parsed.value as Json; // the value comes from JSON.parse
};

/** Reads one replacement. Faulty values go to the schema, which reports them. */
const readReplacement = (item: Json, prefix: string): Read<Json> => {
  const given = typeof item === 'string' ? parseNested(item) : item;
  if (!isObject(given)) return ok(item);
  const named = rename(given, REPLACEMENT, prefix);
  if (named.kind === 'invalid') return named;
  const kept = Object.entries(named.value).filter(([name]) => !IGNORED_FIELDS.includes(name));
  const { replaceAll, ...rest } = Object.fromEntries(kept);
  if (replaceAll === undefined || replaceAll === null) return ok(rest);
  if (replaceAll === 'true' || replaceAll === 'false')
    return ok({ ...rest, replaceAll: replaceAll === 'true' });
  return ok({ ...rest, replaceAll });
};

const readReplacements = (given: Json): Read<Json> => {
  const value = typeof given === 'string' ? parseNested(given) : given;
  if (value === null && typeof given === 'string') {
    return invalid('edits', 'is a string without valid JSON: give an array of {oldText, newText}');
  }
  const list: Json = isObject(value) ? [value] : value;
  if (!Array.isArray(list)) return ok(given);
  const edits: Json[] = [];
  for (const [index, item] of list.entries()) {
    const read = readReplacement(item, `edits[${index}].`);
    if (read.kind === 'invalid') return read;
    edits.push(read.value);
  }
  return ok(edits);
};

/** Moves a replacement that is not inside `edits` into `edits`. */
const gatherSingle = (input: JsonObject): Read<JsonObject> => {
  const { oldText, newText, replaceAll, edits, ...rest } = input;
  const single = Object.entries({ oldText, newText, replaceAll }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  const [first] = single;
  if (first === undefined) return ok(input);
  const isEmpty = edits === undefined || edits === null || (Array.isArray(edits) && edits.length === 0);
  if (!isEmpty) return invalid(first[0], 'stands beside edits: put every replacement into edits');
  return ok({ ...rest, edits: [Object.fromEntries(single)] });
};

export const readEditShape: ReadShape = (input) => {
  // Another vendor's text editor has a field `command`. Only this value means an edit.
  const { command, ...bare } = input;
  const named = rename(command === 'str_replace' ? bare : input, { ...PATH, ...REPLACEMENT });
  if (named.kind === 'invalid') return named;
  const gathered = gatherSingle(named.value);
  if (gathered.kind === 'invalid' || gathered.value.edits === undefined) return gathered;
  const edits = readReplacements(gathered.value.edits);
  return edits.kind === 'invalid' ? edits : ok({ ...gathered.value, edits: edits.value });
};

export const readFileShape: ReadShape = (input) => rename(input, PATH);
export const readWriteShape: ReadShape = (input) => rename(input, { ...PATH, ...CONTENT });
export const readCommandShape: ReadShape = (input) => rename(input, COMMAND);
