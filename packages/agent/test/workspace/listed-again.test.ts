import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import '../../../../test/own-process.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { WorkspaceLister } from '../../src/workspace/checkpoints/workspace-lister.js';
import { KnownRepository } from '../../src/workspace/git.js';

/** Git is not asked again while nothing changed, and whatever could change its list is seen. */

type Place = {
  readonly workspace: string;
  readonly home: string;
  git(...words: readonly string[]): void;
};

const LATER_MS = 2_100; // facts about a repository are cached once its files lay still

const begin = (t: TestContext) => {
  const folder = realpathSync(temporaryFolder(t, 'pawl-listed-'));
  const [top, home, programs] = ['top', 'home', 'programs'].map((name) => path.join(folder, name));
  assert.ok(top !== undefined && home !== undefined && programs !== undefined);
  const workspace = path.join(top, 'inner');
  for (const one of ['a/b', 'empty/deep', 'logs', 'node_modules/x', 'nested/.git'])
    mkdirSync(path.join(workspace, one), { recursive: true });
  for (const one of [home, programs]) mkdirSync(one, { recursive: true });
  const write = (name: string, text: string): void =>
    writeFileSync(path.join(workspace, name), text);
  write('.gitignore', 'node_modules/\n*.log\n');
  write('a/b/c.txt', 'c');
  write('logs/one.log', 'one');
  write('node_modules/x/y.js', 'y');
  const git = (...words: readonly string[]): void => {
    const who = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
    execFileSync('git', [...who, ...words], { cwd: workspace, stdio: 'ignore' });
  };
  execFileSync('git', ['init', '-q', '.'], { cwd: top });
  execFileSync('git', ['init', '-q', '.'], { cwd: path.join(workspace, 'nested') });
  write('nested/inside.txt', 'inside');
  write('a/kept.log', 'kept');
  git('add', '-f', '.gitignore', 'a');
  git('commit', '-qm', 'one');
  write('a/loose.txt', 'loose');
  // writes down with which words git is started
  const count = path.join(folder, 'count');
  const program = path.join(programs, 'git');
  writeFileSync(
    program,
    `#!/bin/sh\necho "$*" >> '${count}'\nPATH='${process.env.PATH}' exec git "$@"\n`,
  );
  chmodSync(program, 0o755);
  writeFileSync(count, '');
  const environment = { PATH: `${programs}:/usr/bin:/bin`, HOME: home };
  const open = (): WorkspaceLister =>
    new WorkspaceLister({
      workspace,
      environment,
      signal: new AbortController().signal,
      known: new KnownRepository(environment),
    });
  const place: Place = { workspace, home, git };
  return { place, open, started: () => readFileSync(count, 'utf8').split('\n').slice(0, -1) };
};

const write =
  (name: string, text = 'new') =>
  ({ workspace }: Place): void => {
    mkdirSync(path.dirname(path.join(workspace, name)), { recursive: true });
    writeFileSync(path.join(workspace, name), text);
  };

const CHANGES: readonly (readonly [title: string, change: (place: Place) => void])[] = [
  ['a file beside others', write('a/b/new.txt')],
  ['a file in an empty folder', write('empty/deep/new.txt')],
  ['a file in a folder of ignored ones', write('logs/new.txt')],
  ['a file in a new folder', write('fresh/deep/new.txt')],
  ['a pattern more', write('.gitignore', 'node_modules/\n*.log\n*.txt\n')],
  ['a pattern less', write('.gitignore', '')],
  ['patterns in a bare folder', write('logs/.gitignore', '!one.log\n')],
  ['patterns above the workspace', write('../.gitignore', '*.txt\n')],
  ['patterns of the repository', write('../.git/info/exclude', 'loose.txt\n')],
  [
    'patterns of the user',
    ({ home }) => {
      mkdirSync(path.join(home, '.config', 'git'), { recursive: true });
      writeFileSync(path.join(home, '.config', 'git', 'ignore'), '*.txt\n');
    },
  ],
  ['an ignored file in the index', ({ git }) => git('add', '-f', 'logs/one.log')],
  ['a file less in the index', ({ git }) => git('rm', '-q', '--cached', 'a/kept.log')],
  [
    'a nested repository that is none any more',
    ({ workspace }) => rmSync(path.join(workspace, 'nested', '.git'), { recursive: true }),
  ],
  [
    'a moved folder',
    ({ workspace }) => renameSync(path.join(workspace, 'a'), path.join(workspace, 'moved')),
  ],
  ['a removed file', ({ workspace }) => rmSync(path.join(workspace, 'a', 'b', 'c.txt'))],
];

const namesOf = async (lister: WorkspaceLister): Promise<readonly string[]> =>
  [...(await lister.list(false)).names].sort();

for (const [title, change] of chooseRows(CHANGES, ([title]) => title.split(' ')[0] ?? '', 3))
  test(`the list of files is made again after ${title}`, async (t) => {
    const { place, open, started } = begin(t);
    const lister = open();
    await sleep(LATER_MS);
    await namesOf(lister);
    const before = started().length;
    const names = await namesOf(lister);
    assert.equal(started().length, before, 'git was asked though nothing changed');
    change(place);
    const after = await namesOf(lister);
    assert.deepEqual(after, await namesOf(open()));
    const isSame = JSON.stringify(after) === JSON.stringify(names);
    assert.equal(isSame, title === 'a removed file');
  });

test('only the folders that have changed are listed again, with all below them', async (t) => {
  const { place, open, started } = begin(t);
  const lister = open();
  await sleep(LATER_MS);
  const names = await namesOf(lister);
  const before = started().length;
  write('a/b/new.txt')(place);
  write('a/b/deep/new.txt')(place);
  write('logs/.gitignore', '!one.log\n')(place);
  const more = ['a/b/deep/new.txt', 'a/b/new.txt', 'logs/.gitignore', 'logs/one.log'];
  assert.deepEqual(await namesOf(lister), [...names, ...more].sort());
  const listings = started()
    .slice(before)
    .filter((words) => words.includes('ls-files'));
  assert.deepEqual(
    listings.map((words) => words.split(' -- ')[1]?.split(' ').sort()),
    [['inner/a/b', 'inner/logs']],
  );
  write('top.txt')(place);
  assert.deepEqual(await namesOf(lister), [...names, ...more, 'top.txt'].sort());
});
