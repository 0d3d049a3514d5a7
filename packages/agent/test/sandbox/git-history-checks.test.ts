import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { deflateSync } from 'node:zlib';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import {
  ANY_PURPOSE,
  type FindGit,
  finishHistory,
  GitHistory,
  NO_PURPOSE,
  type RunningCommand,
} from '../../src/command/sandbox/git-history.js';
import { findProgram, type ProgramPath } from '../../src/platform/find-program.js';

// Only what is certainly bad is moved out of a git folder, and what a crash left changes no copy.

const noGit: FindGit = () => null;

/** A git folder, and a loose object in it with its name. */
const prepare = (t: TestContext, git: FindGit, gitTimeoutMs = 60_000) => {
  const workspace = temporaryFolder(t, 'history');
  const gitFolder = path.join(workspace, '.git');
  execFileSync('git', ['init', '-q', workspace]);
  const sessionFolder = path.join(workspace, 's');
  const history = new GitHistory({ workspace, sessionFolder, git, gitTimeoutMs });
  const running: RunningCommand[] = [];
  const write = (name: string, content: string | Buffer): string => {
    const place = path.join(gitFolder, name);
    fs.mkdirSync(path.dirname(place), { recursive: true });
    fs.writeFileSync(place, content);
    return place;
  };
  return {
    write,
    writeObject(bytes: number, damage = ''): string {
      const content = Buffer.concat([Buffer.from(`blob ${bytes}\0`), Buffer.alloc(bytes)]);
      const oid = createHash('sha1').update(content).digest('hex');
      const name = `objects/${oid.slice(0, 2)}/${oid.slice(2)}`;
      return write(name, deflateSync(Buffer.concat([content, Buffer.from(damage)])));
    },
    copies: path.join(sessionFolder, 'history', '1'),
    sessionFolder,
    history,
    gitFolder,
    begin: (purpose = NO_PURPOSE) => void running.push(history.begin([gitFolder], purpose)),
    end: () => history.end(running.pop() ?? assert.fail('none runs')),
  };
};

const commit = (gitFolder: string): void => {
  const words = ['-c', 'user.name=u', '-c', 'user.email=e', 'commit', '-q', '--allow-empty'];
  execFileSync('git', [`--git-dir=${gitFolder}`, ...words, '-m', 'one']);
};

test('a new object is moved away if it is damaged, not if it is too large to be checked', (t) => {
  const { begin, end, writeObject } = prepare(t, noGit);
  begin();
  const large = writeObject(65 * 1024 * 1024);
  const small = writeObject(9);
  const damaged = writeObject(10, 'x');
  assert.match(end().join(), /moved away/);
  assert.deepEqual([large, small, damaged].map(fs.existsSync), [true, true, false]);
});

const findGit = (): ProgramPath =>
  findProgram('git', { environment: { PATH: '/usr/bin:/bin' }, workspace: '/nowhere' }) ??
  assert.fail('git is missing');

test('new packs are judged when they are complete, and only by git', (t) => {
  let git: ProgramPath | null = findGit();
  const { begin, end, write } = prepare(t, () => git);
  begin();
  const pack = write('objects/pack/pack-1.pack', 'PACK');
  assert.deepEqual(end(), [], 'git writes the index last');
  begin();
  const index = write('objects/pack/pack-1.idx', 'index');
  assert.match(end().join(), /moved away/, 'the same pack, when it is complete');
  assert.deepEqual([pack, index].map(fs.existsSync), [false, false]);
  begin();
  git = null;
  for (const place of [pack, index]) fs.writeFileSync(place, 'PACK');
  write('objects/info/commit-graph', 'graph');
  write('objects/pack/multi-pack-index', 'packs');
  assert.deepEqual(end(), [], 'without git nothing is known about them');
});

test('pipes that git would wait for are moved away', (t) => {
  const { begin, end, write, gitFolder } = prepare(t, findGit, 10_000);
  const at = (name: string): string => path.join(gitFolder, name);
  commit(gitFolder);
  begin({ ...NO_PURPOSE, movesBorder: true });
  execFileSync('git', [`--git-dir=${gitFolder}`, 'repack', '-adq']);
  write('objects/pack/pack-1.pack', 'PACK');
  const pipes = [
    'refs/heads/x',
    'objects/pack/multi-pack-index',
    'objects/pack/pack-1.idx',
    'shallow',
  ];
  execFileSync('mkfifo', pipes.map(at));
  fs.symlinkSync(at('refs/heads/x'), at('refs/tags/y'));
  const lines = end().join();
  assert.match(lines, /moved away/);
  assert.doesNotMatch(lines, /put back/, 'git says that the objects are in a pack');
  for (const name of [...pipes, 'refs/tags/y']) assert.equal(fs.existsSync(at(name)), false, name);
});

