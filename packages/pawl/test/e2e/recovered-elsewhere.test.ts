import assert from 'node:assert/strict';
import {
  cpSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { moveSecret } from '../../../../test/move-secret.js';
import { testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { killLaunchers, processesOf } from './command-processes.js';
import { runInProcess } from './in-process.js';
import {
  expectEnd,
  has,
  interrupted,
  keptIn,
  onceIn,
  resultIn,
  resume,
  resumed,
  type Served,
  testAtALevel,
  touch,
  untilItRuns,
  WAITING,
} from './interrupted-command.js';
import { bin, expectCode, makeServed, type Place, type Running, start } from './pawl.js';
import { call, done, message } from './wire-words.js';

/**
 * Sessions that are killed while a command runs, and resumed where its process numbers mean nothing: in another pid
 * namespace, or beside a copy of the state folder.
 */

/** An ordinary user needs a user namespace for it. */
const CONTAINER = [
  ...(process.getuid?.() === 0 ? [] : ['--map-root-user']),
  ...['--pid', '--fork', '--mount-proc', '--kill-child'],
];

/** Runs a program as the child of a shell that stays until the file `over` is there. */
const STAYING = '"$@"; code=$?; until [ -e over ]; do sleep 0.05; done; exit $code';

/** Runs Pawl in a pid namespace of its own. `stays`: the namespace outlives it. */
const startContained = (place: Place, words: readonly string[], stays: boolean): Running =>
  start(place, 'unshare', [
    ...CONTAINER,
    '--',
    ...(stays ? ['sh', '-c', STAYING, 'sh'] : []),
    process.execPath,
    bin,
    ...words,
  ]);

const programOf = (pid: number): string => {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return ''; // it has ended
  }
};

/** Kills the program in its namespace, from outside. */
const killContained = (place: Place, prompt: string): void => {
  const own = processesOf(place).filter(
    ({ pid, line }) => line.includes(prompt) && programOf(pid) === realpathSync(process.execPath),
  );
  assert.equal(own.length, 1, JSON.stringify(own));
  for (const { pid } of own) process.kill(pid, 'SIGKILL');
};

const containedInterrupted = async (
  context: TestContext,
  words: readonly string[],
): Promise<{ readonly place: Served; readonly container: Running }> => {
  const input = { command: WAITING };
  const place = await makeServed(context, [message(call('c1', 'bash', input)), done, done, done]);
  const container = startContained(place, ['-p', 'work-inside', ...words], true);
  context.after(() => container.child.kill('SIGKILL'));
  await untilItRuns(place, container);
  killContained(place, 'work-inside');
  return { place, container };
};

testAtALevel(
  'started on the host, resumed in another pid namespace: waited for, its real result',
  async (context, words) => {
    const place = await interrupted(context, { command: WAITING }, words);
    const running = startContained(place, ['--continue', '-p', 'and now?', '--json'], false);
    await until('its output comes', () => /"toolProgress".*first/.test(running.stdout()));
    assert.equal(place.server.requests.length, 1, 'nothing is told while it lives');
    touch(place, 'go');
    const ended = await running.ended;
    assert.match(
      resultIn(place),
      /^first\nsecond\n\[exit code 0, \d+\.\d s\]\n\[Pawl was interrupted/,
    );
    onceIn(place);
    await expectEnd(place, ended);
  },
);

testAtALevel(
  'started in a pid namespace, resumed on the host: waited for, its real result',
  async (context, words) => {
    const { place, container } = await containedInterrupted(context, words);
    const running = resume(place, '--json');
    await until('its output comes', () => /"toolProgress".*first/.test(running.stdout()));
    assert.equal(place.server.requests.length, 1, 'nothing is told while it lives');
    touch(place, 'go');
    const ended = await running.ended;
    assert.match(
      resultIn(place),
      /^first\nsecond\n\[exit code 0, \d+\.\d s\]\n\[Pawl was interrupted/,
    );
    onceIn(place);
    touch(place, 'over');
    await container.ended;
    await expectEnd(place, ended);
  },
);

testDeep('a cancel from another pid namespace ends the command', async (context) => {
  const place = await interrupted(context, { command: WAITING });
  const running = startContained(
    place,
    ['--continue', '-p', 'and now?', '--json', '--max-minutes', '0.05'],
    false,
  );
  const ended = await running.ended;
  assert.equal(ended.code, 124, ended.stderr);
  await until('nothing runs', () => processesOf(place).length === 0);
  onceIn(place);
});

test('the namespace of the command ended with it: unknown, and that nobody saw its end', async (context) => {
  const { place, container } = await containedInterrupted(context, []);
  await until('its output is kept', () => /^first$/m.test(keptIn(place)));
  container.child.kill('SIGKILL');
  await container.ended;
  await until('nothing runs', () => processesOf(place).length === 0);
  const ended = await resumed(place);
  assert.match(resultIn(place), /outcome unknown after a crash\nfirst\n\[nobody saw how it ended/);
  await expectEnd(place, ended);
});

const sandboxFolder = ({ state }: Place): string => join(state, 'pawl', 'sandbox');

testDeep(
  'without the pipe that shows whether it lives: the result says that nothing shows it',
  async (context) => {
    const place = await interrupted(context, { command: WAITING });
    for (const file of readdirSync(sandboxFolder(place), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('/status')) continue;
      const path = join(sandboxFolder(place), file);
      writeFileSync(path, readFileSync(path, 'latin1').replace(/^alive .*$/m, 'nothing'));
    }
    const ended = await startContained(place, ['--continue', '-p', 'and now?'], false).ended;
    expectCode(ended, 0);
    assert.match(resultIn(place), /nothing shows from here whether it still runs/);
    assert.doesNotMatch(resultIn(place), /another machine|restarted/);
    assert.equal(has(place, 'go'), false);
    killLaunchers(place, 'killed');
    await until('nothing runs', () => processesOf(place).length === 0);
  },
);

testDeep(
  'a copy of the state folder, made while the command was about to begin, runs nothing twice',
  async (context) => {
    const place = await makeServed(context, [
      message(call('c1', 'bash', { command: WAITING })),
      done,
      done,
    ]);
    const running = start(place, process.execPath, [bin, '-p', 'work']);
    await untilItRuns(place, running);
    const state = join(place.folder, 'copy');
    cpSync(place.state, state, {
      recursive: true,
      filter: (name) => !/\/(alive-\w+|claim|home|tmp|.*\.lock.*)$/.test(name),
    });
    moveSecret(join(state, 'pawl'));
    const copy = { ...place, state, environment: { ...place.environment, XDG_STATE_HOME: state } };
    const ended = await runInProcess(copy, ['--continue', '-p', 'and now?']);
    expectCode(ended, 0);
    assert.match(
      resultIn(place),
      /outcome unknown after a crash\nthis is a copy of the files of the session/,
    );
    onceIn(place);
    touch(place, 'go');
    await running.ended;
    onceIn(place);
  },
);

test('a call that never began is started, though another session ran a command meanwhile', async (context) => {
  const place = await interrupted(context, { command: WAITING });
  killLaunchers(place, 'killed');
  const [name = ''] = readdirSync(sandboxFolder(place));
  rmSync(join(sandboxFolder(place), name, 'commands'), { recursive: true });
  rmSync(join(place.workspace, 'log'));
  const other = await makeServed(context, [
    message(call('c1', 'bash', { command: 'echo x' })),
    done,
  ]);
  const shared = { ...other, environment: { ...other.environment, XDG_STATE_HOME: place.state } };
  expectCode(await runInProcess(shared, ['-p', 'work']), 0);
  touch(place, 'go');
  const ended = await resumed(place);
  assert.match(resultIn(place), /^first\nsecond\n\[exit code 0, \d+\.\d s\]$/);
  onceIn(place);
  await expectEnd(place, ended);
});
