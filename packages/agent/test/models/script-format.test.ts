import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseScript } from '../../src/models/script-format.js';

const docs = readFileSync(
  new URL('../../../../docs/build/scripted-model.md', import.meta.url),
  'utf8',
);

test('every example of the documentation is a valid script', () => {
  const examples = [...docs.matchAll(/```json\n([\s\S]*?)```/g)].map(([, json = '']) => json);
  assert.ok(examples.length >= 3);
  for (const json of examples) {
    const parsed = parseScript(JSON.parse(json));
    assert.equal(parsed.kind, 'ok', `${JSON.stringify(parsed)} in ${json}`);
  }
});

test('a valid script is handed on as it is', () => {
  const script = { replies: [{ text: 'hi', expect: { messages: 1 } }, { fail: { kind: 'auth' } }] };
  assert.deepEqual(parseScript(script), { kind: 'ok', script });
});

const wrong: readonly (readonly [unknown, string, RegExp])[] = [
  ['x', 'the script', /Object/],
  [{}, 'replies', /replies/],
  [{ replies: {} }, 'replies', /Array/],
  [{ replies: [], colour: 1 }, 'colour', /is no field of a script/],
  [{ replies: [{ txt: 'hi' }] }, 'replies.0.txt', /is no field of a script/],
  [
    { replies: [{}, { expect: { last: { contain: 'x' } } }] },
    'replies.1.expect.last.contain',
    /is no field/,
  ],
  [{ replies: [{ calls: [{ tool: '' }] }] }, 'replies.0.calls.0.tool', /empty/],
  [{ replies: [{ calls: [{ tool: 'a', input: [] }] }] }, 'replies.0.calls.0.input', /object/],
  [{ replies: [{ calls: [{ tool: 'a', input: {}, rawInput: '' }] }] }, 'replies.0.calls.0', /both/],
  [{ replies: [{ calls: [{ tool: 'a', callId: 'a b' }] }] }, 'replies.0.calls.0.callId', /letters/],
  [
    { replies: [{ calls: [{ tool: 'a', callId: 'x' }] }, { calls: [{ tool: 'a', callId: 'x' }] }] },
    'replies.1.calls.0.callId',
    /used before/,
  ],
  [{ replies: [{ fail: { kind: 'moody' } }] }, 'replies.0.fail.kind', /moody/],
  [{ replies: [{ fail: { kind: 'auth' }, cut: true }] }, 'replies.0', /more than one/],
  [{ replies: [{ cut: true, calls: [] }] }, 'replies.0', /does not come to its end/],
  [{ replies: [{ stopReason: 'tired' }] }, 'replies.0.stopReason', /tired/],
  [{ replies: [{ delayMs: -1 }] }, 'replies.0.delayMs', /0/],
  [
    { replies: [{ expect: { last: { matches: '(' } } }] },
    'replies.0.expect.last.matches',
    /regular expression/,
  ],
  [{ replies: [], rules: [{ text: 'x' }] }, 'rules.0.when', /when/],
  [{ replies: [], rules: [{ when: '(' }] }, 'rules.0.when', /regular expression/],
  [{ replies: [], rules: [{ when: 'a', calls: [] }] }, 'rules.0.calls', /is no field/],
  [{ replies: [], rules: [{ when: 'a', stall: true, cut: true }] }, 'rules.0', /more than one/],
  [
    { replies: [], rules: [{ when: 'a', cut: true, stopReason: 'end' }] },
    'rules.0',
    /does not come to its end/,
  ],
  [{ replies: [], facts: { prices: { input: 1 } } }, 'facts.prices.output', /output/],
];

for (const [given, field, why] of wrong) {
  test(`${JSON.stringify(given)} is rejected at ${field}`, () => {
    const parsed = parseScript(given);
    assert.ok(parsed.kind === 'invalid');
    assert.equal(parsed.field, field);
    assert.match(parsed.why, why);
  });
}
