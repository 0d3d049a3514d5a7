import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import type { Settings } from '../../src/machine/settings.js';
import { type Deed, makeRepository, makeSession, type Place } from './place.js';

/** A report without waiting must say what a look says, or not be given. */

type Row = {
  readonly title: string;
  /** Before both sessions begin. */
  readonly given?: string;
  readonly when: readonly Deed[];
  readonly settings?: Partial<Settings>;
  readonly gives: 'report' | 'nothing';
};

const rows: readonly Row[] = [
  { title: 'a command that changes nothing', when: [{ command: 'true' }], gives: 'report' },
  {
    title: 'a command that changes files',
    when: [{ command: 'echo x >> a; rm b' }],
    gives: 'report',
  },
  { title: 'an edit', when: [{ edit: 'a', text: 'two' }], gives: 'report' },
  {
    title: 'an edit and a command, in a repository with no commit yet',
    given: 'rm -rf .git && git init -q .',
    when: [{ edit: 'a', text: 'two' }, { command: 'true' }],
    gives: 'report',
  },
  {
    title: 'an edit of what git keeps',
    when: [{ edit: '.git/description', text: 'x' }],
    gives: 'report',
  },
  {
    title: 'no repository',
    given: 'rm -rf .git',
    when: [{ edit: 'a', text: 'two' }],
    gives: 'report',
  },
  { title: 'a commit', when: [{ command: 'git commit -qam x --allow-empty' }], gives: 'nothing' },
  { title: 'another branch', when: [{ command: 'git switch -qc other' }], gives: 'nothing' },
  { title: 'a repository that is gone', when: [{ command: 'rm -rf .git' }], gives: 'nothing' },
  {
    title: 'a repository that comes into being',
    given: 'rm -rf .git',
    when: [{ command: 'git init -q .' }],
    gives: 'nothing',
  },
  {
    title: 'a commit of an earlier call of the batch',
    when: [{ command: 'git commit -qm x --allow-empty' }, { command: 'true' }],
    gives: 'nothing',
  },
  {
    title: 'auto-commit',
    when: [{ command: 'true' }],
    settings: { autoCommit: 'on' },
    gives: 'nothing',
  },
  {
    title: 'a command where a formatter is used',
    given: 'touch .prettierrc',
    when: [{ command: 'true' }],
    settings: { formatter: 'onChanges' },
    gives: 'nothing',
  },
  {
    title: 'a call of a cancelled turn',
    when: [{ command: 'true', cancelled: true }, { command: 'true' }],
    gives: 'nothing',
  },
];

/** Nothing was written a moment ago, as far as the session knows. */
const now = (): number => Date.now() + 10_000;

const sessionAt = (place: Place, { settings }: Row) =>
  makeSession(place, { settings: { autoCommit: 'off', ...settings }, now });

for (const row of chooseRows(rows, ({ gives }) => gives, 2)) {
  test(`${row.title}: ${row.gives} at once`, async (t) => {
    const place = await makeRepository(t);
    await place.write('b', 'b');
    if (row.given !== undefined) await place.shell(row.given);
    const [quick, slow] = [sessionAt(place, row), sessionAt(place, row)];
    // git is asked by the first look; what it said is known then
    for (const session of [quick, slow]) {
      await session.check(session.context(await session.batch([{ command: 'true' }])));
    }
    await slow.batch([{ command: 'true' }]);
    const calls = await quick.batch(row.when);
    const report = quick.hooks.runNow?.('CheckingGitCommits', quick.context(calls)) ?? null;
    assert.equal(report === null ? 'nothing' : 'report', row.gives);
    const looked = await slow.check(slow.context(calls));
    if (report !== null) assert.deepEqual(report, looked);
    // what follows is told as if there had been no such report
    await quick.batch([{ command: 'true' }]);
    const moved = await quick.batch([{ command: 'git commit -qm later --allow-empty || true' }]);
    const later = await quick.check(quick.context(moved));
    const told = later.commits.some(({ subject }) => subject.startsWith('later'));
    const last = await place.shell('git log -1 --format=%s || true');
    assert.equal(told, last.includes('later'));
  });
}

test('a batch without calls, and a session that has not looked, are asked about', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place, { settings: { autoCommit: 'off' }, now });
  assert.equal(session.hooks.runNow?.('CheckingGitCommits', session.context([])), null);
  const calls = await session.batch([{ command: 'true', unasked: true }]);
  assert.equal(session.hooks.runNow?.('CheckingGitCommits', session.context(calls)), null);
});
