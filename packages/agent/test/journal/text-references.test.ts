import assert from 'node:assert/strict';
import test from 'node:test';
import { References, resolveReferences } from '../../src/journal/snapshot.js';

/** Snapshots refer to long texts in the journal; everything else they hold themselves. */

const LONG = 'a long text, "quoted"; '.repeat(20);

const stored = (value: unknown): { readonly kept: unknown; readonly journal: Buffer } => {
  const journal = Buffer.from(`{"event":${JSON.stringify(value)}}\n`);
  return { kept: new References({ bytes: journal, start: 0 }).replace(value), journal };
};

test('long texts at any depth become references, and come back', () => {
  const value = { short: 'x', list: [1, { text: LONG }, null], text: LONG };
  const { kept, journal } = stored(value);
  assert.equal(JSON.stringify(kept).includes('quoted'), false);
  assert.deepEqual(resolveReferences(JSON.parse(JSON.stringify(kept)), journal), value);
});

test('values without a long text are not copied', () => {
  const inner = { list: ['x'] };
  const { kept } = stored({ inner, text: LONG });
  assert.equal(Reflect.get(Object(kept), 'inner'), inner);
});

test('a field named __proto__ stays a field', () => {
  const value: unknown = JSON.parse(`{"__proto__":{"text":${JSON.stringify(LONG)}}}`);
  const { kept, journal } = stored(value);
  assert.equal(Object.getPrototypeOf(kept), Object.prototype);
  assert.deepEqual(Object.keys(Object(kept)), ['__proto__']);
  const back = resolveReferences(JSON.parse(JSON.stringify(kept)), journal);
  assert.equal(JSON.stringify(back), JSON.stringify(value));
});
