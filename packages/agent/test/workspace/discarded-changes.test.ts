import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { fillFolder } from '../../../../test/made-folder.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { decide } from '../../src/policy/decide.js';
import { presetRules } from '../../src/policy/presets.js';
import { shellFacts } from '../../src/policy/shell/shell-facts.js';
import { discardedFiles, withGitReadings } from '../../src/policy/shell/unrecoverable-files.js';
import type { OwnWrite } from '../../src/ports/tool.js';
import { answerOfGit, discardedByGit } from '../../src/workspace/uncommitted-files.js';

// `git restore` and `git checkout` of paths are allowed where they bring back what is deleted, or
// undo what this session wrote. A change of anybody else is named, and asked about.

const git = (folder: string, ...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', '-C', folder, ...args], {
    encoding: 'utf8',
  });

const COMMITTED = 'one\n';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const createRepository = (t: TestContext): string => {
  const folder = realpathSync(temporaryFolder(t, 'discarded'));
  fillFolder(folder, 'a repository', (made) => {
    mkdirSync(path.join(made, 'src/deep'), { recursive: true });
    for (const name of ['src/a.ts', 'src/deep/b.ts', 'other.ts'])
      writeFileSync(path.join(made, name), COMMITTED);
    git(made, 'init', '-q');
    git(made, 'add', '-A');
    git(made, 'commit', '-qm', 'first');
  });
  return folder;
};

const decisionOn = async (
  workspace: string,
  command: string,
  writes: Readonly<Record<string, OwnWrite>> = {},
): Promise<string> => {
  const read = await shellFacts(command, (name) => `/usr/bin/${name}`);
  const shell = await withGitReadings(read, workspace, answerOfGit(process.env));
  const ownWrite = (file: string): OwnWrite | undefined => writes[path.relative(workspace, file)];
  const find = discardedByGit(process.env, ownWrite);
  const discarded = await discardedFiles(shell, workspace, find);
  const settings = { rules: presetRules.auto, workspace, sandbox: 'workspace' } as const;
  const { decision, why } = decide(settings, [], {
    callId: '1',
    tool: 'bash',
    input: {},
    verdict: { kind: 'ok' },
    traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 },
    facts: {
      argv: [command],
      paths: [workspace],
      hosts: [],
      shape: command,
      shell,
      ...(discarded === null ? {} : { discarded }),
    },
  });
  return decision === 'allow' ? decision : `${decision}: ${why}`;
};

const FORMS = [
  'git restore src',
  'git restore -- src/a.ts src/deep',
  'git checkout -- src',
  'git checkout HEAD -- src',
  'git restore --source=HEAD src',
  'git restore -s HEAD --staged --worktree src',
  'ls; git restore src && git status',
  'git restore .',
  'git checkout .',
  'git reset --hard',
  'git reset -q --hard HEAD',
  'git checkout src',
  'git checkout src/',
  'git checkout -f',
  'git -C src checkout .',
  'git --no-pager checkout -- src',
  'rm -rf src/deep; git checkout src',
  'rm -rf src/deep && git restore src',
];
/** They name the file, which is there only in the first place. */
const NAMING = [
  'git checkout src/a.ts',
  'git checkout -- src/a.ts',
  'git checkout src/a.ts other.ts',
  'git checkout src/*.ts',
  'git checkout */a.ts other.ts',
  'git -C src checkout a.ts',
  'git co src/a.ts',
  'git undo src/a.ts',
];

test('a file is no branch: its name asks about a change of the user, and about none of the session', async (t) => {
  const folder = createRepository(t);
  git(folder, 'config', 'alias.co', 'checkout');
  git(folder, 'config', 'alias.undo', 'co --');
  for (const form of chooseRows(NAMING, undefined, 3)) {
    assert.equal(await decisionOn(folder, form), 'allow', `nothing is changed: ${form}`);
    writeFileSync(path.join(folder, 'src/a.ts'), 'theirs\n');
    assert.match(await decisionOn(folder, form), /^ask: .* would be lost: src\/a\.ts$/, form);
    const own = { before: sha256(COMMITTED), after: sha256('theirs\n') };
    assert.equal(await decisionOn(folder, form, { 'src/a.ts': own }), 'allow', form);
    // control: git does what was asked about
    git(folder, ...(form.includes('*') ? ['checkout', 'src'] : form.split(' ').slice(1)));
    assert.equal(readFileSync(path.join(folder, 'src/a.ts'), 'utf8'), COMMITTED, form);
  }
});

