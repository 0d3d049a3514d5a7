import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import type { HookReport } from '../../src/ports/hooks.js';
import { commitTouched } from '../../src/workspace/auto-commit.js';
import { commitA } from './committing.js';
import {
  type Environment,
  makeRepository,
  makeSession,
  type Place,
  type Session,
} from './place.js';

const identities: readonly {
  readonly title: string;
  readonly given?: string;
  readonly environment?: Environment;
  readonly is: string;
}[] = [
  {
    title: 'nobody, and no home',
    environment: { HOME: undefined },
    is: 'Pawl <pawl@localhost> Pawl <pawl@localhost>',
  },
  { title: 'nobody, and an empty home', is: 'Pawl <pawl@localhost> Pawl <pawl@localhost>' },
  {
    title: 'one by the repository',
    given: 'git config user.name Bob; git config user.email b@x',
    is: 'Bob <b@x> Bob <b@x>',
  },
  {
    title: 'one by the user',
    given: 'git config --global user.name Bob',
    is: 'Bob <pawl@localhost> Bob <pawl@localhost>',
  },
  {
    title: 'one in an included file',
    given:
      "git config include.path more; printf '[user]\\nname = Bob\\nemail = b@x\\n' > .git/more",
    is: 'Bob <b@x> Bob <b@x>',
  },
  {
    title: 'one for authors only',
    given: 'git config author.name Eve',
    is: 'Eve <pawl@localhost> Pawl <pawl@localhost>',
  },
  {
    title: 'one in the environment',
    environment: { GIT_AUTHOR_NAME: 'Eve', GIT_COMMITTER_EMAIL: 'e@x' },
    given: 'git config user.name Bob',
    is: 'Eve <pawl@localhost> Bob <e@x>',
  },
];

for (const { title, given, environment, is } of chooseRows(identities, undefined, 3)) {
  test(`auto-commit: its author, where the configuration names ${title}`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(given ?? 'true');
    await commitA(makeSession(place, { environment: { ...place.environment, ...environment } }));
    assert.equal(await place.shell("git log -1 --format='%an <%ae> %cn <%ce>'"), `${is}\n`);
  });
}

test('auto-commit: a commit that should be signed is not, and says so', async (t) => {
  const place = await makeRepository(t);
  await place.shell('git config commit.gpgSign true');
  assert.match(
    (await commitA(makeSession(place))).note,
    /as [0-9a-f]{8}, not signed: feat: something/,
  );
});

test('auto-commit: the reflog tells who moved the branch', async (t) => {
  const place = await makeRepository(t);
  await commitA(makeSession(place));
  const expected = 'commit (pawl): feat: something\n';
  assert.equal(
    await place.shell('git reflog -1 --format=%gs main; git reflog -1 --format=%gs HEAD'),
    expected + expected,
  );
});

test('auto-commit: its commit is no news for the next look', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  await commitA(session);
  const report = await session.watch.check(
    session.context(await session.batch([{ command: 'true' }])),
  );
  assert.deepEqual([report.note, report.commits, report.warning], ['', [], '']);
});

test('auto-commit: files that a formatter of ours changed are committed with the rest', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  await place.shell('echo user >> b');
  const context = session.context(
    await session.batch([
      { edit: 'a', text: 'x' },
      { edit: 'new', text: 'x' },
      { command: 'echo x > own; git add own; git commit -qm own' },
      { edit: 'b', text: 'y' },
    ]),
  );
  await session.watch.check(context);
  await place.shell('for name in a new own b; do echo formatted >> $name; done');
  const formatted = ['a', 'new', 'own', 'b'].map(place.path);
  await commitTouched(session.watch, context, formatted);
  assert.equal(await place.shell('git show --format= --name-only HEAD'), 'a\nnew\nown\n');
  assert.equal(await place.shell('git status --porcelain'), ' M b\n');
});

test('auto-commit: the mode of the index stays', async (t) => {
  const place = await makeRepository(t);
  await chmod(place.path('.git/index'), 0o660);
  await commitA(makeSession(place));
  assert.equal(await place.shell('stat -c %a .git/index'), '660\n');
});

