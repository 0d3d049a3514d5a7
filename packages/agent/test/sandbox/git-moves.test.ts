import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import '../../../../test/own-process.js';
import {
  callTools,
  rawCall,
  resultsOf,
  say,
  testModel,
} from '../../../../test/kit/runtime/stage.js';
import { fillFolder } from '../../../../test/made-folder.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows, testDeep } from '../../../../test/tier.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { messagesOf } from '../../src/machine/conversation.js';
import type { ApprovalQuestion, OnApproval } from '../../src/session/approvals.js';
import { createAgent } from '../../src/session/create-agent.js';
import { createProtectedGitFiles } from '../../src/workspace/protected-git-files.js';

const PROTECTED = ['AGENTS.md', '.npmrc', '.github/workflows/ci.yml', '.vscode/settings.json'];

const AUTHOR = {
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@example.com',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@example.com',
};

const shell = (folder: string, command: string): string =>
  execFileSync('bash', ['-c', command], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, ...AUTHOR, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
  });

const writeAll = (folder: string, text: string): void => {
  for (const name of PROTECTED) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), `${text}\n`);
  }
};

/** `main`; `feature`, which changes the protected files and adds one; `plain`, which changes none. */
const makeRepository = (folder: string): void => {
  writeAll(folder, 'main');
  writeFileSync(path.join(folder, 'a.txt'), 'a\n');
  shell(
    folder,
    'git init -q -b main && git config user.name a && git config user.email a@example.com && ' +
      'echo remote.git > .git/info/exclude && git add -A && git commit -qm begin && ' +
      'git switch -qc plain && echo p > p.txt && git add -A && git commit -qm plain && ' +
      'git switch -qc feature main',
  );
  writeAll(folder, 'feature');
  writeFileSync(path.join(folder, '.vscode', 'tasks.json'), '{}\n');
  shell(
    folder,
    'echo f > f.txt && git add -A && git commit -qm feature && git switch -q main && ' +
      'echo m > m.txt && git add -A && git commit -qm more && git clone -q --bare . remote.git',
  );
};

const filesIn = (folder: string, below = ''): readonly string[] =>
  readdirSync(path.join(folder, below), { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(below, entry.name);
    if (['.git', 'remote.git'].includes(name)) return [];
    return entry.isDirectory() ? filesIn(folder, name) : [name];
  });

/** All files with their content, and what git has. */
const lookAt = (folder: string) => ({
  files: filesIn(folder).map((name) => [name, readFileSync(path.join(folder, name), 'utf8')]),
  head: shell(folder, 'git rev-parse HEAD^{tree}; git branch --show-current'),
  status: shell(folder, 'git status --porcelain -uall; git stash list --format=%gd'),
});

const runIn = async (
  context: TestContext,
  workspace: string,
  replies: readonly (readonly string[])[],
  onApproval?: OnApproval,
): Promise<readonly string[]> => {
  // a session alone keeps no process alive
  const alive = setInterval(() => undefined, 1_000);
  context.after(() => clearInterval(alive));
  const state = temporaryFolder(context, 'git-moves-state');
  process.env.XDG_STATE_HOME = state;
  const calls = replies.map((commands, reply) =>
    callTools(...commands.map((command, at) => rawCall(`${reply}-${at}`, 'bash', { command }))),
  );
  const agent = createAgent({
    model: testModel(...calls, say('done')),
    journals: fileJournals({ folder: path.join(state, 'pawl') }),
  });
  const session = await agent.open({
    workspace,
    preset: onApproval === undefined ? 'auto' : 'careful',
    ...(onApproval === undefined ? { settings: { onAsk: 'deny' } } : { onApproval }),
  });
  await session.prompt('go');
  const messages = messagesOf((await session.state()).session.conversation);
  await session.close();
  return messages.flatMap((message) => Object.values(resultsOf([message])));
};

