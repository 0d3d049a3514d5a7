import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import '../../../../test/own-process.js';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { say, testModel } from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { fileJournals } from '../../src/journal/file-store.js';
import type { Action } from '../../src/machine/action.js';
import { messagesOf } from '../../src/machine/conversation.js';
import { createAgent, type Session } from '../../src/session/create-agent.js';

const FILES = 300;

type Killed = {
  readonly workspace: string;
  readonly notices: readonly string[];
  /** Kills the process and opens its session in this one. */
  resume(): Promise<Session>;
  readonly ended: Promise<unknown>;
  /** The next line of its output. */
  nextLine(): Promise<string>;
};

/** Runs the command in a session of another process, in a folder with many files. */
const startKilled = async (
  context: TestContext,
  command: string,
  file: string,
): Promise<Killed> => {
  const folder = realpathSync(temporaryFolder(context, 'killed'));
  const [workspace, home] = [path.join(folder, 'work'), path.join(folder, 'state')];
  const state = path.join(home, 'pawl');
  mkdirSync(path.join(workspace, 'many'), { recursive: true });
  for (let index = 0; index < FILES; index += 1)
    writeFileSync(path.join(workspace, 'many', `${1_000 + index}.txt`), `${index}\n`);
  process.env.XDG_STATE_HOME = home;
  const program = await bundleProgram(context, {
    file: fileURLToPath(new URL('rewind-and-die.ts', import.meta.url)),
  });
  const child = spawn(process.execPath, [program, workspace, state, command, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async (): Promise<string> => (await lines.next()).value;
  const id = await nextLine();
  const notices: string[] = [];
  const watch = (actions: readonly Action[]): void => {
    for (const action of actions) if (action.type === 'DisplayNotice') notices.push(action.text);
  };
  const resume = async (): Promise<Session> => {
    child.kill('SIGKILL');
    await ended;
    const agent = createAgent({
      model: testModel(say('resumed')),
      journals: fileJournals({ folder: state }),
      report: () => undefined,
    });
    const session = await agent.open({
      workspace,
      sandbox: 'off',
      resume: id,
      watcher: ({ actions }) => watch(actions),
    });
    context.after(() => session.close().catch(() => undefined)); // its folder is gone
    await session.idle();
    return session;
  };
  return { workspace, notices, resume, ended, nextLine };
};

const isWhole = (workspace: string): boolean =>
  Array.from({ length: FILES }, (_, index) => {
    const file = path.join(workspace, 'many', `${1_000 + index}.txt`);
    return existsSync(file) && readFileSync(file, 'utf8') === `${index}\n`;
  }).every(Boolean);

test('a rewind whose process was killed in the middle is finished by the next one', async (context) => {
  const killed = await startKilled(context, 'rm -rf many', path.join('many', '1100.txt'));
  const [code, signal] = (await killed.ended) as [number | null, string | null];
  assert.deepEqual([code, signal], [null, 'SIGKILL']);
  const { workspace, notices } = killed;
  assert.equal(existsSync(path.join(workspace, 'many', '1299.txt')), false, 'it was in the middle');
  const session = await killed.resume();
  assert.ok(isWhole(workspace));
  assert.equal(readdirSync(path.join(workspace, 'many')).length, FILES);
  assert.match(notices.join('\n'), /the conversation is as it was at 0; 300 files changed back/);
  assert.equal(messagesOf((await session.state()).session.conversation).length, 0);
  await session.redo();
  assert.equal(existsSync(path.join(workspace, 'many')), false);
});

test('what a killed process had changed is taken back by the next one', async (context) => {
  const killed = await startKilled(context, 'rm -rf many; echo > gone; sleep 15', 'never');
  while (!existsSync(path.join(killed.workspace, 'gone'))) await wait(20);
  const session = await killed.resume();
  const [turn] = await session.timeline();
  assert.equal(turn?.changes?.deleted, FILES);
  await session.rewind({ at: 0 });
  assert.ok(isWhole(killed.workspace));
  assert.equal(existsSync(path.join(killed.workspace, 'gone')), false);
  assert.match(killed.notices.join('\n'), /The session was interrupted/);
});

test('after a killed rest nothing is counted twice, and what others change is theirs', async (context) => {
  const killed = await startKilled(context, 'rm many/1000.txt; echo > new', 'never');
  assert.equal(await killed.nextLine(), 'not killed');
  writeFileSync(path.join(killed.workspace, 'mine.txt'), 'mine\n');
  const session = await killed.resume();
  await session.redo();
  assert.equal(existsSync(path.join(killed.workspace, 'many', '1000.txt')), false);
  await session.rewind({ at: 0 });
  assert.ok(isWhole(killed.workspace));
  assert.ok(existsSync(path.join(killed.workspace, 'mine.txt')));
});