test('a branch is a branch, also where a file has its name', async (t) => {
  const folder = createRepository(t);
  for (const name of ['topic', 'src/a.ts', 'feature/x']) git(folder, 'branch', name);
  git(folder, 'tag', 'v1');
  writeFileSync(path.join(folder, 'topic'), 'untracked\n');
  writeFileSync(path.join(folder, 'src/a.ts'), 'theirs\n');
  for (const command of [
    'git checkout topic',
    'git checkout src/a.ts',
    'git checkout feature/x',
    'git checkout v1',
    'git checkout HEAD~0',
    'git checkout -',
    'git checkout -b new src/a.ts',
    'git checkout no-such-thing',
  ])
    assert.equal(await decisionOn(folder, command), 'allow', command);
  assert.match(await decisionOn(folder, 'git checkout -- src/a.ts'), /^ask: /, 'control');
});

/** They may change more than the file that they name. */
const WIDE = [
  'git checkout -p',
  'yes | git checkout -p src',
  'git checkout -f main',
  'git checkout --pathspec-from-file=x',
  'git checkout main src/a.ts',
  "git checkout 'src/*'",
  'git checkout --ours src/a.ts',
  'git switch -f main',
  'git switch --discard-changes main',
  'git diff src/a.ts | git apply -R',
  'git apply --reverse x.patch',
  'git read-tree -u --reset HEAD',
  'git checkout-index -f src/a.ts',
  'git checkout-index -fa',
  'git rm -f src/a.ts',
  'git clean -fdx',
  'git submodule update --force',
  'git -c core.x=y checkout src/a.ts',
  'git -C nested checkout a.ts',
  'git shell-alias src/a.ts',
];

test('with a change of the user, words that may take more than is read of them ask', async (t) => {
  const folder = createRepository(t);
  git(folder, 'config', 'alias.shell-alias', '!git checkout --');
  git(folder, 'init', '-q', 'nested');
  writeFileSync(path.join(folder, 'nested/a.ts'), 'theirs\n');
  writeFileSync(path.join(folder, 'src/a.ts'), 'theirs\n');
  for (const command of chooseRows(WIDE, undefined, 8))
    assert.match(await decisionOn(folder, command), /^ask: /, command);
});

const forms = chooseRows(FORMS, undefined, 6);

test('after rm -rf src git may bring it back', async (t) => {
  const folder = createRepository(t);
  rmSync(path.join(folder, 'src'), { recursive: true });
  for (const form of forms) assert.equal(await decisionOn(folder, form), 'allow', form);
});

test('with a change of the user git asks first, and the file is named', async (t) => {
  const folder = createRepository(t);
  rmSync(path.join(folder, 'src/deep'), { recursive: true });
  writeFileSync(path.join(folder, 'src/a.ts'), 'theirs\n');
  for (const form of forms)
    assert.match(
      await decisionOn(folder, form),
      /^ask: changes that were not committed would be lost: src\/a\.ts$/,
      form,
    );
});

test('a change of the session alone is taken back without a question', async (t) => {
  const folder = createRepository(t);
  const own = { before: sha256(COMMITTED), after: sha256('ours\n') };
  const onDirty = { ...own, before: sha256('theirs\n') };
  writeFileSync(path.join(folder, 'src/a.ts'), 'ours\n');
  for (const form of forms) {
    assert.equal(await decisionOn(folder, form, { 'src/a.ts': own }), 'allow', form);
    assert.match(await decisionOn(folder, form, { 'src/a.ts': onDirty }), /^ask: .*src\/a\.ts/);
  }
  writeFileSync(path.join(folder, 'src/a.ts'), 'ours, then theirs\n');
  for (const form of forms)
    assert.match(await decisionOn(folder, form, { 'src/a.ts': own }), /^ask: .*src\/a\.ts/);
});

type Harm = readonly [about: string, command: string, make?: (folder: string) => void];

const remove = (folder: string): void => rmSync(path.join(folder, 'src'), { recursive: true });

