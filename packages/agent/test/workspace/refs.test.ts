import assert from 'node:assert/strict';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { chooseRows, countCases, SEED } from '../../../../test/tier.js';
import { type GitPlace, locateRepository, workWith } from '../../src/workspace/git.js';
import { askRefs, RefFiles, type Refs } from '../../src/workspace/repository-snapshot.js';
import { anHourLater, makeRepository, type Place } from './place.js';

/** What is read of HEAD and the branches against what git says of them. */

const sorted = ({ tips, remoteTips, ...rest }: Refs) => ({
  ...rest,
  tips: tips.toSorted(),
  remoteTips: remoteTips.toSorted(),
});

/** Reads and asks; the reader remembers, and takes all files to have lain still. */
const readerOf = ({ environment }: Place, files = new RefFiles(anHourLater)) => ({
  async both(workspace: string): Promise<{ readonly read: Refs | null; readonly asked: Refs }> {
    const place: GitPlace = { workspace, environment, signal: new AbortController().signal };
    const opened = await locateRepository(place);
    assert.ok(opened !== null);
    return { read: files.read(opened), asked: await workWith(place, opened, askRefs) };
  },
});

const commit = 'git commit -q --allow-empty -m';

/** `in`: the folder that is the workspace then. */
type Row = { readonly title: string; readonly given: string; readonly in?: string };

const plain: readonly Row[] = [
  { title: 'a branch', given: 'true' },
  { title: 'a branch with a slash', given: 'git switch -qc feat/deep/er' },
  { title: 'a branch without commits', given: 'git checkout -q --orphan bare' },
  { title: 'a repository without commits', given: 'rm -rf .git; git init -q -b fresh' },
  { title: 'a detached HEAD', given: `${commit} two; git checkout -q HEAD~1` },
  { title: 'packed refs', given: 'git branch other; git pack-refs --all' },
  {
    title: 'packed refs and a newer loose one',
    given: `git branch o; git pack-refs --all; ${commit} two`,
  },
  {
    title: 'a packed branch that was deleted',
    given: 'git branch o; git pack-refs --all; git branch -qD o',
  },
  { title: 'a stash', given: 'echo x >> a; git stash -q' },
  { title: 'a packed stash', given: 'echo x >> a; git stash -q; git pack-refs --all' },
  {
    title: 'tags, and notes',
    given: 'git tag one; git tag -am two two; git notes add -m n; git pack-refs --all',
  },
  {
    title: 'a clone, with the HEAD of its origin',
    given: `git branch o; git clone -q . ../clone; cd ../clone; ${commit} own`,
    in: '../clone',
  },
  { title: 'a folder of the repository', given: 'mkdir sub', in: 'sub' },
  {
    title: 'a linked worktree',
    given: `git worktree add -q ../tree; cd ../tree; ${commit} there`,
    in: '../tree',
  },
  {
    title: 'the repository of a linked worktree',
    given: `git worktree add -q ../tree; cd ../tree; ${commit} there`,
  },
  {
    title: 'a worktree that is detached',
    given: 'git worktree add -q --detach ../tree',
    in: '../tree',
  },
  {
    title: 'a submodule',
    given:
      'git init -q ../part; (cd ../part; git commit -q --allow-empty -m p); git -c protocol.file.allow=always submodule --quiet add ../part part',
    in: 'part',
  },
  {
    title: 'names as git hashes them anew (sha256)',
    given: 'rm -rf .git; git init -q --object-format=sha256; git add a; git commit -qm s',
  },
  { title: 'a lock that was left', given: 'touch .git/refs/heads/main.lock' },
  { title: 'a broken branch beside', given: 'echo rubbish > .git/refs/heads/broken' },
  {
    title: 'a branch that leads to another, beside',
    given: 'git symbolic-ref refs/heads/alias refs/heads/main',
  },
  {
    title: 'a rebase in the middle',
    given:
      'echo x > a; git commit -qam x; git switch -qc s HEAD~1; echo y > a; git commit -qam y; git rebase -q main || true',
  },
];

