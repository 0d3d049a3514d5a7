import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs, {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { type GitHistory, NO_PURPOSE } from '../../src/command/sandbox/git-history.js';
import { NO_SOCKETS } from '../../src/command/sandbox/host.js';
import {
  guardRecordIn,
  ProtectedFiles,
  readGuardRecord,
  type Writer,
} from '../../src/command/sandbox/protected-files.js';
import { BackgroundWalk } from '../../src/command/sandbox/protected-scan.js';
import { WorkspaceGuard } from '../../src/command/sandbox/workspace-mounts.js';

// Protected files without a sandbox. First: commands of a killed session have ended while nobody watched. Whatever the
// next session does first judges all of it,
// in the folders that the quick scan leaves out, too.

type First = readonly [what: string, act: (files: ProtectedFiles) => void];

const FIRST: readonly First[] = [
  ['looks while it waits', (files) => files.sweep()],
  ['starts a command', (files) => void files.scanBefore(null)],
  ['ends', (files) => files.close()],
];

for (const [what, act] of FIRST)
  test(`what came while nobody watched is judged by a session that first ${what}`, async (t) => {
    const folder = realpathSync(temporaryFolder(t, 'unwatched'));
    const workspace = path.join(folder, 'work');
    const [repository, deep] = ['build/x', 'build/y'].map((one) => path.join(workspace, one));
    assert.ok(repository !== undefined && deep !== undefined);
    const sinceMs = Date.now() - 1_000;
    mkdirSync(deep, { recursive: true });
    writeFileSync(path.join(deep, '.envrc'), 'x');
    const git = (...words: readonly string[]): string =>
      execFileSync('git', ['-C', repository, ...words], { encoding: 'utf8' });
    execFileSync('git', ['init', '-q', repository]);
    git('config', 'core.fsmonitor', './x');
    git('config', 'user.name', 'Ada');
    const guard = { workspace, known: [], bound: [], closed: [], sinceMs, isAlive: () => false };
    const told: string[] = [];
    const files = new ProtectedFiles({
      ...{ workspace, userPlaces: [], hidden: [], notes: [], environment: process.env },
      folder: path.join(folder, 'aside'),
      record: guardRecordIn(folder),
      interrupted: [guard],
      tellUser: (text) => told.push(text),
    });
    act(files);
    await until('both were judged', () => told.length > 1);
    assert.ok(!existsSync(path.join(deep, '.envrc')), told.join('\n'));
    assert.equal(git('config', '--list', '--local').includes('fsmonitor'), false);
    assert.equal(git('config', 'user.name'), 'Ada\n', 'control: the rest is still there');
    assert.match(told.join('\n'), /config is protected .*, core\.fsmonitor was taken out\. If you/);
  });

test('what the user makes while no command runs that may write stays', (t) => {
  const folder = realpathSync(temporaryFolder(t, 'unwatched'));
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  const files = new ProtectedFiles({
    ...{ workspace, userPlaces: [], hidden: [], notes: [], environment: process.env },
    folder: path.join(folder, 'aside'),
    record: guardRecordIn(folder),
    interrupted: [],
    tellUser: assert.fail,
  });
  files.scanBefore(null);
  writeFileSync(path.join(workspace, '.envrc'), 'x');
  files.sweep();
  assert.ok(existsSync(path.join(workspace, '.envrc')));
  const writer = { bound: new Set<string>(), closed: [] };
  files.begin(writer);
  assert.deepEqual(files.end(writer), [], 'it was accepted');
});

/** A guard of an empty workspace, and a command that may write everywhere. */
const guardOf = (t: TestContext) => {
  const folder = realpathSync(temporaryFolder(t, 'unwatched'));
  const at = (name: string): string => path.join(folder, 'work', name);
  const write = (name: string, text: string): void => {
    mkdirSync(path.dirname(at(name)), { recursive: true });
    writeFileSync(at(name), text);
  };
  mkdirSync(at('.'));
  const told: string[] = [];
  const files = new ProtectedFiles({
    ...{ userPlaces: [], hidden: [], notes: [], environment: process.env, interrupted: [] },
    workspace: at('.'),
    folder: path.join(folder, 'aside'),
    record: guardRecordIn(folder),
    tellUser: (text) => told.push(text),
  });
  const begin = (): Writer => {
    const writer = { bound: new Set<string>(), closed: [] };
    files.scanBefore(null);
    files.begin(writer);
    return writer;
  };
  return { folder, at, write, told, files, begin };
};

test('a name with a line feed moves no other file', (t) => {
  const { folder, at, write, files, begin } = guardOf(t);
  mkdirSync(at('.vscode'));
  writeFileSync(path.join(folder, 'own'), 'x');
  const writer = begin();
  write(`.vscode/a\n${folder}/own`, 'x');
  files.end(writer);
  assert.ok(existsSync(path.join(folder, 'own')));
  assert.ok(!existsSync(at(`.vscode/a\n${folder}/own`)));
});

test('an allowed file stays, those beside it do not, and later the file is judged again', (t) => {
  const { at, write, files, begin } = guardOf(t);
  const server = begin();
  const writer = begin();
  const end = files.allowWriting([at('.vscode/settings.json')]);
  write('.vscode/settings.json', '{}');
  write('.vscode/tasks.json', '{}');
  end();
  files.end(writer);
  assert.deepEqual(readdirSync(at('.vscode')), ['settings.json']);
  write('.vscode/tasks.json', '{}');
  write('.vscode/settings.json', '{"x":1}');
  files.sweep();
  assert.deepEqual(readdirSync(at('.vscode')), []);
  files.end(server);
});

test('an allowed file in a folder that the quick scan leaves out stays', async (t) => {
  const { at, write, files, begin } = guardOf(t);
  const writer = begin();
  const end = files.allowWriting([at('build/.vscode/settings.json')]);
  write('build/.vscode/settings.json', '{}');
  end();
  files.end(writer);
  files.close();
  assert.ok(existsSync(at('build/.vscode/settings.json')));
});

test('a restored file has its mode', (t) => {
  const umask = process.umask(0o022);
  t.after(() => process.umask(umask));
  for (const mode of [0o600, 0o666]) {
    const { at, write, files, begin } = guardOf(t);
    write('.npmrc', 'token');
    chmodSync(at('.npmrc'), mode);
    const writer = begin();
    rmSync(at('.npmrc'));
    files.end(writer);
    assert.equal(statSync(at('.npmrc')).mode & 0o777, mode);
  }
});

test('a full disk empties no file that has to get its old text, and the user is told', (t) => {
  const { at, write, files, begin, told } = guardOf(t);
  write('.envrc', 'old');
  linkSync(at('.envrc'), at('other'));
  const writer = begin();
  write('other', 'new');
  const real = fs.writeFileSync;
  const full = t.mock.method(fs, 'writeFileSync', (...words: Parameters<typeof real>) => {
    if (words[1].toString() === 'old') throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    real(...words);
  });
  syncBuiltinESMExports();
  files.sweep();
  full.mock.restore();
  syncBuiltinESMExports();
  assert.equal(readFileSync(at('.envrc'), 'utf8'), 'new');
  assert.match(told.join('\n'), /\.envrc is protected; what a command made there could not/);
  files.end(writer);
});

test('of a file with hard links the new text is kept, and stays where it was allowed', (t) => {
  const { at, write, files, begin, told } = guardOf(t);
  write('.envrc', 'old');
  linkSync(at('.envrc'), at('other'));
  const writer = begin();
  write('other', 'new');
  files.sweep();
  assert.equal(readFileSync(at('.envrc'), 'utf8'), 'old');
  const [, copy = ''] = /What was written: (.*)$/.exec(told.join('\n')) ?? [];
  assert.equal(readFileSync(copy, 'utf8'), 'new');
  files.allowWriting([at('.envrc')]);
  write('.envrc', 'newer');
  files.end(writer);
  assert.equal(readFileSync(at('.envrc'), 'utf8'), 'newer');
});

test('a folder is compared with what it held before a process was killed', (t) => {
  const first = guardOf(t);
  first.write('.vscode/settings.json', '{}');
  first.begin();
  const record = readGuardRecord(first.folder);
  assert.ok(record !== null);
  first.write('.vscode/tasks.json', '{}');
  const second = new ProtectedFiles({
    ...{ userPlaces: [], hidden: [], notes: [], environment: process.env },
    workspace: record.workspace,
    folder: path.join(first.folder, 'aside'),
    record: guardRecordIn(first.folder),
    interrupted: [{ ...record, isAlive: () => false }],
    tellUser: () => undefined,
  });
  second.sweep();
  assert.deepEqual(readdirSync(first.at('.vscode')), ['settings.json']);
});

test('a command that ends during a walk is walked after at once', async (t) => {
  const { at } = guardOf(t);
  for (let name = 0; name < 1_500; name++) mkdirSync(at(`build/${name}`), { recursive: true });
  let ends = 0;
  const walk = new BackgroundWalk(() => {
    ends += 1;
  });
  const frontier = [{ folder: at('build'), isInPackages: false }];
  walk.walkFirst(frontier);
  walk.begin();
  walk.walkAfter(frontier, true);
  assert.equal(ends, 0, 'control: the first walk is under way');
  await until('both walks end', () => ends === 2);
  assert.equal(walk.isPending, false);
});

test('a workspace is writable without sockets, and a full disk leaves no running command', (t) => {
  const { at, write, files } = guardOf(t);
  const full = {
    begin: () => undefined,
    end: () => assert.fail('ENOSPC'),
  } as unknown as GitHistory; // private members
  const guard = new WorkspaceGuard(at('.'), [], files, full);
  const access = {
    isWritable: true,
    repository: 'read',
    purpose: NO_PURPOSE,
    writable: [],
  } as const;
  const none = { masked: [], mounts: [] };
  const { mounts, end } = guard.mountsFor(
    access,
    { host: none, home: none, secrets: [] },
    NO_SOCKETS,
  );
  assert.deepEqual(
    mounts.map(({ path: place, right }) => [place, right]),
    [[at('.'), 'write']],
  );
  assert.match(end().join('\n'), /git history was not copied: ENOSPC/);
  write('.envrc', 'x');
  files.sweep();
  assert.ok(existsSync(at('.envrc')), 'no command runs: it is the user who made it');
});
