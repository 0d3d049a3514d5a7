import assert from 'node:assert/strict';
import { test } from 'node:test';
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
