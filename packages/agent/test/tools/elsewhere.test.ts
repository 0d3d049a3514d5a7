import assert from 'node:assert/strict';
import {
  mkdir,
  readdir,
  readFile,
  rename,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { ABSENT, replaceFile } from '../../src/tools/files.js';
import { makePlace, type Place } from './context.js';

/** What a call may touch was decided when it was judged; by the time it runs, another one may have moved the path. */

const ELSEWHERE = /the path leads elsewhere than when it was allowed; look again and ask anew/;
const edits = [{ oldText: 'secret', newText: 'changed' }];

type Row = { readonly tool: string; readonly input: JsonObject };
const rows: readonly Row[] = [
  { tool: 'read', input: { path: 'place/file' } },
  { tool: 'read', input: { path: 'place' } },
  { tool: 'search', input: { pattern: 'secret', path: 'place' } },
  { tool: 'search', input: { pattern: 'secret', path: 'place/file' } },
  { tool: 'edit', input: { path: 'place/file', edits } },
  { tool: 'write', input: { path: 'place/file', content: 'changed' } },
  { tool: 'write', input: { path: 'place/new/file', content: 'made' } },
];

/** A folder outside whose file the model has read, so that only the path can be what is wrong. */
const outsideOf = async (place: Place, outside: Place): Promise<void> => {
  await writeFile(outside.path('file'), 'secret\n');
  await place.run('read', { path: outside.path('file') });
};

for (const { tool, input } of rows) {
  test(`${tool} of ${String(input.path)}: a link that was put there meanwhile is not followed`, async (t) => {
    const place = await makePlace(t);
    const outside = await makePlace(t);
    await outsideOf(place, outside);
    await mkdir(place.path('place'));
    await writeFile(place.path('place/file'), 'mine\n');
    const outcome = await place.runAfter(tool, input, async () => {
      await rename(place.path('place'), place.path('moved'));
      await symlink(outside.workspace, place.path('place'));
    });
    assert.equal(outcome.status, 'failed');
    assert.match(outcome.text, ELSEWHERE);
    assert.doesNotMatch(outcome.text, /secret/);
    assert.deepEqual(await readdir(outside.workspace), ['file']);
    assert.equal(await readFile(outside.path('file'), 'utf8'), 'secret\n');
  });
}

test('a link that stays as it was judged is followed', async (t) => {
  const place = await makePlace(t);
  const outside = await makePlace(t);
  await outsideOf(place, outside);
  await symlink(outside.workspace, place.path('link'));
  assert.equal((await place.run('read', { path: 'link/file' })).text, '1\tsecret');
});

test('a file is not written where its folder is a link by now', async (t) => {
  const place = await makePlace(t);
  const outside = await makePlace(t);
  await symlink(outside.workspace, place.path('folder'));
  await utimes(outside.workspace, 1, 1);
  const written = await replaceFile(place.path('folder/file'), Buffer.from('x'), ABSENT);
  assert.deepEqual(written, { kind: 'elsewhere' });
  assert.deepEqual(await readdir(outside.workspace), []);
  assert.equal((await stat(outside.workspace)).mtimeMs, 1_000, 'not even for a moment');
});
