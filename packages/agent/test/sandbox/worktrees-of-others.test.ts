import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { createSessionSandbox } from '../../src/command/session-sandbox.js';
import { SYSTEM_SHELL } from '../../src/platform/start-program.js';
import type { RepositoryAccess } from '../../src/policy/repository-access.js';

// Worktrees that the user or another session makes while a command runs are theirs, and stay.

const git = (folder: string, ...words: string[]): string =>
  execFileSync('git', ['-C', folder, '-c', 'user.name=n', '-c', 'user.email=e@e', ...words], {
    encoding: 'utf8',
  });

const makeRepository = (t: TestContext): string => {
  const folder = realpathSync(temporaryFolder(t, 'others'));
  const repository = path.join(folder, 'repository');
  mkdirSync(repository);
  git(repository, 'init', '-q');
  writeFileSync(path.join(repository, 'a.txt'), 'a\n');
  git(repository, 'add', '.');
  git(repository, 'commit', '-qm', 'first');
  git(repository, 'worktree', 'add', '-q', path.join(folder, 'linked'));
  return folder;
};

/** Prepares a command, calls `meanwhile`, runs it, and returns what is said of its changes. */
const runCommand = async (
  t: TestContext,
  workspace: string,
  repository: RepositoryAccess,
  script: string,
  meanwhile: () => void,
): Promise<readonly string[]> => {
  const sandbox = createSessionSandbox({
    environment: { ...process.env, XDG_STATE_HOME: temporaryFolder(t, 'others-state') },
  });
  t.after(() => sandbox.close());
  const commands = await sandbox.of(workspace);
  const prepared = await commands.prepare({
    level: 'workspace',
    repository,
    program: SYSTEM_SHELL,
    words: ['-c', script],
    environment: {},
  });
  meanwhile();
  const ended = spawnSync(prepared.program, prepared.words, {
    cwd: prepared.folder,
    env: prepared.environment,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe', ...prepared.descriptors],
  });
  assert.equal(ended.status, 0, ended.stderr);
  prepared.started();
  return prepared.finish();
};

for (const name of ['repository', 'linked'])
  for (const access of ['read', 'write'] as const)
    test(`a worktree that somebody adds while a command runs in ${name}, access ${access}`, async (t) => {
      const folder = makeRepository(t);
      const other = path.join(folder, 'other');
      const lines = await runCommand(t, path.join(folder, name), access, 'true', () =>
        git(path.join(folder, 'repository'), 'worktree', 'add', '-q', other),
      );
      assert.deepEqual(lines, []);
      assert.equal(git(other, 'status', '--porcelain'), '');
    });

test('half a worktree that somebody is making while a command runs that may not write there', async (t) => {
  const folder = makeRepository(t);
  const made = path.join(folder, 'repository/.git/worktrees/half');
  const lines = await runCommand(t, path.join(folder, 'repository'), 'read', 'true', () => {
    mkdirSync(made);
    writeFileSync(path.join(made, 'gitdir'), path.join(folder, 'half/.git\n'));
  });
  assert.deepEqual(lines, []);
  assert.ok(existsSync(path.join(made, 'gitdir')));
});

/** Makes a worktree folder that names a place outside the workspace, and another common folder. */
const forge = (common: string, back: string): string =>
  `mkdir -p .git/worktrees/x && cd .git/worktrees/x && echo ${common} > commondir && echo ${back} > gitdir`;

test('control: a worktree that a command makes up is set aside', async (t) => {
  const folder = makeRepository(t);
  const [workspace, linked] = [path.join(folder, 'repository'), path.join(folder, 'linked')];
  for (const [common, back] of [
    ['../..', path.join(folder, 'nowhere/.git')],
    // of another worktree, which does not name it
    ['../..', path.join(linked, '.git')],
    [path.join(workspace, 'build'), path.join(linked, '.git')],
  ] as const) {
    const lines = await runCommand(t, workspace, 'write', forge(common, back), () => undefined);
    assert.match(lines.join('\n'), /worktrees\/x\/commondir is protected/, back);
    assert.ok(!existsSync(path.join(workspace, '.git/worktrees/x/commondir')));
  }
});

test('control: a repository of the workspace that a command exchanges is not one of others', async (t) => {
  const folder = makeRepository(t);
  const workspace = path.join(folder, 'repository');
  const inner = path.join(workspace, 'inner');
  mkdirSync(inner);
  git(inner, 'init', '-q');
  const script =
    'mv inner old && mkdir -p inner/.git/worktrees/x && cd inner/.git && echo "ref: refs/heads/m" > HEAD && ' +
    'mkdir objects refs && cd worktrees/x && echo /tmp/e > commondir && echo /tmp/e/.git > gitdir';
  const lines = await runCommand(t, workspace, 'read', script, () => undefined);
  assert.ok(!existsSync(path.join(inner, '.git/worktrees/x/commondir')), lines.join('\n'));
});
