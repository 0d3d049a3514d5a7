/** docs/json-stream.schema.json of the package, from packages/pawl/src/headless/record-schema.ts. */
import { toJsonSchema } from '@valibot/to-json-schema';
import { recordSchema } from '../packages/pawl/src/headless/record-schema.js';

/** Our tests are strict; readers must not be: fields may be added within a version. */
const withoutClosedObjects = (name: string, value: unknown): unknown =>
  name === 'additionalProperties' && value === false ? undefined : value;

/** The published schema of one line of `--json`. */
export const schemaText = (): string => {
  const schema = {
    ...toJsonSchema(recordSchema),
    title: 'One line of pawl --json, schema 1',
    description:
      'The first line is a session record, the last a result record. Fields and records are only added.',
  };
  return `${JSON.stringify(schema, withoutClosedObjects, 2)}\n`;
};
