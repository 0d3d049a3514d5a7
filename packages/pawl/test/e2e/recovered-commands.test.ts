import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isDeep, testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { killLaunchers, launcherLeaders, processesOf } from './command-processes.js';
import { runInProcess } from './in-process.js';
import {
  expectEnd,
  has,
  interrupted,
  keptIn,
  killed,
  onceIn,
  resultIn,
  resultOf,
  resume,
  resumed,
  type Served,
  testAtALevel,
  touch,
  untilItRuns,
  WAITING,
} from './interrupted-command.js';
import { expectCode, makeServed, type Place, readRecords, sessionOf, startPawl } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** Each row of the recovery table in docs/proof/reliability.md: the program is killed while a command runs, and resumed. */

const NOTE = /\n\[Pawl was interrupted while this ran, and went on: this is the real result\]/;

testAtALevel(
  'a command that ended meanwhile: its real result, as it is told live',
  async (context, words) => {
    const secret = 'sk-ant-4711-secret-of-the-user';
    const isBig = isDeep && words.includes('workspace');
    const big = `head -c ${isBig ? 120_000_000 : 10} /dev/zero | tr "\\0" x; echo; seq 1000`;
    const command = `${WAITING}; echo ${secret}; ${big}; exit 3`;
    const live = await makeServed(context, [message(call('c1', 'bash', { command })), done], {
      ANTHROPIC_API_KEY: secret,
    });
    touch(live, 'go');
    expectCode(await runInProcess(live, ['-p', 'work', ...words]), 0);
    const expected = resultIn(live);
    const place = await makeServed(
      context,
      [message(call('c1', 'bash', { command })), done, done],
      {
        ANTHROPIC_API_KEY: secret,
      },
    );
    const running = startPawl(place, ['-p', 'work', ...words]);
    await untilItRuns(place, running);
    await killed(running);
    touch(place, 'go');
    await until('it has ended', () => processesOf(place).length === 0);
    const ended = await resumed(place, '--verbose');
    const plain = (text: string): string =>
      text
        .replace(/\d+\.\d s/g, 'N s')
        .replace(/[\da-f]{64}/g, 'HASH')
        .replace(/[\d,]+ bytes/g, 'N bytes')
        // how much is read before the rest is dropped depends on who reads
        .replace(/[\d,]+ more are gone/g, 'N more are gone');
    assert.match(resultIn(place), NOTE);
    const [found, told] = [plain(resultIn(place).replace(NOTE, '')), plain(expected)];
    assert.equal(found.slice(0, 10_000), told.slice(0, 10_000));
    assert.equal(found.slice(-10_000), told.slice(-10_000));
    assert.doesNotMatch(resultIn(place), new RegExp(secret));
    assert.match(ended.stderr, /this is the real result/);
    onceIn(place);
    await expectEnd(place, ended);
  },
);