for (const row of chooseRows(plain, undefined, 11)) {
  test(`refs are read as git says them: ${row.title}`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(row.given);
    const { read, asked } = await readerOf(place).both(path.join(place.workspace, row.in ?? '.'));
    assert.ok(read !== null, 'it is read');
    assert.deepEqual(sorted(read), sorted(asked));
  });
}

const odd: readonly Row[] = [
  {
    title: 'HEAD leads to a branch that leads to another',
    given:
      'git symbolic-ref refs/heads/alias refs/heads/main; git symbolic-ref HEAD refs/heads/alias',
  },
  { title: 'HEAD leads to what is no branch', given: 'git symbolic-ref HEAD refs/other/x' },
  { title: 'HEAD is a symlink', given: 'rm .git/HEAD; ln -s refs/heads/main .git/HEAD' },
  { title: 'a branch is a symlink', given: 'ln -s main .git/refs/heads/linked' },
  { title: 'the branch of HEAD is broken', given: ': > .git/refs/heads/main' },
  {
    title: 'more loose branches than are read one by one',
    given:
      'read tip < .git/refs/heads/main; for i in {1..1001}; do echo $tip > .git/refs/heads/b$i; done',
  },
];
for (const { title, given } of odd) {
  test(`refs of another form are not read, but asked for: ${title}`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(given);
    const { read } = await readerOf(place).both(place.workspace);
    assert.equal(read, null);
  });
}

const STEPS = [
  ...[
    `${commit} n`,
    `${commit} n`,
    'git commit -q --amend --allow-empty -m again',
    'git branch b$RANDOM',
  ],
  ...[
    'git switch -q main',
    'git switch -qc c$RANDOM',
    'git checkout -q --detach',
    'git reset -q --soft HEAD~1',
  ],
  ...['git pack-refs --all', 'git gc -q', 'echo $RANDOM > a; git stash -q', 'git stash drop -q'],
  ...[
    'git for-each-ref --format="%(refname:short)" refs/heads | grep -v main | head -1 | xargs -r git branch -qD',
  ],
  ...[
    'git update-ref refs/remotes/o/main HEAD',
    'git rebase -q main',
    'git merge -q --no-edit main',
  ],
];
/** PAWL_COUNT=1000 for more. */
const COUNT = countCases(8);

const walk = async (t: TestContext, seed: number): Promise<void> => {
  const place = await makeRepository(t);
  // with the clock as it is, so that what is read again and what is kept are both there
  const reader = readerOf(place, new RefFiles());
  let state = seed;
  for (let step = 0; step < COUNT; step++) {
    state = (state * 48_271) % 2_147_483_647;
    const command = STEPS[state % STEPS.length] ?? '';
    await place.tryShell(command);
    const { read, asked } = await reader.both(place.workspace);
    assert.ok(read !== null, command);
    assert.deepEqual(
      sorted(read),
      sorted(asked),
      `seed ${seed}, after ${step + 1} steps, the last: ${command}`,
    );
  }
};

test('refs are read as git says them after any commands', async (t) => {
  t.diagnostic(`PAWL_SEED=${SEED}`);
  await walk(t, SEED + 1);
});

const textChanges: readonly (readonly [title: string, command: string])[] = [
  ['a branch', 'first=$(git rev-parse HEAD~2); echo $first > .git/refs/heads/main'],
  ['HEAD', 'git branch other; printf "ref: refs/heads/other\\n" > .git/HEAD'],
  [
    'packed refs',
    'sed -i "s/^[0-9a-f]* refs.heads.packed/$(git rev-parse HEAD~2) refs\\/heads\\/packed/" .git/packed-refs',
  ],
];
for (const [title, command] of textChanges) {
  test(`a file of refs that is written in its place is read again: ${title}`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(`${commit} two; git branch packed; git pack-refs --all; ${commit} three`);
    const reader = readerOf(place);
    const before = await reader.both(place.workspace);
    await place.shell(command);
    const after = await reader.both(place.workspace);
    assert.ok(before.read !== null && after.read !== null);
    assert.notDeepEqual(sorted(after.read), sorted(before.read));
    assert.deepEqual(sorted(after.read), sorted(after.asked));
  });
}
