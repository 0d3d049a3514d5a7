/**
 * Defines a tool from one schema: the model reads it, the input is checked by it, and the code is
 * typed by it. Input in the form of other agents' tools is translated first.
 *
 * The translation happens once, when a call is judged. Policy, question, journal and tool all see
 * our form.
 *
 * From top to bottom: the fields of a schema; faults of an input; the names and forms of other
 * agents, which models have learned; `defineTool`; and how paths are shown. session/define-tool.ts
 * defines tools for users of the library.
 */

import path from 'node:path';
import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import { type JsonSchema, toJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import type { CallPreview } from '../machine/call.js';
import { isWithin } from '../platform/files.js';
import { cut } from '../platform/text.js';
import { type JsonLimits, markOwn, parseBounded } from '../platform/untrusted-input.js';
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

// ---- What a schema says of its fields ----

/** The parts of a valibot schema that say which fields an input has. */
type SchemaParts = {
  readonly type: string;
  readonly entries?: Readonly<Record<string, SchemaParts>>;
  readonly item?: SchemaParts;
  readonly wrapped?: SchemaParts;
};

// valibot keeps these parts in every schema that has them; its generic type does not name them
const schemaParts = (schema: v.GenericSchema): SchemaParts => schema as unknown as SchemaParts;

const isOptional = ({ type }: SchemaParts): boolean => type === 'exact_optional';
const unwrap = (schema: SchemaParts): SchemaParts => schema.wrapped ?? schema;

const findField = (entries: SchemaParts['entries'], name: string): SchemaParts | undefined =>
  entries !== undefined && Object.hasOwn(entries, name) ? entries[name] : undefined;

/** The fields of a tool for its model: `path, edits: [{oldText, newText, replaceAll?}]`. */
const listFields = ({ entries = {} }: SchemaParts): string =>
  Object.entries(entries)
    .map(([name, schema]) => {
      const { item } = unwrap(schema);
      const inner = item?.entries === undefined ? '' : `: [{${listFields(item)}}]`;
      return `${name}${isOptional(schema) ? '?' : ''}${inner}`;
    })
    .join(', ');

// ---- Faults of an input ----

/** A field that can't be used, and why, as the rest of a sentence about it. */
export type InputFault = { readonly field: string; readonly why: string };

/** More faults of one input are counted, not named. */
const FAULTS_MAX = 10;
const FIELD_CHARACTERS_MAX = 80;

/** Path of a faulty field, such as `edits[0].oldText`; `input` for the whole input. */
const fieldPath = (issue: v.BaseIssue<unknown>): string => {
  let field = '';
  for (const { key } of issue.path ?? []) {
    if (typeof key === 'number') field += `[${key}]`;
    else field += field === '' ? String(key) : `.${String(key)}`;
  }
  return field === '' ? 'input' : field;
};

const explainIssue = (issue: v.BaseIssue<unknown>): string => {
  if (issue.kind === 'schema' && issue.received === 'undefined') return 'is missing';
  if (issue.kind === 'schema')
    return `must be ${issue.expected ?? 'something else'}, not ${issue.received}`;
  return issue.message;
};

/** Fields that the schema does not have, at any depth. */
const unknownFields = (
  schema: SchemaParts,
  value: unknown,
  foreign: ForeignFields,
  prefix = '',
): readonly InputFault[] => {
  const { entries, item } = unwrap(schema);
  if (Array.isArray(value) && item !== undefined)
    return value.flatMap((one, index) => unknownFields(item, one, foreign, `${prefix}[${index}]`));
  if (typeof value !== 'object' || value === null || entries === undefined) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const field = prefix === '' ? name : `${prefix}.${name}`;
    const known = findField(entries, name);
    if (known !== undefined) return unknownFields(known, inner, foreign, field);
    const instead = Object.hasOwn(foreign, name) ? foreign[name]?.instead : undefined;
    const advice = instead === undefined ? '' : `: ${instead}`;
    return [{ field, why: `is not a field of this tool${advice}` }];
  });
};

