/** The API of a node as an OpenAPI document (https://spec.openapis.org/oas/v3.1.1), from its routes. */

import { VERSION } from '@pawl/agent/platform/environment';
import { toJsonSchema } from '@valibot/to-json-schema';
import type { GenericSchema, StrictObjectSchema } from 'valibot';
import { statuses } from './api-fault.js';

/** What a route says of itself. */
export type DescribedRoute = {
  /** What it does, in a sentence. */
  readonly about: string;
  /** Of an answer without a fault. */
  readonly status: number;
  /** The type of the answer, if it is not JSON. */
  readonly answerType?: string;
  /** The body that it takes. Absent: none. */
  readonly body?: GenericSchema;
  /** The parameters that its address may have. */
  readonly query?: StrictObjectSchema<Record<string, GenericSchema>, undefined>;
};

const toSchema = (schema: GenericSchema): object => {
  // a check that JSON Schema has no word for is left out: the node says what is wrong
  const { $schema: _, ...rest } = toJsonSchema(schema, { typeMode: 'input', errorMode: 'ignore' });
  return rest;
};

const ERROR = {
  description: 'What is wrong, and what to do.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

const ERROR_SCHEMA = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: { code: { enum: Object.keys(statuses) }, message: { type: 'string' } },
      required: ['code', 'message'],
    },
  },
  required: ['error'],
};

const listParameters = (
  method: string,
  path: string,
  { query }: DescribedRoute,
): readonly object[] => [
  ...(path.includes('/ID')
    ? [{ name: 'ID', in: 'path', required: true, schema: { type: 'string' } }]
    : []),
  ...Object.entries(query?.entries ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    schema: toSchema(schema),
  })),
  ...(method === 'POST'
    ? [{ name: 'Idempotency-Key', in: 'header', schema: { type: 'string', maxLength: 200 } }]
    : []),
];

const operation = (method: string, path: string, route: DescribedRoute): object => ({
  summary: route.about,
  operationId: [method.toLowerCase(), ...path.split('/').slice(1)].join('-').replaceAll('.', '-'),
  parameters: listParameters(method, path, route),
  ...(route.body === undefined
    ? {}
    : { requestBody: { content: { 'application/json': { schema: toSchema(route.body) } } } }),
  responses: {
    [route.status]: {
      description: 'Done.',
      content: {
        [route.answerType ?? 'application/json']: {
          schema: { type: route.answerType === undefined ? 'object' : 'string' },
        },
      },
    },
    default: ERROR,
  },
});

/**
 * The routes by method and path. `ID` is the only placeholder of a path. A path that ends in `/own`
 * is for the processes of Pawl alone.
 */
export const openApi = (routes: Readonly<Record<string, DescribedRoute>>): object => {
  const paths: Record<string, Record<string, object>> = {};
  for (const [name, route] of Object.entries(routes)) {
    const [method = '', path = ''] = name.split(' ');
    if (path.endsWith('/own')) continue;
    const address = path.replace('/ID', '/{ID}');
    paths[address] = { ...paths[address], [method.toLowerCase()]: operation(method, path, route) };
  }
  return {
    openapi: '3.1.1',
    info: { title: 'A node of Pawl', version: VERSION },
    paths,
    security: [{ token: [] }],
    components: {
      schemas: { Error: ERROR_SCHEMA },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  };
};
