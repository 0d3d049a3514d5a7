import { toJsonSchema } from '@valibot/to-json-schema';
import type { GenericSchema } from 'valibot';
import type { JsonObject } from '../agent/message.js';
import type { Tool, ToolContext, ToolOutcome } from '../needs.js';
import { type OutputOf, type StandardSchema, validate } from './standard-schema.js';

/** What policy decides from, of one call. */
export type Touched = {
  /** Absolute paths that the call reads or changes. */
  readonly paths?: readonly string[];
  /** Hosts that it talks to. */
  readonly hosts?: readonly string[];
  /** What "always for this shape of call" covers; the tool's name if not given. */
  readonly shape?: string;
};

export type ToolDefinition<Schema extends StandardSchema> = {
  readonly name: string;
  /** What the model reads to know when and how to call it. */
  readonly description: string;
  /** A schema of an object, of any library that follows the Standard Schema: zod, valibot, arktype, … . */
  readonly input: Schema;
  /** JSON Schema of the input, for a library that can't say it itself. */
  readonly inputSchema?: JsonObject;
  /**
   * `reads`: it changes nothing, may run beside others and may be run again after a crash. `changes`: it runs alone,
   * presets that ask will ask, and after a crash the model is told that it may have run.
   */
  readonly effect: 'reads' | 'changes';
  /** A call that takes longer is stopped; a minute if not given. */
  readonly deadlineMs?: number;
  touches?(input: OutputOf<Schema>, workspace: string): Touched;
  /**
   * Performs the call. A text is a good result; a failure of the task is an outcome with the status `failed`. A rejection
   * is a fault of the tool, and reported as one.
   */
  run(input: OutputOf<Schema>, context: ToolContext): Promise<string | ToolOutcome> | string | ToolOutcome;
};

const withoutDialect = ({ $schema: _, ...schema }: Record<string, unknown>): JsonObject =>
  schema as JsonObject; // JSON Schema is JSON

/** As the library says it; for valibot as its own package says it, which comes with this one. */
const jsonSchemaOf = (name: string, input: StandardSchema): JsonObject => {
  const { vendor, jsonSchema } = input['~standard'];
  if (jsonSchema !== undefined) return withoutDialect(jsonSchema.input({ target: 'draft-2020-12' }));
  if (vendor === 'valibot') {
    const schema: unknown = input;
    return withoutDialect({ ...toJsonSchema(schema as GenericSchema) }); // it says that it is one
  }
  throw new TypeError(
    `the tool ${name} needs an inputSchema: ${vendor} can't say its schema as JSON Schema, which is what the model reads`,
  );
};

const checkedSchema = (name: string, schema: JsonObject): JsonObject => {
  if (schema.type === 'object') return schema;
  throw new TypeError(`the input of the tool ${name} must be an object, since models give arguments by name`);
};

/**
 * A tool from a schema and a function. Input is checked before anything is decided about the call: what does not fit goes
 * back to the model with the field's name. Throws if the schema can't be told to a model.
 */
export const defineTool = <Schema extends StandardSchema>(definition: ToolDefinition<Schema>): Tool => {
  const { name, description, input: schema, effect, deadlineMs = 60_000, touches } = definition;
  if (!/^[\w-]{1,64}$/.test(name))
    throw new TypeError(`a tool's name has letters, digits, - and _ only, at most 64: not "${name}"`);
  const isReader = effect === 'reads';
  return {
    name,
    description,
    inputSchema: checkedSchema(name, definition.inputSchema ?? jsonSchemaOf(name, schema)),
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
      // the input as it came: what a schema makes of it need not be JSON, which is all that a journal can hold
      return { kind: 'ok', input, facts: { argv: [], paths, hosts, shape } };
    },
    async run(input, context) {
      const checked = await validate(schema, input);
      if (checked.kind === 'invalid')
        throw new TypeError(`${name} was started with input that its schema refuses: ${checked.field}`);
      const outcome = await definition.run(checked.value, context);
      return typeof outcome === 'string' ? { status: 'ok', text: outcome } : outcome;
    },
  };
};
