import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  declaredName,
  declareTools,
  offeredTools,
} from '../../src/extensions/mcp/declare-tools.js';
import { safeSchema, withoutDefinitions } from '../../src/models/tool-schema.js';

// Schemas and names of foreign tools, made safe for every provider.

const properties = (fields: object, more: object = {}): object => ({
  type: 'object',
  properties: fields,
  ...more,
});

const rows: readonly (readonly [given: string, raw: unknown, schema: object, note?: RegExp])[] = [
  [
    'a plain schema',
    properties({ a: { type: 'string' } }, { required: ['a'], additionalProperties: false }),
    properties({ a: { type: 'string' } }, { required: ['a'], additionalProperties: false }),
  ],
  ['nothing', undefined, { type: 'object' }, /is not an object/],
  ['a list', [], { type: 'object' }, /is not an object/],
  ['a text', { type: 'string' }, { type: 'object' }, /not one of an object/],
  [
    'values of other forms than their keywords have',
    properties(
      {
        a: null,
        b: 'text',
        c: { type: null, enum: null, description: 5, items: [], anyOf: [null], title: 'C' },
        d: { type: 'object', properties: [], required: 'a', additionalProperties: null },
        e: true,
        f: { default: { type: null, $id: 'f' }, type: ['string', 'null'] },
      },
      { required: null, title: null },
    ),
    properties({
      a: {},
      b: {},
      c: { title: 'C' },
      d: { type: 'object' },
      e: true,
      f: { default: { type: null, $id: 'f' }, type: ['string', 'null'] },
    }),
  ],
  ['no type', { properties: { a: {} } }, properties({ a: {} })],
  [
    'fields that are named like keywords',
    properties(
      { definitions: { type: 'object', $comment: 'x' }, description: { type: 'string' } },
      { required: ['definitions'] },
    ),
    properties(
      { definitions: { type: 'object' }, description: { type: 'string' } },
      { required: ['definitions'] },
    ),
  ],
  [
    'a field that is named like a keyword that providers refuse',
    properties({ $id: { type: 'string' } }),
    { type: 'object' },
    /has a field whose name providers refuse \(\$id\)/,
  ],
  ['a reference to an anchor', properties({ a: { $ref: '#here' } }), properties({ a: {} })],
  [
    'a reference inside',
    properties(
      { a: { $ref: '#/$defs/A', description: 'mine' } },
      {
        $defs: { A: { type: 'integer', description: 'its' } },
        $schema: 'https://json-schema.org/draft/2020-12/schema',
      },
    ),
    properties({ a: { type: 'integer', description: 'mine' } }),
  ],
  [
    'a reference to itself',
    properties(
      { a: { $ref: '#/$defs/A' } },
      { $defs: { A: { type: 'object', properties: { next: { $ref: '#/$defs/A' } } } } },
    ),
    properties({ a: { type: 'object', properties: { next: {} } } }),
  ],
  [
    'a remote reference',
    properties({ a: { $ref: 'https://evil.example/schema.json' } }),
    properties({ a: {} }),
  ],
  ['a reference to nothing', properties({ a: { $ref: '#/$defs/none' } }), properties({ a: {} })],
  [
    'a broken reference',
    properties({ a: { $ref: '#/%E0%A4%A' } }),
    { type: 'object' },
    /not valid/,
  ],
  [
    'alternatives at the top',
    properties({ a: {} }, { anyOf: [{ required: ['a'] }], additionalProperties: false }),
    properties({ a: {} }),
    /alternatives at the top/,
  ],
  [
    'a field that is required but not there',
    properties({ a: {} }, { required: ['a', 'b'] }),
    properties({ a: {} }, { required: ['a'] }),
  ],
  [
    'an odd name of a field',
    properties({ 'a b': {} }),
    { type: 'object' },
    /providers refuse \(a b\)/,
  ],
  [
    'more than 16 KB',
    properties({ a: { enum: Array.from({ length: 3_000 }, (_, index) => `value ${index}`) } }),
    { type: 'object' },
    /bytes/,
  ],
  [
    'keywords with the names of methods',
    properties({ a: { __defineGetter__: 1, hasOwnProperty: 1 } }),
    properties({ a: { __defineGetter__: 1, hasOwnProperty: 1 } }),
  ],
  [
    'a long description',
    properties({ a: { description: 'x'.repeat(5_000) } }),
    properties({ a: { description: 'x'.repeat(1_000) } }),
  ],
];

for (const [given, raw, schema, note] of rows)
  test(`a schema with ${given}`, () => {
    const safe = safeSchema(raw);
    assert.deepEqual(safe.schema, schema);
    if (note === undefined) assert.equal(safe.note, null);
    else assert.match(String(safe.note), note);
  });

