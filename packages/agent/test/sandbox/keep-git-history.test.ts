import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import {
  prepareRunner,
  type Ran,
  runCases,
  testAccounts,
} from '../../../../test/kit/sandbox/fence.js';
import { chooseRows } from '../../../../test/tier.js';
import type { RepositoryAccess } from '../../src/policy/repository-access.js';
import { ACCESSES, ATTACKS, type Attack, caseOf, HISTORY } from './git-history-attacks.js';

const { runner, fixture } = await prepareRunner(HISTORY);
const accounts = testAccounts();

const CHOSEN = chooseRows(ATTACKS, ({ kind, name }) => kind ?? name);

/** The control, and one of those that keep the history. */
const accessesOf = ({ name }: Attack): readonly RepositoryAccess[] =>
  chooseRows(ACCESSES, (access) => `${name}, ${access === 'approved'}`);

for (const account of accounts) {
  describe(`history can't be deleted, as ${account.who}`, () => {
    // little differs for the first account
    const attacks = account === accounts.at(-1) ? CHOSEN : chooseRows(CHOSEN);
    const cases = attacks.map((attack) => caseOf(attack, fixture, accessesOf(attack)));
    let ran: Ran;
    before(() => {
      ran = runCases(runner, { cases, level: 'workspace', account });
    });
    for (const attack of attacks) {
      const { name } = attack;
      test(`a script that ${name}`, () => {
        const ends = ran.ends.get(name) ?? [];
        for (const [index, access] of accessesOf(attack).entries()) {
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