test('git that does not end is killed, and is not asked again in the same check', (t) => {
  const folder = temporaryFolder(t, 'slow-git');
  const [program, starts] = [path.join(folder, 'git'), path.join(folder, 'starts')];
  fs.writeFileSync(program, `#!/bin/sh\necho >> ${starts}\nexec sleep 100\n`, { mode: 0o755 });
  const { begin, end, write, writeObject } = prepare(t, () => program as ProgramPath, 500);
  const object = writeObject(9);
  const branch = write('refs/heads/a', `${'1'.repeat(40)}\n`);
  begin();
  for (const place of [object, branch]) fs.rmSync(place);
  assert.match(end().join(), /put back: 1 object, refs\/heads\/a/);
  assert.equal(fs.readFileSync(starts, 'utf8').length, 2, 'in the check, and in the one after it');
});

test('what a killed process left in the way changes no copy, and hinders no repair', (t) => {
  const { begin, end, write, writeObject, gitFolder, copies } = prepare(t, noGit);
  const object = writeObject(9);
  const linked = write(`objects/ff/${'f'.repeat(38)}`, '');
  fs.truncateSync(linked, 300 * 1024 * 1024); // linked, since it is beyond what is copied
  fs.mkdirSync(copies, { recursive: true });
  fs.writeFileSync(path.join(copies, 'draft'), 'stale');
  const before = fs.readFileSync(object);
  begin();
  const copy = path.join(copies, 'copy', path.relative(gitFolder, linked));
  assert.equal(fs.statSync(copy).ino, fs.statSync(linked).ino);
  for (let count = 1; count < 99; count++)
    fs.writeFileSync(path.join(path.dirname(object), `pawl-${process.pid}-${count}`), 'stale');
  fs.rmSync(object);
  assert.match(end().join(), /put back: 1 object/);
  assert.deepEqual(fs.readFileSync(object), before);
});

test('what each check of a killed process moves away stays', (t) => {
  const { begin, writeObject, sessionFolder } = prepare(t, noGit);
  begin();
  for (const damage of ['one', 'two']) {
    writeObject(9, damage);
    assert.match(finishHistory(sessionFolder, noGit, { isLast: false }).join(), /moved away/);
  }
  const aside = fs.readdirSync(path.join(sessionFolder, 'set-aside/git-1'), { recursive: true });
  assert.equal(aside.length, 4, String(aside));
});

test('a command that is refused for want of copies does not count as running', (t) => {
  const { history, gitFolder, copies, sessionFolder } = prepare(t, noGit);
  const second = path.join(copies, '../2');
  fs.mkdirSync(path.dirname(second), { recursive: true });
  fs.writeFileSync(second, 'in the way');
  assert.throws(() => history.begin([gitFolder, sessionFolder], NO_PURPOSE), /EEXIST|ENOTDIR/);
  history.end(history.begin([gitFolder], NO_PURPOSE));
  assert.equal(fs.existsSync(path.join(copies, '../running')), false);
});

test('a command whose changes have no room for copies at its end has still ended', (t) => {
  const { begin, end, copies } = prepare(t, noGit);
  for (const start of [begin, begin]) start();
  const packs = path.join(copies, 'packs');
  fs.rmSync(packs);
  fs.mkdirSync(packs);
  for (const stop of [end, end]) stop();
  assert.equal(fs.existsSync(path.join(copies, '../running')), false);
});

test('a branch and a folder of branches take the place of each other', (t) => {
  const { begin, end, gitFolder, copies } = prepare(t, noGit);
  const git = (...words: readonly string[]): unknown =>
    execFileSync('git', [`--git-dir=${gitFolder}`, ...words]);
  commit(gitFolder);
  git('branch', 'a');
  for (const [from, to] of [
    ['a', 'a/b/c'],
    ['a/b/c', 'a'],
    ['a', 'a/d'],
    ['a/d', 'a'],
  ] as const) {
    begin();
    git('branch', '-m', from, to);
    end();
    begin();
    const copied = (name: string): boolean => fs.existsSync(path.join(copies, 'copy', name));
    assert.deepEqual([`refs/heads/${to}`, `logs/refs/heads/${to}`].map(copied), [true, true]);
    end();
  }
});

test('a huge file neither stops a check nor is copied', (t) => {
  const { begin, end, write, writeObject, gitFolder, copies } = prepare(t, noGit);
  const object = writeObject(9);
  const log = write('logs/refs/heads/main', '');
  const head = fs.readFileSync(path.join(gitFolder, 'HEAD'), 'utf8');
  const deleteObject = (): void => {
    fs.rmSync(object);
    assert.match(end().join(), /put back: 1 object/);
    assert.ok(fs.existsSync(object));
  };
  begin();
  const huge = 600 * 1024 * 1024;
  fs.truncateSync(path.join(gitFolder, 'HEAD'), huge);
  fs.truncateSync(log, huge);
  deleteObject();
  assert.equal(fs.readFileSync(path.join(gitFolder, 'HEAD'), 'utf8'), head);
  begin();
  assert.equal(fs.existsSync(path.join(copies, 'copy/logs/refs/heads/main')), false);
  fs.truncateSync(log, 0);
  deleteObject();
});

