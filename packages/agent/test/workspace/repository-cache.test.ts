import assert from 'node:assert/strict';
import { rmSync, statSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { FileCache, takeFingerprint } from '../../src/workspace/file-cache.js';
import { KnownRepository, type Repository, useRepository } from '../../src/workspace/git.js';
import { anHourLater, type Environment, makeRepository, type Place, wrapGit } from './place.js';

/** What git is asked of a repository's place and configuration, over several uses of it. */

type Uses = {
  /** A name of the configuration as a use sees it, and whether git was asked for it. */
  name(): Promise<{ readonly value: string | undefined; readonly asked: boolean }>;
  look<T>(work: (repository: Repository) => Promise<T>): Promise<T | null>;
};

type Options = {
  readonly script?: string;
  readonly extra?: Environment;
  readonly workspace?: string;
  readonly now?: () => number;
};

const usesOf = async (
  place: Place,
  {
    script = 'exec REAL "$@"',
    extra = {},
    workspace = place.workspace,
    now = anHourLater,
  }: Options = {},
): Promise<Uses> => {
  const environment = { ...(await wrapGit(place, script)), ...extra };
  const known = new KnownRepository(environment, now);
  const look: Uses['look'] = (work) =>
    useRepository({ workspace, environment, signal: new AbortController().signal, known }, work);
  const log = path.join(place.root, 'log');
  return {
    look,
    async name() {
      await writeFile(log, '');
      const value = await look(async ({ config }) => config.get('user.name'));
      const asked = await readFile(log, 'utf8');
      assert.equal(
        asked.includes('rev-parse'),
        asked.includes('--list'),
        'both are asked, or none',
      );
      return { value: value ?? undefined, asked: asked !== '' };
    },
  };
};

/** The workspace is a folder of a repository. */
const makeUses = async (
  t: TestContext,
  options?: Options,
): Promise<Uses & { readonly place: Place }> => {
  const place = await makeRepository(t);
  await place.shell(
    'mkdir sub; git config extensions.worktreeConfig true; git config user.name Early',
  );
  return { place, ...(await usesOf(place, { workspace: place.path('sub'), ...options })) };
};

test('git is asked once for what does not change', async (t) => {
  const { place, name } = await makeUses(t);
  assert.deepEqual(await name(), { value: 'Early', asked: true });
  assert.deepEqual(await name(), { value: 'Early', asked: false });
  await place.shell('echo more >> a; git add a; git commit -qm second; git switch -qc other');
  assert.deepEqual(await name(), { value: 'Early', asked: false });
});

const changes: readonly (readonly [title: string, command: string, value: string])[] = [
  ['the repository’s configuration', 'git config user.name Later', 'Later'],
  [
    'as many letters in the same file, dated back',
    'cp -p .git/config ../was; sed s/Early/Ernie/ ../was > .git/config; touch -r ../was .git/config',
    'Ernie',
  ],
  ['one of this working tree', 'git config --worktree user.name Here', 'Here'],
  [
    'another repository in its place',
    'cp -a .git ../copy; rm -rf .git; mv ../copy .git; git config user.name Copy',
    'Copy',
  ],
  [
    'a repository nearer to the workspace',
    'git init -q sub; git -C sub config user.name Near',
    'Near',
  ],
  [
    'the repository elsewhere',
    'mv .git ../moved; echo "gitdir: ../moved" > .git; git config core.worktree "$PWD"; git config user.name Moved',
    'Moved',
  ],
];
for (const [title, command, value] of changes) {
  test(`git is asked again after a change: ${title}`, async (t) => {
    const { place, name } = await makeUses(t);
    await name();
    assert.equal((await name()).asked, false, 'the control: it was known');
    await place.shell(command);
    assert.deepEqual(await name(), { value, asked: true });
  });
}

const files: readonly (readonly [file: string, variable?: string])[] = [
  ['home/.gitconfig'],
  ['home/.config/git/config'],
  ['elsewhere/git/config', 'XDG_CONFIG_HOME'],
  ['global', 'GIT_CONFIG_GLOBAL'],
  ['system', 'GIT_CONFIG_SYSTEM'],
];
for (const [file, variable] of files) {
  test(`git is asked again when a file of the configuration comes into being: ${file}`, async (t) => {
    const place = await makeRepository(t);
    await place.shell('mkdir -p ~/.config/git ../elsewhere/git');
    const whole = path.join(place.root, file);
    const value = variable === 'XDG_CONFIG_HOME' ? path.join(place.root, 'elsewhere') : whole;
    const extra = {
      ...(variable === undefined ? {} : { [variable]: value }),
      ...(variable === 'GIT_CONFIG_SYSTEM' ? { GIT_CONFIG_NOSYSTEM: undefined } : {}),
    };
    const { name } = await usesOf(place, { extra });
    await name();
    assert.deepEqual(await name(), { value: undefined, asked: false });
    await writeFile(whole, '[user]\n\tname = Given\n');
    assert.deepEqual(await name(), { value: 'Given', asked: true });
  });
}

test('a change while git answers is seen the next time, also one that is dated back', async (t) => {
  const late = `REAL config user.name During; touch -d '1 hour ago' "$(REAL rev-parse --git-common-dir)/config"`;
  const script = `REAL "$@"; code=$?; case "$*" in *--list*) ${late};; esac; exit $code`;
  const { name } = await makeUses(t, { script, now: Date.now });
  assert.equal((await name()).value, 'Early');
  assert.equal((await name()).value, 'During');
});

test('what was written a moment ago is asked for again', async (t) => {
  let config = '';
  const { place, name } = await makeUses(t, { now: () => statSync(config).ctimeMs + 100 });
  config = place.path('.git/config');
  assert.deepEqual(await name(), { value: 'Early', asked: true });
  assert.deepEqual(await name(), { value: 'Early', asked: true });
});

const including =
  "git config include.path ../../more; printf '[user]\\n\\tname = First\\n' > ../more";
const onBranch =
  'git config includeIf.onbranch:other.path ../../more; printf "[user]\\n\\tname = First\\n" > ../more; git switch -qc other';
const included: readonly (readonly [title: string, given: string, change: string])[] = [
  ['a file that is included', including, 'sed -i s/First/Other/ ../more'],
  [
    'a file that an included one includes',
    `${including}; printf '[include]\\n\\tpath = even-more\\n' >> ../more; touch ../even-more`,
    "printf '[user]\\n\\tname = Other\\n' > ../even-more",
  ],
  [
    'a file whose quoted name has a blank, with a comment',
    `printf '[core][include]path = "../../more names" # it\\n' >> .git/config; printf '[user]\\n\\tname = First\\n' > '../more names'`,
    "sed -i s/First/Other/ '../more names'",
  ],
  [
    'one that was not there',
    'git config include.path ../../more; git config user.name First',
    "printf '[user]\\n\\tname = Other\\n' > ../more",
  ],
  [
    'the branch that a condition asks for',
    onBranch,
    'git config user.name Other; git switch -q main; git config user.name Other',
  ],
  ['the branch alone', `git config user.name Other; ${onBranch}`, 'git switch -q main'],
];
for (const [title, given, change] of included) {
  test(`git is asked again after a change of ${title}`, async (t) => {
    const { place, name } = await makeUses(t);
    await place.shell(given);
    assert.deepEqual(await name(), { value: 'First', asked: true });
    assert.deepEqual(await name(), { value: 'First', asked: false }, 'the control: it was known');
    await place.shell(change);
    assert.deepEqual(await name(), { value: 'Other', asked: true });
  });
}

test('where the folder of a file is a file, the file is known to be absent: git is not asked again', async (t) => {
  const { place, name } = await makeUses(t);
  await place.shell('touch ~/.config');
  await name();
  assert.deepEqual(await name(), { value: 'Early', asked: false });
  await place.shell(
    'rm ~/.config; mkdir -p ~/.config/git; git config -f ~/.config/git/config user.name Late',
  );
  assert.equal((await name()).asked, true);
});

test('a file that is removed just after it was read is read again', async (t) => {
  const { place } = await makeUses(t);
  const file = path.join(place.workspace, 'a');
  const cache = new FileCache<string>(anHourLater);
  const removed = cache.read(file, () => {
    rmSync(file);
    return 'there';
  });
  assert.notEqual(
    cache.read(file, () => 'gone'),
    removed,
  );
});

test('what can’t be looked at is not known to lie still', async (t) => {
  const { place } = await makeUses(t);
  await place.shell('ln -s circle circle');
  const { changedAt } = takeFingerprint(path.join(place.workspace, 'circle'));
  assert.equal(changedAt, Number.POSITIVE_INFINITY);
});

test('a repository that is gone is no repository, whatever was known', async (t) => {
  const { place, name, look } = await makeUses(t);
  await name();
  await place.shell('rm -rf .git');
  assert.equal(await look(async () => 'seen'), null);
});
