import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import type { WireBody } from '../../../../test/servers/anthropic.js';
import { chooseRows, testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { makeRepository } from './after-tools.js';
import { processesOf } from './command-processes.js';
import { runInProcess } from './in-process.js';
import { killed, resumed, touch, untilItRuns } from './interrupted-command.js';
import { compileKiller, killVariables, pointsIn } from './kill-points.js';
import { expectCode, expectValid, makeServed, runPawl, startPawl, uniqueSleep } from './pawl.js';
import { call, done, last, message, text } from './wire-words.js';

/**
 * The program is killed while it replaces a file, by its write tool or with what a formatter printed, and resumed: the
 * file is whole and formatted, no temporary file is left, and the model knows what was formatted.
 */

const answer = (body: WireBody) => {
  const wanted = JSON.stringify(last(body));
  if (wanted.includes('make it rough'))
    return message(call('w', 'write', { path: 'a.go', content: 'rough\n' }));
  if (wanted.includes('make it fine'))
    return message(
      call('e', 'edit', { path: 'a.go', edits: [{ oldText: 'smooth', newText: 'fine' }] }),
    );
  return done;
};

const makeGround = async (context: TestContext) => {
  const place = await makeServed(context, answer);
  const { workspace, home, folder } = place;
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  writeFileSync(join(programs, 'gofmt'), '#!/bin/bash\nsed s/rough/smooth/\n');
  chmodSync(join(programs, 'gofmt'), 0o755);
  writeFileSync(join(workspace, 'go.mod'), 'module x\n');
  const named = '-c user.name=Ada -c user.email=ada@example.org';
  const commit = `git init -q; git add .; git ${named} commit -qm first`;
  execFileSync('bash', ['-ec', commit], {
    cwd: workspace,
    env: { PATH: process.env.PATH, HOME: home },
  });
  const environment = { ...place.environment, PATH: `${programs}:${process.env.PATH}` };
  const log = join(folder, 'points');
  const run = (words: readonly string[], more: NodeJS.ProcessEnv) =>
    runPawl({ ...place, environment: { ...environment, ...more } }, words);
  const resume = (...words: readonly string[]) =>
    runInProcess({ ...place, environment }, ['--continue', ...words]);
  return { ...place, run, resume, log, library: compileKiller(folder) };
};

/** The write tool opens and renames a temporary file, and so does the formatter's phase after it. */
const POINTS = ['open', 'rename', 'open', 'rename'];

const kills = [
  [2, false],
  [3, true],
  [4, false],
  [4, true],
] as const;
for (const [at, after] of chooseRows(kills, ([at, after]) => `${at > 2} ${at === 4 && after}`)) {
  const [what, by] = [POINTS[at - 1] ?? '', at > 2 ? 'the formatters' : 'the write tool'];
  const title = `killed ${after ? 'after' : 'before'} the ${what} by ${by}, a file is whole in the resumed session`;
  test(title, async (context) => {
    const { run, resume, log, library, workspace, server } = await makeGround(context);
    const order = { library, path: 'a.go', at, after, log };
    const killed = await run(['-p', 'make it rough'], killVariables(order));
    assert.equal(killed.code, null, killed.stderr);
    assert.deepEqual(
      pointsIn(log).map((point) => point.split(' ')[0]),
      POINTS.slice(0, at),
    );
    expectCode(await resume('-p', 'make it fine'), 0);
    expectValid(server);
    assert.deepEqual(readdirSync(workspace).sort(), ['.git', 'a.go', 'go.mod']);
    const told = JSON.stringify(server.requests.at(-1)?.body.messages);
    const isDone = at === 4 && after;
    assert.match(told, isDone ? /a\.go was formatted before an interruption/ : /a\.go \(gofmt\):/);
    assert.match(told, /Edited a\.go/);
    assert.equal(readFileSync(join(workspace, 'a.go'), 'utf8'), 'fine\n');
  });
}

/** Formatters and hooks end with Pawl, also if it is killed, and also outside the sandbox. */

for (const sandbox of chooseRows([[], ['--sandbox', 'off', '--formatter', 'on']]))
  test(`a formatter ends with a killed program, and the file is whole ${sandbox.join(' ')}`, async (context) => {
    const write = call('w', 'write', { path: 'a.go', content: 'rough\n' });
    const place = await makeServed(context, [message(write), done]);
    const { workspace, home, folder, environment } = place;
    const programs = join(folder, 'programs');
    mkdirSync(programs);
    // it is asked twice: whether the file was formatted before, and for the formatted text
    writeFileSync(
      join(programs, 'gofmt'),
      `#!/bin/bash\ntouch ${folder}/formats; echo half; sleep 1000 & wait\n`,
    );
    chmodSync(join(programs, 'gofmt'), 0o755);
    writeFileSync(join(workspace, 'go.mod'), 'module x\n');
    const env = { PATH: process.env.PATH, HOME: home };
    execFileSync('git', ['init', '-q'], { cwd: workspace, env });
    const own = {
      ...place,
      environment: { ...environment, PATH: `${programs}:${process.env.PATH}` },
    };
    const running = startPawl(own, ['-p', 'work', ...sandbox]);
    await until(
      () => `the formatter runs\n${running.stderr()}`,
      () => processesOf(place).some(({ line }) => line.includes('gofmt')),
    );
    await killed(running);
    await until('nothing runs', () => processesOf(place).length === 0);
    assert.equal(readFileSync(join(workspace, 'a.go'), 'utf8'), 'rough\n');
    assert.deepEqual(readdirSync(workspace).sort(), ['.git', 'a.go', 'go.mod']);
  });

test('a hook outside the sandbox ends with a killed program, with its children', async (context) => {
  const mark = uniqueSleep(context);
  const place = await makeServed(context, [
    message(call('w', 'write', { path: 'a.txt', content: 'x\n' })),
    done,
  ]);
  const config = join(place.home, '.config/pawl');
  mkdirSync(config, { recursive: true });
  const command = `trap "" TERM HUP INT; sleep ${mark} & sleep ${mark}; echo late`;
  writeFileSync(
    join(config, 'config.toml'),
    `[hook.slow]\non = "before-tool"\ncommand = '${command}'\nsandbox = "off"\n`,
  );
  const running = startPawl(place, ['-p', 'work']);
  await until(
    () => `both sleep\n${running.stderr()}`,
    () => processesWith(mark).filter((line) => line.startsWith('sleep')).length === 2,
  );
  await killed(running);
  await until('nothing of it runs', () => processesWith(mark).length === 0);
});

/**
 * Auto-commit after a kill in the middle of a batch: the whole batch is committed or nothing of it, and every file that
 * is left is named with the true reason.
 */

type Ground = Awaited<ReturnType<typeof makeRepository>>;

/** The first call wrote `one.txt`, the second one runs, and Pawl is killed. Nothing of a test's own is seen by git. */
const killInBatch = async (context: TestContext, command: string): Promise<Ground> => {
  const waiting = `echo first; touch runs; until [ -e go ]; do sleep 0.1; done; ${command}`;
  const batch = message(
    call('w', 'write', { path: 'one.txt', content: 'of the agent\n' }),
    call('b', 'bash', { command: waiting }),
  );
  const reply = (body: WireBody) => {
    if (/Write the message of one git commit/.test(JSON.stringify(body)))
      return message(text('feat: both'));
    return body.messages.length === 1 ? batch : done;
  };
  const place = await makeRepository(context, reply);
  writeFileSync(join(place.workspace, '.git', 'info', 'exclude'), 'runs\ngo\n');
  const running = startPawl(place, ['-p', 'work', '--auto-commit']);
  await untilItRuns(place, running);
  await killed(running);
  return place;
};

const letItEnd = async (place: Ground): Promise<void> => {
  touch(place, 'go');
  await until('the command has ended', () => processesOf(place).length === 0);
};

const resultsIn = ({ server }: Ground): string => JSON.stringify(last(server.requests[1]?.body));

test('auto-commit after a kill: files of a batch whose command changed nothing are committed', async (context) => {
  const place = await killInBatch(context, 'true');
  await letItEnd(place);
  const ended = await resumed(place, '--auto-commit');
  expectCode(ended, 0);
  assert.equal(place.git('status', '--porcelain'), '', ended.stderr);
  assert.equal(place.git('show', '--format=%s', '--name-only', 'HEAD'), 'feat: both\n\none.txt\n');
});

test('auto-commit after a kill: a command that still runs is waited for, and the batch is one commit', async (context) => {
  const place = await killInBatch(context, 'echo x > two.txt');
  const running = startPawl(place, ['--continue', '-p', 'and now?', '--auto-commit', '--json']);
  await until('it is resumed', () => /"toolProgress".*first/.test(running.stdout()));
  touch(place, 'go');
  const ended = await running.ended;
  expectCode(ended, 0);
  assert.equal(place.git('status', '--porcelain'), '', ended.stderr);
  assert.equal(
    place.git('show', '--format=%s', '--name-only', 'HEAD'),
    'feat: both\n\none.txt\ntwo.txt\n',
  );
});

test('auto-commit after a kill: no part of a batch is committed, and each file is named with the reason', async (context) => {
  const place = await killInBatch(context, 'echo x > two.txt; echo x >> a.ts');
  await letItEnd(place);
  const ended = await resumed(place, '--auto-commit');
  expectCode(ended, 0);
  assert.equal(place.git('log', '--format=%s'), 'first\n');
  const words =
    /Not committed: a\.ts, one\.txt, two\.txt: Pawl was killed or closed while a call of the agent ran/;
  assert.match(ended.stderr, words);
  assert.match(resultsIn(place), words);
  assert.doesNotMatch(ended.stderr, /could not be read/);
});

testDeep(
  'auto-commit after a kill: without the checkpoints no part of a batch is committed either',
  async (context) => {
    const place = await killInBatch(context, 'echo x > two.txt');
    rmSync(join(place.state, 'pawl', 'checkpoints'), { recursive: true });
    await letItEnd(place);
    const ended = await resumed(place, '--auto-commit');
    expectCode(ended, 0);
    assert.equal(place.git('log', '--format=%s'), 'first\n');
    assert.match(
      ended.stderr,
      /Not committed: one\.txt: no call of the agent is known to have changed it/,
    );
  },
);
