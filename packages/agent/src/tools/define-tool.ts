/**
 * Defines a tool from one schema: the model reads it, the input is checked by it, and the code is
 * typed by it. Input in the form of other agents' tools is translated first.
 */

import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import { type JsonSchema, toJsonSchema } from '@valibot/to-json-schema';
import { type BaseIssue, type GenericSchema, type InferOutput, safeParse } from 'valibot';
import type { CallPreview } from '../machine/call.js';
import { type JsonLimits, parseBounded } from '../platform/untrusted-input.js';
import type { CallTraits } from '../policy/judged-call.js';
import type {
  FileHashes,
  InterruptedCall,
  InvalidInput,
  Judgement,
  PreviewContext,
  Tool,
  ToolContext,
  ToolOutcome,
} from '../ports/tool.js';
import { showPath } from './files.js';

type Checked<Value> = { readonly kind: 'ok'; readonly value: Value } | InvalidInput;

/** Path of a faulty field, such as `edits[0].oldText`; `input` for the whole input. */
const fieldPath = (issue: BaseIssue<unknown>): string => {
  let field = '';
  for (const { key } of issue.path ?? []) {
    if (typeof key === 'number') field += `[${key}]`;
    else field += field === '' ? String(key) : `.${String(key)}`;
  }
  return field === '' ? 'input' : field;
};

const explainIssue = (issue: BaseIssue<unknown>): string => {
  if (issue.kind === 'schema' && issue.expected === 'never') return 'is not a field of this tool';
  if (issue.kind === 'schema' && issue.received === 'undefined') return 'is missing';
  if (issue.kind === 'schema')
    return `must be ${issue.expected ?? 'something else'}, not ${issue.received}`;
  return issue.message;
};

/** The parsed input, or a message about the first faulty field. Unknown fields are refused. */
const checkInput = <Schema extends GenericSchema>(
  schema: Schema,
  input: unknown,
): Checked<InferOutput<Schema>> => {
  const parsed = safeParse(schema, input, { abortEarly: true });
  if (parsed.success) return { kind: 'ok', value: parsed.output };
  const [issue] = parsed.issues;
  return { kind: 'invalid', field: fieldPath(issue), why: explainIssue(issue) };
};

const withoutDialect = (schema: JsonSchema): JsonObject => {
  const { $schema: _, ...rest } = schema;
  return rest as JsonObject; // the schema holds no functions, so its JSON schema is JSON
};

type ToolParts<Schema extends GenericSchema> = {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly traits: CallTraits;
  /** Translates input in the form of other agents' tools, before anything else reads it. */
  readonly shape?: ReadShape;
  judge(
    input: InferOutput<Schema>,
    workspace: string,
  ): Promise<Omit<Extract<Judgement, { kind: 'ok' }>, 'input' | 'title'> | InvalidInput>;
  /**
   * One line for people. `paths` are the judged paths, relative to the workspace if they are
   * inside.
   */
  title(input: InferOutput<Schema>, paths: readonly string[]): string;
  preview?(input: InferOutput<Schema>, context: PreviewContext): Promise<CallPreview>;
  before?(input: InferOutput<Schema>, context: ToolContext): Promise<FileHashes>;
  announce?(workspace: string): void;
  findInterrupted?(input: InferOutput<Schema>, context: ToolContext): Promise<InterruptedCall>;
  keep?(input: InferOutput<Schema>): string;
  run(input: InferOutput<Schema>, context: ToolContext): Promise<ToolOutcome>;
};

/** The input without the fields that every tool ignores. */
const withoutIgnored = (input: JsonObject): JsonObject =>
  IGNORED_FIELDS.some((name) => Object.hasOwn(input, name))
    ? Object.fromEntries(Object.entries(input).filter(([name]) => !IGNORED_FIELDS.includes(name)))
    : input;

/** Creates a tool. Every part gets input that the schema has accepted. */
export const defineTool = <Schema extends GenericSchema>(parts: ToolParts<Schema>): Tool => {
  const {
    name,
    description,
    schema,
    traits,
    shape,
    preview,
    before,
    announce,
    findInterrupted,
    keep,
  } = parts;
  const checked = (input: JsonObject): InferOutput<Schema> => {
    const result = checkInput(schema, withoutIgnored(input));
    if (result.kind === 'ok') return result.value;
    throw new TypeError(
      `${name} was started with input that its judge refuses: ${result.field} ${result.why}`,
    );
  };
  let inputSchema: JsonObject | undefined;
  return {
    name,
    description,
    traits,
    get inputSchema() {
      inputSchema ??= withoutDialect(toJsonSchema(schema, { errorMode: 'throw' }));
      return inputSchema;
    },
    async judge(input, workspace) {
      const read = shape?.(input) ?? ({ kind: 'ok', value: input } as const);
      if (read.kind === 'invalid') return read;
      const result = checkInput(schema, withoutIgnored(read.value));
      if (result.kind === 'invalid') return result;
      const judgement = await parts.judge(result.value, workspace);
      if (judgement.kind === 'invalid') return judgement;
      const paths = judgement.facts.paths.map((real) => showPath(real, workspace));
      return { ...judgement, input: read.value, title: parts.title(result.value, paths) };
    },
    ...(preview === undefined
      ? {}
      : { preview: async (input, context) => preview(checked(input), context) }),
    ...(before === undefined
      ? {}
      : { before: (input, context) => before(checked(input), context) }),
    ...(announce === undefined ? {} : { announce }),
    ...(findInterrupted === undefined
      ? {}
      : { findInterrupted: (input, context) => findInterrupted(checked(input), context) }),
    ...(keep === undefined ? {} : { keep: (input) => keep(checked(input)) }),
    run: async (input, context) => parts.run(checked(input), context),
  };
};

/**
 * Translates input in the form of other agents' tools into ours, where it has only one meaning.
 *
 * This happens once, when a call is judged. Policy, question, journal and tool all see our form.
 */

type InvalidField = { readonly kind: 'invalid'; readonly field: string; readonly why: string };
type Read<Value> = { readonly kind: 'ok'; readonly value: Value } | InvalidField;
type ReadShape = (input: JsonObject) => Read<JsonObject>;

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
const IGNORED_FIELDS: readonly string[] = ['description', 'explanation'];

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
      const current = renamed[name];
      if (current !== undefined && JSON.stringify(current) !== JSON.stringify(value)) {
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
  const fields = typeof item === 'string' ? parseNested(item) : item;
  if (!isObject(fields)) return ok(item);
  const renamed = rename(fields, REPLACEMENT, prefix);
  if (renamed.kind === 'invalid') return renamed;
  const { replaceAll, ...rest } = withoutIgnored(renamed.value);
  if (replaceAll === undefined || replaceAll === null) return ok(rest);
  if (replaceAll === 'true' || replaceAll === 'false')
    return ok({ ...rest, replaceAll: replaceAll === 'true' });
  return ok({ ...rest, replaceAll });
};

const readReplacements = (input: Json): Read<Json> => {
  const value = typeof input === 'string' ? parseNested(input) : input;
  if (value === null && typeof input === 'string') {
    return invalid('edits', 'is a string without valid JSON: give an array of {oldText, newText}');
  }
  const list: Json = isObject(value) ? [value] : value;
  if (!Array.isArray(list)) return ok(input);
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
  const isEmpty =
    edits === undefined || edits === null || (Array.isArray(edits) && edits.length === 0);
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
