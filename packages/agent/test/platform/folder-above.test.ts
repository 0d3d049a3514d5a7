import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { findRepository } from '../../src/command/sandbox/git-folders.js';
import { findProgram } from '../../src/platform/find-program.js';
import {
  findFolderWithGit,
  folderAbove,
  repositoryFolders,
} from '../../src/platform/trusted-folders.js';

/** Pawl's searches for a repository end where git ends its own. */

const withVariables = (context: TestContext, variables: NodeJS.ProcessEnv): void => {
  const before = { ...process.env };
  Object.assign(process.env, variables);
  context.after(() => {
    for (const name of Object.keys(variables)) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  });
};

const topByGit = (folder: string): string | null => {
  const { stdout, status } = spawnSync('git', ['rev-parse', '--show-toplevel'], {
    cwd: folder,
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : null;
};

/** What each search finds from a folder. */
const topsByPawl = (folder: string): readonly (string | null)[] => {
  const found = findRepository(folder);
  return [
    repositoryFolders(folder).top,
    findFolderWithGit(folder),
    found.kind === 'found' ? found.repository.top : null,
  ];
};

const rows = [
  { title: 'no ceiling', ceilings: () => '', isFound: true },
  {
    title: 'a ceiling below the repository',
    ceilings: (top: string) => path.join(top, 'a'),
    isFound: false,
  },
  { title: 'the repository is the ceiling', ceilings: (top: string) => top, isFound: false },
  {
    title: 'a ceiling above the repository',
    ceilings: (top: string) => path.dirname(top),
    isFound: true,
  },
  {
    title: 'the folder itself is the ceiling',
    ceilings: (top: string) => path.join(top, 'a/b'),
    isFound: true,
  },
  { title: 'one of several', ceilings: (top: string) => `/nowhere:${top}/a`, isFound: false },
  { title: 'a relative one', ceilings: () => 'a', isFound: true },
];

for (const { title, ceilings, isFound } of rows) {
  test(`the search for a repository, as git's: ${title}`, (context) => {
    const top = temporaryFolder(context, 'ceiling');
    const folder = path.join(top, 'a/b');
    mkdirSync(folder, { recursive: true });
    assert.equal(spawnSync('git', ['init', '-q', top]).status, 0);
    withVariables(context, { GIT_CEILING_DIRECTORIES: ceilings(top) });
    const expected = isFound ? top : null;
    assert.equal(topByGit(folder), expected);
    assert.deepEqual(topsByPawl(folder), [expected, expected, expected]);
  });
}

test('the search for a repository ends at another file system, as that of git', (context) => {
  assert.equal(folderAbove('/proc'), null);
  withVariables(context, { GIT_DISCOVERY_ACROSS_FILESYSTEM: '1' });
  assert.equal(folderAbove('/proc'), '/');
});

test('programs beside a workspace are used if its repository ends at a ceiling, and not if they are in it', (context) => {
  const top = temporaryFolder(context, 'ceiling');
  const workspace = path.join(top, 'work');
  const bin = path.join(top, 'bin');
  for (const folder of [workspace, bin, path.join(top, '.git')]) mkdirSync(folder);
  assert.equal(spawnSync('cp', ['/bin/true', path.join(bin, 'probe')]).status, 0);
  // the home keeps the second search from being answered by the first one
  const find = (home: string) =>
    findProgram('probe', { environment: { PATH: bin, HOME: home }, workspace });
  assert.equal(find('/one'), null);
  withVariables(context, { GIT_CEILING_DIRECTORIES: top });
  assert.equal(find('/two'), path.join(bin, 'probe'));
});