/** All faults of an input by its schema, one for each field. */
const findFaults = (
  schema: v.GenericSchema,
  input: JsonObject,
  foreign: ForeignFields,
): readonly InputFault[] => {
  const parsed = v.safeParse(schema, input);
  const unknown = unknownFields(schemaParts(schema), input, foreign);
  const faults = (parsed.success ? [] : parsed.issues)
    // valibot's own report of an unknown field, which `unknownFields` words with advice
    .filter((issue) => !(issue.kind === 'schema' && issue.expected === 'never'))
    .map((issue) => ({ field: fieldPath(issue), why: explainIssue(issue) }));
  const byField = new Map<string, InputFault>();
  for (const fault of [...faults, ...unknown])
    if (!byField.has(fault.field)) byField.set(fault.field, fault);
  return [...byField.values()];
};

const shortField = (field: string): string => cut(field, FIELD_CHARACTERS_MAX);

/** One message with all faults and the fields that there are. */
const refuseInput = (
  schema: v.GenericSchema,
  [first, ...others]: readonly [InputFault, ...InputFault[]],
): InvalidInput => {
  const named = others.slice(0, FAULTS_MAX - 1);
  const rest = others.length - named.length;
  const texts = named.map(({ field, why }) => `${shortField(field)}: ${why}`);
  const count = rest === 0 ? [] : [`${rest} more faults`];
  const why = [first.why, ...texts, ...count].join('; ');
  return {
    kind: 'invalid',
    field: shortField(first.field),
    why: `${why}. Fields: ${listFields(schemaParts(schema))}.`,
  };
};

// ---- Names and forms of other agents ----

/** Our name of a field, and the names that others use for it. */
export type Aliases = Readonly<Record<string, readonly string[]>>;

/** An input in our form as far as it could be translated, and what could not be. */
export type TranslatedInput = {
  readonly input: JsonObject;
  readonly faults: readonly InputFault[];
};

/** Names of the field `path` of a file. */
export const FILE_NAMES: Aliases = {
  path: ['file_path', 'filePath', 'absolute_path', 'target_file', 'filename', 'file'],
};
/** Names of the field `path` of a folder. */
export const FOLDER_NAMES: Aliases = {
  path: ['directory', 'dir', 'folder', 'dir_path', 'target_directory', 'file_path'],
};

/** A field of another agent's tool that ours does not have. */
export type ForeignField = {
  /** The values, besides null, that change nothing here: the field is ignored. */
  readonly same?: 'any' | readonly Json[];
  /** What to do instead of any other value. */
  readonly instead?: string;
};
export type ForeignFields = Readonly<Record<string, ForeignField>>;

/** Fields that models add by habit to explain a call, unless the schema has them. */
const EXPLANATIONS: ForeignFields = {
  description: { same: 'any' },
  explanation: { same: 'any' },
  instruction: { same: 'any' },
  instructions: { same: 'any' },
  justification: { same: 'any' },
};

/** The input without the fields of other agents that change nothing. */
const withoutForeign = (input: JsonObject, foreign: ForeignFields): JsonObject =>
  withoutFields(
    input,
    Object.entries(input).flatMap(([name, value]) => {
      if (!Object.hasOwn(foreign, name)) return [];
      const { same = [] } = foreign[name] ?? {};
      return same === 'any' || value === null || same.includes(value) ? [name] : [];
    }),
  );

/** The input without these fields. */
export const withoutFields = (input: JsonObject, names: readonly string[]): JsonObject =>
  names.some((name) => Object.hasOwn(input, name))
    ? Object.fromEntries(Object.entries(input).filter(([name]) => !names.includes(name)))
    : input;

const NESTED_LIMITS: JsonLimits = { depthMax: 20, charactersMax: 8_000_000 };

/** The array or object in a string of JSON; null for any other string. */
export const parseNested = (text: string): Json => {
  const parsed = parseBounded(text, NESTED_LIMITS);
  if (parsed.kind !== 'ok' || typeof parsed.value !== 'object') return null;
  return parsed.value as Json; // the value comes from JSON.parse
};

/** The number in a text such as `"5"`; any other value as it is. */
export const readNumber = (value: Json): Json =>
  typeof value === 'string' && /^\s*-?\d{1,15}(?:\.\d{1,15})?\s*$/.test(value)
    ? Number(value)
    : value;

