/**
 * Tools of programs that use the library: a schema and a function. tools/define-tool.ts beside it
 * is for the built-in tools.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import { toJsonSchema } from '@valibot/to-json-schema';
import type { GenericSchema } from 'valibot';
import type { CallPreview } from '../machine/call.js';
import { attemptNow } from '../platform/attempt.js';
import type { PreviewContext, Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
import { checkTool } from './outside-values.js';

/** The facts about one call that policy needs for its decision. */
export type Touched = {
  /** Absolute paths that the call reads or changes. */
  readonly paths?: readonly string[];
  /** Hosts that the call connects to. */
  readonly hosts?: readonly string[];
  /**
   * Calls with the same shape are covered by one "always allow" answer. Default: the tool's name.
   */
  readonly shape?: string;
};

export type ToolDefinition<Schema extends StandardSchema> = {
  readonly name: string;
  /** Tells the model when and how to call the tool. */
  readonly description: string;
  /** An object schema from any library that implements Standard Schema: zod, valibot, arktype, … */
  readonly input: Schema;
  /** JSON Schema of the input; needed if the library can't produce it. */
  readonly inputSchema?: JsonObject;
  /**
   * `reads`: the tool changes nothing, can run in parallel and can run again after a crash.
   * `changes`: it runs alone, needs approval if the preset says so, and after a crash the model
   * learns that it may have run.
   */
  readonly effect: 'reads' | 'changes';
  /** A call that takes longer is stopped. Default: 60,000. */
  readonly deadlineMs?: number;
  /** What policy must know before it allows a call. Default: no path and no host is touched. */
  touches?(input: SchemaOutput<Schema>, workspace: string): Touched;
  /**
   * One line for the user that describes the call. Default: the first string in the input, and the
   * paths.
   */
  title?(input: SchemaOutput<Schema>, workspace: string): string;
  /** A few words for the user that sum up a successful result. Default: its number of lines. */
  summary?(input: SchemaOutput<Schema>, outcome: ToolOutcome): string;
  /**
   * Shows the planned change as a unified diff, or the reason why the call can't work. It runs
   * before the user is asked and must not change anything. Default: the user sees the input.
   */
  preview?(
    input: SchemaOutput<Schema>,
    context: PreviewContext,
  ): CallPreview | Promise<CallPreview>;
  /**
   * Performs the call. A string is a successful result. Report a failed task as an outcome with the
   * status `failed`; a rejection counts as a bug in the tool.
   */
  run(
    input: SchemaOutput<Schema>,
    context: ToolContext,
  ): Promise<string | ToolOutcome> | string | ToolOutcome;
};

/**
 * A tool from a schema and a function. Input is validated first: an invalid call goes back to the
 * model with the name of the wrong field. Throws a TypeError if the schema has no JSON Schema, or
 * the definition is invalid.
 */
export const defineTool = <Schema extends StandardSchema>(
  definition: ToolDefinition<Schema>,
): Tool => {
  const { name, description, input: schema, effect, deadlineMs = 60_000, touches } = definition;
  if (!/^[\w-]{1,64}$/.test(name))
    throw new TypeError(
      `a tool's name has letters, digits, - and _ only, at most 64: not "${name}"`,
    );
  if (effect !== 'reads' && effect !== 'changes')
    throw new TypeError(`the tool ${name} has the effect ${effect}: it is 'reads' or 'changes'`);
  const isReader = effect === 'reads';
  const valueFrom = async (input: JsonObject): Promise<SchemaOutput<Schema>> => {
    const checked = await validate(schema, input);
    if (checked.kind === 'ok') return checked.value;
    throw new TypeError(`${name} was started with input that its schema refuses: ${checked.field}`);
  };
  const tool: Tool = {
    name,
    description,
    inputSchema: checkedSchema(name, definition.inputSchema ?? toInputSchema(name, schema)),
    traits: {
      effect: isReader ? 'pure' : 'opaque',
      parallelSafe: isReader,
      mutating: !isReader,
      deadlineMs,
    },
    async judge(input, workspace) {
      const checked = await validate(schema, input);
      if (checked.kind === 'invalid') return checked;
      const { paths = [], hosts = [], shape = name } = touches?.(checked.value, workspace) ?? {};
      const title = optionalText(() => definition.title?.(checked.value, workspace));
      // the original input: a schema may transform it into values that are not JSON, and the
      // journal holds only JSON
      const facts = { argv: [], paths, hosts, shape };
      return { kind: 'ok', input, facts, ...(title === undefined ? {} : { title }) };
    },
    ...(definition.preview === undefined
      ? {}
      : {
          preview: async (input, context) =>
            definition.preview?.(await valueFrom(input), context) ?? NO_PREVIEW,
        }),
    async run(input, context) {
      const value = await valueFrom(input);
      const returned = await definition.run(value, context);
      const outcome: ToolOutcome =
        typeof returned === 'string' ? { status: 'ok', text: returned } : returned;
      if (
        definition.summary === undefined ||
        outcome.status !== 'ok' ||
        outcome.summary !== undefined
      )
        return outcome;
      const summary = optionalText(() => definition.summary?.(value, outcome));
      return summary === undefined ? outcome : { ...outcome, summary };
    },
  };
  checkTool(tool);
  return tool;
};

