import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { findProgram, searchPrograms } from '../../src/platform/find-program.js';
import { askProgram, NODE_PROGRAM } from '../../src/platform/start-program.js';

/** Where programs are looked for, and where not. */

const OTHER_USER = 54_321;
const isRoot = process.getuid?.() === 0;

type Place = {
  readonly root: string;
  /** Makes a program that prints its own path. */
  program(file: string, mode?: number): string;
  find(name: string, searchPath: readonly string[], home?: string): string | null;
};

const makePlace = (t: TestContext): Place => {
  const root = temporaryFolder(t, 'programs');
  const workspace = path.join(root, 'repository', 'part');
  mkdirSync(workspace, { recursive: true });
  mkdirSync(path.join(root, 'repository', '.git'));
  return {
    root,
    program: (file, mode = 0o755) => {
      const whole = path.join(root, file);
      mkdirSync(path.dirname(whole), { recursive: true });
      writeFileSync(whole, `#!/bin/sh\necho ${file}\n`);
      chmodSync(whole, mode);
      return whole;
    },
    find: (name, searchPath, home = path.join(root, 'home')) => {
      const PATH = searchPath.map((entry) => entry.replace('ROOT', root)).join(':');
      const found = findProgram(name, { environment: { PATH, HOME: home }, workspace });
      return found === null ? null : path.relative(root, found);
    },
  };
};

test('a program is found by its name, in the order of the search path, also through symlinks', (t) => {
  const place = makePlace(t);
  place.program('one/tool');
  place.program('two/tool');
  place.program('two/other');
  place.program('two/not-runnable', 0o644);
  mkdirSync(path.join(place.root, 'two/folder'));
  symlinkSync('two', path.join(place.root, 'linked'));
  symlinkSync('../two/other', path.join(place.root, 'one/renamed'));
  const rows: readonly (readonly [
    name: string,
    searchPath: readonly string[],
    found: string | null,
  ])[] = [
    ['tool', ['ROOT/one', 'ROOT/two'], 'one/tool'],
    ['other', ['ROOT/nowhere', 'ROOT/one', 'ROOT/two'], 'two/other'],
    ['other', ['ROOT/linked'], 'two/other'],
    ['renamed', ['ROOT/one'], 'one/renamed'],
    ['not-runnable', ['ROOT/two'], null],
    ['folder', ['ROOT/two'], null],
    ['../two/tool', ['ROOT/one'], null],
    ['', ['ROOT/one'], null],
  ];
  for (const [name, searchPath, found] of rows)
    assert.equal(place.find(name, searchPath), found, name);
});

test('nothing that a repository brings along is found', (t) => {
  const place = makePlace(t);
  place.program('repository/part/node_modules/.bin/git');
  place.program('repository/bin/git');
  place.program('git-outside/git');
  symlinkSync('repository/bin', path.join(place.root, 'linked'));
  mkdirSync(path.join(place.root, 'farm'));
  symlinkSync('../repository/bin/git', path.join(place.root, 'farm/git'));
  const before = process.cwd();
  t.after(() => process.chdir(before));
  process.chdir(path.join(place.root, 'repository/part'));
  const hostile = [
    './node_modules/.bin',
    'node_modules/.bin',
    '',
    '.',
    '../bin',
    'ROOT/repository/part/node_modules/.bin',
    'ROOT/repository/bin',
    'ROOT/linked',
    'ROOT/git-outside/../repository/bin',
    'ROOT/farm',
  ];
  for (const entry of hostile) assert.equal(place.find('git', [entry]), null, entry);
  assert.equal(place.find('git', [...hostile, 'ROOT/git-outside']), 'git-outside/git');
  assert.equal(
    place.find('git', ['ROOT/repository/bin'], path.join(place.root, 'repository')),
    'repository/bin/git',
    'a repository that holds the home is avoided as far as the workspace only',
  );
});

