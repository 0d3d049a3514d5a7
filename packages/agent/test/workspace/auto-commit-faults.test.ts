import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { chooseRows } from '../../../../test/tier.js';
import { commitA } from './committing.js';
import { makeRepository, makeSession, type Place, wrapGit } from './place.js';

const log = (place: Place): Promise<string> => place.shell('git log --format=%s');

type Row = {
  readonly title: string;
  /** What happens while the message is written. */
  readonly meanwhile: string;
  readonly warning: RegExp;
  /** `git log` and `git status --porcelain` afterwards. */
  readonly log: readonly string[];
  readonly status: readonly string[];
  /** Lets the next attempt go well; none: it does by itself. */
  readonly repair?: string;
};

const races: readonly Row[] = [
  {
    title: 'a commit that the user makes at the same moment',
    meanwhile: 'echo user >> b; git commit -qm theirs b',
    warning:
      /^The changes were not committed: .*main.*They are committed with the next changes\.$/s,
    log: ['theirs', 'first'],
    status: [' M a'],
  },
  {
    title: 'a switch of branches at the same moment',
    meanwhile: 'git checkout -q -b other',
    warning: /HEAD was switched at the same moment/,
    log: ['first'],
    status: [' M a'],
  },
  {
    title: 'another git that holds the index',
    meanwhile: 'touch .git/index.lock',
    warning: /another git process holds the index/,
    log: ['first'],
    status: [' M a'],
    repair: 'rm .git/index.lock',
  },
  {
    title: 'another git that holds the branch',
    meanwhile: 'touch .git/refs/heads/main.lock',
    warning: /The changes were not committed: .*main\.lock/s,
    log: ['first'],
    status: [' M a'],
    repair: 'rm .git/refs/heads/main.lock',
  },
  {
    title: 'a lock of HEAD that a killed git has left',
    meanwhile: 'touch .git/HEAD.lock',
    warning:
      /holds the branch: \/.*\.git\/HEAD\.lock exists\. If no git is running there, .* rm '\/.*HEAD\.lock'/,
    log: ['first'],
    status: [' M a'],
    repair: 'rm .git/HEAD.lock',
  },
];

for (const row of races) {
  test(`auto-commit loses against ${row.title}, warns, and commits with the next batch`, async (t) => {
    const place = await makeRepository(t);
    const session = makeSession(place);
    const lost = await commitA(session, () => place.shell(row.meanwhile));
    assert.match(lost.warning, row.warning);
    assert.deepEqual([lost.commits, lost.note, lost.dirty], [[], '', true]);
    if (row.repair !== undefined) await place.shell(row.repair);
    assert.deepEqual((await log(place)).trim().split('\n'), row.log);
    assert.deepEqual(
      (await place.shell('git status --porcelain')).split('\n').filter(Boolean),
      row.status,
    );
    assert.equal((await readdir(place.path('.git'))).includes('index.lock'), false);
    const won = await commitA(session);
    assert.equal(won.warning, '');
    assert.deepEqual((await log(place)).trim().split('\n'), ['feat: something', ...row.log]);
  });
}

test('auto-commit: a file that is changed between the look and the commit is committed another time', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(
    place,
    'case "$*" in *update-index*) echo user >> a;; esac; exec REAL "$@"',
  );
  const report = await commitA(makeSession(place, { environment }));
  assert.match(
    report.warning,
    /^The changes were not committed: a file was changed at the same moment\./,
  );
  assert.equal(await log(place), 'first\n');
});

test('auto-commit: what the user stages while the message is written stays staged', async (t) => {
  const place = await makeRepository(t);
  await commitA(makeSession(place), () =>
    place.shell('echo user >> a; git add a; echo new > new; git add new'),
  );
  assert.equal(await place.shell('git status --porcelain'), 'M  a\nA  new\n');
  assert.equal(await place.shell('git show --format= --name-only HEAD'), 'a\n');
  assert.match(await place.shell('git show :a'), /^agent .*user\n$/s);
});

test('auto-commit: a mode that the user stages while the message is written stays staged', async (t) => {
  const place = await makeRepository(t);
  await commitA(makeSession(place), () =>
    place.shell('git update-index --cacheinfo "100755,$(git rev-parse :a),a"'),
  );
  assert.equal(await place.shell('git status --porcelain'), 'MM a\n');
});

test('auto-commit: what the user edits while the message is written is not in the commit', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  await commitA(session, () => place.shell('echo user >> a'));
  assert.doesNotMatch(await place.shell('git show HEAD:a'), /user/);
  assert.equal(await place.shell('git status --porcelain'), ' M a\n');
  const next = await commitA(session);
  assert.deepEqual(next.commits, [], "from then on the file is the user's");
});

const states: readonly (readonly [what: string, given: string])[] = [
  ['a merge', 'git merge -q --no-commit --no-ff side'],
  ['a rebase', 'GIT_SEQUENCE_EDITOR="sed -i 1iedit\\ HEAD" git rebase -q -i side'],
  ['a cherry-pick', 'git update-ref CHERRY_PICK_HEAD HEAD'],
  ['a revert', 'git update-ref REVERT_HEAD HEAD'],
  ['a bisect', 'git bisect start > /dev/null'],
];

