import '../own-process.js';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MACHINE_SHAPES, machineShapesText } from '../../scripts/machine-shapes.js';

test('the shapes of events and settings are those of their types (if not: npm run update)', () => {
  const text = readFileSync(new URL(`../../${MACHINE_SHAPES}`, import.meta.url), 'utf8');
  assert.equal(text, machineShapesText());
});
