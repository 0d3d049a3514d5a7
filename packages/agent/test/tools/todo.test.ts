import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makePlace } from './context.js';

const items = [
  { text: 'look at the parser', status: 'done' },
  { text: 'repair\nit', status: 'inProgress' },
  { text: 'run the tests', status: 'pending' },
];
const shown = '1 of 3 done\n[x] look at the parser\n[>] repair it\n[ ] run the tests';

test('the list comes back with a mark for each item, one line each', async (t) => {
  const place = await makePlace(t);
  assert.deepEqual(await place.run('todo', { items }), {
    status: 'ok',
    text: shown,
    summary: '1 of 3 done',
  });
});

test('a summary keeps the open items of a to-do list, and drops a finished list', async (t) => {
  const place = await makePlace(t);
  const { keep } = place.tool('todo');
  assert.equal(keep?.({ items }, ''), shown);
  assert.equal(keep?.({ items: items.map((item) => ({ ...item, status: 'done' })) }, ''), '');
});

for (const [title, input, field] of [
  ['a status that there is not', { items: [{ text: 'a', status: 'soon' }] }, 'items[0].status'],
  ['blank text', { items: [{ text: ' ', status: 'done' }] }, 'items[0].text'],
  [
    'too many items',
    { items: Array.from({ length: 51 }, () => ({ text: 'a', status: 'done' })) },
    'items',
  ],
] as const) {
  test(`${title} is refused by the name of its field`, async (t) => {
    const place = await makePlace(t);
    const judgement = await place.judge('todo', input);
    assert.ok(judgement.kind === 'invalid');
    assert.equal(judgement.field, field);
  });
}
