import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  buildRunner,
  makeAccounts,
  type Ran,
  runCases,
} from '../../../../test/kit/sandbox/fence.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { FIXTURE, TRAPS, trapCase } from './user-traps.js';

// What a fenced command leaves in the workspace, and then the user's own git, editor and shell: nothing of it may run.

const folder = mkdtempSync(path.join(tmpdir(), 'pawl-traps-'));
const runner = await buildRunner(folder);
const { accounts, remove } = makeAccounts();

after(() => {
  remove();
  removeFolderSync(folder);
});

const fixture = path.join(folder, 'fixture');
chmodSync(folder, 0o755);
mkdirSync(fixture);
const made = spawnSync('/bin/bash', ['-ec', FIXTURE], { cwd: fixture, encoding: 'utf8' });
assert.equal(made.status, 0, made.stderr);

const CASES = TRAPS.map((trap) => trapCase(trap, fixture));

const fired = (ran: Ran, name: string): boolean =>
  (ran.ends.get(name) ?? []).at(-1)?.output.includes('ESCAPED') ?? false;

test('there are at least sixty ways', () => {
  assert.ok(TRAPS.length >= 60, String(TRAPS.length));
});

for (const account of accounts) {
  describe(`traps for the user, as ${account.who}`, () => {
    let fenced: Ran;
    let open: Ran | null = null;
    before(() => {
      fenced = runCases(runner, { cases: CASES, level: 'workspace', account });
      // The control needs no second account.
      if (account === accounts.at(-1))
        open = runCases(runner, { cases: CASES, level: 'off', account });
    });
    for (const { name } of TRAPS) {
      test(name, () => {
        if (open !== null)
          assert.ok(fired(open, name), `the control fails: ${JSON.stringify(open.ends.get(name))}`);
        assert.equal(fired(fenced, name), false, JSON.stringify(fenced.ends.get(name)));
      });
    }
  });
}