test('auto-commit: outside of a repository nothing happens', async (t) => {
  const place = await makeRepository(t);
  await place.shell('rm -rf .git');
  await mkdir(place.path('sub'));
  const report = await commitA(makeSession(place));
  assert.deepEqual(
    [report.commits, report.note, report.warning, report.dirty],
    [[], '', '', false],
  );
});

/** A session at a place, and the same one in a later process. */
const twice = (place: Place) => {
  const recordFile = path.join(place.root, 'state', 'record');
  const open = () => makeSession(place, { recordFile });
  return { open, recordFile };
};

const finish = async (session: Session, calls: readonly JudgedCall[]): Promise<HookReport> => {
  const context = session.context(calls, { write: async () => 'feat: something' });
  await session.watch.check(context);
  return commitTouched(session.watch, context, []);
};

test('auto-commit: an edit that had taken effect when Pawl was killed is committed with its batch', async (t) => {
  const place = await makeRepository(t);
  const { open } = twice(place);
  const first = open();
  const calls = [
    ...(await first.batch([{ edit: 'a', text: 'x' }])),
    await first.cut({ edit: 'new', text: 'y' }),
  ];
  await place.shell('echo user > theirs');
  const second = open();
  await second.watch.after(calls[1] as JudgedCall, second.settings);
  assert.equal((await finish(second, calls)).commits.length, 1);
  assert.equal(await place.shell('git show --format= --name-only HEAD'), 'a\nnew\n');
  assert.equal(await place.shell('git status --porcelain'), '?? theirs\n');
});

test('auto-commit: a call that runs again after a kill has not changed what the user changed before', async (t) => {
  const place = await makeRepository(t);
  const { open } = twice(place);
  const first = open();
  const calls = [
    ...(await first.batch([{ edit: 'a', text: 'x' }])),
    await first.cut({ command: 'true' }),
  ];
  await place.shell('echo user > theirs');
  const second = open();
  await second.watch.before(calls[1] as JudgedCall, second.settings);
  await place.shell('echo x > new');
  await second.watch.after(calls[1] as JudgedCall, second.settings);
  assert.equal((await finish(second, calls)).commits.length, 1);
  assert.equal(await place.shell('git show --format= --name-only HEAD'), 'a\nnew\n');
  assert.equal(await place.shell('git status --porcelain'), '?? theirs\n');
});

test('auto-commit: what the user changed while Pawl was gone is not committed', async (t) => {
  const place = await makeRepository(t);
  const { open } = twice(place);
  const calls = await open().batch([
    { edit: 'a', text: 'x' },
    { edit: 'b', text: 'x' },
  ]);
  await place.shell('echo user >> b');
  const report = await finish(open(), calls);
  assert.equal(await place.shell('git show --format= --name-only HEAD'), 'a\n');
  assert.match(report.warning, /Not committed: b: somebody else changed it too/);
});

test('auto-commit: without a record the calls after a kill are not committed without those before it', async (t) => {
  const place = await makeRepository(t);
  const before = await makeSession(place).batch([{ edit: 'a', text: 'x' }]);
  const session = makeSession(place);
  const report = await finish(session, [
    ...before,
    ...(await session.batch([{ edit: 'new', text: 'x' }])),
  ]);
  assert.equal(report.commits.length, 0);
  assert.match(report.warning, /Not committed: new, a: Pawl was killed between the calls/);
});

test('auto-commit: a damaged record counts as none, and without auto-commit it is removed', async (t) => {
  const place = await makeRepository(t);
  const { open, recordFile } = twice(place);
  await open().batch([{ edit: 'a', text: 'x' }]);
  const text = readFileSync(recordFile, 'utf8');
  writeFileSync(recordFile, text.slice(0, -20));
  assert.deepEqual(open().watch.agentChanges.ours(), []);
  writeFileSync(recordFile, text);
  assert.deepEqual(open().watch.agentChanges.ours(), ['a'], 'the control');
  await makeSession(place, { recordFile, settings: { autoCommit: 'off' } }).batch([
    { command: 'true' },
  ]);
  assert.equal(existsSync(recordFile), false);
});
