import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { chooseRows } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { makePlace, type Place } from './context.js';

/** Commands of which some part does not want to die. `ready` is written when all of it runs. */
const stubborn: readonly { readonly title: string; readonly command: string }[] = [
  { title: 'a child in the foreground', command: 'echo out; echo >ready; sleep 1000' },
  {
    title: 'grandchildren',
    command: '(bash -c "sleep 1000 & wait" & wait) & echo out; echo >ready; wait',
  },
  {
    title: 'a daemon in a session of its own',
    command: 'setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo out; echo >ready; sleep 1000',
  },
  {
    title: 'a daemon that forked twice',
    command:
      '(setsid bash -c "sleep 1000 & exit" </dev/null >/dev/null 2>&1 &) ; echo out; sleep 0.1; echo >ready; sleep 1000',
  },
  {
    title: 'a daemon with an empty environment',
    command:
      'setsid env -i sleep 1000 </dev/null >/dev/null 2>&1 & echo out; echo >ready; sleep 1000',
  },
  {
    title: 'a shell that ignores TERM',
    command: 'trap "" TERM INT HUP; echo out; echo >ready; while :; do sleep 1000; done',
  },
  {
    title: 'children that ignore TERM',
    command: 'for i in 1 2 3; do (trap "" TERM; sleep 1000) & done; echo out; echo >ready; wait',
  },
];

const markOf = (place: Place): string => place.callId;

/** Without a sandbox and in one. */
const levels = ['off', 'workspace'] as const;

const resisting = stubborn.flatMap((one) => levels.map((level) => ({ ...one, level })));
for (const { title, command, level } of chooseRows(resisting, (row) => row.level)) {
  test(`bash: when it is cancelled and then forced, nothing is left of ${title}, and its output stays (sandbox: ${level})`, async (t) => {
    const place = await makePlace(t, process.env, level);
    const [signal, force] = [new AbortController(), new AbortController()];
    // Not to be seen by other tests: the marker is lost with an empty environment, a number of seconds is not.
    const seconds = `1${process.pid}${place.callId.split('-').at(-1)}`;
    const stop = { signal: signal.signal, force: force.signal };
    const running = place.run('bash', { command: command.replaceAll('1000', seconds) }, stop);
    await until('the command is up', () => processesWith(seconds).length > 0);
    await until('the command says so', () => place.progress.join('').includes('out'));
    await until('all of it runs', () => existsSync(place.path('ready')));
    signal.abort('cancelled');
    await new Promise((done) => setTimeout(done, 50));
    force.abort('cancelled');
    const outcome = await running;
    assert.equal(outcome.status, 'cancelled');
    assert.match(outcome.text, /^out\n\[stopped after .*, with all processes that it started\]$/);
    await until('nothing of it runs', () => processesWith(seconds).length === 0);
    await until('nothing of it runs', () => processesWith(markOf(place)).length === 0);
  });
}

