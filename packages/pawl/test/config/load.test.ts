import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { loadConfig, userFile } from '../../src/settings/configuration.js';

const makeFolder = (context: TestContext): string => {
  const folder = temporaryFolder(context, 'config');
  return folder;
};

const write = (file: string, text: string | Uint8Array): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};

const place = (context: TestContext) => {
  const folder = makeFolder(context);
  const workspace = path.join(folder, 'repository', 'part');
  mkdirSync(workspace, { recursive: true });
  const environment = { HOME: path.join(folder, 'home') };
  const load = async (more: Readonly<Record<string, string>> = {}) => {
    const { layers, files, faults } = await loadConfig(workspace, { ...environment, ...more });
    const shown = Object.entries(layers).flatMap(([layer, given]) =>
      given.map(({ setting, value }) => `${layer} ${setting.key}=${value}`),
    );
    return {
      shown,
      files: files.map((file) => path.relative(folder, file)),
      faults: faults.map(({ where, text }) => `${where.replace(folder, '')}: ${text}`),
    };
  };
  return { folder, workspace, load };
};

test('without files and variables there is nothing, and nothing is wrong', async (context) => {
  const { load } = place(context);
  assert.deepEqual(await load(), { shown: [], files: [], faults: [] });
});

test('the user’s file, the repository’s, the folder’s and variables are read, in this order', async (context) => {
  const { folder, workspace, load } = place(context);
  write(path.join(folder, 'home/.config/pawl/config.toml'), 'max_usd = 9');
  write(path.join(folder, 'repository/.pawl/config.toml'), 'max_usd = 8');
  mkdirSync(path.join(folder, 'repository/.git'));
  write(path.join(workspace, '.pawl/config.toml'), 'max_usd = 7');
  write(path.join(folder, '.pawl/config.toml'), 'max_usd = 1');
  const { shown, files } = await load({
    PAWL_MAX_USD: '6',
    PAWL_EXPLORE: '1',
    PAWL_MAX_ROUNDS: '',
  });
  assert.deepEqual(shown, [
    'user max_usd=9',
    'project max_usd=8',
    'project max_usd=7',
    'environment max_usd=6',
    'environment explore=true',
  ]);
  assert.deepEqual(files, [
    'home/.config/pawl/config.toml',
    'repository/.pawl/config.toml',
    'repository/part/.pawl/config.toml',
  ]);
});

test('outside of a repository only the folder itself is asked, and nothing above it', async (context) => {
  const { folder, workspace, load } = place(context);
  write(path.join(folder, 'repository/.pawl/config.toml'), 'max_usd = 8');
  write(path.join(workspace, '.pawl/config.toml'), 'max_usd = 7');
  assert.deepEqual((await load()).shown, ['project max_usd=7']);
});

test('the user’s file is found by XDG_CONFIG_HOME, which counts only if it is a whole path', () => {
  const rows = [
    [{ HOME: '/h' }, '/h/.config/pawl/config.toml'],
    [{ HOME: '/h', XDG_CONFIG_HOME: '/x' }, '/x/pawl/config.toml'],
    [{ HOME: '/h', XDG_CONFIG_HOME: 'x' }, '/h/.config/pawl/config.toml'],
    [{ HOME: '/h', XDG_CONFIG_HOME: '' }, '/h/.config/pawl/config.toml'],
  ] as const;
  for (const [environment, file] of rows) assert.equal(userFile(environment), file);
});

test('variables that do not fit are faults that name them; those of others are nobody’s business', async (context) => {
  const { load } = place(context);
  const { shown, faults } = await load({
    PAWL_MAX_USD: '1e3',
    PAWL_MAX_ROUNDS: '2.5',
    PAWL_EXPLORE: 'maybe',
    PAWL_PRESET: 'free',
    PAWL_MODEL: 'sonnet',
    PAWL_SILENCE_MS: '0400',
    ANTHROPIC_API_KEY: 'not a key',
    PAWL_ASK_MAX_DEPTH: '2',
  });
  assert.deepEqual(shown, ['environment silence_ms=400', 'environment ask.max_depth=2']);
  assert.deepEqual(faults, [
    'PAWL_MODEL: it is written "provider/name".',
    'PAWL_MAX_USD: it is a number above zero, not "1e3".',
    'PAWL_MAX_ROUNDS: it is a whole number above zero, not 2.5.',
    'PAWL_PRESET: it is one of "plan", "careful", "ci", "auto", not "free".',
    'PAWL_EXPLORE: it is 1 or 0, not "maybe".',
  ]);
});

type Unusable = {
  readonly given: string;
  readonly make: (file: string) => void;
  readonly why: RegExp;
};

const unusable: readonly Unusable[] = [
  {
    given: 'a folder',
    make: (file) => mkdirSync(file, { recursive: true }),
    why: /it is a folder/,
  },
  {
    given: 'a pipe that nobody writes to',
    make: (file) => execFileSync('mkfifo', [file]),
    why: /not a regular file/,
  },
  {
    given: 'a device without end',
    make: (file) => symlinkSync('/dev/zero', file),
    why: /not a regular file/,
  },
  { given: 'a link to itself', make: (file) => symlinkSync(file, file), why: /ELOOP/ },
  {
    given: 'a file of a megabyte',
    make: (file) => writeFileSync(file, '#'.repeat(1_000_000)),
    why: /1000000 bytes, at most 16384/,
  },
  {
    given: 'a file that is not UTF-8',
    make: (file) => writeFileSync(file, Uint8Array.of(0x6d, 0xff, 0xfe)),
    why: /not text in UTF-8/,
  },
];

for (const { given, make, why } of unusable) {
  test(`a project’s file that is ${given} is a fault and no absence: it may have wanted to be stricter`, async (context) => {
    const { workspace, load } = place(context);
    mkdirSync(path.join(workspace, '.pawl'));
    make(path.join(workspace, '.pawl', 'config.toml'));
    const { faults } = await load();
    assert.equal(faults.length, 1);
    assert.match(faults[0] ?? '', why);
  });
}

test('a link to a file is followed, and a link to nothing is as good as nothing', async (context) => {
  const { workspace, load } = place(context);
  write(path.join(workspace, 'shared.toml'), 'max_usd = 3');
  mkdirSync(path.join(workspace, '.pawl'));
  symlinkSync(path.join(workspace, 'shared.toml'), path.join(workspace, '.pawl', 'config.toml'));
  assert.deepEqual((await load()).shown, ['project max_usd=3']);
  rmSync(path.join(workspace, 'shared.toml'));
  assert.deepEqual(await load(), { shown: [], files: [], faults: [] });
});

test('a project’s file that is a link out of the repository is a fault; a link inside of it is read', async (context) => {
  const { folder, workspace, load } = place(context);
  const repository = path.join(folder, 'repository');
  mkdirSync(path.join(repository, '.git'));
  write(path.join(folder, 'elsewhere.toml'), 'max_rounds = 3');
  write(path.join(repository, 'shared.toml'), 'max_rounds = 4');
  mkdirSync(path.join(workspace, '.pawl'));
  symlinkSync(path.join(folder, 'elsewhere.toml'), path.join(workspace, '.pawl', 'config.toml'));
  const { shown, faults } = await load();
  assert.deepEqual(shown, []);
  assert.match(faults.join('\n'), /part\/\.pawl\/config\.toml: .*it leads out of the project/);
  rmSync(path.join(workspace, '.pawl', 'config.toml'));
  symlinkSync(path.join(repository, 'shared.toml'), path.join(workspace, '.pawl', 'config.toml'));
  assert.deepEqual((await load()).faults, []);
});
