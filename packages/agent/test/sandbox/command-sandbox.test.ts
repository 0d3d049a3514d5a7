import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  buildRunner,
  makeAccounts,
  type Ran,
  runCases,
  SEEDED,
} from '../../../../test/kit/sandbox/fence.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { ESCAPES } from './fence-escapes.js';
import { EVERYDAY } from './fence-everyday.js';
import { HANDED_OVER } from './handed-over-folders.js';
import { REACH_ESCAPES } from './reach-escapes.js';

const ALL = [...ESCAPES, ...REACH_ESCAPES, ...HANDED_OVER];

const folder = mkdtempSync(path.join(tmpdir(), 'pawl-fence-runner-'));
const runner = await buildRunner(folder);
const { accounts, remove } = makeAccounts();

after(() => {
  remove();
  removeFolderSync(folder);
});

const escaped = (ran: Ran, name: string): boolean =>
  (ran.ends.get(name) ?? []).some(
    ({ output }) => output.includes('ESCAPED') || output.includes(SEEDED),
  );

for (const account of accounts) {
  describe(`programs that try to get out, as ${account.who}`, () => {
    let fenced: Ran;
    let open: Ran;
    before(() => {
      fenced = runCases(runner, { cases: ALL, level: 'workspace', account });
      open = runCases(runner, { cases: ALL, level: 'off', account });
    });
    for (const { name, who } of ALL) {
      if (who !== undefined && who !== account.who) continue;
      test(name, () => {
        assert.equal(
          escaped(open, name),
          true,
          `the control fails: ${JSON.stringify(open.ends.get(name))}`,
        );
        assert.equal(escaped(fenced, name), false, JSON.stringify(fenced.ends.get(name)));
      });
    }
  });
}

// As an ordinary user: root has more rights, which everyday commands do not use.
for (const account of accounts.slice(-1)) {
  describe(`everyday commands, as ${account.who}`, () => {
    let fenced: Ran;
    before(() => {
      fenced = runCases(runner, { cases: EVERYDAY, level: 'workspace', account });
    });
    for (const { name } of EVERYDAY) {
      test(name, () => {
        const ends = fenced.ends.get(name) ?? [];
        assert.match(ends.at(-1)?.output ?? '', /DONE/, JSON.stringify(ends));
        assert.deepEqual(
          ends.flatMap(({ notes }) => notes),
          [],
        );
      });
    }
  });
}
