import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { hardenedGit } from '../../src/command/environment.js';
import { searchPrograms } from '../../src/platform/find-program.js';
import {
  cleanEnvironment,
  frozenConfig,
  parseConfig,
  type Repository,
  useRepository,
} from '../../src/workspace/git.js';
import { takeSnapshot } from '../../src/workspace/repository-snapshot.js';
import { type Environment, makePlace, makeRepository, type Place, wrapGit } from './place.js';

const use = <T>(
  place: Place,
  work: (repository: Repository) => Promise<T>,
  environment: Environment = place.environment,
): Promise<T | null> =>
  useRepository(
    { workspace: place.workspace, environment, signal: new AbortController().signal },
    work,
  );

const open = (place: Place, environment?: Environment) =>
  use(place, async (repository) => repository, environment);

test('the wrapper: without a repository nothing is started', async (t) => {
  const place = await makePlace(t);
  const environment = await wrapGit(place, 'exit 1');
  assert.equal(await open(place, environment), null);
  assert.deepEqual(await readdir(place.root), ['bin', 'home', 'work']);
});

test('the wrapper: a configuration that changes after it was read changes nothing', async (t) => {
  const place = await makeRepository(t);
  await place.shell("echo '* filter=late' > .gitattributes; echo more >> a");
  const late = `REAL config filter.late.clean 'touch ROOT/mark; cat'; REAL config core.fsmonitor 'touch ROOT/mark; false'`;
  const environment = await wrapGit(
    place,
    `REAL "$@"; code=$?; case "$*" in *--list*) ${late};; esac; exit $code`,
  );
  const look = await use(place, takeSnapshot, environment);
  assert.ok(look?.changed.has('a'));
  await use(
    place,
    (repository) => repository.run(['add', 'a'], { indexFile: path.join(repository.scratch, 'x') }),
    environment,
  );
  assert.equal((await readdir(place.root)).includes('mark'), false);
  await place.shell('git status; git add a');
  assert.equal((await readdir(place.root)).includes('mark'), true, 'the control must fire');
});

test('the wrapper: its folder is gone when it is done, and when it failed', async (t) => {
  const place = await makeRepository(t);
  const folders: string[] = [];
  await use(place, async (repository) => folders.push(repository.scratch));
  const failed = use(place, async (repository) => {
    folders.push(repository.scratch);
    throw new Error('on purpose');
  });
  await assert.rejects(failed, /on purpose/);
  assert.equal(folders.length, 2);
  assert.deepEqual(folders.filter(existsSync), []);
});

test('the wrapper: what git says is in the failure', async (t) => {
  const place = await makeRepository(t);
  const failed = use(place, (repository) => repository.ask(['rev-parse', '--verify', 'nothing']));
  await assert.rejects(failed, {
    kind: 'refused',
    message: /^git rev-parse failed \(exit code 128\): .*Needed a single revision/,
  });
});

test('the wrapper: a repository of somebody else is refused, as git refuses it', async (t) => {
  const place = await makeRepository(t);
  await assert.rejects(
    open(place, {
      ...place.environment,
      SUDO_UID: undefined,
      ...(await wrapGit(place, 'GIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec REAL "$@"')),
    }),
    { kind: 'refused', message: /dubious ownership/ },
  );
});

test('the wrapper: a bare repository that lies in the workspace is none', async (t) => {
  const place = await makeRepository(t);
  await place.shell(
    'git clone -q --bare . inner; git -C inner config core.fsmonitor "touch ../mark"',
  );
  const inner = {
    workspace: place.path('inner'),
    environment: place.environment,
    signal: new AbortController().signal,
  };
  assert.equal(await useRepository(inner, takeSnapshot), null);
  assert.equal((await readdir(place.workspace)).includes('mark'), false);
});

test('the wrapper: a working tree that is set to another place is none', async (t) => {
  const place = await makeRepository(t);
  await mkdir(path.join(place.root, 'elsewhere'));
  await place.shell('git config core.worktree ../../elsewhere');
  assert.equal(await open(place), null);
});

test('the wrapper: without git it says so', async (t) => {
  const place = await makeRepository(t);
  await assert.rejects(open(place, { ...place.environment, PATH: '/nowhere' }), {
    kind: 'missing',
    message: /git is not on the PATH.*install it/,
  });
});

