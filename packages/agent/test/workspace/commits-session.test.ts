import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import {
  anHourLater,
  type Deed,
  makePlace,
  makeRepository,
  makeSession,
  type Place,
  wrapGit,
} from './place.js';

const relative = (place: Place, files: readonly string[]): readonly string[] =>
  files.map((file) => path.relative(place.workspace, file)).sort();

const started = async (place: Place): Promise<readonly string[]> =>
  existsSync(path.join(place.root, 'log'))
    ? (await readFile(path.join(place.root, 'log'), 'utf8')).trim().split('\n')
    : [];

test('the watch: what happened between the calls is told as that, and is no commit of the batch', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  await session.check(session.context(await session.batch([{ command: 'true' }])));
  await place.shell('echo user >> b; git commit -qam theirs');
  const report = await session.check(
    session.context(await session.batch([{ command: 'echo x >> a; git commit -qam ours' }])),
  );
  assert.deepEqual(report.note.replace(/\b[0-9a-f]{8}\b/g, 'HASH').split('\n'), [
    '[git] Between your calls, not by them: main went on from HASH to HASH.',
    'main went on from HASH to HASH.',
    '1 new commit on main:',
    '  HASH ours (1 file, +1 -0)',
    'The working tree is clean.',
  ]);
  assert.deepEqual(
    report.commits.map(({ subject }) => subject),
    ['ours (1 file, +1 -0)'],
  );
  assert.deepEqual(relative(place, report.changedFiles), ['a']);
});

test('the watch: a commit of nobody, and one without the signature that the user wants, are told as that', async (t) => {
  const place = await makeRepository(t);
  await place.shell('git config commit.gpgsign true');
  const session = makeSession(place);
  const command =
    'GIT_AUTHOR_NAME=Pawl GIT_AUTHOR_EMAIL=pawl@localhost git commit -q --no-gpg-sign --allow-empty -m x -m "gpgsig x"';
  const { note } = await session.check(session.context(await session.batch([{ command }])));
  assert.match(note, /Their author is Pawl <pawl@localhost>: git knows no name or address/);
  assert.match(
    note,
    /They are not signed, though commit\.gpgsign is on \(the sandbox has no keys\)/,
  );
});

test('the watch: each batch is told of its own commits only', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  for (const name of ['one', 'two']) {
    const calls = await session.batch([{ command: `git commit -q --allow-empty -m ${name}` }]);
    const report = await session.check(session.context(calls));
    assert.deepEqual(
      report.commits.map(({ subject }) => subject),
      [`${name} (0 files, +0 -0)`],
    );
  }
});

test('the watch: a file that the user saves while the agent edits another is no change of the batch', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  const [call] = await session.batch([{ edit: 'a', text: 'x' }]);
  assert.ok(call);
  await place.shell('echo user >> b');
  const context = session.context([call]);
  assert.deepEqual(relative(place, (await session.check(context)).changedFiles), ['a']);
  await session.hooks.run('AutoCommitting', context);
  assert.equal(
    await place.shell('git show --format= --name-only HEAD; git status --porcelain'),
    'a\n M b\n',
  );
});

test('the watch: without a repository no process is started, and the files are those that the calls name', async (t) => {
  const place = await makePlace(t);
  const session = makeSession(place, { environment: await wrapGit(place, 'exec REAL "$@"') });
  const context = session.context(
    await session.batch([{ edit: 'new', text: 'x' }, { command: 'echo x > other' }]),
  );
  const report = await session.check(context);
  assert.deepEqual(
    [report.note, report.warning, report.commits, report.dirty],
    ['', '', [], false],
  );
  assert.deepEqual(relative(place, report.changedFiles), ['new']);
  await session.hooks.run('AutoCommitting', context);
  assert.deepEqual(await started(place), []);
});

test('the watch: when no call ended ok, no process is started', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place, { environment: await wrapGit(place, 'exec REAL "$@"') });
  const report = await session.check(session.context([]));
  assert.deepEqual([report.note, report.warning, report.changedFiles], ['', '', []]);
  assert.deepEqual(await started(place), []);
});

const asked = async (place: Place): Promise<readonly (string | undefined)[]> => {
  const words = (await started(place)).map(
    (line) =>
      /(rev-parse|config|status|for-each-ref|ls-files|rev-list)( |$)/.exec(line)?.[1] ?? line,
  );
  await rm(path.join(place.root, 'log'), { force: true });
  return words.toSorted();
};

