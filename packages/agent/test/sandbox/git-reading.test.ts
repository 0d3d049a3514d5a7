import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import {
  configEntries,
  createIndexReader,
  findRepository,
} from '../../src/command/sandbox/git-folders.js';

// What the sandbox reads of git by itself is what git says.

const git = (folder: string, ...words: readonly string[]): string => {
  const who = ['-c', 'user.name=Ada', '-c', 'user.email=a@example.org'];
  const { status, stdout, stderr } = spawnSync('git', [...who, ...words], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return stdout;
};

const makeRepository = (t: TestContext, ...words: readonly string[]): string => {
  const folder = temporaryFolder(t, 'git-reading');
  git(folder, 'init', '-q', ...words);
  return folder;
};

for (const [form, words, settings] of [
  ['version 2', [], ['index.version', '2']],
  ['version 4', [], ['index.version', '4']],
  ['SHA-256', ['--object-format=sha256'], ['index.version', '2']],
] as const) {
  test(`the gitlinks and tracked files of an index: ${form}`, (t) => {
    const folder = makeRepository(t, ...words);
    git(folder, 'config', ...settings);
    for (const name of ['a/b', 'a/b2', 'a/long/link', 'z']) {
      git(folder, 'init', '-q', ...words, name);
      git(path.join(folder, name), 'commit', '-q', '--allow-empty', '-m', 'x');
    }
    mkdirSync(path.join(folder, 'src'));
    const files = ['src/one', 'src/one.ts', 'ü', 'x'.repeat(200), 'new'];
    for (const name of files) writeFileSync(path.join(folder, name), name);
    git(folder, 'add', ...files.slice(0, 4), 'a', 'z');
    git(folder, 'add', '-N', 'new'); // an entry with extended flags
    const index = createIndexReader().read(path.join(folder, '.git'));
    assert.deepEqual(index.gitlinks, ['a/b', 'a/b2', 'a/long/link', 'z']);
    const tracked = git(folder, 'ls-files', '-z')
      .split('\0')
      .filter((name) => name !== '');
    assert.deepEqual(
      tracked.filter((name) => !index.isTracked(name)),
      [],
    );
    assert.equal(index.isTracked('src'), false);
  });
}

test('a configuration is read as git reads it', (t) => {
  const folder = makeRepository(t);
  const file = path.join(folder, 'config');
  writeFileSync(
    file,
    '\ufeff[core] hooksPath = "a b"; comment\n[Filter "x \\"y\\""]\n\tclean = sh \\\n  c.sh # no\n[diff.t]\ntextconv=\'q\'\n\tflag\n[include]\n path = ../c\n',
  );
  const said = git(folder, 'config', '-f', file, '--list', '-z')
    .split('\0')
    .filter((entry) => entry !== '')
    .map((entry) => entry.slice(entry.indexOf('\n') + 1));
  assert.deepEqual(
    configEntries(
      '\ufeff[core] hooksPath = "a b"; comment\n[Filter "x \\"y\\""]\n\tclean = sh \\\n  c.sh # no\n[diff.t]\ntextconv=\'q\'\n\tflag\n[include]\n path = ../c\n',
    ).map(({ key }) => key),
    ['core.hookspath', 'filter.*.clean', 'diff.*.textconv', 'diff.*.flag', 'include.path'],
  );
  assert.equal(said[0], 'a b');
  assert.equal(configEntries('[core] hooksPath = "a b"; comment')[0]?.value, said[0]);
});

test('an empty .git above the workspace is no repository, and a real one further up is', (t) => {
  const folder = makeRepository(t);
  const workspace = path.join(folder, 'inner/work');
  mkdirSync(workspace, { recursive: true });
  mkdirSync(path.join(folder, 'inner/.git'));
  const found = findRepository(workspace);
  assert.equal(found.kind === 'found' && found.repository.top, folder);
  assert.equal(git(workspace, 'rev-parse', '--show-toplevel').trim(), folder, 'as git says');
});
