import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

/** The published schema of the protocol, as checks of single messages. */

type JsonSchema = Exclude<Parameters<typeof z.fromJSONSchema>[0], boolean>;
type Definition = JsonSchema & { readonly 'x-method'?: string; readonly 'x-side'?: string };
type Schema = { readonly $defs: Record<string, Definition> };

const file = fileURLToPath(import.meta.resolve('@agentclientprotocol/sdk/schema/v1/schema.json'));

/** Leaves out the variants for values of other versions, which say what they are not: here such a value is a fault. */
const withoutOthers = (_key: string, value: unknown): unknown =>
  Array.isArray(value)
    ? value.filter((one: unknown) => typeof one !== 'object' || one === null || !('not' in one))
    : value;

const schema = JSON.parse(readFileSync(file, 'utf8'), withoutOthers) as Schema; // the package's own file

export type Part = 'Request' | 'Response' | 'Notification';

const checks = new Map<string, z.ZodType>();

const checkOf = (name: string): z.ZodType => {
  const known = checks.get(name);
  if (known !== undefined) return known;
  const made = z.fromJSONSchema({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $ref: `#/$defs/${name}`,
    $defs: schema.$defs,
  });
  checks.set(name, made);
  return made;
};

/** Why a value does not fit a definition of the schema; null if it does. */
export const faultIn = (name: string, value: unknown): string | null => {
  const checked = checkOf(name).safeParse(value);
  return checked.success
    ? null
    : `no ${name}: ${z.prettifyError(checked.error)} in ${JSON.stringify(value)}`;
};

/**
 * Why the body of a message does not fit its method; null if it does, or if the method is an extension. `side` is who
 * answers the method.
 */
export const bodyFault = (
  side: 'agent' | 'client' | 'protocol',
  method: string,
  part: Part,
  body: unknown,
): string | null => {
  if (method.startsWith('_')) return null;
  const found = Object.entries(schema.$defs).find(
    ([name, definition]) =>
      definition['x-method'] === method && definition['x-side'] === side && name.endsWith(part),
  );
  return found === undefined ? `no ${part} of the ${side}: ${method}` : faultIn(found[0], body);
};