const readBoolean = (value: Json): Json => {
  if (typeof value !== 'string' || !/^\s*(?:true|false)\s*$/i.test(value)) return value;
  return value.trim().toLowerCase() === 'true';
};

/** A number or a truth value that was given as a text. */
const readValue = (schema: SchemaParts | undefined, value: Json): Json => {
  switch (schema === undefined ? undefined : unwrap(schema).type) {
    case 'number':
      return readNumber(value);
    case 'boolean':
      return readBoolean(value);
    default:
      return value;
  }
};

/**
 * Renames the fields of an object and reads numbers in texts. Two names of one field with different
 * values are a fault: nothing is chosen.
 */
export const readFields = (
  fields: JsonObject,
  schema: v.GenericSchema,
  aliases: Aliases,
  prefix = '',
): TranslatedInput => readEntries(fields, schemaParts(schema).entries, aliases, prefix);

const readEntries = (
  fields: JsonObject,
  entries: SchemaParts['entries'],
  aliases: Aliases,
  prefix: string,
): TranslatedInput => {
  const faults: InputFault[] = [];
  const read = new Map(
    Object.entries(fields).map(([name, value]) => [
      name,
      readValue(findField(entries, name), value),
    ]),
  );
  for (const [name, others] of Object.entries(aliases)) {
    for (const other of others) {
      const written = read.get(other);
      if (written === undefined) continue;
      read.delete(other);
      const value = readValue(findField(entries, name), written);
      const current = read.get(name);
      if (current === undefined || current === null) read.set(name, value);
      else if (value !== null && JSON.stringify(current) !== JSON.stringify(value)) {
        const why = `says something else than ${name}: give ${name} alone`;
        faults.push({ field: `${prefix}${other}`, why });
      }
    }
  }
  return { input: Object.fromEntries(read), faults };
};

/** Whether a field says something: null and an empty text say nothing. */
export const isGiven = (value: Json | undefined): boolean =>
  value !== undefined && value !== null && value !== '';

/** The input without optional fields that say nothing. */
const withoutEmpty = (input: JsonObject, { entries }: SchemaParts): JsonObject => {
  const isEmpty = (name: string, value: Json): boolean => {
    const schema = findField(entries, name);
    return schema !== undefined && isOptional(schema) && !isGiven(value);
  };
  const kept = Object.entries(input).filter(([name, value]) => !isEmpty(name, value));
  return Object.fromEntries(kept);
};

// ---- The tool ----

/** The schema without `$schema`, which models do not need. */
const withoutDialect = (schema: JsonSchema): JsonObject => {
  const { $schema: _, ...rest } = schema;
  return rest as JsonObject; // the schema holds no functions, so its JSON schema is JSON
};

type ToolParts<Schema extends v.GenericSchema> = {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  /** Its kind of effect, its time limit, and what may run beside it. */
  readonly traits: CallTraits;
  /** As in Tool. */
  readonly reaches?: 'hosts';
  /** Names that other agents use for the fields. */
  readonly aliases?: Aliases;
  /** Fields that only the tools of other agents have. */
  readonly foreign?: ForeignFields;
  /**
   * Translates values in other forms, after the fields have got our names. Optional ones may still
   * say nothing (`isGiven`).
   */
  translate?(input: JsonObject, workspace: string): TranslatedInput;
  // the rest is as in Tool (ports/tool.ts), with input of the schema
  /** The facts that the policy needs about a call, or why the input can't be used. */
  judge(
    input: v.InferOutput<Schema>,
    workspace: string,
  ): Promise<Omit<Extract<Judgement, { kind: 'ok' }>, 'input' | 'title'> | InvalidInput>;
  /**
   * One line for people. `paths` are the judged paths, relative to the workspace if they are
   * inside.
   */
  title(input: v.InferOutput<Schema>, paths: readonly string[]): string;
  /** The planned change, shown in the question to the user. */
  preview?(input: v.InferOutput<Schema>, context: PreviewContext): Promise<CallPreview>;
  /** Hashes of the file to be changed, for the journal. */
  before?(input: v.InferOutput<Schema>, context: ToolContext): Promise<FileHashes>;
  /** Records where a later process has to look for calls, before the first one starts. */
  announce?(workspace: string): void;
  /** What became of a call that was running when the session was interrupted. */
  findInterrupted?(input: v.InferOutput<Schema>, context: ToolContext): Promise<InterruptedCall>;
  /** What a summary of the conversation keeps of the result. */
  keep?(input: v.InferOutput<Schema>, result: string): string;
  run(input: v.InferOutput<Schema>, context: ToolContext): Promise<ToolOutcome>;
};

