import assert from 'node:assert/strict';
import { test } from 'node:test';
import { schemaText } from '../../../../scripts/json-schema.js';
import { recordSchema } from '../../src/headless/record-schema.js';

test('the published JSON Schema has each record, and lets fields be added', () => {
  const schema = JSON.parse(schemaText());
  assert.equal(schema.oneOf.length, recordSchema.options.length);
  assert.ok(recordSchema.options.length > 10);
  assert.ok(!schemaText().includes('"additionalProperties": false'));
});
