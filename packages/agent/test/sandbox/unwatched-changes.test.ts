import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { guardRecordIn, ProtectedFiles } from '../../src/command/sandbox/protected-files.js';

// Commands of a killed session have ended while nobody watched: whatever the next session does first judges all of it,
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
