import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { makePlace } from './context.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

test('before a change it is known what the file is and what it will be, and nothing is changed', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('file'), 'abc');
  const edit = (oldText: string): JsonObject => ({
    path: 'file',
    edits: [{ oldText, newText: 'x' }],
  });
  const edited = { before: sha256('abc'), after: sha256('xbc') };
  assert.deepEqual(await place.before('edit', edit('a')), edited);
  assert.deepEqual(await place.before('edit', edit('nowhere')), { before: sha256('abc') });
  const made = { before: sha256('absent'), after: sha256('new') };
  assert.deepEqual(await place.before('write', { path: 'none', content: 'new' }), made);
  await assert.rejects(place.before('write', { path: '.', content: '' }), /as a file/);
  assert.deepEqual(await readdir(place.workspace), ['file']);
  assert.equal(await readFile(place.path('file'), 'utf8'), 'abc');
});
