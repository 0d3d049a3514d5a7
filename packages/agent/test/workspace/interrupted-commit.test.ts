import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { createHooks } from '../../src/workspace/after-tool-hooks.js';
import { CommitClaim, newClaimName } from '../../src/workspace/commit-claim.js';
import { createLateHooks } from '../../src/workspace/late-hooks.js';
import { interruptCommit, type Moment, resumeCommit } from './interrupted-commit.js';
import { makeRepository, makeSession, type Place } from './place.js';

/** A commit whose program was killed, in a repository that has changed since. */

const MOMENTS: readonly Exclude<Moment, 'never'>[] = ['prepared', 'locked', 'moved'];

const look = (place: Place): Promise<string> =>
  place.shell('git log --format=%s; git status --porcelain');

const leftovers = (place: Place): readonly string[] =>
  readdirSync(place.path('.git'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.lock$|pawl-/.test(name),
  );

const checkSound = async (place: Place): Promise<void> => {
  assert.equal(await place.shell('git fsck --strict --no-dangling 2>&1'), '');
  assert.deepEqual(leftovers(place), []);
};

test('control: a program that is not killed commits and leaves nothing behind', async (t) => {
  const place = await makeRepository(t);
  await interruptCommit(place, 'never');
  assert.equal(await look(place), 'feat: cut off\nfirst\n');
  await checkSound(place);
});

for (const moment of MOMENTS) {
  test(`a commit that was killed when it was ${moment} is made once when the session is resumed`, async (t) => {
    const place = await makeRepository(t);
    const effect = await interruptCommit(place, moment);
    assert.equal(
      leftovers(place).length > 0,
      moment !== 'prepared',
      'the killed program left its lock',
    );
    const report = await resumeCommit(place, effect);
    assert.equal(await look(place), 'feat: cut off\nfirst\n');
    assert.deepEqual(report.commits, [
      { hash: effect.commit, subject: 'feat: cut off (2 files, +2 -1)' },
    ]);
    assert.match(report.note, /Your changes were committed to main as/);
    await checkSound(place);
    const again = await resumeCommit(place, effect);
    assert.deepEqual(again.commits, report.commits, 'a second look finds the same');
    assert.equal(await look(place), 'feat: cut off\nfirst\n');
  });

  test(`without its journal, a commit that was killed when it was ${moment} blocks nobody`, async (t) => {
    const place = await makeRepository(t);
    await interruptCommit(place, moment);
    const told = await createHooks({ environment: place.environment }).recover?.(place.workspace);
    if (moment === 'prepared') assert.equal(told, '');
    else
      assert.match(
        told ?? '',
        moment === 'moved' ? /It is made\.$/ : /was not made: .*uncommitted\.$/,
      );
    const uncommitted = 'first\n M a\n?? new\n';
    assert.equal(await look(place), moment === 'moved' ? 'feat: cut off\nfirst\n' : uncommitted);
    await checkSound(place);
    await place.shell('echo user > b; git commit -qm user b');
    assert.equal(
      await place.shell('git ls-tree --name-only HEAD'),
      moment === 'moved' ? 'a\nb\nnew\n' : 'a\nb\n',
    );
  });
}

type Row = {
  readonly title: string;
  readonly moment: Moment;
  /** What the user does between the kill and the resumed session. */
  readonly meanwhile: string;
  readonly after: string;
  readonly told: RegExp;
};

const rows: readonly Row[] = [
  {
    title: 'the user has committed something else',
    moment: 'prepared',
    meanwhile: 'echo user > b; git commit -qm theirs b',
    after: 'theirs\nfirst\n M a\n?? new\n',
    told: /was not made: the branch has been moved since/,
  },
  {
    title: 'the user has switched to another branch',
    moment: 'prepared',
    meanwhile: 'git checkout -q -b other',
    after: 'first\n M a\n?? new\n',
    told: /was not made: HEAD was switched/,
  },
  {
    title: 'the user is in the middle of a merge',
    moment: 'prepared',
    meanwhile: 'git rev-parse HEAD > .git/MERGE_HEAD',
    after: 'first\n M a\n?? new\n',
    told: /was not made: a merge is under way/,
  },
  {
    title: 'the user removed our lock and committed on top of it',
    moment: 'moved',
    meanwhile: 'rm .git/index.lock; git add -A; echo user > b; git commit -qm theirs b',
    after: 'theirs\nfeat: cut off\nfirst\n',
    told: /Your changes were committed/,
  },
  {
    title: 'the user has staged something else',
    moment: 'prepared',
    meanwhile: 'echo user > b; git add b',
    after: 'feat: cut off\nfirst\nM  b\n',
    told: /Your changes were committed/,
  },
  {
    title: 'the repository has been replaced',
    moment: 'locked',
    meanwhile: 'rm -rf .git; git init -q -b main; git add b; git commit -qm anew',
    after: 'anew\n?? a\n?? new\n',
    told: /was not made: the repository does not have the commit/,
  },
  {
    title: 'there is no repository any more',
    moment: 'locked',
    meanwhile: 'rm -rf .git',
    after: '',
    told: /the repository is not there any more/,
  },
];

for (const { title, moment, meanwhile, after, told } of rows) {
  test(`an interrupted commit is settled where ${title}`, async (t) => {
    const place = await makeRepository(t);
    const effect = await interruptCommit(place, moment);
    await place.shell(meanwhile);
    const report = await resumeCommit(place, effect);
    assert.match(`${report.note}\n${report.warning}`, told);
    if (!existsSync(place.path('.git'))) return;
    await place.shell('rm -f .git/MERGE_HEAD');
    assert.equal(await look(place), after);
    await checkSound(place);
  });
}

test('a lock that is not ours is named and stays, whatever the claim says', async (t) => {
  const place = await makeRepository(t);
  const effect = await interruptCommit(place, 'locked');
  await place.shell('rm .git/index.lock; touch .git/index.lock');
  const report = await resumeCommit(place, effect);
  assert.match(
    report.warning,
    /was not made: .*\.git\/index\.lock exists\. If no git is running there.*rm '/s,
  );
  assert.deepEqual(leftovers(place), ['index.lock']);
  await place.shell('rm .git/index.lock');
  assert.equal(await look(place), 'first\n M a\n?? new\n');
});

test('the lock of a branch that only holds our commit is ours; one without it stays', async (t) => {
  const place = await makeRepository(t);
  const effect = await interruptCommit(place, 'prepared');
  await place.write('.git/refs/heads/main.lock', `${effect.commit}\n`);
  assert.equal((await resumeCommit(place, effect)).commits.length, 1);
  await checkSound(place);
  await place.shell('git reset -q --hard HEAD~');
  await place.write('.git/refs/heads/main.lock', '');
  const report = await resumeCommit(place, effect);
  assert.match(report.warning, /was not made: .*main\.lock/s);
  assert.deepEqual(leftovers(place), ['refs/heads/main.lock']);
});

test('a session that ended before it prepared the commit says which files are uncommitted', async (t) => {
  const place = await makeRepository(t);
  await place.write('a', 'of the agent\n');
  await place.write('new', 'of the agent\n');
  const report = await resumeCommit(place, null);
  assert.match(report.note, /Not committed: a, new: the session was interrupted/);
  assert.match(report.warning, /Not committed: a, new: the session was interrupted/);
  assert.deepEqual(report.commits, []);
  assert.equal(await look(place), 'first\n M a\n?? new\n');
});

for (const moment of chooseRows(MOMENTS.filter((name) => name !== 'prepared'))) {
  test(`the next session frees the repository of a commit that was killed when it was ${moment}, without auto-commit`, async (t) => {
    const place = await makeRepository(t);
    await interruptCommit(place, moment);
    assert.ok(leftovers(place).length > 0, 'the control: a lock is there');
    const session = makeSession(place, { settings: { autoCommit: 'off' } });
    const calls = await session.batch([{ command: 'echo user > b; git commit -qm user b' }]);
    const { warning } = await session.watch.check(session.context(calls));
    assert.match(warning, /^An automatic commit \([0-9a-f]{8}\) was interrupted by a crash/);
    assert.deepEqual(leftovers(place), []);
    await checkSound(place);
  });

  test(`a resumed session does so at once, when it was ${moment}, also in a linked worktree`, async (t) => {
    const place = await makeRepository(t);
    const { workspace, environment } = place;
    const hooks = () => createLateHooks({ environment });
    assert.equal(await hooks().recover?.(workspace), '', 'the control: nothing is there');
    await interruptCommit(place, moment);
    assert.match((await hooks().recover?.(workspace)) ?? '', /^An automatic commit/);
    assert.deepEqual(leftovers(place), []);
    await place.shell(
      'git reset -q --hard; git clean -qfd; git worktree add -q ../linked -b linked $(git rev-list --max-parents=0 HEAD)',
    );
    const linked = {
      ...place,
      workspace: path.join(place.root, 'linked'),
      path: (name: string) => path.join(place.root, 'linked', name),
      write: (name: string, text: string) => place.write(`../linked/${name}`, text),
    };
    await interruptCommit(linked, moment);
    assert.match((await hooks().recover?.(linked.workspace)) ?? '', /^An automatic commit/);
    assert.deepEqual(leftovers(place), []);
  });
}

test('a lock of the user stays, and a claim that somebody forged moves nothing', async (t) => {
  const place = await makeRepository(t);
  const claim = new CommitClaim(place.path('.git'), newClaimName());
  await place.shell(`mkdir ${claim.folder}; touch .git/index.lock`);
  const owner = { pid: 1, started: 'never' };
  const intent = { ref: 'refs/heads/main', before: null, commit: '--output=stolen' };
  await place.write(
    path.relative(place.workspace, `${claim.folder}/intent.json`),
    JSON.stringify({ owner, intent }),
  );
  assert.equal(claim.read(), null);
  assert.equal(
    await createLateHooks({ environment: place.environment }).recover?.(place.workspace),
    '',
  );
  assert.ok(leftovers(place).includes('index.lock'));
});

test('a claim whose process was killed before it wrote the record is removed, but not a new one, nor one with a lock', async (t) => {
  const place = await makeRepository(t);
  const makeClaim = (made: 'earlier' | 'now', ...files: readonly string[]): string => {
    const { folder } = new CommitClaim(place.path('.git'), newClaimName());
    mkdirSync(folder);
    for (const file of files) writeFileSync(path.join(folder, file), '');
    if (made === 'earlier') utimesSync(folder, 1_000_000_000, 1_000_000_000);
    return folder;
  };
  const left = [makeClaim('earlier'), makeClaim('earlier', 'intent.json')];
  const controls = [makeClaim('now'), makeClaim('earlier', 'intent.json', '0123456789abcdef')];
  const { recover } = createLateHooks({ environment: place.environment });
  assert.equal(await recover?.(place.workspace), '');
  assert.deepEqual(left.map(existsSync), [false, false]);
  assert.deepEqual(controls.map(existsSync), [true, true]);
});
