import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { diffSinceHead } from '../../src/workspace/uncommitted-files.js';

test('a diff that is too long is cut, but each file is counted; a new empty file has no line', async (t) => {
  const folder = temporaryFolder(t, 'diff');
  const git = (...words: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', '-C', folder, ...words]);
  const write = (name: string, text: string): void => writeFileSync(path.join(folder, name), text);
  const tracked = ['a', 'b', 'c', 'd'];
  git('init', '-q');
  for (const name of tracked) write(name, 'one\n');
  git('add', '-A');
  git('commit', '-qm', 'first');
  const { signal } = new AbortController();
  const since = () => diffSinceHead({ workspace: folder, environment: process.env, signal });
  assert.match((await since())?.nothing ?? '', /^Nothing differs from HEAD/, 'control');
  write('empty', '');
  const diff = await since();
  assert.deepEqual(diff?.diffs, ['--- /dev/null\n+++ empty']);
  assert.match(diff.title, /^1 file differs from HEAD \([0-9a-f]+\), whoever changed it$/);
  for (const name of tracked) write(name, 'a line\n'.repeat(150_000));
  const cut = await since();
  assert.match(
    cut?.title ?? '',
    /^5 files differ from HEAD \([0-9a-f]+\), whoever changed them; changed files are shown up to 2 MB$/,
  );
  assert.equal(cut?.diffs.length, 3, 'control: two of four changed files, and the new one');
  const blob = String(git('rev-parse', 'HEAD:a')).trim();
  rmSync(path.join(folder, '.git', 'objects', blob.slice(0, 2), blob.slice(2)));
  await assert.rejects(since(), /git diff failed/, 'a file of which git has lost the content');
});