for (const level of levels)
  test(`bash: a time limit ends the command in order, and its output stays (sandbox: ${level})`, async (t) => {
    const place = await makePlace(t, process.env, level);
    const signal = new AbortController();
    const command = 'trap "echo cleaning up; exit 1" TERM; echo out; while :; do sleep 0.05; done';
    const running = place.run('bash', { command }, { signal: signal.signal });
    await until('the command is up', () => place.progress.join('').includes('out'));
    signal.abort('timedOut');
    const outcome = await running;
    assert.equal(outcome.status, 'timedOut');
    assert.match(outcome.text, /^out\n(Terminated\n)?cleaning up\n\[stopped after /);
    await until('nothing of it runs', () => processesWith(markOf(place)).length === 0);
  });

for (const level of levels)
  test(`bash: a call that is already cancelled leaves nothing (sandbox: ${level})`, async (t) => {
    const place = await makePlace(t, process.env, level);
    const aborted = AbortSignal.abort('cancelled');
    const outcome = await place.run(
      'bash',
      { command: 'sleep 1000' },
      { signal: aborted, force: aborted },
    );
    assert.equal(outcome.status, 'cancelled');
    assert.match(outcome.text, /^\[stopped after [^\n]*\]$/);
    await until('nothing of it runs', () => processesWith(markOf(place)).length === 0);
  });

for (const level of levels) {
  test(`bash: a command that the system finds too long is not started (sandbox: ${level})`, async (t) => {
    const place = await makePlace(t, process.env, level);
    const command = `: ${'x'.repeat(200_000)}`;
    for (const background of [false, true]) {
      const { status, text } = await place.run('bash', { command, background });
      assert.equal(status, 'failed');
      assert.match(text, /not started: the command is too long; write it into a file/);
    }
  });
}

test('bash: what a command leaves in the background is ended, and the model is told', async (t) => {
  const place = await makePlace(t);
  const outcome = await place.run('bash', {
    command: 'sleep 1000 & sleep 1000 >/dev/null 2>&1 & echo out',
  });
  assert.equal(outcome.status, 'ok');
  assert.match(
    outcome.text,
    /^out\n\[exit code 0.*\]\n\[processes that it left in the background were ended/,
  );
  await until('the group is gone', () => processesWith(markOf(place)).length === 0);
});

test('bash: a daemon that holds the output open does not hold the command, and the model is told', async (t) => {
  const place = await makePlace(t);
  const outcome = await place.run('bash', {
    command:
      'setsid sleep 1000 & echo $! >pid; until [ -e /proc/$!/stat ] && [ "$(cut -d" " -f6 /proc/$!/stat)" = $! ]; do sleep 0.02; done; echo out',
  });
  const pid = Number(await readFile(place.path('pid'), 'utf8'));
  t.after(() => process.kill(pid, 'SIGKILL'));
  assert.equal(outcome.status, 'ok');
  assert.match(outcome.text, /^out\n\[exit code 0.*\]\n\[a process that it detached still runs\]$/);
  assert.equal(process.kill(pid, 0), true);
});

/** Nothing is read and no timer rings meanwhile. */
const block = (durationMs: number): void =>
  void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);

test('bash: output is not lost when this program was busy while the command ended', async (t) => {
  const place = await makePlace(t);
  const running = place.run('bash', { command: 'echo >ready; sleep 0.5; echo said' });
  await until('the command runs', () => existsSync(place.path('ready')));
  // The end of one child tells of the ends of all: of the command too, whose output was not looked at since.
  const other = spawn('/bin/sh', ['-c', 'echo other'], { stdio: ['ignore', 'pipe', 'ignore'] });
  other.stdout.once('data', () => block(800));
  other.once('exit', () => block(300));
  block(150);
  const { text } = await running;
  assert.match(text, /^said\n\[exit code 0, [\d.]+ s\]$/);
});

for (const level of levels)
  test(`bash: a program that ends while commands and jobs run takes them along (sandbox: ${level})`, async (t) => {
    const place = await makePlace(t, process.env, level);
    const seconds = `2${process.pid}${levels.indexOf(level)}`;
    const code = `
    import { builtinTools } from ${JSON.stringify(path.resolve('packages/agent/src/tools/builtin-tools.ts'))};
    import { createJobs } from ${JSON.stringify(path.resolve('packages/agent/src/ports/tool.ts'))};
    const tool = builtinTools().find((each) => each.name === 'bash');
    const never = new AbortController().signal;
    const files = { get: () => undefined, set: () => undefined };
    const blobs = { get: async () => undefined, put: async () => '' };
    const context = { workspace: process.cwd(), paths: [process.cwd()], callId: 'x', sandbox: '${level}', signal: never, force: never, files, blobs, jobs: createJobs(), progress: () => process.exit(7) };
    await tool.run({ command: 'setsid sleep ${seconds} </dev/null >/dev/null 2>&1', background: true }, context);
    await tool.run({ command: 'sleep ${seconds} & echo up; sleep ${seconds}' }, context);
  `;
    const program = await bundleProgram(t, { code });
    const child = spawn(process.execPath, [program], {
      cwd: place.workspace,
      stdio: 'inherit',
    });
    const exit = await new Promise((resolve) => child.once('exit', resolve));
    assert.equal(exit, 7);
    await until('all are gone', () => processesWith(seconds).length === 0);
  });