test('a workspace that is the whole machine leaves the folders of the system usable', (t) => {
  const { root, program } = makePlace(t);
  program('tools/git');
  const environment = { PATH: `${root}/tools:/usr/bin:/bin`, HOME: '/nowhere' };
  const search = searchPrograms({ environment, workspace: '/' });
  assert.match(search.find('sh') ?? '', /bin\/sh$/);
  assert.equal(search.folders.includes(`${root}/tools`), false);
});

/** A folder with a program in it, and what is done to them; `root`: that needs root. */
type Exchange = readonly [
  folder: string,
  change: (place: Place) => void,
  why: RegExp | null,
  needs?: 'root',
];

const giveTo =
  (file: string, uid = OTHER_USER) =>
  ({ root }: Place): void =>
    chownSync(path.join(root, file), uid, uid);
const open =
  (file: string, mode: number) =>
  ({ root }: Place): void =>
    chmodSync(path.join(root, file), mode);

const exchanges: readonly Exchange[] = [
  ['open', open('open', 0o777), /other users may write/],
  ['file-open', open('file-open/tool', 0o777), /other users may change/],
  ['sticky', open('sticky', 0o1777), null],
  ['ours', open('ours', 0o755), null],
  ['foreign', giveTo('foreign'), /belongs to another user/, 'root'],
  ['above/below', giveTo('above'), /above belongs to another user/, 'root'],
  ['file', giveTo('file/tool'), /other users may change/, 'root'],
  [
    'shared',
    ({ root }) => {
      chownSync(path.join(root, 'shared'), 0, OTHER_USER);
      chmodSync(path.join(root, 'shared'), 0o775);
    },
    /other users may write/,
    'root',
  ],
  [
    'link',
    ({ root }) => {
      rmSync(path.join(root, 'link/tool'));
      symlinkSync('../foreign/tool', path.join(root, 'link/tool'));
    },
    /foreign belongs to another user/,
    'root',
  ],
  ['administrators', open('administrators', 0o775), null, 'root'],
];

test('a program that others can exchange is not taken, and it is said why', (t) => {
  const place = makePlace(t);
  const rows = exchanges.filter(([, , , needs]) => isRoot || needs !== 'root');
  if (!isRoot)
    t.diagnostic(
      `${exchanges.length - rows.length} rows need root: no other user's files can be made`,
    );
  for (const [folder] of rows) place.program(`${folder}/tool`);
  for (const [, change] of rows) change(place);
  for (const [folder, , why] of rows) {
    const environment = { PATH: path.join(place.root, folder), HOME: '/nowhere' };
    const search = searchPrograms({
      environment,
      workspace: path.join(place.root, 'repository/part'),
    });
    assert.equal(search.find('tool') === null, why !== null, folder);
    if (why !== null)
      assert.match(search.skipped[0]?.why ?? search.whyNot('tool') ?? '', why, folder);
  }
});

test('without a search path the reason is said', (t) => {
  const { root } = makePlace(t);
  const whyNot = (PATH: string | undefined): string | null =>
    searchPrograms({ environment: { PATH, HOME: '/nowhere' }, workspace: root }).whyNot('tool');
  assert.equal(whyNot(undefined), 'PATH is not set');
  assert.equal(whyNot(''), 'PATH is not set');
  assert.equal(whyNot('.:bin'), 'PATH names no absolute folder');
  assert.equal(whyNot('/nowhere'), null);
});

test('an answer has both outputs and the exit code; what can’t be started has none', async (t) => {
  const own = { environment: process.env, searchPath: ['/usr/bin', '/bin'] };
  const words = ['-e', 'console.log(1); console.error(2); process.exit(3)'];
  const answer = await askProgram(NODE_PROGRAM, words, own);
  assert.deepEqual([answer?.code, answer?.output, answer?.errors], [3, '1\n', '2\n']);
  const place = makePlace(t);
  place.program('bin/gone');
  const gone = findProgram('gone', {
    environment: { PATH: path.join(place.root, 'bin') },
    workspace: null,
  });
  assert.ok(gone !== null);
  rmSync(gone);
  assert.equal(await askProgram(gone, [], own), null);
  assert.equal(await askProgram(NODE_PROGRAM, ['a\0b'], own), null, 'a word that no program takes');
});
