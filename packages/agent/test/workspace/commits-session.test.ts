import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import { commitTouched } from '../../src/workspace/auto-commit.js';
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
  await session.watch.check(session.context(await session.batch([{ command: 'true' }])));
  await place.shell('echo user >> b; git commit -qam theirs');
  const report = await session.watch.check(
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
    'GIT_AUTHOR_NAME=Pawl GIT_AUTHOR_EMAIL=pawl@localhost git commit -q --no-gpg-sign --allow-empty -m x';
  const { note } = await session.watch.check(session.context(await session.batch([{ command }])));
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
    const report = await session.watch.check(session.context(calls));
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
  assert.deepEqual(relative(place, (await session.watch.check(context)).changedFiles), ['a']);
  await commitTouched(session.watch, context, []);
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
  const report = await session.watch.check(context);
  assert.deepEqual(
    [report.note, report.warning, report.commits, report.dirty],
    ['', '', [], false],
  );
  assert.deepEqual(relative(place, report.changedFiles), ['new']);
  await commitTouched(session.watch, context, []);
  assert.deepEqual(await started(place), []);
});

test('the watch: when no call ended ok, no process is started', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place, { environment: await wrapGit(place, 'exec REAL "$@"') });
  const report = await session.watch.check(session.context([]));
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

test('the watch: by default no process is started while HEAD and the branches stand where they stood', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(place, 'exec REAL "$@"');
  const settings = { autoCommit: 'off', formatter: 'onChanges' } as const;
  const session = makeSession(place, { environment, settings, now: anHourLater });
  const batch = async (...deeds: readonly Deed[]) =>
    session.watch.check(session.context(await session.batch(deeds)));
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

test('the watch: with auto-commit a look is one process more, before and after each call', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(place, 'exec REAL "$@"');
  const session = makeSession(place, { environment, now: anHourLater });
  const calls = await session.batch([{ edit: 'a', text: 'x' }]);
  assert.deepEqual(await asked(place), ['config', 'rev-parse', 'status', 'status']);
  const more = await session.batch([{ edit: 'a', text: 'y' }]);
  await session.watch.check(session.context([...calls, ...more]));
  assert.deepEqual(
    await asked(place),
    ['status', 'status'],
    'the phase uses the look after the last call',
  );
});

test('the watch: the phase looks itself when the last look is not of this moment', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(place, 'exec REAL "$@"');
  let lookedAt = anHourLater();
  const now = (): number => (lookedAt += 1_000);
  const session = makeSession(place, { environment, now });
  const calls = await session.batch([{ edit: 'a', text: 'x' }]);
  await session.watch.check(session.context(calls));
  assert.deepEqual(await asked(place), ['config', 'rev-parse', 'status', 'status', 'status']);
});

test('the watch: a formatter needs the tree for what commands change, not for files that calls name', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(place, 'exec REAL "$@"');
  const settings = { autoCommit: 'off', formatter: 'onChanges' } as const;
  const session = makeSession(place, {
    environment,
    settings,
    isFormatted: true,
    now: anHourLater,
  });
  const batch = async (...deeds: readonly Deed[]) =>
    session.watch.check(session.context(await session.batch(deeds)));
  const edited = await batch({ edit: 'a', text: 'x' });
  assert.deepEqual(await asked(place), ['config', 'rev-parse']);
  const both = await batch({ command: 'echo y > new' }, { edit: 'b', text: 'y' });
  assert.deepEqual(await asked(place), ['status', 'status']);
  assert.deepEqual(
    [edited, both].map(({ changedFiles }) => relative(place, changedFiles)),
    [['a'], ['b', 'new']],
  );
});

test('the watch: a fault of git is told once, and no call is held up by it', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  await place.shell('cp .git/index ../index; echo rubbish > .git/index');
  const batch = async () =>
    session.watch.check(session.context(await session.batch([{ edit: 'a', text: 'x' }])));
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
  const session = makeSession(place, { environment: await wrapGit(place, 'exit 1') });
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
  await assert.rejects(session.watch.check(session.context(calls)), {
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
  let lookedAt = anHourLater();
  const now = (): number => (lookedAt += 1_000); // no look is of this moment
  const session = makeSession(place, { environment, now });
  const calls = await session.batch([{ edit: 'a', text: 'x' }]);
  await place.shell('touch ../hang');
  const stop = new AbortController();
  const checked = session.watch.check(session.context(calls, { signal: stop.signal }));
  const refused = assert.rejects(checked, { kind: 'stopped' });
  await until('git hangs', () => existsSync(path.join(place.root, 'hangs')));
  stop.abort();
  await refused;
  await place.shell('rm ../hang');
  const next = await session.watch.check(
    session.context(await session.batch([{ edit: 'a', text: 'y' }])),
  );
  assert.equal(next.dirty, true);
});

test("the watch: what changed while nobody could look is nobody's", async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  await place.shell('mv .git/index ../index; echo rubbish > .git/index');
  const calls = await session.batch([{ edit: 'a', text: 'x' }]);
  await place.shell('mv ../index .git/index');
  const context = session.context(calls);
  await session.watch.check(context);
  const report = await commitTouched(session.watch, context, []);
  assert.deepEqual(report.commits, []);
  assert.match(
    report.note,
    /Not committed: a: the repository could not be read before the agent changed it\./,
  );
});

test('the watch: a repository that turns up in the workspace is looked at from then on', async (t) => {
  const place = await makePlace(t);
  const session = makeSession(place);
  const batch = async (command: string) => {
    const context = session.context(await session.batch([{ command }]));
    await session.watch.check(context);
    return commitTouched(session.watch, context, []);
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
  const report = await session.watch.check(context);
  assert.deepEqual(report.changedFiles, [place.path('sub/c')]);
  await commitTouched(session.watch, context, []);
  assert.equal(
    await place.shell('git show --format= --name-only HEAD; git status --porcelain'),
    'sub/c\n M a\n',
  );
});

test('the watch: a look before a call that takes too long or fails is told, once, and is nobody’s fault later', async (t) => {
  const place = await makeRepository(t);
  const script =
    'case "$*" in *status*) [ -e ROOT/hang ] && exec sleep 1000;; esac; exec REAL "$@"';
  const session = makeSession(place, {
    environment: await wrapGit(place, script),
    beforeMs: 5_000,
  });
  const report = async (deed: Deed) => {
    const calls = await session.batch([deed]);
    await place.shell('rm -f ../hang');
    return session.watch.check(session.context(calls));
  };
  assert.equal((await report({ command: 'echo x >> a' })).warning, '', 'the control');
  await place.shell('touch ../hang');
  const late = await report({ command: 'echo y > new; git commit -q --allow-empty -m other' });
  assert.match(
    late.warning,
    /could not be read before a call: it took longer than 5 s\. Changes made/,
  );
  assert.match(late.note, /^\[git\] Since the last check, by an unknown author: main went on from/);
  assert.deepEqual(late.changedFiles, []);
  await place.shell('touch ../hang');
  assert.equal((await report({ command: 'true' })).warning, '');
});
