import assert from 'node:assert/strict';
import { chmod, mkdir } from 'node:fs/promises';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import type { HookReport } from '../../src/ports/hooks.js';
import { commitA } from './committing.js';
import {
  type Deed,
  type Environment,
  makeRepository,
  makeSession,
  rest,
  type Session,
  writeAsTool,
} from './place.js';

const identities: readonly {
  readonly title: string;
  readonly given?: string;
  readonly environment?: Environment;
  readonly is: string;
}[] = [
  {
    title: 'nobody, and no home',
    environment: { HOME: undefined },
    is: 'Pawl <pawl@localhost> Pawl <pawl@localhost>',
  },
  { title: 'nobody, and an empty home', is: 'Pawl <pawl@localhost> Pawl <pawl@localhost>' },
  {
    title: 'one by the repository',
    given: 'git config user.name Bob; git config user.email b@x',
    is: 'Bob <b@x> Bob <b@x>',
  },
  {
    title: 'one by the user',
    given: 'git config --global user.name Bob',
    is: 'Bob <pawl@localhost> Bob <pawl@localhost>',
  },
  {
    title: 'one in an included file',
    given:
      "git config include.path more; printf '[user]\\nname = Bob\\nemail = b@x\\n' > .git/more",
    is: 'Bob <b@x> Bob <b@x>',
  },
  {
    title: 'one for authors only',
    given: 'git config author.name Eve',
    is: 'Eve <pawl@localhost> Pawl <pawl@localhost>',
  },
  {
    title: 'one in the environment',
    environment: { GIT_AUTHOR_NAME: 'Eve', GIT_COMMITTER_EMAIL: 'e@x' },
    given: 'git config user.name Bob',
    is: 'Eve <pawl@localhost> Bob <e@x>',
  },
];

for (const { title, given, environment, is } of chooseRows(identities)) {
  test(`auto-commit: its author, where the configuration names ${title}`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(given ?? 'true');
    await commitA(makeSession(place, { environment: { ...place.environment, ...environment } }));
    assert.equal(await place.shell("git log -1 --format='%an <%ae> %cn <%ce>'"), `${is}\n`);
  });
}

test('auto-commit: a commit that should be signed is not, and says so', async (t) => {
  const place = await makeRepository(t);
  await place.shell('git config commit.gpgSign true');
  assert.match(
    (await commitA(makeSession(place))).note,
    /as [0-9a-f]{8}, not signed: feat: something/,
  );
});

test('auto-commit: the reflog tells who moved the branch', async (t) => {
  const place = await makeRepository(t);
  await commitA(makeSession(place));
  const expected = 'commit (pawl): feat: something\n';
  assert.equal(
    await place.shell('git reflog -1 --format=%gs main; git reflog -1 --format=%gs HEAD'),
    expected + expected,
  );
});

test('auto-commit: its commit is no news for the next look', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  await commitA(session);
  const report = await session.check(session.context(await session.batch([{ command: 'true' }])));
  assert.deepEqual([report.note, report.commits, report.warning], ['', [], '']);
});

test('auto-commit: files that a formatter of ours changed are committed with the rest', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place);
  await place.shell('echo user >> b');
  const context = session.context(
    await session.batch([
      { edit: 'a', text: 'x' },
      { edit: 'new', text: 'x' },
      { command: 'echo x > own; git add own; git commit -qm own' },
      { edit: 'b', text: 'y' },
    ]),
  );
  await session.commit(context, async () => {
    for (const name of ['a', 'new', 'own', 'b'])
      await writeAsTool(place.path(name), `${await place.read(name)}formatted\n`, context.files);
  });
  assert.equal(await place.shell('git show --format= --name-only HEAD'), 'a\nnew\nown\n');
  assert.equal(await place.shell('git status --porcelain'), ' M b\n');
});

test('auto-commit: the mode of the index stays', async (t) => {
  const place = await makeRepository(t);
  await chmod(place.path('.git/index'), 0o660);
  await commitA(makeSession(place));
  assert.equal(await place.shell('stat -c %a .git/index'), '660\n');
});