const kinds: readonly { readonly title: string; readonly given: string; readonly at: string }[] = [
  { title: 'a linked worktree', given: 'git worktree add -q ../linked', at: '../linked' },
  {
    title: 'a submodule',
    given:
      'git clone -q . ../other; git -c protocol.file.allow=always submodule --quiet add ../other sub',
    at: 'sub',
  },
  {
    title: 'a folder inside',
    given: 'mkdir -p deep/er; echo x > deep/er/a; git add .; git commit -qm deep',
    at: 'deep/er',
  },
  { title: 'packed refs and objects', given: 'git gc -q', at: '.' },
  {
    title: 'objects of another repository',
    given: 'git clone -q --shared . ../sharing',
    at: '../sharing',
  },
  {
    title: 'hashes of 256 bits',
    given:
      'git init -q --object-format=sha256 ../long; cd ../long; echo x > a; git add .; git commit -qm x',
    at: '../long',
  },
  {
    title: 'a sparse working tree',
    given:
      'mkdir in out; echo x > in/a; echo x > out/a; git add .; git commit -qm x; git sparse-checkout set --cone --sparse-index in',
    at: '.',
  },
  { title: 'a split index', given: 'git update-index --split-index', at: '.' },
  {
    title: 'a clone that is shallow',
    given: 'git commit -q --allow-empty -m x; git clone -q --depth 1 "file://$PWD" ../shallow',
    at: '../shallow',
  },
  {
    title: 'a path with spaces and quotes',
    given: `git clone -q . '../it is "so"'`,
    at: '../it is "so"',
  },
];

for (const { title, given, at } of kinds) {
  test(`the wrapper sees what git sees: ${title}`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(given);
    const workspace = path.resolve(place.workspace, at);
    const look = async () => {
      const found = {
        workspace,
        environment: place.environment,
        signal: new AbortController().signal,
      };
      const seen = await useRepository(found, async (repository) => {
        const count = await repository.ask(['rev-list', '--count', 'HEAD']);
        return { look: await takeSnapshot(repository), count };
      });
      return [seen?.look.head.hash, seen?.count, [...(seen?.look.changed.keys() ?? [])].sort()];
    };
    const head = (await place.shell(`git -C '${at}' rev-parse HEAD`)).trim();
    const count = await place.shell(`git -C '${at}' rev-list --count HEAD`);
    const changed = [
      'git',
      '-C',
      `'${at}'`,
      'status --porcelain -z --ignore-submodules=all -uall',
    ].join(' ');
    const expected = async () =>
      (await place.shell(changed))
        .split('\0')
        .filter(Boolean)
        .map((line) => line.slice(3))
        .sort();
    assert.deepEqual(await look(), [head, count, await expected()]);
    await place.shell(`cd '${at}'; echo more >> a; echo new > new`);
    const after = await expected();
    assert.ok(after.length >= 2);
    assert.deepEqual(await look(), [head, count, after]);
  });
}

test('the configuration that is taken over says how things are stored, and names no program', () => {
  const listed = [
    ['core.autocrlf', 'input'],
    ['core.fsmonitor', '/evil'],
    ['core.hookspath', '/evil'],
    ['filter.a.b=c.clean', '/evil'],
    ['core.excludesfile', '~/ig"no\\re\n\t'],
    ['core.attributesfile', 'relative'],
    ['extensions.objectformat', 'sha1'],
    ['core.worktree', '/evil'],
    ['core.autocrlf', 'true'],
  ].map((entry) => `${entry.join('\n')}\0`);
  const config = parseConfig([...listed, 'core.ignorecase\0'].join(''));
  assert.equal(
    frozenConfig(config, { HOME: '/folks/ada' }),
    [
      '[core]\n\tignorecase = "true"\n',
      '[core]\n\tautocrlf = "true"\n',
      '[extensions]\n\tobjectformat = "sha1"\n',
      '[core]\n\texcludesfile = "/folks/ada/ig\\"no\\\\re\\n\\t"\n',
    ].join(''),
  );
});

test('what the configuration takes over is read back by git as it was', async (t) => {
  const place = await makeRepository(t);
  const value = 'a "b" \\c;# \t d ';
  await writeFile(
    path.join(place.root, 'frozen'),
    frozenConfig(new Map([['core.excludesfile', `/${value}`]]), {}),
  );
  const read = await place.shell('git config -z --file ../frozen core.excludesFile');
  assert.equal(read, `/${value}\0`);
});

test("the user's ignored files are ignored", async (t) => {
  const place = await makeRepository(t);
  await mkdir(path.join(place.root, 'home/.config/git'), { recursive: true });
  await writeFile(path.join(place.root, 'home/.config/git/ignore'), 'usual\n');
  await place.shell('echo x > usual; echo x > other');
  assert.deepEqual([...((await use(place, takeSnapshot))?.changed.keys() ?? [])], ['other']);
  await place.shell("echo other > ~/mine; git config --global core.excludesFile '~/mine'");
  assert.deepEqual([...((await use(place, takeSnapshot))?.changed.keys() ?? [])], ['usual']);
});