const NODE = properties({
  next: { $ref: '#/$defs/Node' },
  value: { $ref: '#/$defs/Value', description: 'mine' },
});
const TREE = properties(
  {
    root: { $ref: '#/$defs/Node' },
    far: { $ref: 'https://evil.example/x' },
    none: { $ref: '#/$defs/none' },
  },
  { $defs: { Node: NODE, Value: { type: 'integer' }, Unused: { type: 'string' } } },
);

test('definitions are kept for the providers that take them', () => {
  const safe = safeSchema(TREE, 'kept');
  assert.equal(safe.note, null);
  assert.deepEqual(safe.schema, {
    type: 'object',
    properties: { root: { $ref: '#/$defs/Node' }, far: {}, none: {} },
    $defs: {
      Node: properties({
        next: { $ref: '#/$defs/Node' },
        value: { type: 'integer', description: 'mine' },
      }),
    },
  });
  assert.deepEqual(safeSchema(safe.schema, 'kept').schema, safe.schema);
  const plain = withoutDefinitions(safe.schema);
  assert.deepEqual(plain, safeSchema(TREE).schema);
  assert.doesNotMatch(JSON.stringify(plain), /\$ref|\$defs/);
  const own = { type: 'object', properties: { a: { oneOf: [{ type: 'string' }] } }, $comment: 'x' };
  assert.equal(withoutDefinitions(own), own, 'a schema without definitions is not touched');
});

test('definitions named like a prototype, or by a path, are inlined', () => {
  const raw = JSON.parse(
    '{"properties":{"a":{"$ref":"#/$defs/__proto__"},"b":{"$ref":"#/$defs/x~1y"}},"$defs":{"__proto__":{"type":"string"},"x/y":{"type":"null"}}}',
  );
  const { schema } = safeSchema(raw, 'kept');
  assert.deepEqual(schema, {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'null' } },
  });
});

test('references that would grow without end, and schemas of great depth, are replaced', () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 20 }, (_, index) => [
      `d${index}`,
      properties({ a: { $ref: `#/$defs/d${index + 1}` }, b: { $ref: `#/$defs/d${index + 1}` } }),
    ]),
  );
  assert.deepEqual(safeSchema(properties({ a: { $ref: '#/$defs/d0' } }, { $defs })).schema, {
    type: 'object',
  });
  const kept = safeSchema(properties({ a: { $ref: '#/$defs/d0' } }, { $defs }), 'kept').schema;
  assert.equal(Object.keys(kept.$defs ?? {}).length, 20, 'control: kept, they do not grow');
  let deep: object = {};
  for (let index = 0; index < 200; index++) deep = { items: deep };
  assert.deepEqual(safeSchema(properties({ a: deep })).schema, { type: 'object' });
});

test('names have at most 64 characters that every provider accepts, and stay different', () => {
  assert.equal(declaredName('github', 'get_issue'), 'mcp__github__get_issue');
  const names = [
    `${'a'.repeat(100)}1`,
    `${'a'.repeat(100)}2`,
    'with space',
    'with.space',
    'ünicode',
  ].map((tool) => declaredName('server', tool));
  for (const name of names) assert.match(name, /^[\w-]{1,64}$/);
  assert.equal(new Set(names).size, names.length);
});

const offer = (server: string, ...names: readonly string[]) => ({
  server,
  tools: names.map((name) => ({ name, description: '', inputSchema: { type: 'object' } })),
});

test('tools are sorted by name, and of two with the same name for the model the second is refused', () => {
  const { tools, faults } = declareTools([
    offer('b', 'z', 'y'),
    offer('a_', 'b'),
    offer('a', '_b'),
  ]);
  assert.deepEqual(
    tools.map(({ declaredName: name }) => name),
    ['mcp__a___b', 'mcp__b__y', 'mcp__b__z'],
  );
  assert.deepEqual(faults, [
    'the MCP tool a/_b is left out: a_/b has the same name for the model, mcp__a___b',
  ]);
});

test('a thousand tools of one name are one tool, and equal names of two servers are few lines', () => {
  const remote = Array.from({ length: 1_000 }, (_, index) => ({
    name: 'act',
    description: `D${index}`,
    inputSchema: { type: 'object' as const },
  }));
  const { tools } = offeredTools(remote);
  assert.deepEqual(
    tools.map(({ description }) => description),
    ['D0'],
  );
  const [one, other] = ['', '_'].map((start) =>
    Array.from({ length: 50 }, (_, index) => `${start}${index}`),
  );
  const { faults } = declareTools([offer('a_', ...(one ?? [])), offer('a', ...(other ?? []))]);
  assert.equal(faults.length, 4);
  assert.equal(faults[3], '47 more MCP tools are left out, since others have their names');
});

test('a session declares at most 100 tools of servers', () => {
  const { tools, faults } = declareTools([
    offer('a', ...Array.from({ length: 130 }, (_, index) => `t${index}`)),
  ]);
  assert.equal(tools.length, 100);
  assert.match(faults.join(), /^30 of 130 MCP tools are left out/);
});
