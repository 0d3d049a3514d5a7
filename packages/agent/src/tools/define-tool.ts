import type { JsonSchema } from '@valibot/to-json-schema';
import { toJsonSchema } from '@valibot/to-json-schema';
import type { BaseIssue, GenericSchema, InferOutput } from 'valibot';
import { safeParse } from 'valibot';
import type { CallPreview, CallTraits } from '../machine/call.js';
import type { JsonObject } from '../machine/message.js';
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
import { showPath } from './files/resolve-paths.js';
import { IGNORED_FIELDS, type ReadShape } from './other-agents-inputs.js';

/** Defines a tool from one schema: the model reads it, the input is checked by it, and the code is typed by it. */

type Checked<Value> = { readonly kind: 'ok'; readonly value: Value } | InvalidInput;

/** Path of a faulty field, such as `edits[0].oldText`; `input` for the whole input. */
const fieldOf = (issue: BaseIssue<unknown>): string => {
  let field = '';
  for (const { key } of issue.path ?? []) {
    if (typeof key === 'number') field += `[${key}]`;
    else field += field === '' ? String(key) : `.${String(key)}`;
  }
  return field === '' ? 'input' : field;
};

const whyOf = (issue: BaseIssue<unknown>): string => {
  if (issue.kind === 'schema' && issue.expected === 'never') return 'is not a field of this tool';
  if (issue.kind === 'schema' && issue.received === 'undefined') return 'is missing';
  if (issue.kind === 'schema') return `must be ${issue.expected ?? 'something else'}, not ${issue.received}`;
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
  return { kind: 'invalid', field: fieldOf(issue), why: whyOf(issue) };
};

const withoutDialect = (schema: JsonSchema): JsonObject => {
  const { $schema: _, ...rest } = schema;
  return rest as JsonObject; // the schema holds no functions, so its JSON schema is JSON
};

export type ToolParts<Schema extends GenericSchema> = {
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
  /** One line for people. `paths` are the judged paths, relative to the workspace if they are inside. */
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
  const { name, description, schema, traits, shape, preview, before, announce, findInterrupted, keep } =
    parts;
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
    ...(preview === undefined ? {} : { preview: async (input, context) => preview(checked(input), context) }),
    ...(before === undefined ? {} : { before: (input, context) => before(checked(input), context) }),
    ...(announce === undefined ? {} : { announce }),
    ...(findInterrupted === undefined
      ? {}
      : { findInterrupted: (input, context) => findInterrupted(checked(input), context) }),
    ...(keep === undefined ? {} : { keep: (input) => keep(checked(input)) }),
    run: async (input, context) => parts.run(checked(input), context),
  };
};