const harms: readonly Harm[] = [
  [
    'a file stands where the folder was',
    'git restore src',
    (folder) => {
      remove(folder);
      writeFileSync(path.join(folder, 'src'), 'notes\n');
    },
  ],
  [
    'a folder stands where the file was',
    'git restore src',
    (folder) => {
      rmSync(path.join(folder, 'src/a.ts'));
      mkdirSync(path.join(folder, 'src/a.ts'));
      writeFileSync(path.join(folder, 'src/a.ts/notes'), 'notes\n');
    },
  ],
  [
    'a link stands where the folder was',
    'git restore src',
    (folder) => {
      remove(folder);
      symlinkSync('/tmp', path.join(folder, 'src'));
    },
  ],
  [
    'a staged change is deleted',
    'git checkout HEAD -- src',
    (folder) => {
      writeFileSync(path.join(folder, 'src/a.ts'), 'staged\n');
      git(folder, 'add', 'src');
      remove(folder);
    },
  ],
  [
    'a new file is staged',
    'git restore -s HEAD --staged --worktree src',
    (folder) => {
      writeFileSync(path.join(folder, 'src/new.ts'), 'new\n');
      git(folder, 'add', 'src');
    },
  ],
  [
    'git is to ignore changes',
    'git restore src',
    (folder) => {
      git(folder, 'update-index', '--assume-unchanged', 'src/a.ts');
      writeFileSync(path.join(folder, 'src/a.ts'), 'theirs\n');
    },
  ],
  ['a file is moved to where git restores', 'mkdir src; mv notes src/a.ts; git restore src'],
  ['another program runs beside it', 'npm test; git restore src'],
  ['a file is written beside it', 'cat notes > src/a.ts; git restore src'],
  ['stashed work comes first', 'git stash pop && git restore src'],
  ['the folder changes', 'cd src; git restore .'],
  ['another repository is meant', 'GIT_DIR=x/.git git restore src'],
  ['another repository is exported', 'export GIT_WORK_TREE=/x; git restore src'],
  ['an earlier commit is meant', 'git restore --source=HEAD~1 src'],
  ['paths come from a file', 'git restore --pathspec-from-file=x'],
  ['a path is known when it runs', 'git restore "$X"'],
  ['magic stands in a path', "git restore ':!src'"],
  ['a branch is meant', 'git checkout main -- src'],
  ['it goes to an earlier commit', 'git reset --hard HEAD~1'],
  ['it goes to a branch', 'git reset --hard main'],
  ['a branch is meant, with a point', 'git checkout main .'],
  [
    'a new file is staged',
    'git reset --hard',
    (folder) => {
      writeFileSync(path.join(folder, 'src/new.ts'), 'new\n');
      git(folder, 'add', 'src');
    },
  ],
];

for (const [about, command, make] of harms)
  if (make !== undefined)
    test(`${command} asks if ${about}`, async (t) => {
      const folder = createRepository(t);
      make(folder);
      assert.match(await decisionOn(folder, command), /^ask: /);
    });

test('where src is gone, words that may bring back something else ask', async (t) => {
  const folder = createRepository(t);
  remove(folder);
  for (const [about, command, make] of chooseRows(harms, ([, , made]) => typeof made, 6))
    if (make === undefined) assert.match(await decisionOn(folder, command), /^ask: /, about);
});

test('git reset --hard in a folder below looks at the whole repository', async (t) => {
  const folder = createRepository(t);
  const below = path.join(folder, 'src');
  assert.equal(await decisionOn(below, 'git reset --hard'), 'allow');
  writeFileSync(path.join(folder, 'other.ts'), 'theirs\n');
  assert.equal(await decisionOn(below, 'git restore .'), 'allow');
  assert.match(await decisionOn(below, 'git reset --hard'), /^ask: .*: \.\.\/other\.ts$/);
});

test('a pattern of git names hidden files too under dotglob', async (t) => {
  const folder = createRepository(t);
  writeFileSync(path.join(folder, '.hidden'), 'one\n');
  const read = await shellFacts(
    'shopt -s dotglob; git checkout -- *',
    (name) => `/usr/bin/${name}`,
  );
  const { commands } = await withGitReadings(read, folder, answerOfGit(process.env));
  assert.ok(commands.at(-1)?.readAs?.includes('./.hidden'));
});
