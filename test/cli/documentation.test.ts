import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { exitCodes } from '../../src/cli/exit-codes.js';

test('docs/command-line.md lists exactly the exit codes there are', () => {
  const text = readFileSync(new URL('../../docs/command-line.md', import.meta.url), 'utf8');
  const section = text.slice(text.indexOf('## Exit codes'), text.indexOf('## Without a terminal'));
  const listed = [...section.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  assert.deepEqual(listed, Object.values(exitCodes));
});
