import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { fillFolder } from '../../../../test/made-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { makePlace, type Place } from './context.js';

/** Git in fenced commands of the tool, by their words. */

const git = (place: Pick<Place, 'workspace'>, ...words: readonly string[]): string =>
  execFileSync(
    'git',
    ['-C', place.workspace, '-c', 'user.name=Ada', '-c', 'user.email=a@x', ...words],
    {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  ).trim();

const makeRepository = (folder: string): void => {
  const run = (...words: readonly string[]): string => git({ workspace: folder }, ...words);
  run('init', '-q', '-b', 'main');
  run('config', 'user.name', 'Ada');
  run('config', 'user.email', 'ada@example.org');
  for (const name of ['one', 'two']) {
    writeFileSync(path.join(folder, 'file'), `${name}\n`);
    run('add', '.');
    run('commit', '-qm', name);
  }
};

const repository = async (t: TestContext): Promise<Place> => {
  const place = await makePlace(t, process.env, 'workspace');
  fillFolder(place.workspace, 'a repository', makeRepository);
  return place;
};

const commits = (place: Place): ReadonlySet<string> =>
  new Set(git(place, 'rev-list', '--all', '--reflog').split('\n'));

const everyday: readonly (readonly [what: string, command: string])[] = [
  ['a commit', 'echo 3 >> file && git commit -qam three'],
  [
    'a commit behind tests',
    'make --version >/dev/null && git add . && git commit -q --allow-empty -m x',
  ],
  ['an amended commit', 'echo 3 >> file && git commit -qa --amend -m again'],
  [
    'a rebase',
    'git checkout -qb x HEAD~1 && echo n > new && git add new && git commit -qm n && git rebase -q main',
  ],
  [
    'a linked worktree',
    'git worktree add -q tree && cd tree && echo 3 > f && git add f && git commit -qm f && cd .. && git worktree remove tree',
  ],
  ['a stash and its end', 'echo 3 >> file && git stash -q && git stash pop -q && grep -q 3 file'],
  ['a merged branch that is deleted', 'git branch done HEAD~1 && git branch -d done'],
  [
    'a tag and a merge',
    'git tag v1 && git checkout -qb y && git commit -q --allow-empty -m y && git checkout -q main && git merge -q y',
  ],
  ['packing', 'git gc -q && git fsck'],
  [
    'a fetch from a folder',
    'git clone -q . other && git -C other -c user.name=a -c user.email=a@x commit -q --allow-empty -m o && git fetch -q ./other main && git merge -q FETCH_HEAD && rm -rf other',
  ],
  [
    'the lock of a worktree and a split index',
    'git worktree add -q --lock tree && git update-index --split-index && git worktree unlock tree && git add file && git update-index --no-split-index && ! git worktree list --porcelain | grep -q locked && git status --short',
  ],
  [
    'a revert and a cherry-pick',
    'git revert --no-edit HEAD && git cherry-pick HEAD~1 || git cherry-pick --skip',
  ],
  [
    'git in a subshell, bash -c and xargs',
    `(git tag a) && bash -c 'git tag b' && echo c | xargs git tag && git rev-parse a b c`,
  ],
  [
    'reading',
    'git status --short && git log -1 --oneline && git diff HEAD~1 --stat && git branch -a && git tag -l && git stash list && git describe --always --dirty',
  ],
  [
    'a target that releases',
    `printf 'release:\\n\\techo 3 >> file\\n\\tgit commit -qam release\\n\\tgit tag v2\\n' > Makefile && make release && git rev-parse v2`,
  ],
  [
    'a script that releases',
    `printf 'git commit -q --allow-empty -m release' > release.sh && sh release.sh`,
  ],
];

for (const [what, command] of chooseRows(everyday, undefined, 4)) {
  test(`git in the sandbox: ${what}`, async (t) => {
    const place = await repository(t);
    const before = commits(place);
    const { status, text } = await place.run('bash', { command });
    assert.equal(status, 'ok', text);
    assert.doesNotMatch(text, /put back|moved away|that no branch/);
    const after = commits(place);
    assert.deepEqual(
      [...before].filter((commit) => !after.has(commit)),
      [],
    );
    git(place, 'fsck');
    assert.equal(git(place, 'for-each-ref', 'refs/pawl'), '');
  });
}

test('git in the sandbox: a worktree from before stays known, and the call says what it needs', async (t) => {
  const place = await repository(t);
  git(place, 'worktree', 'add', '-q', 'tree');
  const { status, text } = await place.run('bash', { command: 'git worktree remove tree' });
  assert.equal(status, 'failed');
  assert.match(text, /ask again with needs: "outside"/);
  assert.ok(!existsSync(place.path('tree/file')));
  assert.match(git(place, 'worktree', 'list'), /tree /);
  git(place, 'worktree', 'remove', '--force', 'tree');
  assert.ok(!existsSync(place.path('tree')));
});

test('git in the sandbox: hooks like husky and lint-staged work inside a commit', async (t) => {
  const place = await repository(t);
  mkdirSync(place.path('.git/hooks'), { recursive: true });
  // as lint-staged does: a backup stash, changes of files, staging, and no stash afterwards
  const hook =
    '#!/bin/sh\nset -e\nhash=$(git stash create backup)\ngit stash store -q -m backup $hash\necho formatted >> file\ngit add file\ngit stash drop -q\n';
  writeFileSync(place.path('.git/hooks/pre-commit'), hook);
  chmodSync(place.path('.git/hooks/pre-commit'), 0o755);
  const { status, text } = await place.run('bash', {
    command: 'echo 3 >> file; git commit -qam three',
  });
  assert.equal(status, 'ok', text);
  assert.match(git(place, 'show', 'HEAD:file'), /3\nformatted$/);
  assert.equal(git(place, 'stash', 'list'), '');
  assert.doesNotMatch(text, /put back|that no branch/);
});

test('git in the sandbox: a stash that was popped by words is kept without a place in the list', async (t) => {
  const place = await repository(t);
  writeFileSync(place.path('file'), 'stashed\n');
  git(place, 'stash');
  const before = commits(place);
  const { status, text } = await place.run('bash', { command: 'git stash pop -q' });
  assert.equal(status, 'ok', text);
  assert.equal(git(place, 'stash', 'list'), '');
  const after = commits(place);
  assert.deepEqual(
    [...before].filter((commit) => !after.has(commit)),
    [],
  );
  assert.match(text, /git reflog refs\/pawl\/lost/);
  assert.match(git(place, 'reflog', 'refs/pawl/lost'), /stash/);
});

test('git in the sandbox: what fails in a read-only .git says so and names the way, which works', async (t) => {
  const place = await repository(t);
  const python = `python3 -c "import subprocess; subprocess.run(['git', 'commit', '-q', '--allow-empty', '-m', 'x'], check=True)"`;
  const refused = await place.run('bash', { command: python });
  assert.equal(refused.status, 'failed');
  assert.match(refused.text, /\[\.git is read-only for this command.* needs: "repository"\]/);
  const swallowed = await place.run('bash', { command: python.replace(', check=True', '') });
  assert.match(
    swallowed.text,
    /\[exit code 0.*\[\.git is read-only for this command.* needs: "repository"\]/s,
  );
  const { status, text } = await place.run('bash', { command: python, needs: 'repository' });
  assert.equal(status, 'ok', text);
  assert.equal(git(place, 'log', '-1', '--format=%s'), 'x');
});

test('git in the sandbox: where .git is a link out of the workspace, the way out is named', async (t) => {
  const place = await repository(t);
  renameSync(path.join(place.workspace, '.git'), path.join(place.workspace, '../away.git'));
  symlinkSync('../away.git', path.join(place.workspace, '.git'));
  const { text } = await place.run('bash', { command: 'git status' });
  assert.match(text, /\[the sandbox: git finds no repository here, .* needs: "outside"\]/);
});

test('git in the sandbox: git init in a repository and git branch -d say what holds', async (t) => {
  const place = await repository(t);
  const init = await place.run('bash', { command: 'git init' });
  assert.match(init.text, /\[a git repository is here already, so git init is not needed; /);
  const deleted = await place.run('bash', {
    command: 'git branch done HEAD~1; git branch -d done',
  });
  assert.match(deleted.text, /Deleted branch done/);
  assert.match(
    deleted.text,
    /\[git's settings in \.git\/config are read-only in the sandbox, .* was done\]/,
  );
});

test('git in the sandbox: destructive words that the user allowed are not undone', async (t) => {
  const place = await repository(t);
  writeFileSync(place.path('file'), 'stashed\n');
  git(place, 'stash');
  git(place, 'checkout', '-q', '-b', 'side');
  git(place, 'commit', '-q', '--allow-empty', '-m', 'side');
  git(place, 'checkout', '-q', 'main');
  const { status, text } = await place.run('bash', {
    command: 'git stash drop -q; git branch -qD side',
  });
  assert.equal(status, 'ok', text);
  assert.equal(git(place, 'stash', 'list') + git(place, 'branch', '--list', 'side'), '');
  assert.equal(git(place, 'for-each-ref', 'refs/pawl'), '');
});

test('git in the sandbox: a job and commands beside it each keep the history', async (t) => {
  const place = await repository(t);
  const before = commits(place);
  const script =
    'touch started; while [ ! -e go ]; do sleep 0.02; done; rm -rf .git/refs/heads/main .git/logs';
  writeFileSync(place.path('attack.sh'), script);
  await place.run('bash', { command: 'git add file; sh attack.sh; touch over', background: true });
  const { status, text } = await place.run('bash', {
    command:
      'while [ ! -e started ]; do sleep 0.02; done; git commit -q --allow-empty -m beside; git rev-parse HEAD',
  });
  const commit = /^[0-9a-f]{40}$/m.exec(text)?.[0] ?? '';
  assert.equal(status, 'ok', text);
  await place.run('bash', { command: 'touch go; while [ ! -e over ]; do sleep 0.02; done' });
  await place.run('bash', { jobAction: 'kill', jobId: 'job-1' });
  const after = commits(place);
  assert.deepEqual(
    [...before, commit].filter((one) => !after.has(one)),
    [],
  );
  assert.equal(existsSync(place.path('.git/refs/heads/main')), true);
  assert.equal(readFileSync(place.path('.git/HEAD'), 'utf8'), 'ref: refs/heads/main\n');
});

test('git in the sandbox: names with other letters come back as they were', async (t) => {
  const place = await repository(t);
  const branch = 'größe/à b';
  git(place, 'checkout', '-q', '-b', branch);
  git(place, '-c', 'user.name=Äda', 'commit', '-q', '--allow-empty', '-m', 'größer');
  git(place, '-c', 'user.name=Äda', 'commit', '-q', '--amend', '--allow-empty', '-m', 'am größten');
  git(place, 'checkout', '-q', 'main');
  git(place, 'pack-refs', '--all');
  const [before, log] = [commits(place), git(place, 'log', '-g', '--format=%H %gn %gs', branch)];
  writeFileSync(
    place.path('attack.sh'),
    `git update-ref -d 'refs/heads/${branch}'; git reflog expire --expire=now --all; rm -f .git/logs/HEAD`,
  );
  const quiet = await place.run('bash', { command: 'git pack-refs --all' });
  assert.doesNotMatch(quiet.text, /put back/);
  const { text } = await place.run('bash', { command: 'git add file; sh attack.sh' });
  assert.match(text, /were put back: .*größe/);
  assert.equal(git(place, 'log', '-g', '--format=%H %gn %gs', branch), log);
  const after = commits(place);
  assert.deepEqual(
    [...before].filter((one) => !after.has(one)),
    [],
  );
});

test('git in the sandbox: a pruned branch of a remote stays pruned, and its commits are kept', async (t) => {
  const place = await repository(t);
  git(place, 'checkout', '-q', '-b', 'gone');
  git(place, 'commit', '-q', '--allow-empty', '-m', 'gone');
  git(place, 'checkout', '-q', 'main');
  git(place, 'clone', '-q', '--bare', '.', 'store');
  git(place, 'remote', 'add', 'origin', './store');
  git(place, 'fetch', '-q', 'origin');
  git(place, 'branch', '-q', '-D', 'gone');
  git(place, 'reflog', 'expire', '--expire=now', '--all');
  git(place, '--git-dir=store', 'branch', '-D', 'gone');
  const before = commits(place);
  const { status, text } = await place.run('bash', { command: 'git fetch -q --prune origin' });
  assert.equal(status, 'ok', text);
  assert.equal(git(place, 'branch', '-r', '--list', 'origin/gone'), '');
  assert.match(text, /1 commit of \.git .* is kept: git reflog refs\/pawl\/lost/);
  const after = commits(place);
  assert.deepEqual(
    [...before].filter((one) => !after.has(one)),
    [],
  );
});
