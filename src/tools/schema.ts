import type { JsonSchema } from '@valibot/to-json-schema';
import { toJsonSchema } from '@valibot/to-json-schema';
import type { BaseIssue, GenericSchema, InferOutput } from 'valibot';
import { safeParse } from 'valibot';
import type { CallTraits } from '../agent/call.js';
import type { JsonObject } from '../agent/message.js';
import type { FileHashes, Judgement, Tool, ToolContext, ToolOutcome } from '../needs.js';

/** How a tool declares its input once: as a schema that the model reads, the judge checks and the code is typed by. */

export type InvalidInput = Extract<Judgement, { kind: 'invalid' }>;

type Checked<Value> = { readonly kind: 'ok'; readonly value: Value } | InvalidInput;

/** `edits[0].oldText`; `input` where the whole is meant. */
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

/** Input as the schema has it, or the first field that is wrong. Fields that the schema does not know are refused. */
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
  return rest as JsonObject; // a JSON schema made from a schema without functions is JSON
};

export type ToolParts<Schema extends GenericSchema> = {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly traits: CallTraits;
  judge(
    input: InferOutput<Schema>,
    workspace: string,
  ): Promise<Omit<Extract<Judgement, { kind: 'ok' }>, 'input'> | InvalidInput>;
  before?(input: InferOutput<Schema>, context: ToolContext): Promise<FileHashes>;
  keep?(input: InferOutput<Schema>): string;
  run(input: InferOutput<Schema>, context: ToolContext): Promise<ToolOutcome>;
};

/** A tool from its parts: each part gets input that has passed the schema. */
export const defineTool = <Schema extends GenericSchema>(parts: ToolParts<Schema>): Tool => {
  const { name, description, schema, traits, before, keep } = parts;
  const checked = (input: JsonObject): InferOutput<Schema> => {
    const result = checkInput(schema, input);
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
      const result = checkInput(schema, input);
      if (result.kind === 'invalid') return result;
      const judgement = await parts.judge(result.value, workspace);
      return judgement.kind === 'invalid' ? judgement : { ...judgement, input };
    },
    ...(before === undefined ? {} : { before: (input, context) => before(checked(input), context) }),
    ...(keep === undefined ? {} : { keep: (input) => keep(checked(input)) }),
    run: async (input, context) => parts.run(checked(input), context),
  };
};