/** Creates a tool of Pawl's. Every part gets input that the schema has accepted. */
export const defineTool = <Schema extends v.GenericSchema>(parts: ToolParts<Schema>): Tool => {
  const {
    name,
    description,
    schema,
    traits,
    reaches,
    aliases = {},
    translate,
    preview,
    before,
    announce,
    findInterrupted,
    keep,
  } = parts;
  const { entries } = schemaParts(schema);
  const habits = Object.entries(EXPLANATIONS).filter(([field]) => !findField(entries, field));
  const foreign: ForeignFields = { ...Object.fromEntries(habits), ...parts.foreign };
  const parseChecked = (input: JsonObject): v.InferOutput<Schema> => {
    const bare = withoutForeign(input, foreign);
    const parsed = v.safeParse(schema, bare);
    if (parsed.success) return parsed.output;
    const [fault] = findFaults(schema, bare, foreign);
    throw new TypeError(
      `${name} was started with input that its judge refuses: ${fault?.field} ${fault?.why}`,
    );
  };
  /** The input in our form. Ignored fields stay in it: the user sees what the model wrote. */
  const translateInput = (input: JsonObject, workspace: string): TranslatedInput => {
    const renamed = readFields(input, schema, aliases);
    // without a translation there are no faults beside those of the names
    const translated = translate?.(renamed.input, workspace) ?? { ...renamed, faults: [] };
    const faults = [...renamed.faults, ...translated.faults];
    return { input: withoutEmpty(translated.input, schemaParts(schema)), faults };
  };
  let inputSchema: JsonObject | undefined;
  return markOwn<Tool>({
    name,
    description,
    traits,
    ...(reaches === undefined ? {} : { reaches }),
    get inputSchema() {
      inputSchema ??= withoutDialect(toJsonSchema(schema, { errorMode: 'throw' }));
      return inputSchema;
    },
    async judge(input, workspace) {
      const translated = translateInput(input, workspace);
      const bare = withoutForeign(translated.input, foreign);
      const named = new Set(translated.faults.map(({ field }) => field));
      const [fault, ...others] = [
        ...translated.faults,
        ...findFaults(schema, bare, foreign).filter(({ field }) => !named.has(field)),
      ];
      if (fault !== undefined) return refuseInput(schema, [fault, ...others]);
      const value = parseChecked(translated.input);
      const judgement = await parts.judge(value, workspace);
      if (judgement.kind === 'invalid') return judgement;
      const paths = judgement.facts.paths.map((real) => showPath(real, workspace));
      return { ...judgement, input: translated.input, title: parts.title(value, paths) };
    },
    ...(preview === undefined
      ? {}
      : { preview: async (input, context) => preview(parseChecked(input), context) }),
    ...(before === undefined
      ? {}
      : { before: (input, context) => before(parseChecked(input), context) }),
    ...(announce === undefined ? {} : { announce }),
    ...(findInterrupted === undefined
      ? {}
      : { findInterrupted: (input, context) => findInterrupted(parseChecked(input), context) }),
    ...(keep === undefined ? {} : { keep: (input, result) => keep(parseChecked(input), result) }),
    run: async (input, context) => parts.run(parseChecked(input), context),
  });
};

/** The schema of a text that is not empty. */
export const filledText = (description: string) =>
  v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.description(description));

/** The schema of a whole number between two bounds. */
export const wholeNumber = (least: number, most: number, description: string) =>
  v.pipe(
    v.number(),
    v.integer('must be a whole number'),
    v.minValue(least, least === 0 ? 'must not be negative' : `must be at least ${least}`),
    v.maxValue(most, `must be at most ${most}`),
    v.description(description),
  );

/** A real path for people and models: relative to the workspace if it is inside. */
export const showPath = (real: string, workspace: string): string => {
  if (!isWithin(real, workspace)) return real;
  return path.relative(workspace, real) || '.';
};
