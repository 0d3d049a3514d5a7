import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { buildRunner, SEEDED } from '../../../../test/kit/sandbox/fence.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';

/** A program that was started with an open folder starts others: do they find it? */

const folder = mkdtempSync(path.join(tmpdir(), 'pawl-descriptors-'));
const PLACE = 20;
let held = 0;

before(() => {
  writeFileSync(path.join(folder, 'secret'), SEEDED);
  held = openSync(folder, 'r');
});

after(() => {
  closeSync(held);
  removeFolderSync(folder);
});

/** With the open folder at descriptor 20 and at 9. */
const runWithFolder = (program: string, words: readonly string[]): string => {
  const stdio = Array.from({ length: PLACE + 1 }, (_, at): 'ignore' | 'pipe' | number => {
    if (at === 1 || at === 2) return 'pipe';
    return at === 9 || at === PLACE ? held : 'ignore';
  });
  const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8', stdio });
  assert.equal(status, 0, stderr);
  return stdout;
};

test('the control: a program that is simply started finds it', () => {
  const code = `require('child_process').spawnSync('cat', ['/proc/self/fd/20/secret'], { stdio: ['ignore', 'inherit', 'inherit'] })`;
  assert.match(runWithFolder(process.execPath, ['-e', code]), new RegExp(SEEDED));
});

test('a program written by a model does not find it', async () => {
  const runner = await buildRunner(folder, 'descriptor-runner');
  assert.equal(runWithFolder(process.execPath, [runner]), 'false');
});

test('a command does not find it, fenced or not', async () => {
  const runner = await buildRunner(folder);
  const command = `for at in /proc/self/fd/*; do echo "$at"; done | wc -l; cat /proc/self/fd/*/secret; true`;
  const scenario = {
    name: 'descriptors',
    workspace: folder,
    environment: { PATH: process.env.PATH, HOME: '/nonexistent' },
    sessionFolder: path.join(folder, 'state/sandbox', `${process.pid}-test`),
    hidden: [],
    steps: [
      { level: 'workspace', command },
      { level: 'off', command },
    ],
  };
  writeFileSync(path.join(folder, 'scenario.json'), JSON.stringify([scenario]));
  const [{ ends, fault }] = JSON.parse(
    runWithFolder(process.execPath, [runner, path.join(folder, 'scenario.json')]),
  );
  assert.equal(fault, null);
  // The three of the system, and the one with which the shell lists them.
  for (const { output } of ends) {
    assert.doesNotMatch(output, new RegExp(SEEDED));
    assert.match(output, /^[34]\n/);
  }
});
