import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import '../../../../test/own-process.js';
import { callTools, rawCall, say, testModel } from '../../../../test/kit/runtime/stage.js';
import { tree } from '../../../../test/kit/workspace-tree.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { createAgent, type Session } from '../../src/session/create-agent.js';

/** Commands that have cost people their work: each is taken back whole, and done again. */

/** So many that one program a file would be felt. */
const FORMATTED = 150;

const git = (folder: string, ...words: readonly string[]): void => {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
  execFileSync('git', [...who, ...words], { cwd: folder, stdio: 'ignore' });
};

const PACKAGE = JSON.stringify({ name: 'x', scripts: { clean: 'rm -rf src notes.txt draft' } });

/** A repository with clean, dirty, staged and untracked files, an ignored one and a link. */
const makeRepository = (folder: string): void => {
  const write = (name: string, text: string, mode = 0o644): void => {
    mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
    writeFileSync(path.join(folder, name), text, { mode });
  };
  write('package.json', PACKAGE);
  write('.gitignore', 'secret.env\n');
  for (const name of ['clean', 'dirty', 'staged']) write(`src/${name}.ts`, `let ${name} = 1;\n`);
  write('src/run.sh', '#!/bin/sh\nexit 0\n', 0o755);
  git(folder, 'init', '-q');
  git(folder, 'add', '-A');
  git(folder, 'commit', '-qm', 'begin');
  write('src/dirty.ts', 'let dirty = 2;\r\nlet more = 3;\r\n');
  write('src/staged.ts', 'let staged = 2;\n');
  git(folder, 'add', 'src/staged.ts');
  write('precious.txt', 'precious\n');
  write('notes.txt', 'notes\n');
  write('draft/deep/one.txt', 'one\n', 0o600);
  symlinkSync('../src', path.join(folder, 'draft', 'link'));
  write('secret.env', 'SECRET=1\n');
};

type Stage = { readonly session: Session; readonly workspace: string };

const open = async (context: TestContext, commands: readonly string[]): Promise<Stage> => {
  const folder = realpathSync(temporaryFolder(context, 'harm'));
  const [workspace, state] = [path.join(folder, 'work'), path.join(folder, 'state')];
  mkdirSync(workspace);
  process.env.XDG_STATE_HOME = state;
  makeRepository(workspace);
  await wait(50); // longer than a tick of the times of files
  const answers = commands.flatMap((command, index) => [
    callTools(rawCall(`${index}`, 'bash', { command })),
    say('done'),
  ]);
  const agent = createAgent({
    model: testModel(...answers),
    journals: fileJournals({ folder: path.join(state, 'pawl') }),
  });
  const onApproval = (): 'allow' => 'allow';
  const options = { preset: 'auto', sandbox: 'workspace', onApproval } as const;
  const session = await agent.open({ workspace, ...options });
  context.after(() => session.close().catch(() => undefined)); // its folder is gone by then
  return { session, workspace };
};

const makeSources = (workspace: string): void => {
  mkdirSync(path.join(workspace, 'many'));
  for (let index = 0; index < FORMATTED; index += 1)
    writeFileSync(path.join(workspace, 'many', `${index}.js`), `let  a${index}=1\n`);
};

const FORMATTER =
  'node -e \'const fs = require("fs"); for (const name of fs.readdirSync("many")) {' +
  ' const text = fs.readFileSync("many/" + name, "utf8");' +
  ' fs.writeFileSync("many/" + name, text.replace(/ +/g, " ").replace("=", " = ")) }\'';

const PYTHON =
  'python3 -c \'import os, shutil; shutil.rmtree("src"); os.remove("precious.txt");' +
  ' os.chmod("notes.txt", 0o600); os.symlink("nowhere", "made"); open("new.txt", "w").write("n")\'';

const HARMS: readonly string[] = [
  'git reset --hard',
  'git clean -fd',
  'npm run clean',
  'mv precious.txt draft src/',
  "sed -i 's/let/const/; s/\\r$//' src/*.ts",
  PYTHON,
  FORMATTER,
];

test('each command is taken back whole, and done again', async (context) => {
  const { session, workspace } = await open(context, [...HARMS, 'git clean -fdx']);
  const begins: number[] = [];
  const runNext = async (command: string): Promise<{ before: string; after: string }> => {
    if (command === FORMATTER) makeSources(workspace);
    const before = tree(workspace);
    await session.prompt('clean up');
    begins.push((await session.timeline()).findLast(({ kind }) => kind === 'turn')?.seq ?? 0);
    return { before, after: tree(workspace) };
  };
  const back = () => session.rewind({ at: begins.at(-1) ?? 0 });
  for (const command of HARMS) {
    const { before, after } = await runNext(command);
    assert.notEqual(after, before, `${command} has done harm`);
    assert.deepEqual((await back()).left, [], command);
    assert.equal(tree(workspace), before, command);
    await session.redo();
    assert.equal(tree(workspace), after, command);
    await back();
    assert.equal(tree(workspace), before, command);
  }
  // what git ignores does not come back, everything else does
  const { before } = await runNext('git clean -fdx');
  assert.equal(existsSync(path.join(workspace, 'secret.env')), false);
  await back();
  const lost = before.split('\n').filter((line) => !line.startsWith('/secret.env '));
  assert.equal(tree(workspace), lost.join('\n'));
});
