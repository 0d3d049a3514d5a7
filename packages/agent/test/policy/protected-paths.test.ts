import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  findProtection,
  mayBeProtected,
  PROTECTED_PATHS,
  protectionInWorkspace,
} from '../../src/policy/paths.js';

const ORDINARY = [
  'packages/pawl/src/index.ts',
  'README.md',
  'package.json',
  'Makefile',
  '.gitignore',
  '.gitattributes',
  '.github/CODEOWNERS',
  '.github/ISSUE_TEMPLATE/bug.md',
  '.config/other',
  'git',
  'src/vscode/tasks.json',
  'agents/md',
  'docs/git~notes',
  'x.git',
  'a..b/c',
  '.git/../a',
  '',
  '.',
  '/',
];

/** Other spellings that some file system takes for the same name. */
const SPELLINGS: readonly ((path: string) => string)[] = [
  (path) => path,
  (path) => path.toUpperCase(),
  (path) => path.toLowerCase(),
  (path) => path.normalize('NFD'),
  (path) => `./${path}`,
  (path) => `deep/down/${path}`,
  (path) => `/srv/somebody/${path}`,
  (path) => `other/../${path}`,
  (path) => `${path}/below/it`,
  (path) => `${path}. .`,
  (path) => `${path} `,
  (path) => `${path}::$INDEX_ALLOCATION`,
  (path) => path.replaceAll('/', '//'),
  (path) => path.replaceAll('/', '/./'),
  (path) => path.replaceAll('/', '/a/../'),
  (path) => path.replaceAll('/', '\\'),
  (path) => path.replace(/(?<=.)./, (letter) => `\u200c${letter}`),
  (path) => `\ufeff${path}`,
  (path) => path.replaceAll('ss', 'ß'),
  (path) =>
    path.replace(/[a-z]/, (letter) => String.fromCodePoint((letter.codePointAt(0) ?? 0) + 0xfee0)),
];

test('each protected path is known in every spelling, at any depth, with what is below it', () => {
  let cases = 0;
  for (const { path, why } of PROTECTED_PATHS) {
    for (const spell of SPELLINGS) {
      const spelled = spell(path.replace('*', 'name'));
      assert.equal(findProtection(spelled)?.why, why, JSON.stringify(spelled));
      cases += 1;
    }
    assert.ok(mayBeProtected(path.replace('*', 'name').split('/')[0] ?? ''));
  }
  assert.ok(cases >= 3_000, String(cases));
});

test('ordinary paths are not protected', () => {
  for (const path of ORDINARY) assert.equal(findProtection(path), null, path);
  assert.equal(mayBeProtected('src'), false);
});

test('the short name that NTFS gives .git is .git', () => {
  assert.equal(findProtection('GIT~1/hooks/pre-commit')?.path, '.git');
});

test('no path stands twice in the table', () => {
  const paths = PROTECTED_PATHS.map(({ path }) => path.toLowerCase());
  assert.deepEqual(
    paths.filter((path, index) => paths.indexOf(path) !== index),
    [],
  );
});

test('a protected path that begins with the name of the workspace is protected in it; controls beside it are not', () => {
  const why = (workspace: string, path: string): string | undefined =>
    protectionInWorkspace(workspace, path, { home: '/h', obeyed: [], credentials: [] })?.path;
  assert.equal(why('/r/.github', '/r/.github/workflows/ci.yml'), '.github/workflows');
  assert.equal(why('/r/.config', '/r/.config/fish/config.fish'), '.config/fish');
  assert.equal(why('/r/.github', '/r/.github/a.txt'), undefined);
  assert.equal(why('/r/github', '/r/github/workflows/ci.yml'), undefined);
});
