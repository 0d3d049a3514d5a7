import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { until } from '../../../../test/until.js';
import type { HookEffect } from '../../src/machine/event.js';
import type { HookReport } from '../../src/ports/hooks.js';
import { makeRepository, makeSession, type Place, wrapGit } from './place.js';

/** A commit whose program ended in the middle of it, in a repository that has changed since. */

/**
 * `prepared`: it is killed when the intent is durable. `killed`, `exits`: while git holds its locks, before the branch
 * moves. `never`: the control.
 */
type Moment = 'prepared' | 'killed' | 'exits' | 'never';
type CommitEffect = Extract<HookEffect, { readonly kind: 'commit' }>;

const program = await bundleProgram(
  { after },
  { file: fileURLToPath(new URL('commit-and-die.ts', import.meta.url)) },
);

/** Commits `a` (changed) and `new` (added); the effect that the journal would hold. */
const interruptCommit = async (place: Place, moment: Moment): Promise<CommitEffect> => {
  await place.write('a', 'of the agent\n');
  await place.write('new', 'of the agent\n');
  const waits =
    'case "$*" in *update-ref*) touch ROOT/holds; until [ -e ROOT/go ]; do sleep 0.01; done;; esac';
  const environment =
    moment === 'killed' || moment === 'exits'
      ? await wrapGit(place, `${waits}; exec REAL "$@"`)
      : place.environment;
  const child = spawn(process.execPath, [program, place.workspace, moment], {
    env: { ...environment, TMPDIR: place.root },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (piece) => (output += piece));
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  if (moment === 'killed' || moment === 'exits') {
    await until('git is to move the branch', () => existsSync(path.join(place.root, 'holds')));
    assert.ok(existsSync(place.path('.git/index.lock')), 'control: the index is locked');
    child.kill(moment === 'killed' ? 'SIGKILL' : 'SIGTERM');
    await ended;
    await place.shell('touch ../go');
    await until('the lock is gone', () => !existsSync(place.path('.git/index.lock')));
  }
  await ended;
  // the child wrote it
  return JSON.parse(output) as CommitEffect;
};

/** The phase of the resumed session. */
const resumeCommit = (place: Place, effect: CommitEffect | null): Promise<HookReport> => {
  const session = makeSession(place);
  const changedFiles = ['a', 'new'].map((name) => place.path(name));
  const checked = { commits: [], changedFiles, dirty: true, note: '', warning: '', proceed: true };
  const interrupted = effect === null ? [] : [effect];
  const context = { ...session.context([]), reports: [checked], interrupted };
  return session.hooks.run('AutoCommitting', context);
};

const look = (place: Place): Promise<string> =>
  place.shell('git log --format=%s; git status --porcelain');

const checkSound = async (place: Place): Promise<void> => {
  assert.equal(await place.shell('git fsck --strict --no-dangling 2>&1'), '');
  const left = readdirSync(place.path('.git'), { recursive: true, encoding: 'utf8' });
  assert.deepEqual(
    left.filter((name) => /\.lock$|pawl-/.test(name)),
    [],
  );
};

for (const moment of ['never', 'killed', 'exits'] as const)
  test(`a commit is made whole if its program is ${moment} while git holds its locks`, async (t) => {
    const place = await makeRepository(t);
    const effect = await interruptCommit(place, moment);
    assert.equal(await look(place), 'feat: cut off\nfirst\n');
    await checkSound(place);
    for (let time = 0; time < 2; time++) {
      const report = await resumeCommit(place, effect);
      assert.deepEqual(report.commits, [
        { hash: effect.commit, subject: 'feat: cut off (2 files, +2 -1)' },
      ]);
      assert.match(report.note, /Your changes were committed to main as/);
    }
    assert.equal(await look(place), 'feat: cut off\nfirst\n', 'it is not made again');
  });

type Row = {
  readonly title: string;
  readonly moment: Moment;
  /** What the user does between the kill and the resumed session. */
  readonly meanwhile: string;
  readonly after: string;
  readonly told: RegExp;
};

const NOT_MADE = /Not committed: a, new: no call of the agent is known to have changed it/;

const rows: readonly Row[] = [
  {
    title: 'it was not made',
    moment: 'prepared',
    meanwhile: ':',
    after: 'first\n M a\n?? new\n',
    told: NOT_MADE,
  },
  {
    title: 'the user has committed on top of it',
    moment: 'never',
    meanwhile: 'echo user > b; git commit -qm theirs b',
    after: 'theirs\nfeat: cut off\nfirst\n',
    told: /Your changes were committed/,
  },
  {
    title: 'it was not made, and the user has committed something else',
    moment: 'prepared',
    meanwhile: 'echo user > b; git commit -qm theirs b',
    after: 'theirs\nfirst\n M a\n?? new\n',
    told: NOT_MADE,
  },
  {
    title: 'the repository has been replaced',
    moment: 'never',
    meanwhile: 'rm -rf .git; git init -q -b main; git add b; git commit -qm anew',
    after: 'anew\n?? a\n?? new\n',
    told: NOT_MADE,
  },
];

for (const { title, moment, meanwhile, after: then, told } of rows)
  test(`an interrupted commit is looked for where ${title}`, async (t) => {
    const place = await makeRepository(t);
    const effect = await interruptCommit(place, moment);
    await place.shell(meanwhile);
    const report = await resumeCommit(place, effect);
    assert.match(report.note, told);
    assert.equal(await look(place), then);
    await checkSound(place);
  });

/** Ends the script that commits, with its git. */
const END_GROUP = 'kill -TERM -- -$(ps -o pgid= $$ | tr -d " ")';

test('a commit is made whole if it is ended when its branch has moved', async (t) => {
  const place = await makeRepository(t);
  const moves = `case "$*" in *update-ref*) REAL "$@"; ${END_GROUP};; esac; exec REAL "$@"`;
  const session = makeSession(place, { environment: await wrapGit(place, moves) });
  const calls = await session.batch([{ edit: 'a', text: 'of the agent\n' }]);
  const { commits } = await session.hooks.run('AutoCommitting', session.context(calls));
  assert.equal(commits.length, 1);
  assert.equal(await place.shell('git status --porcelain'), '');
  await checkSound(place);
});

test('a commit whose git is ended, too, removes its lock and changes nothing', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(
    place,
    `case "$*" in *update-ref*) ${END_GROUP};; esac; exec REAL "$@"`,
  );
  const session = makeSession(place, { environment });
  const calls = await session.batch([{ edit: 'a', text: 'of the agent\n' }]);
  await assert.rejects(session.hooks.run('AutoCommitting', session.context(calls)), ProgramFailed);
  assert.equal(await look(place), 'first\n M a\n');
  await checkSound(place);
});

const ProgramFailed = { name: 'ProgramFailure', message: /the commit could not be made/ };
