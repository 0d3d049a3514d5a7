import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchCpu } from '../../../../test/cpu-watch.js';
import { titleFrom } from '../../src/journal/list.js';

for (const { given, title } of [
  { given: '  fix the\n\n bug ', title: 'fix the bug' },
  {
    given: '/fix-issue 12\n\n<command name="fix-issue">\nFix issue 12.\n</command>',
    title: '/fix-issue 12',
  },
  { given: '/notes\n\n<skill name="notes">\nGroup them.\n</skill>', title: '/notes' },
  { given: 'what does <command name="x"> mean?', title: 'what does <command name="x"> mean?' },
  { given: ' \n ', title: '' },
])
  test(`the title from ${JSON.stringify(given)}`, () => assert.equal(titleFrom(given), title));

test('blank lines without end in a text take no time', () => {
  const spentMs = watchCpu();
  assert.equal(titleFrom(`fix${'\n'.repeat(100_000)}bug`), 'fix bug');
  assert.ok(spentMs() < 1_000, `${spentMs()} ms`);
});
