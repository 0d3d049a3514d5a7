import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import {
  type Case,
  prepareRunner,
  type Ran,
  runCases,
  SEEDED,
  testAccounts,
} from '../../../../test/kit/sandbox/fence.js';
import { chooseRows } from '../../../../test/tier.js';
import { ESCAPES } from './fence-escapes.js';
import { EVERYDAY } from './fence-everyday.js';
import { HANDED_OVER } from './handed-over-folders.js';
import { REACH_ESCAPES } from './reach-escapes.js';

/** Escapes that one protection stops, by their names. All others are the only ones of their kind. */
const KINDS: readonly RegExp[] = [
  /^reads .* of the home$/,
  /^reads a (?:secret|key) |^finds (?:keys|a secret anywhere)|^copies the home/,
  /^connects to a unix socket (?:in|beside|through)/,
  /^(?:signals|ends|limits|makes) a process of the machine/,
  /^leaves a process/,
  /^(?:finds a secret in|looks into) .*(?:another process|parent's environment)/,
  /^writes (?:beside|into a folder|to the home|a program|the configuration of git)/,
  /^makes a user namespace|^mounts/,
  /rights of its owner/,
  /^uses the kernel keyring|^sets up io_uring|^opens a packet socket/,
  /^plants a hook$|^changes git|^writes (?:the configuration of the worktree|attributes)|^names another common/,
  /^exchanges (?:\.git|the folder of attributes)/,
  /^makes a repository with|^plants an address|^names a git folder/,
  /bare repository|^makes the workspace a repository/,
  /^(?:changes|makes) editor tasks|^(?:changes|makes) a workflow/,
  /^(?:renames|links) a folder|^removes and makes|^exchanges (?:a package|the folder above)/,
  /^writes (?:what runs|it in other letters|instructions)/,
  /^(?:writes through|exchanges) a link that is protected/,
  /^writes another name|^links a protected name/,
  /handed over through a socket/,
  /handed over (?:to|by) a server/,
];
const kindOf = ({ name }: Case): string =>
  KINDS.find((kind) => kind.test(name))?.source ?? `${name} alone`;

const ALL = chooseRows([...ESCAPES, ...REACH_ESCAPES, ...HANDED_OVER], kindOf);

const { runner } = await prepareRunner();
const accounts = testAccounts();

const escaped = (ran: Ran, name: string): boolean =>
  (ran.ends.get(name) ?? []).some(
    ({ output }) => output.includes('ESCAPED') || output.includes(SEEDED),
  );

for (const account of accounts) {
  describe(`programs that try to get out, as ${account.who}`, () => {
    const isLast = account === accounts.at(-1);
    const mine = ALL.filter(({ who }) => who === undefined || who === account.who);
    // Of the first account what it alone may do, and little else. The control needs one account.
    const cases = isLast
      ? mine
      : mine.filter((one) => one.who !== undefined || chooseRows(ALL, () => '', 3).includes(one));
    const isControlled = ({ who }: Case): boolean => isLast || who !== undefined;
    const controls = chooseRows(cases.filter(isControlled), () => 'control', 8);
    let fenced: Ran;
    let open: Ran;
    before(() => {
      fenced = runCases(runner, { cases, level: 'workspace', account });
      open = runCases(runner, { cases: controls, level: 'off', account });
    });
    for (const one of cases) {
      const { name } = one;
      test(name, () => {
        if (controls.includes(one))
          assert.ok(
            escaped(open, name),
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
