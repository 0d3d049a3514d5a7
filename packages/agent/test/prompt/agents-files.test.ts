import assert from 'node:assert/strict';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { watchCpu } from '../../../../test/cpu-watch.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { findAgentsBelow, loadAgentsFiles } from '../../src/session/instructions.js';

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

test('files of folders below are named and not read, but for those of other people', async (t) => {
  const { workspace } = await makeFolders(t);
  const files = [
    'AGENTS.md',
    'a/AGENTS.md',
    'a/CLAUDE.md',
    'b/c/d/CLAUDE.md',
    'b/c/d/e/AGENTS.md',
    'node_modules/x/AGENTS.md',
    '.hidden/AGENTS.md',
  ];
  for (const file of files) {
    await mkdir(path.dirname(path.join(workspace, file)), { recursive: true });
    await writeFile(path.join(workspace, file), 'text');
  }
  await symlink('a', path.join(workspace, 'linked'));
  assert.deepEqual(await findAgentsBelow(workspace), ['a/AGENTS.md', 'b/c/d/CLAUDE.md']);
  assert.deepEqual(await findAgentsBelow(path.join(workspace, 'none')), []);
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

const write = async (folder: string, files: Readonly<Record<string, string>>): Promise<void> => {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
    await writeFile(path.join(folder, name), text);
  }
};

const pathsIn = ({ files }: Awaited<ReturnType<typeof loadAgentsFiles>>): readonly string[] =>
  files.map((file) => file.path);

test('imports of CLAUDE.md and AGENTS.md are followed, relative to their file, each once', async (t) => {
  const { repository, workspace } = await makeFolders(t);
  await write(repository, {
    'package/CLAUDE.md':
      'See @docs/rules.md, @../README.md and @docs/rules.md. Ask @someone or me@docs/mail.md.',
    'package/docs/rules.md': 'Rules. @style.txt (@./missing.md) @rules.md',
    'package/docs/style.txt': 'Style.',
    'package/docs/mail.md': 'no import',
    'README.md': 'Read me. @AGENTS.md',
    'AGENTS.md': 'far',
  });
  assert.deepEqual(await loadAgentsFiles(workspace), {
    files: [
      {
        path: 'CLAUDE.md',
        text: 'See @docs/rules.md, @../README.md and @docs/rules.md. Ask @someone or me@docs/mail.md.',
      },
      { path: 'docs/rules.md', text: 'Rules. @style.txt (@./missing.md) @rules.md' },
      { path: 'docs/style.txt', text: 'Style.' },
      { path: '../README.md', text: 'Read me. @AGENTS.md' },
      { path: '../AGENTS.md', text: 'far' },
    ],
    warnings: [],
  });
});

test('words in code spans and code blocks import nothing', async (t) => {
  const { workspace } = await makeFolders(t);
  const text = [
    '`@a.md` ``x ` @a.md``',
    '```sh',
    'cat @a.md',
    '```',
    '~~~~',
    '@a.md',
    '~~~',
    '@a.md',
    '~~~~',
    '```inline``` code',
  ].join('\n');
  await write(workspace, { 'AGENTS.md': text, 'a.md': 'imported' });
  assert.deepEqual(pathsIn(await loadAgentsFiles(workspace)), ['AGENTS.md']);
  await write(workspace, { 'AGENTS.md': `${text}\n@a.md` });
  assert.deepEqual(pathsIn(await loadAgentsFiles(workspace)), ['AGENTS.md', 'a.md']);
});

test('a text of many runs of backticks is read in one pass', async (t) => {
  const { workspace } = await makeFolders(t);
  const runs = Array.from({ length: 250 }, (_, size) => '`'.repeat(size + 1)).join(' ');
  await write(workspace, { 'AGENTS.md': `${runs} @a.md`, 'a.md': 'imported' });
  const cpuMs = watchCpu();
  assert.deepEqual(pathsIn(await loadAgentsFiles(workspace)), ['AGENTS.md', 'a.md']);
  assert.ok(cpuMs() < 500, `${cpuMs()} ms`);
});

test('no import leads out of the repository, into hidden folders or to files of secrets', async (t) => {
  const { top, repository, workspace } = await makeFolders(t);
  await write(top, { 'outside.md': 'OUT', 'home/.ssh/id_rsa': 'OUT' });
  await write(repository, { '.git/description.md': 'OUT', '.cache/x.md': 'OUT', id_rsa: 'OUT' });
  await write(workspace, {
    '.env': 'OUT',
    'config.toml': 'OUT',
    'secrets.txt': 'OUT',
    'credentials/prod.md': 'OUT',
    '.hidden.md': 'OUT',
    'key.pem': 'OUT',
  });
  await symlink(path.join(top, 'outside.md'), path.join(workspace, 'link.md'));
  await symlink(path.join(workspace, '.env'), path.join(workspace, 'notes.md'));
  await symlink('../.git', path.join(workspace, 'docs'));
  const attacks = [
    ...[
      '../../outside.md',
      path.join(top, 'outside.md'),
      '~/.ssh/id_rsa',
      'link.md',
      'notes.md',
      '.env',
    ],
    ...[
      'docs/description.md',
      '../.git/description.md',
      '../.cache/x.md',
      '../id_rsa',
      'config.toml',
    ],
    ...['secrets.txt', 'credentials/prod.md', '.hidden.md', 'key.pem', '../../home/.ssh/id_rsa'],
  ];
  for (const attack of attacks) {
    await write(workspace, { 'AGENTS.md': `@${attack}` });
    const { files, warnings } = await loadAgentsFiles(workspace);
    assert.deepEqual(files, [{ path: 'AGENTS.md', text: `@${attack}` }], attack);
    assert.equal(warnings.length, attack.startsWith('/') ? 0 : 1, `${attack}: ${warnings.join()}`);
  }
  await write(workspace, { 'AGENTS.md': '@fine.md', 'fine.md': 'control' });
  assert.deepEqual(pathsIn(await loadAgentsFiles(workspace)), ['AGENTS.md', 'fine.md']);
});

test('a link in place of AGENTS.md leads to documents alone', async (t) => {
  const { workspace } = await makeFolders(t);
  await write(workspace, { '.env': 'OUT', 'plans/next.md': 'OUT', 'docs/rules.md': 'fine' });
  const guarded = path.join(workspace, 'plans');
  for (const target of ['.env', 'plans/next.md', '../.git/config', 'docs/rules.md']) {
    await symlink(target, path.join(workspace, 'AGENTS.md'));
    await write(path.join(workspace, '..', '.git'), { config: 'OUT' });
    const { files, warnings } = await loadAgentsFiles(
      workspace,
      (file) => !file.startsWith(guarded),
    );
    const isFine = target.startsWith('docs');
    assert.deepEqual(files, isFine ? [{ path: 'AGENTS.md', text: 'fine' }] : [], target);
    assert.equal(warnings.length, isFine ? 0 : 1, target);
    await rm(path.join(workspace, 'AGENTS.md'));
  }
});

test("a file that the user's rules guard is not imported", async (t) => {
  const { workspace } = await makeFolders(t);
  await write(workspace, {
    'AGENTS.md': '@plans/next.md @docs/a.md',
    'plans/next.md': 'x',
    'docs/a.md': 'y',
  });
  const guarded = path.join(workspace, 'plans');
  const { files, warnings } = await loadAgentsFiles(workspace, (file) => !file.startsWith(guarded));
  assert.deepEqual(
    files.map((file) => file.path),
    ['AGENTS.md', 'docs/a.md'],
  );
  assert.deepEqual(warnings, ['plans/next.md is not imported: your rules forbid to read it']);
});

test('imports end after five files in a row, and share the room of all files', async (t) => {
  const { workspace } = await makeFolders(t);
  const chain = Array.from({ length: 9 }, (_, at) => [`${at}.md`, `@${at + 1}.md`] as const);
  await write(workspace, { ...Object.fromEntries(chain), 'AGENTS.md': '@0.md' });
  assert.deepEqual(pathsIn(await loadAgentsFiles(workspace)), [
    'AGENTS.md',
    '0.md',
    '1.md',
    '2.md',
    '3.md',
    '4.md',
  ]);
  await write(workspace, { 'AGENTS.md': '@big.md', 'big.md': 'x'.repeat(40_000) });
  const { files, warnings } = await loadAgentsFiles(workspace);
  assert.ok(files.reduce((sum, { text }) => sum + text.length, 0) < 33_000);
  assert.match(warnings.join(), /^big\.md is cut/);
});

test('CLAUDE.local.md is read beside the other file of its folder', async (t) => {
  const { repository, workspace } = await makeFolders(t);
  await write(workspace, { 'AGENTS.md': 'near', 'CLAUDE.local.md': 'mine' });
  await write(repository, { 'CLAUDE.local.md': 'far' });
  assert.deepEqual(pathsIn(await loadAgentsFiles(workspace)), [
    'AGENTS.md',
    'CLAUDE.local.md',
    '../CLAUDE.local.md',
  ]);
});
