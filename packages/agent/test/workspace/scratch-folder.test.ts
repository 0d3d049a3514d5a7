import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { identifyProcess } from '../../src/platform/processes.js';
import { makeScratch } from '../../src/workspace/scratch-folder.js';

test('temporary folders of git: those of killed programs are removed, those of living ones and of others stay', (context) => {
  const parent = temporaryFolder(context, 'scratch');
  const before = process.env.TMPDIR;
  process.env.TMPDIR = parent;
  context.after(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  const dead = { ...identifyProcess(), pid: spawnSync('true').pid, started: '1' };
  const at = (name: string): string => path.join(parent, name);
  const make = (name: string, owner: object | null, daysOld = 0): void => {
    mkdirSync(at(name));
    writeFileSync(path.join(at(name), 'index'), 'x');
    if (owner !== null) writeFileSync(path.join(at(name), 'owner.json'), JSON.stringify(owner));
    const time = Date.now() / 1000 - daysOld * 90_000;
    utimesSync(at(name), time, time);
  };
  make('pawl-git-dead01', dead);
  make('pawl-git-alive1', identifyProcess());
  make('pawl-git-nobody', null);
  make('pawl-git-oldone', null, 1);
  make('another-program', dead);
  make('elsewhere', dead);
  symlinkSync(at('elsewhere'), at('pawl-git-link01'));
  const own = makeScratch();
  assert.equal(existsSync(own), true);
  const left = ['dead01', 'alive1', 'nobody', 'oldone', 'link01'].filter((name) =>
    existsSync(at(`pawl-git-${name}`)),
  );
  assert.deepEqual(left, ['alive1', 'nobody', 'link01']);
  assert.deepEqual([existsSync(at('another-program')), existsSync(at('elsewhere'))], [true, true]);
});
