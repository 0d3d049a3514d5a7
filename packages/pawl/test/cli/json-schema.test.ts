import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { schemaFile, schemaText } from '../../../../scripts/json-schema.js';

test('the published JSON Schema is the one of the records (npm run update writes it)', () => {
  assert.equal(readFileSync(schemaFile, 'utf8'), schemaText());
});
