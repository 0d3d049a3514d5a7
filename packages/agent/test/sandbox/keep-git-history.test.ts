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
} from '../../../../test/kit/sandbox/fence.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { ACCESSES, ATTACKS, caseOf } from './git-history-attacks.js';

const folder = mkdtempSync(path.join(tmpdir(), 'pawl-history-runner-'));
const runner = await buildRunner(folder);
const { accounts, remove } = makeAccounts();

after(() => {
  remove();
  removeFolderSync(folder);
});

for (const account of accounts) {
  describe(`history can't be deleted, as ${account.who}`, () => {
    let ran: Ran;
    before(() => {
      ran = runCases(runner, { cases: ATTACKS.map(caseOf), level: 'workspace', account });
    });
    for (const { name } of ATTACKS) {
      test(`a script that ${name}`, () => {
        const ends = ran.ends.get(name) ?? [];
        for (const [index, access] of ACCESSES.entries()) {
          const [attack, judged] = [ends[index * 3 + 1], ends[index * 3 + 2]];
          const expected = access === 'approved' ? /^LOST/ : /^KEPT/;
          assert.match(
            judged?.output ?? '',
            expected,
            `${access}: ${JSON.stringify({ attack, judged })}`,
          );
        }
      });
    }
  });
}
