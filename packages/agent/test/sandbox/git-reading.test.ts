import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../../test/tier.js';
import {
  codePlaces,
  createIndexReader,
  createNamedPlaces,
  findRepository,
  gitFoldersAt,
  isInWorktreeFolder,
} from '../../src/command/sandbox/git-folders.js';
import { cleanConfig, isHarmlessInWorktree } from '../../src/command/sandbox/new-repository.js';
import { ProtectedScan } from '../../src/command/sandbox/protected-scan.js';
import { findProgram } from '../../src/platform/find-program.js';
import { configEntries, settingKey } from '../../src/policy/paths.js';

// What the sandbox reads of git by itself is what git says.

const git = (folder: string, ...words: readonly string[]): string => {
  const who = ['-c', 'user.name=Ada', '-c', 'user.email=a@example.org'];
  const { status, stdout, stderr } = spawnSync('git', [...who, ...words], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return stdout;
};

const findGit = () => findProgram('git', { environment: process.env, workspace: null });

const makeRepository = (t: TestContext, ...words: readonly string[]): string => {
  const folder = temporaryFolder(t, 'git-reading');
  git(folder, 'init', '-q', ...words);
  return folder;
};

for (const [form, words, settings] of [
  ['version 2', [], ['index.version', '2']],
  ['version 4', [], ['index.version', '4']],
  ['SHA-256', ['--object-format=sha256'], ['index.version', '2']],
] as const) {
  test(`the gitlinks and tracked files of an index: ${form}`, (t) => {
    const folder = makeRepository(t, ...words);
    git(folder, 'config', ...settings);
    for (const name of ['a/b', 'a/b2', 'a/long/link', 'z']) {
      git(folder, 'init', '-q', ...words, name);
      git(path.join(folder, name), 'commit', '-q', '--allow-empty', '-m', 'x');
    }
    mkdirSync(path.join(folder, 'src'));
    const files = ['src/one', 'src/one.ts', 'ü', 'x'.repeat(200), 'new'];
    for (const name of files) writeFileSync(path.join(folder, name), name);
    git(folder, 'add', ...files.slice(0, 4), 'a', 'z');
    git(folder, 'add', '-N', 'new'); // an entry with extended flags
    const index = createIndexReader(findGit)(path.join(folder, '.git'));
    assert.deepEqual(index.gitlinks, ['a/b', 'a/b2', 'a/long/link', 'z']);
    const tracked = git(folder, 'ls-files', '-z')
      .split('\0')
      .filter((name) => name !== '');
    assert.deepEqual(
      tracked.filter((name) => !index.isTracked(name)),
      [],
    );
    assert.equal(index.isTracked('src'), false);
  });
}

test('the gitlinks of an index whose entries stand in another file', (t) => {
  const folder = makeRepository(t);
  git(folder, 'init', '-q', 'inner');
  git(path.join(folder, 'inner'), 'commit', '-q', '--allow-empty', '-m', 'x');
  git(folder, 'add', 'inner');
  git(folder, 'update-index', '--split-index');
  const file = readFileSync(path.join(folder, '.git/index'));
  assert.ok(!file.includes(Buffer.from([0, 0, 0xe0, 0])), 'control');
  assert.deepEqual(createIndexReader(findGit)(path.join(folder, '.git')).gitlinks, ['inner']);
});

test('an index that git could not list is listed again', (t) => {
  const folder = makeRepository(t);
  git(folder, 'init', '-q', 'a');
  git(path.join(folder, 'a'), 'commit', '-q', '--allow-empty', '-m', 'x');
  git(folder, 'add', 'a');
  let found: ReturnType<typeof findGit> = null;
  const readIndex = createIndexReader(() => found);
  const index = readIndex(path.join(folder, '.git'));
  assert.deepEqual([index.gitlinks, index.isTracked('a')], [[], false]);
  found = findGit();
  assert.equal(index.isTracked('a'), true);
  assert.deepEqual(readIndex(path.join(folder, '.git')).gitlinks, ['a']);
});

test('of too many folders of submodules the rest counts as a whole', (t) => {
  const gitFolder = temporaryFolder(t, 'git-reading');
  const names = Array.from({ length: 35 }, (_, at) => `${at}`);
  for (const name of names)
    for (const inner of names)
      mkdirSync(path.join(gitFolder, 'modules', name, inner), { recursive: true });
  const whole = codePlaces(gitFolder).filter((place) => /modules\/\d+$/.test(place));
  assert.ok(whole.length > 0 && whole.length < names.length, `${whole.length}`);
});

const EVERY_FORM =
  '\ufeff[core] hooksPath = "a b"; comment\n[Filter "x \\"y.\\""]\n\tclean = sh \\\n  c.sh # no\n' +
  '[diff.t]\ntextconv=\'q\'\n\tflag\n[include]\n path = ../c\n[user]name="a\\tb"\n[remote "o \\"x"]url=" x:y; "\n';

const listed = (folder: string, file: string): string =>
  git(folder, 'config', '-f', file, '--list', '-z');

test('what may stay of a configuration is what git reads of it, and no more is changed then', (t) => {
  const folder = makeRepository(t);
  const [file, kept] = [path.join(folder, 'config'), path.join(folder, 'kept')];
  writeFileSync(file, EVERY_FORM);
  const { bytes, removed, isSame } = cleanConfig(file, folder) ?? {};
  const harmful = ['core.hookspath', 'filter.*.clean', 'diff.*.textconv', 'diff.*.flag'];
  assert.deepEqual([removed, isSame], [[...harmful, 'include.path'], false]);
  writeFileSync(kept, bytes ?? '');
  assert.equal(listed(folder, kept), 'user.name\na\tb\0remote.o "x.url\n x:y; \0');
  assert.deepEqual(cleanConfig(kept, folder), { bytes, removed: [], isSame: true });
  writeFileSync(file, '[user]\n\tname = a # b\n');
  assert.equal(cleanConfig(file, folder)?.isSame, false, 'of another form than git writes');
  assert.equal(cleanConfig(path.join(folder, 'missing'), folder), null);
});

/** What the grammar of a configuration is made of, and what can break a reader of it. */
const PIECES = [
  ...[
    '[core]',
    '[A.b]',
    '[f "x\\"]\\y"]',
    '[core "hooksPath\0"]',
    '[ "x"]',
    '[c\t\r"\u2028"]',
    '[]',
  ],
  ...[
    'hooksPath',
    'k-1',
    ' = ',
    '=',
    '/p',
    '"',
    '\\',
    '\\\\',
    '\\t',
    '\\q',
    '\n',
    '\n',
    '\r\n',
    '\r',
  ],
  ...[
    '#',
    ';',
    ' ',
    '\t',
    '\0',
    '\v',
    '\u00a0',
    'é',
    '\ufeff',
    '[',
    ']',
    '\n[core]hooksPath=',
    '\nk=',
  ],
];

/** Git before 2.45 turns each inner tab into a space. */
const withSpaces = (text: string) => text.replace(/[\t\r]/g, ' ');

test('git reads the same settings in any text', (t) => {
  const file = path.join(temporaryFolder(t, 'git-reading'), 'config');
  const read = (text: string) => {
    writeFileSync(file, text);
    const { stdout } = spawnSync('git', ['config', '-f', file, '--list', '-z', '--no-includes']);
    return stdout.toString().split('\0').slice(0, -1);
  };
  const compare = (text: string) => {
    const own = configEntries(text).map(({ key, value }) => `${key} ${withSpaces(value)}`);
    const ofGit = read(text).map((entry) => {
      const [, name = '', value = '\ntrue'] = /^([^\n]*)(\n.*)?$/s.exec(entry) ?? [];
      return `${settingKey(name)} ${withSpaces(value.slice(1))}`;
    });
    assert.deepEqual(own, ofGit, JSON.stringify(text));
  };
  for (const text of [
    '[a]\n# C:\\\n[core]\nhooksPath = x # \\\nk = y\\\\\nk = z',
    '[a] [core] hooksPath = x\n[core]hooksPath=a;\\\n[x "\\]"]k="#;"',
    '\ufeff[core]\r\n\thooksPath = a \\\r\n "b "\r\n\tk\r\n\tk = \r x\0y',
    '[core "hooksPath\0"]k=x',
    '[core]k=x\\',
    EVERY_FORM,
  ])
    compare(text);
  const texts = fc.array(fc.constantFrom(...PIECES), { maxLength: 14 });
  const text = texts.map((pieces) => `[core]\nk=${pieces.join('')}`);
  fc.assert(fc.property(text, compare), { numRuns: countCases(900), seed: SEED });
});

test('a long configuration is read whole, and a long value at once', (t) => {
  const folder = makeRepository(t);
  const long = `[user]\n\tname = ${'x y'.repeat(300_000)}\n[core]\n\thooksPath = tools\n`;
  writeFileSync(path.join(folder, '.git/config'), long);
  const environment = { HOME: folder, GIT_CONFIG_SYSTEM: '/dev/null' };
  const [named] = createNamedPlaces(folder, environment)();
  assert.equal(named?.path, path.join(folder, 'tools'));
});

test('a configuration that git itself wrote may stay as it is', (t) => {
  const folder = makeRepository(t, '--object-format=sha256');
  const values = ['a "b" \\ c', ' x', 'x ', 'x;#', 'ü\tx\ny'];
  for (const value of values) git(folder, 'config', '--add', 'user.name', value);
  git(folder, 'config', 'branch.a/"b\\.merge', 'refs/heads/a');
  git(folder, 'config', 'core.autoCRLF', 'false');
  git(folder, 'remote', 'add', 'o', 'https://example.org/x');
  const file = path.join(folder, '.git/config');
  assert.deepEqual(cleanConfig(file, folder)?.removed, []);
  assert.equal(cleanConfig(file, folder)?.isSame, true, String(cleanConfig(file, folder)?.bytes));
});

test('what a repository names outside of itself may not stay', (t) => {
  const folder = makeRepository(t);
  const place = path.join(folder, '.git/modules/m');
  git(folder, 'init', '-q', '--bare', place);
  const file = path.join(place, 'config');
  const removedBy = (key: string, value: string): readonly string[] | undefined => {
    git(folder, 'config', '-f', file, key, value);
    const removed = cleanConfig(file, folder)?.removed;
    git(folder, 'config', '-f', file, '--unset', key);
    return removed;
  };
  mkdirSync(path.join(folder, 'sub'));
  symlinkSync('/', path.join(folder, 'out'));
  assert.deepEqual(removedBy('core.worktree', '../../../sub'), [], 'control');
  for (const value of ['../../../out/tmp', '../../../missing', '/'])
    assert.deepEqual(removedBy('core.worktree', value), ['core.worktree'], value);
  git(folder, 'config', 'core.worktree', '..');
  assert.deepEqual(cleanConfig(path.join(folder, '.git/config'), folder)?.removed, [
    'core.worktree',
  ]);
  // git refuses names such as `git~1` by it
  assert.deepEqual(removedBy('core.protectNTFS', 'false'), ['core.protectntfs']);
});

test('the own configuration of a worktree counts there, also in a folder of it', (t) => {
  const folder = makeRepository(t);
  const top = path.join(temporaryFolder(t, 'git-reading'), 'tree');
  git(folder, 'commit', '-q', '--allow-empty', '-m', 'one');
  git(folder, 'config', 'extensions.worktreeConfig', 'true');
  git(folder, 'worktree', 'add', '-q', top);
  git(top, 'config', '--worktree', 'core.hooksPath', 'sub/tools');
  git(top, 'init', '-q', 'sub/inner');
  git(path.join(top, 'sub/inner'), 'commit', '-q', '--allow-empty', '-m', 'x');
  git(top, 'add', 'sub/inner');
  const environment = { HOME: folder, GIT_CONFIG_SYSTEM: '/dev/null', PATH: process.env.PATH };
  const workspace = path.join(top, 'sub');
  mkdirSync(path.join(workspace, 'tools'));
  const expected = path.join(workspace, 'tools');
  for (const place of [top, workspace])
    assert.deepEqual(
      createNamedPlaces(place, environment)().map(({ path: at }) => at),
      [expected],
      place,
    );
  const found = findRepository(workspace);
  assert.ok(found.kind === 'found');
  const { protectedPaths } = new ProtectedScan(workspace, [], environment).look(found.repository);
  assert.ok(protectedPaths.has(expected));
});

test('an empty .git above the workspace is no repository, and a real one further up is', (t) => {
  const folder = makeRepository(t);
  const workspace = path.join(folder, 'inner/work');
  mkdirSync(workspace, { recursive: true });
  mkdirSync(path.join(folder, 'inner/.git'));
  const found = findRepository(workspace);
  assert.equal(found.kind === 'found' && found.repository.top, folder);
  assert.equal(git(workspace, 'rev-parse', '--show-toplevel').trim(), folder, 'as git says');
});

test('a worktree of any name has its own folder', (t) => {
  const folder = makeRepository(t);
  git(folder, 'commit', '-q', '--allow-empty', '-m', 'one');
  for (const name of ['info', 'plain']) {
    git(folder, 'worktree', 'add', '-q', path.join(folder, name));
    const gitdir = path.join(folder, '.git/worktrees', name, 'gitdir');
    assert.ok(isInWorktreeFolder(gitdir), name);
    assert.ok(isHarmlessInWorktree(gitdir, folder), name);
    const elsewhere = path.join(folder, 'elsewhere');
    assert.ok(isHarmlessInWorktree(gitdir, elsewhere), 'named in turn');
    writeFileSync(path.join(folder, name, '.git'), path.dirname(gitdir)); // as git refuses it
    assert.ok(!isHarmlessInWorktree(gitdir, elsewhere), name);
    writeFileSync(gitdir, '/elsewhere/tree/.git\n');
    assert.ok(!isHarmlessInWorktree(gitdir, folder), name);
  }
  assert.ok(!isInWorktreeFolder(path.join(folder, '.git/info/attributes')));
});

test('a .git that is a symlink to a file is what the file names, as for git', (t) => {
  const folder = makeRepository(t);
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  for (const [named, kind] of [
    ['inside.git', 'found'],
    [path.join(folder, '.git'), 'refused'],
  ] as const) {
    rmSync(path.join(workspace, '.git'), { force: true });
    writeFileSync(path.join(workspace, 'names'), `gitdir: ${named}\n`);
    symlinkSync('names', path.join(workspace, '.git'));
    if (named === 'inside.git') git(workspace, 'init', '-q', '--bare', named);
    const said = git(workspace, 'rev-parse', '--absolute-git-dir').trim();
    const real = path.resolve(workspace, named);
    assert.equal(said, real, 'as git says');
    const found = findRepository(workspace);
    assert.equal(found.kind, kind);
    if (found.kind === 'found') assert.equal(found.repository.folder, real);
    assert.equal(gitFoldersAt(path.join(workspace, '.git'))?.folder, real);
  }
});

/** Settings by which git runs or obeys `tools/x`. user-traps.ts walks into some of them. */
const NAMING = [
  ...'core.fsmonitor core.askPass core.sshCommand core.gitProxy core.editor core.pager'.split(' '),
  ...'core.hooksPath core.attributesFile init.templateDir sequence.editor diff.external'.split(' '),
  ...'interactive.diffFilter uploadpack.packObjectsHook filter.f.clean filter.f.smudge'.split(' '),
  ...'filter.f.process diff.t.command diff.t.textconv merge.m.driver mergetool.m.cmd'.split(' '),
  ...'difftool.m.path browser.b.cmd man.m.path gpg.program gpg.ssh.program pager.log'.split(' '),
  ...'gpg.ssh.defaultKeyCommand credential.helper credential.https://x.helper'.split(' '),
  ...'remote.o.uploadpack remote.o.receivepack submodule.s.update trailer.t.command'.split(' '),
  ...'trailer.t.cmd tar.t.command gc.recentObjectsHook web.browser'.split(' '),
  ...'core.alternateRefsCommand hook.h.command sendemail.smtpServer'.split(' '),
];

/** The same with a value of its own. */
const NAMING_BY_VALUE = [
  ['alias.st', '!tools/x'],
  ['remote.o.url', 'ext::tools/x'],
  ['remote.o.pushurl', 'ext::tools/x %S'],
  ['include.path', '../tools/x'],
  ['includeIf.gitdir:/**.path', '../tools/x'],
  ['filter.f.clean', 'sh "tools/x" --flag %f'],
  ['core.editor', 'EDITOR=1 tools/x; true'],
] as const;

const namedBy = (t: TestContext, key: string, value: string): readonly string[] => {
  const folder = makeRepository(t);
  git(folder, 'config', key, value);
  const environment = { HOME: folder, GIT_CONFIG_SYSTEM: '/dev/null' };
  return createNamedPlaces(folder, environment)().map(({ path: at }) => path.relative(folder, at));
};

test('a file that the configuration of git names is known by each key', (t) => {
  const values = NAMING.map((key) => [key, 'tools/x'] as const);
  for (const [key, value] of [...values, ...NAMING_BY_VALUE])
    assert.deepEqual(namedBy(t, key, value), ['tools/x'], `${key} = ${value}`);
});

test('what is no program of the workspace is not named', (t) => {
  for (const [key, value] of [
    ['core.fsmonitor', 'true'],
    ['alias.st', 'status tools/x'],
    ['remote.o.url', 'tools/x'],
    ['core.editor', 'vi'],
    ['user.name', 'tools/x'],
    ['core.hooksPath', '/etc/hooks'],
  ] as const)
    assert.deepEqual(namedBy(t, key, value), [], `${key} = ${value}`);
});

test('a change of the configuration behind a symlink is seen', (t) => {
  const folder = makeRepository(t);
  const dotfile = path.join(folder, 'dotfile');
  writeFileSync(dotfile, '[core]\n\thooksPath = one\n');
  symlinkSync(dotfile, path.join(folder, '.gitconfig'));
  const find = createNamedPlaces(folder, { HOME: folder, GIT_CONFIG_SYSTEM: '/dev/null' });
  const named = () => find().map(({ path: at }) => path.relative(folder, at));
  assert.deepEqual(named(), ['one']);
  writeFileSync(dotfile, '[core]\n\thooksPath = other\n');
  assert.deepEqual(named(), ['other']);
});

test('what a name in the configuration leads to is looked at again', (t) => {
  const folder = makeRepository(t);
  git(folder, 'config', 'core.sshCommand', 'sh setup');
  git(folder, 'config', 'core.hooksPath', 'hooks');
  const find = createNamedPlaces(folder, { HOME: folder, GIT_CONFIG_SYSTEM: '/dev/null' });
  const named = () => find().map(({ path: at }) => path.relative(folder, at));
  assert.deepEqual(named(), ['hooks']);
  writeFileSync(path.join(folder, 'setup'), ':');
  assert.deepEqual(named().sort(), ['hooks', 'setup']);
  mkdirSync(path.join(folder, 'own'));
  symlinkSync('own', path.join(folder, 'hooks'));
  assert.deepEqual(named().sort(), ['hooks', 'own', 'setup']);
  git(folder, 'config', 'core.sshCommand', 'bin/ssh');
  mkdirSync(path.join(folder, 'bin'));
  symlinkSync('later', path.join(folder, 'bin/ssh'));
  assert.deepEqual(named().sort(), ['bin/ssh', 'hooks', 'own']);
  writeFileSync(path.join(folder, 'bin/later'), ':');
  assert.deepEqual(named().sort(), ['bin/later', 'bin/ssh', 'hooks', 'own']);
});
