import assert from 'node:assert/strict';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadAgentsFiles } from '../../src/prompt/agents-files.js';
import { temporaryFolder } from '../temporary-folder.js';

/** `top/repository/package/` with `.git` in `repository`. */
const makeFolders = async (
  t: TestContext,
): Promise<{ top: string; repository: string; workspace: string }> => {
  const top = temporaryFolder(t, 'prompt');
  const repository = path.join(top, 'repository');
  const workspace = path.join(repository, 'package');
  await mkdir(path.join(repository, '.git'), { recursive: true });
  await mkdir(workspace);
  return { top, repository, workspace };
};

test("files are found nearest first, up to the repository's root and not above it", async (t) => {
  const { top, repository, workspace } = await makeFolders(t);
  await writeFile(path.join(top, 'AGENTS.md'), 'above');
  await writeFile(path.join(repository, 'AGENTS.md'), 'far');
  await writeFile(path.join(workspace, 'AGENTS.md'), '\ufeffnear');
  assert.deepEqual(await loadAgentsFiles(workspace), {
    files: [
      { path: 'AGENTS.md', text: 'near' },
      { path: '../AGENTS.md', text: 'far' },
    ],
    warnings: [],
  });
});

test('outside a repository only the workspace itself counts', async (t) => {
  const { top, workspace, repository } = await makeFolders(t);
  await rm(path.join(repository, '.git'), { recursive: true });
  await writeFile(path.join(top, 'AGENTS.md'), 'above');
  assert.deepEqual(await loadAgentsFiles(workspace), { files: [], warnings: [] });
});

test('together they have at most 32 KiB, the nearest first, and the cut is said in both places', async (t) => {
  const { repository, workspace } = await makeFolders(t);
  await writeFile(path.join(workspace, 'AGENTS.md'), 'n'.repeat(32 * 1024 - 3));
  await writeFile(path.join(repository, 'AGENTS.md'), 'äöü');
  const { files, warnings } = await loadAgentsFiles(workspace);
  assert.equal(files[0]?.text.length, 32 * 1024 - 3);
  assert.equal(files[1]?.text, 'ä\n[3 more bytes of ../AGENTS.md are left out]');
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /^\.\.\/AGENTS\.md is cut/);
});

test('a file that can not be used is a warning, not a failure', async (t) => {
  const { repository, workspace } = await makeFolders(t);
  await mkdir(path.join(workspace, 'AGENTS.md'));
  await writeFile(path.join(repository, 'AGENTS.md'), 'far');
  const { files, warnings } = await loadAgentsFiles(workspace);
  assert.deepEqual(files, [{ path: '../AGENTS.md', text: 'far' }]);
  assert.deepEqual(warnings, ['AGENTS.md is not used: it is not a regular file']);
});

test('a symlink out of the repository is not followed, one inside it counts once', async (t) => {
  const { top, repository, workspace } = await makeFolders(t);
  await writeFile(path.join(top, 'secret'), 'key');
  await symlink(path.join(top, 'secret'), path.join(workspace, 'AGENTS.md'));
  const out = await loadAgentsFiles(workspace);
  assert.deepEqual(out.files, []);
  assert.match(out.warnings[0] ?? '', /^AGENTS\.md is not used: it leads out to /);
  await rm(path.join(workspace, 'AGENTS.md'));
  await writeFile(path.join(repository, 'AGENTS.md'), 'far');
  await symlink('../AGENTS.md', path.join(workspace, 'AGENTS.md'));
  assert.deepEqual((await loadAgentsFiles(workspace)).files, [{ path: 'AGENTS.md', text: 'far' }]);
});

test('CLAUDE.md counts only in a folder without AGENTS.md', async (t) => {
  const { repository, workspace } = await makeFolders(t);
  await writeFile(path.join(workspace, 'CLAUDE.md'), 'not read');
  await writeFile(path.join(workspace, 'AGENTS.md'), 'near');
  await writeFile(path.join(repository, 'CLAUDE.md'), 'far');
  assert.deepEqual((await loadAgentsFiles(workspace)).files, [
    { path: 'AGENTS.md', text: 'near' },
    { path: '../CLAUDE.md', text: 'far' },
  ]);
});