test('the watch: where no formatter may apply no process is started while HEAD and the branches stand where they stood', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(place, 'exec REAL "$@"');
  const settings = { autoCommit: 'off', formatter: 'off' } as const;
  const options = { environment, settings, now: anHourLater, checkpoints: false };
  const session = makeSession(place, options);
  const batch = async (...deeds: readonly Deed[]) =>
    session.check(session.context(await session.batch(deeds)));
  await batch({ command: 'true' });
  assert.deepEqual(
    await asked(place),
    ['config', 'rev-parse'],
    'where it is, and how it is set up: once',
  );
  const [, report] = [
    await batch({ command: 'echo x > new; git add new; echo y >> a' }),
    await batch({ edit: 'a', text: 'z' }, { command: 'exit 0' }),
  ];
  assert.deepEqual(await asked(place), []);
  assert.deepEqual(
    [relative(place, report.changedFiles), report.note, report.dirty],
    [['a'], '', false],
  );
  const { commits } = await batch({ command: 'git commit -qam second' });
  assert.equal(commits.length, 1, 'the control: a commit is noticed');
  assert.ok((await asked(place)).includes('rev-list'));
});

test('the watch: for a formatter the files count that commands change, and those that calls name', async (t) => {
  const place = await makeRepository(t);
  await place.shell('touch .prettierrc; git add .; git commit -qm more');
  const session = makeSession(place, { settings: { autoCommit: 'off', formatter: 'onChanges' } });
  const batch = async (...deeds: readonly Deed[]) =>
    relative(
      place,
      (await session.check(session.context(await session.batch(deeds)))).changedFiles,
    );
  assert.deepEqual(await batch({ edit: 'a', text: 'x' }), ['a']);
  assert.deepEqual(await batch({ command: 'echo y > new' }, { edit: 'b', text: 'y' }), [
    'b',
    'new',
  ]);
});

test('the watch: a fault of git is told once, and no call is held up by it', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  await place.shell('cp .git/index ../index; echo rubbish > .git/index');
  const batch = async () =>
    session.check(session.context(await session.batch([{ edit: 'a', text: 'x' }])));
  await assert.rejects(batch(), { name: 'ProgramFailure', message: /git status failed/ });
  const quiet = await batch();
  assert.deepEqual(
    [quiet.note, quiet.warning, relative(place, quiet.changedFiles)],
    ['', '', ['a']],
  );
  await place.shell('cp ../index .git/index');
  assert.equal((await batch()).dirty, true);
});

test('the watch: after three looks before calls that fail none is made any more', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(place, 'exit 1');
  const session = makeSession(place, { environment, checkpoints: false });
  await session.batch(Array.from({ length: 6 }, () => ({ command: 'true' })));
  assert.equal((await started(place)).filter((line) => line.includes('rev-parse')).length, 3);
});

test('the watch: a repository that prints without end fails the phase and stops nothing', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(
    place,
    'case "$*" in *status*) yes | head -c 100000000;; *) exec REAL "$@";; esac',
  );
  const session = makeSession(place, { environment });
  const calls = await session.batch([{ edit: 'a', text: 'x' }]);
  await assert.rejects(session.check(session.context(calls)), {
    kind: 'tooMuch',
    message: /git status printed more than/,
  });
});

test('the watch: when the phase is stopped it ends, and so does what it started', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(
    place,
    'case "$*" in *status*) [ -e ROOT/hang ] && touch ROOT/hangs && exec sleep 1000;; esac; exec REAL "$@"',
  );
  const session = makeSession(place, { environment });
  const calls = await session.batch([{ edit: 'a', text: 'x' }]);
  await place.shell('touch ../hang');
  const stop = new AbortController();
  const checked = session.check(session.context(calls, { signal: stop.signal }));
  const refused = assert.rejects(checked, { kind: 'stopped' });
  await until('git hangs', () => existsSync(path.join(place.root, 'hangs')));
  stop.abort();
  await refused;
  await place.shell('rm ../hang');
  const next = await session.check(
    session.context(await session.batch([{ edit: 'a', text: 'y' }])),
  );
  assert.equal(next.dirty, true);
});

test('the watch: a repository that turns up in the workspace is looked at from then on', async (t) => {
  const place = await makePlace(t);
  const session = makeSession(place);
  const batch = async (command: string) => {
    const context = session.context(await session.batch([{ command }]));
    return session.commit(context);
  };
  assert.deepEqual((await batch('echo x > a')).commits, []);
  assert.deepEqual(
    (await batch('git init -q -b main; git add .; git commit -qm first')).commits,
    [],
  );
  assert.equal((await batch('echo y >> a')).commits.length, 1);
  assert.deepEqual((await batch('rm -rf .git; git init -q inner')).commits, []);
});

test("the watch: in a folder of a repository all that lies below the folder is the agent's, and no more", async (t) => {
  const place = await makeRepository(t);
  await place.shell('mkdir sub; echo x > sub/c; git add .; git commit -qm more');
  const sub: Place = {
    ...place,
    workspace: place.path('sub'),
    path: (name) => place.path(`sub/${name}`),
  };
  const session = makeSession(sub);
  const context = session.context(
    await session.batch([{ command: 'cd sub; echo y >> c; echo z >> ../a' }]),
  );
  const report = await session.check(context);
  assert.deepEqual(report.changedFiles, [place.path('sub/c')]);
  await session.hooks.run('AutoCommitting', context);
  assert.equal(
    await place.shell('git show --format= --name-only HEAD; git status --porcelain'),
    'sub/c\n M a\n',
  );
});
