import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeMac } from '../../../../test/kit/mac/mac.js';
import { killProcessesWith, type LivingProcess } from '../../../../test/kit/tools/processes.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { chooseRows, testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { processesOf } from './command-processes.js';
import {
  expectEnd,
  killed,
  onceIn,
  resultIn,
  resultOf,
  touch,
  untilItRuns,
  WAITING,
} from './interrupted-command.js';
import { bin, expectCode, makePlace, makeServed, type Place, type Running, start } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** Where the system tells of processes by `ps` and `sysctl`, as macOS does, a command outlives a killed Pawl too. */

const mac = makeMac({ after });

const startPawl = (place: Place, words: readonly string[]): Running => {
  const [program, ...line] = mac.wrap([process.execPath, bin, ...words]);
  const environment = { ...place.environment, ...mac.environment };
  return start({ ...place, environment }, program, line);
};

const OFF = ['--sandbox', 'off', '--preset', 'full'];

/** Empty if it has ended. */
const stateOf = (pid: number): string => {
  try {
    return / \(.*\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1] ?? '';
  } catch {
    return '';
  }
};
const stopped = (place: Place): readonly number[] =>
  processesOf(place).flatMap(({ pid }) => (stateOf(pid) === 'T' ? [pid] : []));
const isCommand = ({ line }: LivingProcess): boolean => line.includes('until [ -e go');

const WAIT = 'echo begin >>log; echo first; touch runs; until [ -e go ]; do sleep 0.05; done';

type Row = {
  readonly title: string;
  readonly script: string;
  readonly result: RegExp;
  /** It goes on after the kill and ends before the session is resumed, or only then. */
  readonly ends: 'before' | 'after';
  readonly timeoutMs?: number;
};
const KINDS: readonly Row[] = [
  {
    title: 'that still runs',
    script: WAITING,
    result: /^first\nsecond\n\[exit code 0/,
    ends: 'after',
  },
  {
    title: 'that has ended meanwhile',
    script: WAITING,
    result: /^first\nsecond\n\[exit code 0/,
    ends: 'before',
  },
  {
    title: 'that failed',
    script: `${WAIT}; exit 7`,
    result: /first\n\[exit code 7/,
    ends: 'before',
  },
  {
    title: 'that ended by a signal after much output',
    script: `${WAIT}; seq 30000 | tail -c 100000; kill -TERM $$`,
    result: /29999\n30000\n\[(?:exit code 143|ended by SIGTERM)/,
    ends: 'after',
  },
  {
    title: 'that was stopped for a while, which is no end',
    script: `${WAIT}; kill -STOP $$; echo third`,
    result: /^first\nthird\n\[exit code 0/,
    ends: 'before',
  },
  {
    title: 'whose deadline passed while nobody followed it',
    script: WAITING,
    result: /deadline of the call was reached.*\nfirst\n(first\n)?(Terminated\n)?\[stopped after/,
    ends: 'before',
    timeoutMs: 2_000,
  },
];

const ROWS = Array.from({ length: 50 }, (_, index): Row => {
  const kind = KINDS[index % KINDS.length] ?? assert.fail();
  return { ...kind, title: `${kind.title} (${index + 1})` };
});

for (const { title, script, result, ends, timeoutMs } of chooseRows(
  ROWS,
  ({ result }) => result.source,
))
  test(`without /proc a kill leaves the real result of a command ${title}`, async (context) => {
    const input = { command: script, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    const place = await makeServed(context, [message(call('c1', 'bash', input)), done]);
    const running = startPawl(place, ['-p', 'work', ...OFF]);
    await untilItRuns(place, running);
    await killed(running);
    const goOn = async (): Promise<void> => {
      if (timeoutMs === undefined) touch(place, 'go');
      if (!script.includes('-STOP')) return;
      await until('it is stopped', () => stopped(place).length > 0);
      for (const pid of stopped(place)) process.kill(pid, 'SIGCONT');
    };
    if (ends === 'before') {
      await goOn();
      await until('it has ended', () => !processesOf(place).some(isCommand));
    }
    const resumed = startPawl(place, ['--continue', '-p', 'and now?', ...OFF]);
    if (ends === 'after') await goOn();
    const ended = await resumed.ended;
    assert.match(resultIn(place), result);
    assert.match(resultIn(place), /Pawl was interrupted/);
    onceIn(place);
    await expectEnd(place, ended);
  });

for (const [when, result, jobs] of [
  ['after the kill', /^first\nsecond\n\[exit code 0/, /^job-1: running: sleep 1000/],
  [
    'all the time',
    /does not tell whether it still runs: .* interrupted while this command started or ran/,
    /^/,
  ],
] as const)
  test(`where ps tells nothing ${when}, no running command counts as ended`, async (context) => {
    const quiet = makeMac(context);
    const startQuietly = (place: Place, words: readonly string[]): Running => {
      const [program, ...line] = quiet.wrap([process.execPath, bin, ...words, ...OFF]);
      const environment = { ...place.environment, ...quiet.environment };
      return start({ ...place, environment }, program, line);
    };
    const job = call('j1', 'bash', { command: 'sleep 1000', background: true });
    const place = await makeServed(context, [
      message(job, call('c1', 'bash', { command: WAITING })),
      message(call('l', 'bash', { jobAction: 'list' })),
      done,
    ]);
    if (when === 'all the time') quiet.silencePs();
    const running = startQuietly(place, ['-p', 'work']);
    await untilItRuns(place, running);
    await killed(running);
    if (when === 'after the kill') quiet.silencePs();
    const resumed = startQuietly(place, ['--continue', '-p', 'and now?']);
    touch(place, 'go');
    const ended = await resumed.ended;
    assert.match(resultIn(place), result);
    assert.match(resultOf(place, 2, 'l'), jobs);
    onceIn(place);
    expectCode(ended, 0);
    killProcessesWith(place.folder);
  });

testDeep('without /proc the demo of a crash finds the real result', async (context) => {
  const place = makePlace(context, { PAWL_SANDBOX: 'off' });
  const demo = await startPawl(place, ['demo', '--crash']).ended;
  const folder = /^project +(.*)$/m.exec(demo.stdout)?.[1] ?? '';
  context.after(() => removeFolderSync(folder));
  expectCode(demo, 0);
  assert.match(demo.stdout, /step 8 of 8\n[\s\S]*exit code 0.*\n.*this is the real result/);
  assert.equal(readFileSync(join(folder, 'starts.txt'), 'utf8'), 'started\n');
  await until('nothing runs', () => processesOf(place).length === 0);
});

test('a sandbox-exec that fences nothing is tried and not used, and what a command could do is said', async (context) => {
  const place = await makeServed(context, [
    message(call('c1', 'bash', { command: 'echo it ran' })),
    done,
  ]);
  const ended = await startPawl(place, ['-p', 'work']).ended;
  expectCode(ended, 77);
  const [first = ''] = ended.stderr.split('\n');
  assert.match(
    first,
    /This is macOS\. The sandbox was tried and is not used: a command in it could/,
  );
  assert.match(first, /write a file beside the workspace.* change settings that an editor obeys/);
  assert.match(first, /To run commands without one, write sandbox = "off"/);
  assert.doesNotMatch(ended.stderr, /could not|bubblewrap|bwrap/);
  assert.match(resultIn(place), /denied|not run/);
});