testAtALevel(
  'a command that still runs: it is waited for, and its output comes live',
  async (context, words) => {
    const place = await interrupted(context, { command: WAITING }, words);
    const running = resume(place, '--json');
    await until('its output comes', () => /"toolProgress".*first/.test(running.stdout()));
    const second = await runInProcess(place, ['--continue', '-p', 'me too']);
    assert.notEqual(second.code, 0, 'another process is refused');
    touch(place, 'go');
    const ended = await running.ended;
    assert.match(
      resultIn(place),
      /^first\nsecond\n\[exit code 0, \d+\.\d s\]\n\[Pawl was interrupted/,
    );
    const told = readRecords(ended.stdout).find(({ type }) => type === 'toolResult');
    assert.ok(told?.type === 'toolResult' && told.status === 'ok', ended.stdout);
    onceIn(place);
    await expectEnd(place, ended);
  },
);

testDeep('a kill during the recovery changes nothing', async (context) => {
  const place = await interrupted(context, { command: WAITING });
  const running = resume(place, '--json');
  await until('its output comes', () => /"toolProgress".*first/.test(running.stdout()));
  await killed(running);
  touch(place, 'go');
  const ended = await resumed(place);
  assert.match(resultIn(place), /^first\nsecond\n\[exit code 0/);
  onceIn(place);
  await expectEnd(place, ended);
});

testAtALevel(
  'the deadline is kept while nobody lives, and by a resumed session',
  async (context, words) => {
    const command = `${WAITING} & ${WAITING}`;
    const expectDeadline = async (place: Served): Promise<void> => {
      const ended = await resume(place).ended;
      assert.match(
        resultIn(place),
        /deadline of the call was reached.*\nfirst\n(first\n)?(Terminated\n)?\[stopped after/,
      );
      await expectEnd(place, ended);
    };
    const alone = async (): Promise<void> => {
      const place = await interrupted(context, { command, timeoutMs: 5_000 }, words);
      await until('it was ended', () => processesOf(place).length === 0);
      await expectDeadline(place);
    };
    const later = async (): Promise<void> =>
      expectDeadline(await interrupted(context, { command, timeoutMs: 8_000 }, words));
    await Promise.all([alone(), later()]);
  },
);

testAtALevel('launcher and program killed together: unknown, and said', async (context, words) => {
  const job = call('c0', 'bash', { command: 'echo up; sleep 1000', background: true });
  const list = call('c2', 'bash', { jobAction: 'list' });
  const replies = [message(job, call('c1', 'bash', { command: WAITING })), message(list), done];
  const place = await makeServed(context, replies);
  const running = startPawl(place, ['-p', 'work', ...words]);
  await untilItRuns(place, running);
  // A program between the command and its file may be killed before it has written.
  await until('its output is kept', () => /^first$/m.test(keptIn(place)));
  running.child.kill('SIGKILL');
  killLaunchers(place, 'killed');
  await running.ended;
  const ended = await resumed(place);
  assert.match(resultIn(place), /outcome unknown after a crash\nfirst\n\[nobody saw how it ended/);
  assert.match(ended.stderr, /outcome unknown after a crash/);
  assert.match(resultOf(place, 2, 'c2'), /^job-1: ended, nobody saw how/);
  await expectEnd(place, ended);
});

test('a launcher that its own command kills: nobody saw how that ended', async (context) => {
  const leader = 'grep -q pawl-launcher /proc/$PPID/cmdline && ps -o pgid= $PPID | tr -d " "';
  const command = `kill -9 -- -$(${leader}); sleep 0.2; echo up >deployed; exit 0`;
  const place = await makeServed(context, [message(call('c1', 'bash', { command })), done]);
  const ended = await runInProcess(place, ['-p', 'work', '--sandbox', 'off']);
  assert.ok(has(place, 'deployed'), 'control: it went on');
  assert.match(resultIn(place), /\[nobody saw how it ended: check before you run it again\]/);
  await expectEnd(place, ended);
});

testDeep(
  'a launcher that was killed alone: the command still tells its real end',
  async (context) => {
    const place = await interrupted(context, { command: WAITING });
    for (const pid of launcherLeaders(place)) process.kill(pid, 'SIGKILL');
    touch(place, 'go');
    const ended = await resumed(place);
    assert.match(resultIn(place), /^first\nsecond\n\[exit code 0/);
    onceIn(place);
    await expectEnd(place, ended);
  },
);

testDeep('a cancel ends a command that was attached again', async (context) => {
  const place = await interrupted(context, { command: WAITING });
  const running = resume(place, '--json');
  await until('its output comes', () => /"toolProgress".*first/.test(running.stdout()));
  running.child.kill('SIGINT');
  await running.ended;
  await until('nothing runs', () => processesOf(place).length === 0);
  assert.match(running.stdout(), /"status":"(cancelled|interrupted)"/);
});

testDeep(
  'a time limit that is given with the resume holds for the turn that goes on',
  async (context) => {
    const place = await interrupted(context, { command: WAITING }, ['--max-minutes', '60']);
    const ended = await resumed(place, '--max-minutes', '0.03');
    assert.equal(ended.code, 124, ended.stderr);
    assert.match(ended.stderr, /stopped: 2 of 2 s used/);
    assert.equal(place.server.requests.length, 1, 'no request after it');
    await until('nothing runs', () => processesOf(place).length === 0);
  },
);

/** The file that names the session and the machine. */
const recordOf = ({ state }: Place): string => {
  const folder = join(state, 'pawl', 'sandbox');
  const [name = ''] = readdirSync(folder);
  return join(folder, name, 'session');
};

test('the machine was restarted: unknown, and said to the model and the user; jobs are listed with that reason', async (context) => {
  const job = (id: string, command: string) => call(id, 'bash', { command, background: true });
  const action = (id: string, jobAction: string, jobId?: string) =>
    call(id, 'bash', { jobAction, jobId });
  const place = await makeServed(context, [
    message(
      job('j1', 'echo up; sleep 1000'),
      job('j2', 'until [ -e go-2 ]; do sleep 0.1; done; exit 3'),
      call('c1', 'bash', { command: WAITING }),
    ),
    message(
      action('l', 'list'),
      action('s', 'show', 'job-1'),
      action('k', 'kill', 'job-1'),
      job('j3', 'sleep 1000'),
    ),
    done,
  ]);
  const running = startPawl(place, ['-p', 'work']);
  await untilItRuns(place, running);
  await killed(running);
  touch(place, 'go-2');
  await until(
    'the second job ended',
    () => !processesOf(place).some(({ line }) => line.includes('go-2')),
  );
  const commands = join(recordOf(place), '..', 'commands');
  const recordedEnds = (): readonly string[] =>
    readdirSync(commands, { recursive: true, encoding: 'utf8' })
      .filter((file) => basename(file) === 'status')
      .map((file) => readFileSync(join(commands, file), 'utf8'));
  await until('the end of the second job is recorded', () =>
    recordedEnds().some((status) => /^exit 3 /m.test(status)),
  );
  await until('the output of the first job is kept', () => /^up$/m.test(keptIn(place)));
  killLaunchers(place, 'killed');
  const [session] = readFileSync(recordOf(place), 'utf8').split('\n');
  writeFileSync(recordOf(place), `${session}\nanother-start pid:[1]\n`);
  const files = readdirSync(commands, { recursive: true });
  const ended = await resumed(place);
  expectCode(ended, 0);
  assert.match(
    resultIn(place),
    /unknown after a crash\n.*another machine, or this one was restarted/,
  );
  assert.match(ended.stderr, /^✗ bash echo begin.* · outcome unknown after a crash$/m);
  const listed = resultOf(place, 2, 'l').split('\n');
  assert.match(listed[0] ?? '', /^job-1: unknown \(.*this one was restarted since\): echo up/);
  assert.match(listed[1] ?? '', /^job-2: exit code 3, \d+\.\d s: /);
  for (const id of ['s', 'k']) assert.match(resultOf(place, 2, id), /^up\n\[job-1: unknown /);
  assert.match(resultOf(place, 2, 'j3'), /^Started job-3 /);
  const left = readdirSync(commands, { recursive: true });
  assert.deepEqual(left, files, 'what may be another machine’s is not touched');
});

testDeep(
  'no files of the command, though its session is recorded: it never began, and starts',
  async (context) => {
    const place = await interrupted(context, { command: WAITING });
    killLaunchers(place, 'killed');
    rmSync(join(recordOf(place), '..', 'commands'), { recursive: true });
    rmSync(join(place.workspace, 'log'));
    touch(place, 'go');
    const ended = await resumed(place);
    assert.match(resultIn(place), /^first\nsecond\n\[exit code 0, \d+\.\d s\]$/);
    onceIn(place);
    await expectEnd(place, ended);
  },
);

testDeep('the record of the session is gone, too: unknown', async (context) => {
  const place = await interrupted(context, { command: WAITING });
  killLaunchers(place, 'killed');
  rmSync(join(place.state, 'pawl', 'sandbox'), { recursive: true });
  const ended = await resumed(place);
  expectCode(ended, 0);
  assert.match(resultIn(place), /outcome unknown after a crash/);
  onceIn(place);
});

testDeep(
  'a workspace that was replaced: the real result, and where it came from',
  async (context) => {
    const place = await interrupted(context, { command: WAITING });
    const old = `${place.workspace}-old`;
    renameSync(place.workspace, old);
    mkdirSync(place.workspace);
    writeFileSync(join(old, 'go'), '');
    const ended = await resumed(place);
    assert.match(
      resultIn(place),
      /^first\nsecond\n\[exit code 0.*\n\[the workspace folder was replaced/,
    );
    await expectEnd(place, ended);
  },
);

testDeep('another session leaves the files of an interrupted one alone', async (context) => {
  const place = await interrupted(context, { command: WAITING });
  const echo = (id: string) => message(call(id, 'bash', { command: 'echo x' }));
  const other = await makeServed(context, [echo('c1'), done, echo('c2'), done]);
  const shared = { ...other, environment: { ...other.environment, XDG_STATE_HOME: place.state } };
  expectCode(await runInProcess(shared, ['-p', 'work']), 0);
  touch(place, 'go');
  await until('it has ended', () => processesOf(place).length === 0);
  // Its first command looks for what killed sessions have left, which has ended by now.
  expectCode(await runInProcess(shared, ['--continue', '-p', 'again']), 0);
  const ended = await resumed(place);
  assert.match(resultIn(place), /^first\nsecond\n\[exit code 0/);
  await expectEnd(place, ended);
});

test('a command that was started directly: waited for, then unknown, and never run again', async (context) => {
  // The launcher can't export a variable of such a name.
  const odd = { 'odd-name': 'x' };
  const place = await makeServed(
    context,
    [message(call('c1', 'bash', { command: WAITING })), done, done],
    odd,
  );
  const first = startPawl(place, ['-p', 'work', '--sandbox', 'off']);
  await untilItRuns(place, first);
  await killed(first);
  const running = resume(place, '--json');
  await until('it was resumed', () => running.stdout().includes('and now?'));
  assert.ok(
    processesOf(place).some(({ line }) => line.includes('touch runs')),
    'the command lives',
  );
  assert.equal(place.server.requests.length, 1, 'nothing is told while it lives');
  touch(place, 'go');
  const ended = await running.ended;
  assert.match(resultIn(place), /outcome unknown after a crash/);
  onceIn(place);
  await expectEnd(place, ended);
});

/** A command that runs git, waits, and then deletes branches and loose objects; a script, so that no words say so. */
const DELETING = `git add . && ${WAITING} && sh delete.sh`;

/** A workspace with a history, in which a command waits whose Pawl was killed. */
const interruptedDeletion = async (
  context: TestContext,
): Promise<Served & { commits: readonly string[] }> => {
  const place = await makeServed(context, [
    message(call('c1', 'bash', { command: DELETING })),
    done,
    done,
  ]);
  const git = (...words: readonly string[]): string =>
    execFileSync(
      'git',
      ['-C', place.workspace, '-c', 'user.name=a', '-c', 'user.email=a@x', ...words],
      {
        encoding: 'utf8',
        env: { PATH: process.env.PATH, HOME: place.workspace },
      },
    );
  git('init', '-q', '-b', 'main');
  writeFileSync(
    join(place.workspace, 'delete.sh'),
    'rm -rf .git/refs/* .git/logs/* .git/objects/??',
  );
  git('add', '.');
  for (const name of ['one', 'two']) git('commit', '-q', '--allow-empty', '-m', name);
  const commits = git('rev-list', '--all', '--reflog').trim().split('\n');
  const running = startPawl(place, ['-p', 'work']);
  await untilItRuns(place, running);
  await killed(running);
  touch(place, 'go');
  await until('it has ended', () => processesOf(place).length === 0);
  assert.equal(
    existsSync(join(place.workspace, '.git/refs/heads/main')),
    false,
    'control: it has deleted them',
  );
  return { ...place, commits };
};

const commitsIn = ({ workspace }: Place): readonly string[] =>
  execFileSync('git', ['-C', workspace, 'rev-list', '--all', '--reflog'], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: workspace },
  })
    .trim()
    .split('\n');

test('history that an interrupted command has deleted: put back and told when the session is resumed', async (context) => {
  const place = await interruptedDeletion(context);
  const ended = await resumed(place);
  assert.match(
    resultIn(place),
    /parts of the history in .*\.git were deleted or damaged while the command ran, and were put back: /,
  );
  assert.deepEqual(commitsIn(place), place.commits);
  await expectEnd(place, ended);
});

testDeep(
  'history that an interrupted command has deleted: put back by the next session, of whatever folder',
  async (context) => {
    const place = await interruptedDeletion(context);
    const other = await makeServed(context, [
      message(call('c1', 'bash', { command: 'echo x' })),
      done,
    ]);
    const shared = { ...other, environment: { ...other.environment, XDG_STATE_HOME: place.state } };
    expectCode(await runInProcess(shared, ['-p', 'work']), 0);
    assert.deepEqual(commitsIn(place), place.commits);
  },
);

const PLANTING = `echo x >.envrc; ${WAITING}; mkdir -p build/x && git init -q build/x && git -C build/x config core.fsmonitor ./x`;

/** What the user's shell and git would run. */
const plantedIn = (place: Place): readonly string[] => [
  ...(has(place, '.envrc') ? ['.envrc'] : []),
  ...(/fsmonitor.*/.exec(readFileSync(join(place.workspace, 'build/x/.git/config'), 'utf8')) ?? []),
];

const assertPlanted = (place: Place): void =>
  assert.deepEqual(plantedIn(place), ['.envrc', 'fsmonitor = ./x'], 'control: nobody judged them');

testDeep(
  'protected paths that a command makes while Pawl is dead are set aside when its session is resumed',
  async (context) => {
    const place = await interrupted(context, { command: PLANTING });
    touch(place, 'go');
    await until('it has ended', () => processesOf(place).length === 0);
    assertPlanted(place);
    expectCode(await resumed(place), 0);
    assert.match(
      resultIn(place),
      /\.envrc is protected \(.*\); what appeared there while a command ran was moved away/,
    );
    assert.deepEqual(plantedIn(place), []);
  },
);

test('they are set aside by another session in the folder, too', async (context) => {
  const place = await interrupted(context, { command: PLANTING });
  touch(place, 'go');
  await until('it has ended', () => processesOf(place).length === 0);
  assertPlanted(place);
  const other = await makeServed(context, [
    message(call('c1', 'bash', { command: 'touch x' })),
    done,
  ]);
  const shared = { ...other, workspace: place.workspace, state: place.state };
  const environment = { ...other.environment, XDG_STATE_HOME: place.state };
  expectCode(await runInProcess({ ...shared, environment }, ['-p', 'work']), 0);
  const result = resultOf(other, 1, 'c1');
  assert.match(result, /\.envrc is protected/);
  assert.deepEqual(plantedIn(place), [], result);
});

test('they are set aside as well if a session between has taken them over and has ended', async (context) => {
  const plant = 'echo x >.envrc; for n in {1..100}; do [ ! -e .envrc ] || sleep 0.1; done';
  const place = await interrupted(context, { command: `${WAITING}; ${plant}; ${plant}` });
  const session = sessionOf(place);
  const other = await makeServed(context, [
    message(call('c1', 'bash', { command: 'touch x' })),
    done,
  ]);
  const environment = { ...other.environment, XDG_STATE_HOME: place.state };
  const shared = { ...other, workspace: place.workspace, state: place.state, environment };
  expectCode(await startPawl(shared, ['-p', 'work']).ended, 0);
  const running = startPawl(place, ['--resume', session, '-p', 'and now?', '--json']);
  await until('its output comes', () => /"toolProgress".*first/.test(running.stdout()));
  touch(place, 'go');
  expectCode(await running.ended, 0);
  assert.equal(has(place, '.envrc'), false);
  await until('nothing runs', () => processesOf(place).length === 0);
});
