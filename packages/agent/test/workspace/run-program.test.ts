import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProgramPath } from '../../src/platform/find-program.js';
import { ProgramFailure, type ProgramRequest, runProgram } from '../../src/platform/run-program.js';
import { fencedStart, guardPipe, openStart, systemBash } from '../../src/platform/start-program.js';
import { makePlace } from './place.js';
import { assertGone, runs } from './processes.js';

const LONG_MS = 60_000;

/** A program in the place of git, and how it is to be called. */
const programOf = async (
  test: TestContext,
  script: string,
): Promise<ProgramRequest & { readonly pids: () => Promise<readonly number[]> }> => {
  const place = await makePlace(test);
  const program = path.join(place.root, 'program') as ProgramPath; // made by this test
  const pids = path.join(place.root, 'pids');
  await writeFile(pids, '');
  await writeFile(program, `#!/bin/bash\necho $$ >> ${pids}\n${script.replaceAll('PIDS', pids)}\n`);
  await chmod(program, 0o755);
  return {
    program,
    words: [],
    title: 'git test',
    folder: place.workspace,
    environment: { PATH: process.env.PATH ?? '' },
    input: null,
    bytesMax: 1_000_000,
    atMax: 'fail',
    deadlineMs: LONG_MS,
    signal: new AbortController().signal,
    pids: async () => (await readFile(pids, 'utf8')).split('\n').filter(Boolean).map(Number),
  };
};

const failureOf = (order: ProgramRequest): Promise<ProgramFailure> =>
  runProgram(order).then(
    () => assert.fail('it did not fail'),
    (error: unknown) => {
      assert.ok(error instanceof ProgramFailure);
      return error;
    },
  );

test('a process: what it prints, says and ends with is reported', async (t) => {
  const order = await programOf(t, 'cat; echo out; echo err >&2; exit 3');
  const end = await runProgram({ ...order, input: 'in\n' });
  assert.deepEqual(
    { ...end, output: end.output.toString() },
    { code: 3, output: 'in\nout\n', errors: 'err', cut: false },
  );
});

test('a process: without input it reads nothing, and has no terminal to ask at', async (t) => {
  const order = await programOf(t, 'cat; (: < /dev/tty) 2> /dev/null && echo terminal; true');
  assert.equal((await runProgram(order)).output.toString(), '');
});

test('a process: input that is not read is no failure', async (t) => {
  const order = await programOf(t, 'exec <&-; echo done');
  assert.equal(
    (await runProgram({ ...order, input: 'x'.repeat(1_000_000) })).output.toString(),
    'done\n',
  );
});

test('a process: one that prints 100 MB is ended', async (t) => {
  const order = await programOf(t, 'yes | head -c 100000000; sleep 1000');
  const failure = await failureOf(order);
  assert.equal(failure.kind, 'tooMuch');
  assert.equal(failure.message, 'git test printed more than 1000000 bytes and was stopped');
  await assertGone(await order.pids());
});

test('a process: what is cut is exactly as long as allowed', async (t) => {
  const order = await programOf(t, 'yes | head -c 100000000; sleep 1000');
  const end = await runProgram({ ...order, atMax: 'cut' });
  assert.deepEqual([end.code, end.output.length, end.cut], [0, 1_000_000, true]);
  const whole = await runProgram({
    ...(await programOf(t, 'head -c 1000000 /dev/zero')),
    atMax: 'cut',
  });
  assert.deepEqual([whole.output.length, whole.cut], [1_000_000, false]);
});

test('a process: 100 MB of complaints are cut', async (t) => {
  const order = await programOf(t, 'yes | head -c 100000000 >&2; exit 1');
  assert.ok((await runProgram(order)).errors.length <= 4_096);
});

test('a process: one that hangs is ended at its deadline, with all that it started', async (t) => {
  const order = await programOf(t, 'trap "" TERM; sleep 1000 & echo $! >> PIDS; wait');
  const failure = await failureOf({ ...order, deadlineMs: 2_000 });
  assert.deepEqual(
    [failure.kind, failure.message],
    ['late', 'git test took longer than 2 s and was stopped'],
  );
  await assertGone(await order.pids());
});

test('a process: what leaves its group and holds its output open does not hold us', async (t) => {
  const order = await programOf(
    t,
    "setsid bash -c 'echo $$ >> PIDS; exec sleep 1000' & until [ $(wc -l < PIDS) = 2 ]; do sleep 0.01; done",
  );
  const failure = await failureOf({ ...order, deadlineMs: 2_000 });
  assert.equal(failure.kind, 'late');
  for (const pid of (await order.pids()).filter(runs)) process.kill(pid, 'SIGKILL');
});

