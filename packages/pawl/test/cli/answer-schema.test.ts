import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { type AnswerSchema, loadAnswerSchema } from '../../src/headless/answer-schema.js';

/** Which answers satisfy a schema, and which files are one. What a turn does then: e2e/answer-schema. */

const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { count: { type: 'integer' }, colour: { enum: ['red', 'blue'] } },
  required: ['count'],
  additionalProperties: false,
};

const load = (t: TestContext, schema: string = JSON.stringify(SCHEMA)): AnswerSchema => {
  const file = path.join(temporaryFolder(t, 'schema'), 'schema.json');
  writeFileSync(file, schema);
  return loadAnswerSchema(file);
};

const faultOf = (schema: AnswerSchema, answer: string): string => {
  const checked = schema.check(answer);
  return checked.kind === 'faulty' ? checked.why : assert.fail(checked.text);
};

const accepted: readonly (readonly [title: string, answer: string, json: string])[] = [
  ['alone', '{"count": 3}', '{"count": 3}'],
  ['with blanks around it', '\n {"count": 3}\n\n', '{"count": 3}'],
  ['in a fence', '```json\n{"count": 3}\n```', '{"count": 3}'],
  ['in a fence without a tag', '```\n{"count": 3}\n```', '{"count": 3}'],
  ['in a fence of tildes', '~~~json\n{"count": 3}\n~~~', '{"count": 3}'],
  ['in a fence between words', 'So:\n\n```json\r\n{"count": 3}\r\n```\nDone.', '{"count": 3}'],
  [
    'beside a block of another language',
    '```sh\nls\n```\n```json\n{"count": 3}\n```',
    '{"count": 3}',
  ],
  ['in a longer fence', '````json\n{"count": 3}\n````', '{"count": 3}'],
  ['of several lines', '{\n  "count": 3\n}', '{\n  "count": 3\n}'],
  [
    'with a large number as written',
    '{"count": 12345678901234567890}',
    '{"count": 12345678901234567890}',
  ],
];
for (const [title, answer, json] of accepted)
  test(`JSON ${title} is the answer`, (t) => {
    const checked = load(t).check(answer);
    assert.deepEqual(checked, { kind: 'fits', text: json, value: JSON.parse(json) });
  });

const refused: readonly (readonly [title: string, answer: string, fault: RegExp])[] = [
  ['no JSON', 'Three.', /it is not JSON/],
  ['two blocks', '```json\n{"count": 1}\n```\n```json\n{"count": 2}\n```', /it is not JSON/],
  ['a wrong type', '{"count": "3"}', /data\/count must be integer/],
  ['a field too many', '{"count": 3, "more": 1}', /must NOT have additional properties/],
  ['a field too few', '{}', /must have required property 'count'/],
  ['another value', '{"count": 3, "colour": "green"}', /data\/colour must be equal to one of/],
];
for (const [title, answer, fault] of refused)
  test(`an answer with ${title} does not fit`, (t) => {
    assert.match(faultOf(load(t), answer), fault);
  });

test('a pattern that backtracks for ever on an answer is stopped, and said', (t) => {
  const schema = load(t, JSON.stringify({ type: 'string', pattern: '^(a+)+$' }));
  assert.match(
    faultOf(schema, JSON.stringify(`${'a'.repeat(36)}!`)),
    /the check did not end within 2 s: a pattern of the schema takes too long/,
  );
  const good = schema.check(JSON.stringify('a'.repeat(36)));
  assert.equal(good.kind, 'fits', 'control: the next answer is checked as ever');
});

test('faults without end, and fences that never close, cost no more than a part of them', (t) => {
  const schema = load(t, JSON.stringify({ type: 'array', items: { type: 'integer' } }));
  const wrong = JSON.stringify(Array.from({ length: 10_000 }, () => 'x'));
  const told = faultOf(schema, wrong);
  assert.ok(told.length < 3_000, `${told.length} characters`);
  assert.match(told, /data\/0 must be integer.* … and more/);
  assert.match(faultOf(schema, '~~~json\n'.repeat(100_000)), /it is not JSON/);
});

const usage: readonly (readonly [title: string, schema: string, said: RegExp])[] = [
  ['is no JSON', '{"type":', /it is not JSON/],
  ['is no object', '["object"]', /a JSON Schema is an object/],
  ['is no schema', '{"type":"strng"}', /it is no JSON Schema: data\/type must be/],
  ['is of another draft', '{"$schema":"http://json-schema.org/draft-07/schema#"}', /draft-07/],
  ['refers to the network', '{"$ref":"https://example.invalid/x"}', /can't resolve reference/],
  ['has a bad pattern', '{"pattern":"("}', /data\/pattern must match format "regex"/],
  ['is too large', `{"title":"${'x'.repeat(200_001)}"}`, /more than 200000 bytes/],
];
for (const [title, schema, said] of usage)
  test(`a schema that ${title} is wrong usage`, (t) => {
    assert.throws(() => load(t, schema), said);
  });