test('auto-commit: outside of a repository nothing happens', async (t) => {
  const place = await makeRepository(t);
  await place.shell('rm -rf .git');
  await mkdir(place.path('sub'));
  const report = await commitA(makeSession(place));
  assert.deepEqual(
    [report.commits, report.note, report.warning, report.dirty],
    [[], '', '', false],
  );
});

const finish = async (session: Session, calls: readonly JudgedCall[]): Promise<HookReport> =>
  session.commit(session.context(calls, { write: async () => 'feat: something' }));

type CutRow = {
  readonly title: string;
  /** A batch before the kill, and the call that ran then. */
  readonly when: readonly Deed[];
  readonly cut?: Deed;
  /** The resumed session waits for the call. */
  readonly waits?: true;
  /** What the user does while Pawl is gone. */
  readonly meanwhile?: string;
  readonly committed: string;
  readonly status: string;
  readonly told?: RegExp;
};

const CUT = 'Pawl was killed or closed while a call of the agent ran';
const write: Deed = { command: 'echo x > new' };

const cuts: readonly CutRow[] = [
  {
    title: 'an edit that had taken effect is committed with its batch',
    when: [{ edit: 'a', text: 'x' }],
    cut: { edit: 'new', text: 'y' },
    meanwhile: 'echo user > theirs',
    committed: 'a\nnew\n',
    status: '?? theirs\n',
  },
  {
    title: 'what the user changed while Pawl was gone is not committed',
    when: [
      { edit: 'a', text: 'x' },
      { edit: 'b', text: 'x' },
    ],
    meanwhile: 'echo user >> b',
    committed: 'a\n',
    status: ' M b\n',
    told: /Not committed: b: (somebody else changed it too|Pawl was killed)/,
  },
  {
    title: 'where no call ran, the batch is committed as if nothing had happened',
    when: [write, { edit: 'a', text: 'x' }],
    committed: 'a\nnew\n',
    status: '',
  },
  {
    title: 'a command that runs on is awaited, and committed with its batch',
    when: [{ edit: 'a', text: 'x' }],
    cut: write,
    waits: true,
    committed: 'a\nnew\n',
    status: '',
  },
  {
    title: 'a command that has ended and changed nothing holds nothing back',
    when: [{ edit: 'a', text: 'x' }],
    cut: { command: 'true' },
    committed: 'a\n',
    status: '',
  },
  {
    title: 'one that has ended and changed files holds everything back',
    when: [{ edit: 'a', text: 'x' }],
    cut: write,
    committed: 'a\nb\n',
    status: ' M a\n?? new\n',
    told: new RegExp(`Not committed: a, new: ${CUT}`),
  },
];

for (const { title, when, cut, waits, meanwhile, committed, status, told } of cuts)
  test(`auto-commit after a kill: ${title}`, async (t) => {
    const place = await makeRepository(t);
    const first = makeSession(place);
    const calls = [...(await first.batch(when))];
    const call = cut === undefined ? undefined : await first.cut(cut);
    if (call !== undefined) calls.push(call);
    await rest();
    await place.shell(meanwhile ?? 'true');
    const second = await first.resume(waits === undefined ? undefined : call);
    const { warning } = await finish(second, calls);
    assert.equal(await place.shell('git show --format= --name-only HEAD'), committed);
    assert.equal(await place.shell('git status --porcelain'), status);
    assert.match(warning, told ?? /^$/);
  });

test('auto-commit: what was committed and taken back is not committed again, also by a later process', async (t) => {
  const place = await makeRepository(t);
  const first = makeSession(place);
  await commitA(first);
  await first.batch([{ command: 'true' }]); // takes the checkpoint
  await place.shell('git reset -q --soft HEAD~1');
  const second = await first.resume();
  await finish(second, await second.batch([{ edit: 'b', text: 'x' }]));
  assert.equal(await place.shell('git show --format= --name-only HEAD'), 'b\n');
  assert.equal(await place.shell('git status --porcelain'), 'M  a\n');
});

test('auto-commit: without checkpoints it is off, which is said once', async (t) => {
  const place = await makeRepository(t);
  const session = makeSession(place, { checkpoints: false });
  assert.match((await commitA(session)).warning, /auto-commit needs the checkpoints of files/);
  assert.equal((await commitA(session)).warning, '');
  assert.equal(await place.shell('git log --format=%s'), 'first\n');
});