const isSeenByRef = (given: string): boolean => /update-ref|bisect/.test(given);
for (const [what, given] of chooseRows(states, (row) => (isSeenByRef(row[1]) ? 'ref' : row[0]))) {
  test(`auto-commit: during ${what} nothing is committed, which is said once`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(
      `git checkout -q -b side; echo side > c; git add c; git commit -qm side; git checkout -q main; echo m > d; git add d; git commit -qm m; ${given} || true`,
    );
    const session = makeSession(place);
    const head = await place.shell('git rev-parse HEAD');
    const index = await place.shell('git ls-files --stage');
    const report = await commitA(session);
    assert.equal(report.warning, `The changes were not committed: ${what} is under way.`);
    assert.equal((await commitA(session)).warning, '');
    assert.deepEqual(
      [await place.shell('git rev-parse HEAD'), await place.shell('git ls-files --stage')],
      [head, index],
    );
  });
}

test('auto-commit: while files are not merged nothing is committed', async (t) => {
  const place = await makeRepository(t);
  await place.shell(
    'echo x > b; git stash -q; echo y > b; git commit -qam y; git stash pop || true',
  );
  assert.equal(
    (await commitA(makeSession(place))).warning,
    'The changes were not committed: files are not merged yet.',
  );
});

test('auto-commit: on a detached HEAD the commit is made there, and no branch moves', async (t) => {
  const place = await makeRepository(t);
  await place.shell('git checkout -q --detach');
  const report = await commitA(makeSession(place));
  assert.match(report.note, /Your changes were committed to a detached HEAD as/);
  assert.equal(
    await place.shell('git log -1 --format=%s HEAD; git log -1 --format=%s main'),
    'feat: something\nfirst\n',
  );
  assert.equal(await place.shell('git status --porcelain'), '');
});

test('auto-commit: in a linked worktree the commit is made there', async (t) => {
  const place = await makeRepository(t);
  await place.shell('git worktree add -q ../linked');
  const linked: Place = {
    ...place,
    workspace: path.join(place.root, 'linked'),
    path: (name) => path.join(place.root, 'linked', name),
    write: (name, text) => writeFile(path.join(place.root, 'linked', name), text),
  };
  const report = await commitA(makeSession(linked));
  assert.match(report.note, /committed to linked as/);
  assert.equal(
    await place.shell(
      'git status --porcelain; git -C ../linked status --porcelain; git log --format=%s linked',
    ),
    'feat: something\nfirst\n',
  );
});

/** Faults of the disk as git meets them, also where the tests run as root. */
const faults: readonly (readonly [what: string, given: string, message: RegExp])[] = [
  [
    'objects that cannot be written',
    'for i in {0..15} ; do for j in {0..15}; do printf -v name %x%x $i $j; [ -e .git/objects/$name ] || : > .git/objects/$name; done; done',
    /git update-index failed|git write-tree failed|git commit-tree failed/,
  ],
  ['an index that is damaged', 'echo rubbish > .git/index', /git status failed/],
  ['a HEAD that is damaged', 'echo rubbish > .git/HEAD', /git|not a git repository/],
];

for (const [what, given, message] of faults) {
  test(`auto-commit: ${what} fail the phase and change nothing`, async (t) => {
    const place = await makeRepository(t);
    const session = makeSession(place);
    const calls = await session.batch([{ edit: 'a', text: 'agent' }]);
    const context = session.context(calls);
    await session.check(context);
    await place.shell(given);
    const before = await place.shell('cat .git/index .git/HEAD .git/refs/heads/main | sha256sum');
    const failed = session.hooks.run('AutoCommitting', context);
    if (what.startsWith('a HEAD')) assert.deepEqual((await failed).commits, []);
    else await assert.rejects(failed, { name: 'ProgramFailure', message });
    assert.equal(
      await place.shell('cat .git/index .git/HEAD .git/refs/heads/main | sha256sum'),
      before,
    );
    assert.deepEqual(
      (await readdir(place.path('.git'))).filter((name) => name.endsWith('.lock')),
      [],
    );
  });
}

test('auto-commit: stopped while the model writes, nothing has changed', async (t) => {
  const place = await makeRepository(t);
  const stop = new AbortController();
  const session = makeSession(place);
  const forever = () => {
    stop.abort();
    return new Promise<void>(() => undefined);
  };
  await assert.rejects(commitA(session, forever, stop.signal), { kind: 'stopped' });
  assert.equal(await log(place), 'first\n');
  assert.equal(await place.shell('git status --porcelain'), ' M a\n');
  assert.deepEqual((await commitA(session)).commits.length, 1);
});

test('auto-commit: stopped while the branch moves, the commit is made whole', async (t) => {
  const place = await makeRepository(t);
  const stop = new AbortController();
  const environment = await wrapGit(
    place,
    'case "$*" in *update-ref*) touch ROOT/moving; until [ -e ROOT/stopped ]; do sleep 0.01; done;; esac; exec REAL "$@"',
  );
  const done = commitA(makeSession(place, { environment }), undefined, stop.signal);
  while (!existsSync(path.join(place.root, 'moving'))) await sleep(5);
  stop.abort();
  await place.shell('touch ../stopped');
  assert.equal((await done).commits.length, 1);
  assert.equal(
    await place.shell('git log --format=%s; git status --porcelain'),
    'feat: something\nfirst\n',
  );
});
