import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import {
  prepareRunner,
  type Ran,
  runCases,
  testAccounts,
} from '../../../../test/kit/sandbox/fence.js';
import { chooseRows } from '../../../../test/tier.js';
import { FIXTURE, TRAPS, type Trap, trapCase } from './user-traps.js';

// What a fenced command leaves in the workspace, and then the user's own git, editor and shell: nothing of it may run.

const { runner, fixture } = await prepareRunner(FIXTURE);
const accounts = testAccounts();

const CHOSEN = chooseRows(TRAPS, ({ kind, name }) => kind ?? name);

const fired = (ran: Ran, name: string): boolean =>
  (ran.ends.get(name) ?? []).at(-1)?.output.includes('ESCAPED') ?? false;

for (const account of accounts) {
  describe(`traps for the user, as ${account.who}`, () => {
    // Little differs for the first one. The control needs one account.
    const isLast = account === accounts.at(-1);
    const traps = isLast ? CHOSEN : chooseRows(CHOSEN, () => '', 2);
    const controls = isLast ? chooseRows(CHOSEN, () => 'control', 6) : [];
    const casesOf = (all: readonly Trap[]) => all.map((trap) => trapCase(trap, fixture));
    let fenced: Ran;
    let open: Ran;
    before(() => {
      fenced = runCases(runner, { cases: casesOf(traps), level: 'workspace', account });
      open = runCases(runner, { cases: casesOf(controls), level: 'off', account });
    });
    for (const trap of traps) {
      const { name } = trap;
      test(name, () => {
        if (controls.includes(trap))
          assert.ok(fired(open, name), `the control fails: ${JSON.stringify(open.ends.get(name))}`);
        assert.equal(fired(fenced, name), false, JSON.stringify(fenced.ends.get(name)));
      });
    }
  });
}
