/**
 * What zod, valibot, arktype and others agree on (https://standardschema.dev), as far as tools need it. Their types are
 * written down here, since the specification asks for that where a package is not to be depended on.
 */

type Issue = {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
};

type Checked<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/** A schema of any library that follows the Standard Schema; with the Standard JSON Schema where it offers that. */
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

/** What the tool is given: the value as the schema makes it. */
export type OutputOf<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['output'];

export type Validated<Output> =
  | { readonly kind: 'ok'; readonly value: Output }
  | { readonly kind: 'invalid'; readonly field: string; readonly why: string };

/** `edits[0].text`; `input` where the whole is meant. */
const fieldOf = ({ path = [] }: Issue): string => {
  let field = '';
  for (const part of path) {
    const key = typeof part === 'object' ? part.key : part;
    if (typeof key === 'number') field += `[${key}]`;
    else field += field === '' ? String(key) : `.${String(key)}`;
  }
  return field === '' ? 'input' : field;
};

/** The value, or the first field that is wrong. */
export const validate = async <Schema extends StandardSchema>(
  schema: Schema,
  input: unknown,
): Promise<Validated<OutputOf<Schema>>> => {
  const checked = await schema['~standard'].validate(input);
  if (checked.issues === undefined) return { kind: 'ok', value: checked.value as OutputOf<Schema> }; // what the schema says of itself
  const [issue] = checked.issues;
  if (issue === undefined) return { kind: 'invalid', field: 'input', why: 'is not accepted' };
  return { kind: 'invalid', field: fieldOf(issue), why: issue.message };
};
