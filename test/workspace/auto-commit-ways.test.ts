import assert from 'node:assert/strict';
import { chmod, mkdir } from 'node:fs/promises';
import { test } from 'node:test';
import { commitTouched } from '../../src/workspace/commits/auto-commit.js';
import { commitA } from './committing.js';
import { type Environment, makeRepository, makeSession } from './place.js';

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
    given: "git config include.path more; printf '[user]\\nname = Bob\\nemail = b@x\\n' > .git/more",
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

for (const { title, given, environment, is } of identities) {
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
  assert.match((await commitA(makeSession(place))).note, /as [0-9a-f]{8}, not signed: feat: something/);
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
  const report = await session.watch.check(session.context(await session.batch([{ command: 'true' }])));
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
  assert.deepEqual([report.commits, report.note, report.warning, report.dirty], [[], '', '', false]);
});