/**
 * The tool's title or summary; undefined if its function throws, since the default is shown then.
 */
const optionalText = (give: () => unknown): string | undefined => {
  const result = attemptNow(give);
  return result.kind === 'done' && typeof result.value === 'string' ? result.value : undefined;
};

const NO_PREVIEW: CallPreview = { kind: 'none' };

const dropDialect = ({ $schema: _, ...schema }: Record<string, unknown>): JsonObject =>
  schema as JsonObject; // safe: a JSON Schema is JSON

/**
 * The schema as JSON Schema: from the library itself, or for valibot from
 * `@valibot/to-json-schema`.
 */
const toInputSchema = (name: string, input: StandardSchema): JsonObject => {
  const { vendor, jsonSchema } = input['~standard'];
  if (jsonSchema !== undefined) return dropDialect(jsonSchema.input({ target: 'draft-2020-12' }));
  if (vendor === 'valibot') {
    const schema: unknown = input;
    return dropDialect({ ...toJsonSchema(schema as GenericSchema) }); // safe: its vendor is valibot
  }
  throw new TypeError(
    `the tool ${name} needs an inputSchema: ${vendor} can't say its schema as JSON Schema, ` +
      'which is what the model reads',
  );
};

const checkedSchema = (name: string, schema: JsonObject): JsonObject => {
  if (schema.type === 'object') return schema;
  throw new TypeError(
    `the input of the tool ${name} must be an object, since models give arguments by name`,
  );
};

/**
 * The part of Standard Schema (https://standardschema.dev) that tools need; zod, valibot, arktype
 * and others implement it. The types are copied here, as the specification suggests for projects
 * that avoid the dependency.
 */

type Issue = {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
};

type Checked<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/**
 * A schema from any library that implements Standard Schema, and Standard JSON Schema if the
 * library offers it.
 */
export type StandardSchema<Input = unknown, Output = Input> = {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Checked<Output> | Promise<Checked<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>;
    };
  };
};

/** The type of the value after validation, which the tool receives. */
type SchemaOutput<Schema extends StandardSchema> = NonNullable<
  Schema['~standard']['types']
>['output'];

type Validated<Output> =
  | { readonly kind: 'ok'; readonly value: Output }
  | { readonly kind: 'invalid'; readonly field: string; readonly why: string };

/**
 * The path of the wrong field, like `edits[0].text`; `input` if the issue concerns the whole value.
 */
const issueField = ({ path = [] }: Issue): string => {
  let field = '';
  for (const part of path) {
    const key = typeof part === 'object' ? part.key : part;
    if (typeof key === 'number') field += `[${key}]`;
    else field += field === '' ? String(key) : `.${String(key)}`;
  }
  return field === '' ? 'input' : field;
};

/** The validated value, or the first wrong field. */
const validate = async <Schema extends StandardSchema>(
  schema: Schema,
  input: unknown,
): Promise<Validated<SchemaOutput<Schema>>> => {
  const checked = await schema['~standard'].validate(input);
  if (checked.issues === undefined)
    return { kind: 'ok', value: checked.value as SchemaOutput<Schema> }; // safe by the schema
  const [issue] = checked.issues;
  if (issue === undefined) return { kind: 'invalid', field: 'input', why: 'is not accepted' };
  return { kind: 'invalid', field: issueField(issue), why: issue.message };
};
