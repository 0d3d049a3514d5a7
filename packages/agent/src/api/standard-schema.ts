/**
 * The part of Standard Schema (https://standardschema.dev) that tools need; zod, valibot, arktype and others implement
 * it. The types are copied here, as the specification suggests for projects that avoid the dependency.
 */

type Issue = {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
};

type Checked<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/** A schema from any library that implements Standard Schema, and Standard JSON Schema if the library offers it. */
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
export type OutputOf<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['output'];

export type Validated<Output> =
  | { readonly kind: 'ok'; readonly value: Output }
  | { readonly kind: 'invalid'; readonly field: string; readonly why: string };

/** The path of the wrong field, like `edits[0].text`; `input` if the issue concerns the whole value. */
const fieldOf = ({ path = [] }: Issue): string => {
  let field = '';
  for (const part of path) {
    const key = typeof part === 'object' ? part.key : part;
    if (typeof key === 'number') field += `[${key}]`;
    else field += field === '' ? String(key) : `.${String(key)}`;
  }
  return field === '' ? 'input' : field;
};

/** The validated value, or the first wrong field. */
export const validate = async <Schema extends StandardSchema>(
  schema: Schema,
  input: unknown,
): Promise<Validated<OutputOf<Schema>>> => {
  const checked = await schema['~standard'].validate(input);
  if (checked.issues === undefined) return { kind: 'ok', value: checked.value as OutputOf<Schema> }; // safe by the schema's own types
  const [issue] = checked.issues;
  if (issue === undefined) return { kind: 'invalid', field: 'input', why: 'is not accepted' };
  return { kind: 'invalid', field: fieldOf(issue), why: issue.message };
};