test('the environment loses what could make git start or read something else', () => {
  const clean = cleanEnvironment(
    {
      HOME: '/folks/ada',
      GIT_DIR: '/x',
      GIT_SSH: 'x',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_GLOBAL: '/g',
      EDITOR: 'x',
      A: 'b',
    },
    '/bin',
  );
  assert.deepEqual(
    [
      'HOME',
      'A',
      'GIT_CONFIG_GLOBAL',
      'PATH',
      'GIT_DIR',
      'GIT_SSH',
      'GIT_CONFIG_COUNT',
      'EDITOR',
    ].map((name) => clean[name]),
    ['/folks/ada', 'b', '/g', '/bin', undefined, undefined, undefined, undefined],
  );
});

test('hooks that stand in the real configuration are switched off, by event and by name', async (t) => {
  const place = await makeRepository(t);
  await place.shell("git config hook.spy.command 'touch spied'; git config hook.a=b.event x");
  const asked = ['pre-commit', 'reference-transaction', 'spy', 'a=b'];
  const script =
    'out=$1 git=$2; shift 2; ' +
    asked.map((name) => `"$git" "$@" config hook.${name}.enabled >> "$out"`).join('; ');
  const out = place.path('../answers');
  await use(place, (repository) => repository.runScript(script, [out]));
  assert.equal(await readFile(out, 'utf8'), 'false\n'.repeat(asked.length));
  const hardened = hardenedGit({ GIT_CONFIG_COUNT: '1' });
  const index = Object.values(hardened).indexOf('hook.pre-commit.enabled');
  assert.equal(Object.keys(hardened)[index]?.startsWith('GIT_CONFIG_KEY_'), true);
  assert.equal(hardened.GIT_CONFIG_KEY_0, undefined, 'it is the setting of the user');
});

test('the search path has no folder that the repository can fill', async (t) => {
  const place = await makeRepository(t);
  await place.shell('mkdir -p sub bin ../tools; ln -s $PWD/bin ../linked');
  const { root } = place;
  const all = [
    'bin',
    '',
    '.',
    `${root}/work/bin`,
    `${root}/linked`,
    `${root}/nowhere`,
    `${root}/tools`,
  ].join(':');
  const foldersFor = (home: string): readonly string[] =>
    searchPrograms({ environment: { PATH: all, HOME: home }, workspace: place.path('sub') })
      .folders;
  assert.deepEqual(foldersFor(`${root}/home`), [`${root}/tools`]);
  assert.deepEqual(
    foldersFor(place.path('home')),
    [`${root}/work/bin`, `${root}/tools`],
    'a repository that holds the home is taken as far as the workspace',
  );
});

const waits: readonly (readonly [given: string, script: string])[] = [
  ['an include', 'git config include.path ../pipe; rm -f pipe; mkfifo pipe'],
  [
    'an include of an include',
    'git config include.path ../more; printf "[include]\\npath=pipe" > more; mkfifo pipe',
  ],
  ['a conditional include', 'git config includeIf.onbranch:main.path ../pipe; mkfifo pipe'],
  [
    'an include behind another section, with a comment',
    'printf "[core][include]\\npath = pipe # it\\n" >> .git/config; mkfifo .git/pipe',
  ],
  [
    'a quoted include on two lines',
    `printf '[include]path = "pi"\\134\\npe\\n' >> .git/config; mkfifo .git/pipe`,
  ],
  [
    'an include of a large configuration',
    '(yes "#" | head -c 1100000; printf "[include]path=pipe\\n") >> .git/config; mkfifo .git/pipe',
  ],
  [
    'the first of many includes',
    'printf "[include]path=%s\\n" pipe $(seq 60) >> .git/config; mkfifo .git/pipe',
  ],
  ['the configuration', 'rm .git/config; mkfifo .git/config'],
  ['HEAD', 'rm .git/HEAD; mkfifo .git/HEAD'],
  ['the index', 'rm -f .git/index; mkfifo .git/index'],
  ['a file of patterns', 'mkfifo .gitignore'],
  [
    'the configuration of a folder that a .git folder shares',
    'cp -r .git all; echo ../all > .git/commondir; rm all/config; mkfifo all/config',
  ],
];

for (const [given, script] of waits) {
  test(`a repository that would make git wait for ever is not asked: ${given} is a pipe`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(script);
    const signal = AbortSignal.timeout(5_000);
    const { workspace, environment } = place;
    await assert.rejects(useRepository({ workspace, environment, signal }, takeSnapshot), {
      kind: 'refused',
      message: /is not a regular file, so git would wait for it/,
    });
  });
}

test('a link in the place of the repository is followed within the workspace', async (t) => {
  const place = await makeRepository(t);
  await place.shell('mv .git moved.git');
  await symlink('moved.git', place.path('.git'));
  assert.notEqual((await use(place, takeSnapshot))?.head.hash, null);
  assert.equal(await place.read('moved.git/HEAD'), 'ref: refs/heads/main\n');
});