type Row = {
  /** What moves the files. */
  readonly by: 'a branch' | 'a history' | 'a stash' | 'named files';
  readonly command: string;
  /** What the user did before. */
  readonly before?: string;
};

const dirty = PROTECTED.map((name) => `echo mine >> ${name}`).join(' && ');
const rows: readonly Row[] = [
  { by: 'a branch', command: 'git switch -q feature' },
  {
    by: 'a branch',
    command: 'git switch -q -',
    before: 'git switch -q feature && git switch -q main',
  },
  { by: 'a branch', command: 'git checkout -q feature' },
  { by: 'named files', command: 'git checkout -q feature -- .' },
  { by: 'a history', command: 'git merge -q -m merged feature' },
  { by: 'a history', command: 'git cherry-pick feature' },
  { by: 'a history', command: 'git rebase -q feature' },
  { by: 'a history', command: 'git revert --no-edit HEAD', before: 'git switch -q feature' },
  { by: 'a branch', command: 'git reset -q --hard feature' },
  { by: 'a stash', command: 'git stash -q', before: dirty },
  { by: 'a stash', command: 'git stash pop -q', before: `${dirty} && git stash -q` },
  { by: 'a stash', command: 'git stash -q -m mine', before: dirty },
  { by: 'a stash', command: 'git stash branch rescue', before: `${dirty} && git stash -q` },
  { by: 'named files', command: 'git restore --source=feature .' },
  { by: 'named files', command: 'git restore -SW .', before: `${dirty} && git add -A` },
  { by: 'a branch', command: 'git switch -q --orphan empty' },
  { by: 'a branch', command: 'git read-tree --reset -u HEAD', before: dirty },
];

for (const { command, before = 'true' } of chooseRows(rows, ({ by }) => by)) {
  test(`${command}: the user is asked by the names of protected files, and git does all or nothing`, async (context) => {
    const folder = realpathSync(temporaryFolder(context, 'git-moves'));
    const [outside, allowed, refused] = ['outside', 'allowed', 'refused'].map((name) =>
      path.join(folder, name),
    ) as [string, string, string];
    fillFolder(outside, 'a repository', makeRepository);
    shell(outside, before);
    for (const copy of [allowed, refused]) cpSync(outside, copy, { recursive: true });
    const untouched = lookAt(refused);
    const [denial = ''] = await runIn(context, refused, [[command]]);
    assert.match(denial, /denied by policy/);
    for (const name of PROTECTED) assert.ok(denial.includes(name), `${name} in: ${denial}`);
    assert.deepEqual(lookAt(refused), untouched);
    const questions: ApprovalQuestion[] = [];
    const [result = ''] = await runIn(context, allowed, [[command]], (question) => {
      questions.push(question);
      return 'allow';
    });
    assert.equal(questions.length, 1);
    for (const name of PROTECTED)
      assert.ok(questions[0]?.protectedPaths.includes(path.join(allowed, name)), name);
    shell(outside, command);
    assert.deepEqual(lookAt(allowed), lookAt(outside), result);
    assert.doesNotMatch(result, /set aside|restored|moved to|still as before/);
  });
}

testDeep(
  'a protected file that a pull brings is asked about by its name, when git moved on',
  async (context) => {
    const folder = realpathSync(temporaryFolder(context, 'git-moves'));
    const [outside, inside] = ['outside', 'inside'].map((name) => path.join(folder, name)) as [
      string,
      string,
    ];
    fillFolder(outside, 'a repository', makeRepository);
    cpSync(outside, inside, { recursive: true });
    const pull = 'git pull -q --no-rebase --no-edit ./remote.git feature';
    const brought = '.vscode/tasks.json';
    const asked: (readonly string[])[] = [];
    const [pulled = ''] = await runIn(
      context,
      inside,
      [[pull], [`git checkout -- ${brought}`]],
      ({ protectedPaths }) => {
        asked.push(protectedPaths.map((file) => path.relative(inside, file)));
        return 'allow';
      },
    );
    assert.deepEqual(asked, [PROTECTED.toSorted(), [brought]]);
    assert.match(pulled, /tasks\.json is still as before git moved on.*git checkout -- /s);
    shell(outside, pull);
    assert.deepEqual(lookAt(inside), lookAt(outside));
  },
);

