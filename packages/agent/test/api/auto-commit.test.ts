import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import '../../../../test/own-process.js';
import { callTools, rawCall, say, testModel } from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { findProgram } from '../../src/platform/find-program.js';
import { createAgent, type Session } from '../../src/session/create-agent.js';

/** What a session with auto-commit commits where a user works at the same moment. */

type Stage = {
  readonly session: Session;
  git(...words: readonly string[]): string;
  has(name: string): boolean;
  read(name: string): string;
  write(name: string, text: string): void;
  /** From now on each look at the repository waits for `release`, or for half a second without one. */
  slowLooks(): void;
  release(): void;
};

const makeStage = async (
  context: TestContext,
  ...answers: Parameters<typeof testModel>
): Promise<Stage> => {
  const root = realpathSync(temporaryFolder(context, 'auto-commit'));
  const [workspace, state, bin] = ['work', 'state', 'bin'].map((name) => path.join(root, name)) as [
    string,
    string,
    string,
  ];
  for (const folder of [workspace, bin]) mkdirSync(folder);
  const write = (name: string, text: string): void =>
    writeFileSync(path.join(workspace, name), text);
  const git = (...words: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...words], {
      cwd: workspace,
      encoding: 'utf8',
    });
  for (const name of ['mine.txt', 'other.txt']) write(name, 'old\n');
  for (const words of [
    ['init', '-q'],
    ['add', '-A'],
    ['commit', '-qm', 'begin'],
  ])
    git(...words);
  const real = findProgram('git', { environment: process.env, workspace }) ?? '';
  const script = `#!/bin/sh
case "$*" in *status*) n=0
  while [ -e ${root}/slow ] && [ ! -e ${root}/released ] && [ $n -lt 25 ]
  do n=$((n+1)); sleep 0.02; done;;
esac
exec ${real} "$@"
`;
  writeFileSync(path.join(bin, 'git'), script);
  chmodSync(path.join(bin, 'git'), 0o755);
  const { PATH, XDG_STATE_HOME } = process.env;
  context.after(() => Object.assign(process.env, { PATH, XDG_STATE_HOME }));
  Object.assign(process.env, { PATH: `${bin}:${PATH}`, XDG_STATE_HOME: state });
  await wait(50); // longer than a tick of the times of files
  const agent = createAgent({
    model: testModel(...answers),
    journals: fileJournals({ folder: path.join(state, 'pawl') }),
  });
  const session = await agent.open({
    workspace,
    sandbox: 'off',
    preset: 'full',
    settings: { autoCommit: 'on', formatter: 'off' },
  });
  context.after(() => session.close().catch(() => undefined)); // a test may have ended it
  return {
    session,
    git,
    write,
    has: (name) => existsSync(path.join(workspace, name)),
    read: (name) => readFileSync(path.join(workspace, name), 'utf8'),
    slowLooks: () => writeFileSync(path.join(root, 'slow'), ''),
    release: () => writeFileSync(path.join(root, 'released'), ''),
  };
};

const committed = ({ git }: Stage): readonly string[] =>
  git('log', '--name-only', '--format=', '--invert-grep', '--grep=begin')
    .split('\n')
    .filter((name) => name !== '')
    .sort();

const edit = (file: string, text: string) =>
  callTools(rawCall('2', 'write', { path: file, content: text }));

/** The command has written mine.txt, and ends by the cancel or by itself. */
const rows = [
  { title: 'a cancelled command', command: 'echo agent > mine.txt; touch ready; sleep 600' },
  { title: 'control: a command that ends', command: 'echo agent > mine.txt; touch ready' },
] as const;

for (const { title, command } of rows)
  test(`what the user saves right after ${title} is not committed, and the report names the reason`, async (t) => {
    const isCancelled = command.includes('sleep');
    const stage = await makeStage(
      t,
      callTools(rawCall('1', 'bash', { command })),
      ...(isCancelled ? [] : [say('done')]),
      edit('new.txt', 'new\n'),
      say('done'),
    );
    const { session } = stage;
    const turn = session.prompt('go');
    if (isCancelled) {
      await until('the command has written', () => stage.has('ready'));
      stage.slowLooks();
      await session.cancel();
    }
    await turn;
    stage.write('mine.txt', 'user\n');
    stage.release();
    await session.prompt('and on');
    assert.deepEqual(
      committed(stage),
      isCancelled ? ['new.txt', 'ready'] : ['mine.txt', 'new.txt', 'ready'],
    );
    assert.equal(stage.git('show', 'HEAD:mine.txt'), isCancelled ? 'old\n' : 'agent\n');
    assert.equal(stage.read('mine.txt'), 'user\n');
    const conversation = JSON.stringify((await session.state()).session.conversation);
    assert.equal(
      conversation.includes('Not committed: mine.txt: somebody else changed it too.'),
      isCancelled,
    );
  });