const REFTABLE = 'this repository uses the reftable format\n';

/** Makes the repository anew with its refs in a reftable; as git does, if this git can't. */
const makeReftable = ({ gitFolder, write }: ReturnType<typeof prepare>): void => {
  const workspace = path.dirname(gitFolder);
  fs.rmSync(gitFolder, { recursive: true });
  if (spawnSync('git', ['init', '-q', '--ref-format=reftable', workspace]).status === 0) return;
  execFileSync('git', ['init', '-q', workspace]);
  fs.rmSync(path.join(gitFolder, 'refs'), { recursive: true });
  write('config', '[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n');
  write('HEAD', 'ref: refs/heads/.invalid\n');
  write('refs/heads', REFTABLE);
  write('reftable/tables.list', '0x000000000001-0x000000000001-00000000.ref\n');
};

test('with a reftable the file in the place of refs/heads belongs there, and is put back', (t) => {
  const place = prepare(t, noGit);
  makeReftable(place);
  const { begin, end, gitFolder } = place;
  const heads = path.join(gitFolder, 'refs/heads');
  const text = fs.readFileSync(heads, 'utf8');
  begin();
  assert.deepEqual(end(), []);
  begin();
  fs.rmSync(heads);
  fs.mkdirSync(heads);
  assert.match(end().join(), /put back: refs\/heads\./);
  assert.equal(fs.readFileSync(heads, 'utf8'), text);
  begin();
  assert.deepEqual(end(), []);
});

test('no command makes its repository count as one with a reftable', (t) => {
  const { history, begin, end, write, gitFolder } = prepare(t, noGit);
  const heads = path.join(gitFolder, 'refs/heads');
  const attack = (): void => {
    fs.rmSync(heads, { recursive: true });
    write('refs/heads', REFTABLE);
    write('reftable/tables.list', '');
  };
  begin();
  attack();
  history.accept(); // an approved command has ended meanwhile
  end();
  assert.ok(fs.statSync(heads).isDirectory());
  const branch = write('refs/heads/main', `${'1'.repeat(40)}\n`);
  begin();
  attack();
  assert.match(end().join(), /put back: refs\/heads\/main\./);
  assert.ok(fs.existsSync(branch));
});

const HASH = '1'.repeat(40);

/** What a running command does on purpose, and the file that must not be put back. */
const PURPOSES = [
  { purpose: { takesStash: true, movesBorder: false }, file: 'refs/stash', before: `${HASH}\n` },
  { purpose: { takesStash: false, movesBorder: true }, file: 'shallow', before: null },
  { purpose: ANY_PURPOSE, file: 'refs/heads/old', before: `${HASH}\n` },
];

for (const { purpose, file, before } of PURPOSES)
  test(`what a command does to ${file} on purpose stays while others begin and end, and after a crash`, (t) => {
    const { history, begin, end, write, gitFolder, sessionFolder } = prepare(t, noGit);
    const place = path.join(gitFolder, file);
    const change = (): void => (before === null ? void write(file, `${HASH}\n`) : fs.rmSync(place));
    if (before !== null) write(file, before);
    const first = purpose === ANY_PURPOSE ? history.begin([], purpose) : null;
    begin(first === null ? purpose : NO_PURPOSE);
    change();
    const isThere = before === null;
    begin();
    assert.equal(fs.existsSync(place), isThere, 'another began');
    end();
    assert.equal(fs.existsSync(place), isThere, 'another ended');
    finishHistory(sessionFolder, noGit, { isLast: false });
    assert.equal(fs.existsSync(place), isThere, 'Pawl was killed');
    end();
    if (first !== null) history.end(first);
    assert.equal(fs.existsSync(place), isThere, 'all ended');
    if (before === null) return;
    write(file, `${'2'.repeat(40)}\n`);
    begin();
    fs.rmSync(place);
    assert.match(end().join(), new RegExp(`put back: ${file}`), 'control');
  });

test('what an ended command did on purpose is no purpose of the others after a crash', (t) => {
  const { history, begin, write, gitFolder, sessionFolder } = prepare(t, noGit);
  const branch = write('refs/heads/old', `${HASH}\n`);
  const approved = history.begin([gitFolder], ANY_PURPOSE);
  begin();
  history.end(approved);
  fs.rmSync(branch);
  finishHistory(sessionFolder, noGit, { isLast: true });
  assert.ok(fs.existsSync(branch));
});
