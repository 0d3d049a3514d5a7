import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { processesOf } from './command-processes.js';
import {
  expectEnd,
  has,
  keptIn,
  killed,
  onceIn,
  resultOf,
  resume,
  touch,
  untilItRuns,
} from './interrupted-command.js';
import { makeServed, type Place, startPawl } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** Rows of the recovery table about background jobs, several commands, and output that could not be written. */

const job = (id: string, command: string) => call(id, 'bash', { command, background: true });
const jobAction = (id: string, action: string, jobId?: string) =>
  message(call(id, 'bash', { jobAction: action, ...(jobId === undefined ? {} : { jobId }) }));
const waitFor = (name: string): string => `until [ -e ${name} ]; do sleep 0.1; done`;

/** The running process that writes the output of this command, the first one being 1. */
const writerOf = (place: Place, command: number): number =>
  processesOf(place).find(
    ({ pid, line }) =>
      /^\S*dd /.test(line) &&
      basename(dirname(readlinkSync(`/proc/${pid}/fd/1`))) === String(command),
  )?.pid ?? assert.fail('none writes');

const parentOf = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
};

test('two jobs and a command at once: the real result, the real end of one job, and the other one goes on', async (context) => {
  const started = message(
    job('j1', 'echo up; echo begin-1 >>jobs; sleep 1000'),
    job('j2', `echo begin-2 >>jobs; ${waitFor('go-2')}; echo over; exit 3`),
    call('c1', 'bash', { command: `touch runs; ${waitFor('go')}; echo told` }),
  );
  const place = await makeServed(context, [
    ...[started, jobAction('l', 'list'), jobAction('s', 'show', 'job-2')],
    ...[jobAction('k', 'kill', 'job-1'), message(job('j3', 'sleep 1000')), done],
  ]);
  const running = startPawl(place, ['-p', 'work']);
  await untilItRuns(place, running);
  await killed(running);
  touch(place, 'go-2');
  await until(
    'the second job ended',
    () => !processesOf(place).some(({ line }) => line.includes('go-2')),
  );
  const resumed = resume(place);
  touch(place, 'go');
  const ended = await resumed.ended;
  assert.match(resultOf(place, 1, 'j1'), /^Started job-1 /);
  assert.match(resultOf(place, 1, 'c1'), /^told\n\[exit code 0.*\n\[Pawl was interrupted/);
  const listed = resultOf(place, 2, 'l').split('\n');
  assert.match(listed[0] ?? '', /^job-1: running: echo up/);
  assert.match(listed[1] ?? '', /^job-2: exit code 3, /);
  assert.match(resultOf(place, 3, 's'), /^over\n\[job-2: exit code 3, /);
  assert.match(resultOf(place, 4, 'k'), /^up\n\[job-1: ended by SIGKILL/);
  assert.match(resultOf(place, 5, 'j3'), /^Started job-3 /);
  // They run side by side, so either may be first.
  const begun = readFileSync(join(place.workspace, 'jobs'), 'utf8').trim().split('\n').sort();
  assert.deepEqual(begun, ['begin-1', 'begin-2'], 'each began once');
  await expectEnd(place, ended);
});

test('a server that outlives the program is reached by commands of the resumed session', async (context) => {
  const server =
    `node -e "const s = require('net').createServer((c) => c.end('served'));` +
    `s.listen(0, '127.0.0.1', () => require('fs').writeFileSync('port', ''+s.address().port))"`;
  const ask =
    `node -e "require('net').connect(+require('fs').readFileSync('port'), '127.0.0.1')` +
    `.on('data', (d) => console.log(''+d)).on('error', (e) => console.log(e.message))"`;
  const command = `${waitFor('port')}; touch runs; ${waitFor('go')}; echo told`;
  const place = await makeServed(context, [
    message(job('j1', server), call('c1', 'bash', { command })),
    message(call('c2', 'bash', { command: ask }), job('j2', waitFor('never'))),
    message(call('c3', 'bash', { command: ask })),
    jobAction('k', 'kill', 'job-1'),
    message(call('c4', 'bash', { command: ask })),
    done,
  ]);
  const running = startPawl(place, ['-p', 'work']);
  await untilItRuns(place, running);
  await killed(running);
  const resumed = resume(place);
  touch(place, 'go');
  const ended = await resumed.ended;
  assert.match(resultOf(place, 1, 'c1'), /^told\n\[exit code 0/);
  assert.match(resultOf(place, 2, 'c2'), /^served\n/);
  assert.match(resultOf(place, 3, 'c3'), /^served\n/, 'beside a job of the resumed session');
  assert.match(resultOf(place, 5, 'c4'), /^connect ECONNREFUSED /);
  await expectEnd(place, ended);
});

test('a job with the network that outlives the program gives it to no command of the resumed session', async (context) => {
  const network = 'readlink /proc/self/ns/net';
  const command = `${waitFor('net')}; touch runs; ${waitFor('go')}; ${network}`;
  const place = await makeServed(context, [
    message(job('j1', `${network} >net; sleep 1000`), call('c1', 'bash', { command })),
    message(call('c2', 'bash', { command: network })),
    jobAction('k', 'kill', 'job-1'),
    done,
  ]);
  const running = startPawl(place, ['-p', 'work', '--sandbox', 'workspace+net']);
  await untilItRuns(place, running);
  await killed(running);
  const resumed = resume(place);
  touch(place, 'go');
  const ended = await resumed.ended;
  const ours = readlinkSync('/proc/self/ns/net');
  assert.ok(resultOf(place, 1, 'c1').startsWith(ours), 'control');
  assert.match(resultOf(place, 2, 'c2'), /^net:\[/);
  assert.ok(!resultOf(place, 2, 'c2').startsWith(ours));
  assert.doesNotMatch(
    resultOf(place, 1, 'c1') + resultOf(place, 2, 'c2'),
    /a localhost of its own/,
  );
  await expectEnd(place, ended);
});

testDeep(
  'no room for the output, or nobody who writes it: the exit code, and what is missing',
  async (context) => {
    const silent = job('j1', `echo up; ${waitFor('go')}; exit 4`);
    const loud = call('c1', 'bash', { command: `touch runs; ${waitFor('go')}; seq 10000; exit 3` });
    const place = await makeServed(context, [
      message(silent, loud),
      jobAction('s', 'show', 'job-1'),
      done,
    ]);
    const running = startPawl(place, ['-p', 'work']);
    await untilItRuns(place, running);
    await killed(running);
    await until('the output of the job is kept', () => /^up$/m.test(keptIn(place)));
    for (const pid of [parentOf(writerOf(place, 1)), writerOf(place, 1)])
      process.kill(pid, 'SIGKILL');
    execFileSync('prlimit', ['--pid', String(writerOf(place, 2)), '--fsize=20000']);
    touch(place, 'go');
    await until('both ended', () => processesOf(place).length === 0);
    const ended = await resume(place).ended;
    assert.match(
      resultOf(place, 1, 'c1'),
      /^failed: 1\n2\n.*\n\[from here on output is missing: the disk is full, .*\]\n\[exit code 3, .*\n\[Pawl was interrupted/s,
    );
    assert.match(
      resultOf(place, 2, 's'),
      /^up\n\n?\[the end of the output is missing: what writes it was killed\]\n\[job-1: exit code 4, /,
    );
    await expectEnd(place, ended);
  },
);

testDeep(
  'a command that had not begun is claimed by the resumed session: it begins once, there',
  async (context) => {
    const commands = (place: Place): string => {
      const folder = join(place.state, 'pawl', 'sandbox');
      return join(folder, readdirSync(folder)[0] ?? '', 'commands');
    };
    let stopped: readonly number[] = [];
    const isParked = (place: Place): boolean => {
      const file = join(commands(place), '2', 'status');
      return existsSync(file) && /^run /m.test(readFileSync(file, 'latin1'));
    };
    const place = await makeServed(context, (_, index) => {
      if (index === 0) return message(call('c0', 'bash', { command: 'echo ready >ready' }));
      if (index > 1) return done;
      // Now the launcher gets the order to start the next command, and can do nothing.
      while (!isParked(place)) execFileSync('sleep', ['0.01']);
      stopped = processesOf(place)
        .filter(({ line }) => line.includes('pawl-launcher'))
        .map(({ pid }) => pid);
      for (const pid of stopped) process.kill(pid, 'SIGSTOP');
      return message(
        call('c1', 'bash', {
          command: `echo begin >>log; touch runs; ${waitFor('go')}; echo told`,
        }),
      );
    });
    const running = startPawl(place, ['-p', 'work']);
    await until('the command is ordered', () => {
      const order = join(place.state, 'pawl', 'sandbox');
      return (
        stopped.length > 0 && existsSync(order) && existsSync(join(commands(place), '2', 'order'))
      );
    });
    await killed(running);
    assert.equal(has(place, 'runs'), false);
    const resumed = resume(place);
    await untilItRuns(place, resumed);
    for (const pid of stopped) process.kill(pid, 'SIGCONT');
    await until('the first launcher is gone', () =>
      stopped.every((pid) => !existsSync(`/proc/${pid}`)),
    );
    touch(place, 'go');
    const ended = await resumed.ended;
    assert.match(resultOf(place, 2, 'c1'), /^told\n\[exit code 0, [\d.]+ s\]$/);
    onceIn(place);
    await expectEnd(place, ended);
  },
);