test('a branch that changes no protected file is switched to without a question', async (context) => {
  const folder = path.join(realpathSync(temporaryFolder(context, 'git-moves')), 'work');
  fillFolder(folder, 'a repository', makeRepository);
  const [result = ''] = await runIn(context, folder, [
    ['git switch -q plain && git merge -q main -m m'],
  ]);
  assert.doesNotMatch(result, /denied|still as before/);
  assert.match(lookAt(folder).head, /plain/);
  assert.ok(filesIn(folder).includes('m.txt'));
});

for (const [title, commands] of [
  ['in a later reply', [['bash switch-branch.sh'], ['git commit -qam fix']]],
  ['in the same reply', [['bash switch-branch.sh', 'git commit -qam fix']]],
] as const) {
  test(`a script that leaves protected files behind is told of, and no commit ${title} takes the branch back`, async (context) => {
    const folder = path.join(realpathSync(temporaryFolder(context, 'git-moves')), 'work');
    fillFolder(folder, 'a repository', makeRepository);
    writeFileSync(path.join(folder, 'switch-branch.sh'), 'git switch -q feature\n');
    const [moved = '', committed = ''] = await runIn(context, folder, commands);
    for (const name of PROTECTED) assert.ok(moved.includes(name), moved);
    assert.match(moved, /are still as before git moved on.*git checkout -- /s);
    assert.match(committed, /denied by policy|not run/i);
    assert.match(shell(folder, 'git log -1 --format=%s'), /feature/);
  });
}

test('protected files that git left behind are not forgotten while git fails, and are quoted', async (context) => {
  const place = realpathSync(temporaryFolder(context, 'git-moves'));
  const [folder, programs] = [path.join(place, 'work'), path.join(place, 'bin')];
  fillFolder(folder, 'a repository', makeRepository);
  mkdirSync(programs);
  const git = shell(folder, 'command -v git').trim();
  writeFileSync(
    path.join(programs, 'git'),
    `#!/bin/sh\n[ -e '${place}/fails' ] && kill -9 $$\nexec '${git}' "$@"\n`,
    { mode: 0o755 },
  );
  const odd = '.github/workflows/a; id\nb.yml';
  writeFileSync(path.join(folder, odd), 'one\n');
  shell(folder, 'git add -A && git commit -qm one');
  const environment = { ...process.env, PATH: `${programs}:${process.env.PATH}` };
  const files = createProtectedGitFiles(environment);
  const findUnwritten = await files.beforeCommand(folder, []);
  assert.ok(typeof findUnwritten === 'function');
  // git moves on and leaves the old file
  writeFileSync(path.join(folder, odd), 'two\n');
  shell(folder, 'git commit -qam two');
  writeFileSync(path.join(folder, odd), 'one\n');
  assert.match(
    (await findUnwritten()) ?? '',
    /git checkout -- '.github\/workflows\/a; id b.yml'\]$/,
  );
  writeFileSync(path.join(place, 'fails'), '');
  assert.match(String(await files.beforeCommand(folder, [])), /^Not run: git can’t be asked now/);
  assert.equal((await files.find(folder, [])).length, 1);
});

test('what the user did to a protected file is not taken for a move', async (context) => {
  const folder = path.join(realpathSync(temporaryFolder(context, 'git-moves')), 'work');
  fillFolder(folder, 'a repository', makeRepository);
  shell(folder, 'git restore --source=feature AGENTS.md && echo own >> .npmrc && echo b >> a.txt');
  const [result = ''] = await runIn(context, folder, [['git add a.txt && git commit -qm fix']]);
  assert.doesNotMatch(result, /still as before|denied/);
  assert.match(shell(folder, 'git log -1 --format=%s'), /fix/, result);
});