test('a process: when it is stopped, all that it started ends', async (t) => {
  const order = await programOf(t, 'sleep 1000 & echo $! >> PIDS; wait');
  const stop = new AbortController();
  const failed = failureOf({ ...order, signal: stop.signal });
  while ((await order.pids()).length < 2) await sleep(5);
  stop.abort();
  assert.equal((await failed).kind, 'stopped');
  await assertGone(await order.pids());
});

test('a process: what it left in the background ends with it', async (t) => {
  const order = await programOf(t, 'sleep 1000 > /dev/null 2>&1 & echo $! >> PIDS; echo done');
  assert.equal((await runProgram(order)).output.toString(), 'done\n');
  await assertGone(await order.pids());
});

test('a process: stopped before it begins, it is not started', async (t) => {
  const order = await programOf(t, 'true');
  assert.equal((await failureOf({ ...order, signal: AbortSignal.abort() })).kind, 'stopped');
  assert.deepEqual(await order.pids(), []);
});

test('a process: a program that is not there is told by its path', async (t) => {
  const order = await programOf(t, 'true');
  // a path that no search would give
  const failure = await failureOf({ ...order, program: '/nowhere/git' as ProgramPath });
  assert.equal(failure.kind, 'missing');
  assert.match(failure.message, /^\/nowhere\/git can't be started/);
});

test('a process: one that is killed from outside has failed', async (t) => {
  const failure = await failureOf(await programOf(t, 'kill -9 $$'));
  assert.deepEqual([failure.kind, failure.message], ['refused', 'git test was ended by a signal']);
});

test('a guarded process reads its input, and bash none of its startup files', async (t) => {
  const order = await programOf(t, 'cat; echo end');
  await writeFile(path.join(order.folder, '.bashrc'), 'echo startup file; echo startup file >&2\n');
  const bash = systemBash() ?? assert.fail();
  const { program, words } = openStart(order, bash, true);
  const end = await runProgram({
    ...order,
    // the system's bash
    program: program as ProgramPath,
    words,
    environment: { ...order.environment, HOME: order.folder, SHLVL: '0' },
    input: 'in\n',
    isGuarded: true,
  });
  assert.deepEqual([end.output.toString(), end.errors, end.code], ['in\nend\n', '', 0]);
});

/**
 * A program in the place of bubblewrap, at the moment in which its inner process has left the group
 * and is not yet bound to the outer one.
 */
const STARTING = `while [ "$1" ] && [ "$1" != --info-fd ]; do shift; done
setsid bash -c 'echo $$ >> PIDS; exec sleep 1000' & while [ "$(wc -l < PIDS)" -lt 2 ]; do sleep 0.01; done
[ -z "$2" ] || printf '{\n    "child-pid": %s\n}\n' "$(tail -n 1 PIDS)" >&"$2"
echo ready >> PIDS
wait`;

for (const fenced of [true, false])
  test(`the guard of a ${fenced ? 'fence' : 'program, as a control,'} and a child that has left the group`, async (t) => {
    const order = await programOf(t, STARTING);
    const bash = systemBash() ?? assert.fail();
    const { program, words } = fenced
      ? fencedStart({ bwrap: order.program, words: [], entry: [], descriptors: 0 }, bash, true)
      : openStart(order, bash, true);
    const child = spawn(program, words, {
      detached: true,
      env: order.environment,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    });
    const pipe = guardPipe(child, { isGuarded: true, descriptors: [] }) ?? assert.fail();
    while ((await order.pids()).length < 3) await sleep(5);
    const [leader = 0, left = 0] = await order.pids();
    // The kernel kills bubblewrap when its parent dies; the guard may come later.
    process.kill(leader, 'SIGKILL');
    await assertGone([leader]);
    pipe.destroy();
    if (fenced) return assertGone([left]);
    await assertGone([child.pid ?? 0]);
    assert.ok(runs(left), 'it survives its group');
    process.kill(left, 'SIGKILL');
  });

for (const guard of ['lives', 'was killed'] as const)
  test(`a process is stopped whose guard ${guard}`, async (t) => {
    const killing = guard === 'lives' ? 'true' : 'pkill -9 -g $$ -f pawl-guard';
    const order = await programOf(t, `${killing}; sleep 1000 & echo $! >> PIDS; wait`);
    const bash = systemBash() ?? assert.fail();
    const { program, words } = openStart(order, bash, true);
    const stop = new AbortController();
    const guarded = { program: program as ProgramPath, words, isGuarded: true };
    const failed = failureOf({ ...order, ...guarded, signal: stop.signal });
    while ((await order.pids()).length < 2) await sleep(5);
    stop.abort();
    assert.equal((await failed).kind, 'stopped');
    await assertGone(await order.pids());
  });
