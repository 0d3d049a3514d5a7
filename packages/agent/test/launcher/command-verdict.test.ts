import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import {
  type CommandVerdict,
  findCommands,
  judgeCommand,
  type LaunchedEnd,
  type LaunchFacts,
  readStatus,
  Spool,
  writeLaunchRequest,
} from '../../src/command/launched-command.js';

/** Blanks follow the lines: the file is made with its full size. */
const statusOf = (...lines: readonly string[]) =>
  readStatus(
    lines
      .map((line) => `${line}\n`)
      .join('')
      .padEnd(512),
  );

const RUN = 'run 4711 123456';
const process = { pid: 4711, startedAt: 123_456 };
const claimed = { isClaimed: true, isAlive: false, why: '' };

type Row = readonly [title: string, facts: LaunchFacts, verdict: CommandVerdict];

const rows: readonly Row[] = [
  [
    'it was parked and never let go',
    { ...claimed, isClaimed: false, isAlive: true, status: statusOf(RUN) },
    { kind: 'neverStarted' },
  ],
  [
    'its parked process was killed',
    { ...claimed, isClaimed: false, status: statusOf(RUN, 'exit 137', 'eof') },
    { kind: 'neverStarted' },
  ],
  ['it runs', { ...claimed, isAlive: true, status: statusOf(RUN) }, { kind: 'running', process }],
  [
    'it was let go before its process was known',
    { ...claimed, isAlive: true, status: statusOf() },
    { kind: 'running', process: null },
  ],
  [
    'it has ended, its output has not',
    { ...claimed, status: statusOf(RUN, 'exit 3') },
    { kind: 'draining', exitCode: 3 },
  ],
  [
    'it has ended',
    { ...claimed, status: statusOf(RUN, 'exit 3', 'eof') },
    { kind: 'finished', exitCode: 3 },
  ],
  [
    'its output ended before it did',
    { ...claimed, status: statusOf(RUN, 'eof', 'exit 0') },
    { kind: 'finished', exitCode: 0 },
  ],
  [
    'its number is another process by now',
    { ...claimed, status: statusOf(RUN, 'exit 0', 'eof'), isAlive: true },
    { kind: 'finished', exitCode: 0 },
  ],
  [
    'its process is gone without a word',
    { ...claimed, status: statusOf(RUN) },
    { kind: 'killed', why: 'lost' },
  ],
  [
    'it was killed for its deadline',
    { ...claimed, status: statusOf(RUN, 'eof'), why: 'deadline\n' },
    { kind: 'killed', why: 'deadline' },
  ],
  [
    'it was cancelled',
    { ...claimed, status: statusOf(RUN), why: 'cancelled' },
    { kind: 'killed', why: 'cancelled' },
  ],
  [
    'the reason can not be read',
    { ...claimed, status: statusOf(RUN), why: 'canc' },
    { kind: 'killed', why: 'lost' },
  ],
];

for (const [title, facts, verdict] of rows)
  test(`verdict: ${title}`, () => assert.deepEqual(judgeCommand(facts), verdict));

test('verdict: a line of the status counts once it is written to its end', () => {
  assert.equal(readStatus(`${RUN}\nexit 1`).exitCode, null);
  assert.equal(readStatus(`${RUN}\nexit 1\n`).exitCode, 1);
  assert.deepEqual(readStatus(''), {
    process: null,
    exitCode: null,
    endedAt: null,
    isComplete: false,
    isCut: false,
    alivePipe: null,
  });
  assert.deepEqual(statusOf(RUN, 'cut', 'exit 0', 'eof'), {
    process,
    exitCode: 0,
    endedAt: null,
    isComplete: true,
    isCut: true,
    alivePipe: null,
  });
  assert.equal(readStatus('alive alive-0f\nrun 1 2\n').alivePipe, 'alive-0f');
  assert.equal(readStatus('alive ../alive-0f\n').alivePipe, null);
  assert.deepEqual(statusOf(RUN, 'exit 7 12.34').endedAt, 12_340);
});

/** The follower of a command of a killed process: it has ended, but something holds its output open. */
const followHeldOpen = (t: TestContext, isFenced: boolean): Promise<LaunchedEnd> => {
  const commands = temporaryFolder(t, 'found');
  const folder = path.join(commands, '1');
  Spool.create(folder, () => '').close();
  const record = { call: 'c', marker: 'm', isFenced, startedAt: 0, workspace: '1:1', job: null };
  writeLaunchRequest(folder, { due: null, record });
  writeFileSync(path.join(folder, 'claim'), '');
  writeFileSync(path.join(folder, 'out'), 'hi\n\0ended\n');
  writeFileSync(path.join(folder, 'status'), `${RUN}\nexit 0\n`);
  const [found] = findCommands(commands, 'own');
  assert.ok(found);
  return found.follow({ bytes: () => undefined, skipped: () => undefined }).ended;
};

test('a found command whose output a process holds open: one without a fence is waited for shortly', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const ends: string[] = [];
  void followHeldOpen(t, true).then(() => ends.push('fenced'));
  void followHeldOpen(t, false).then(() => ends.push('open'));
  t.mock.timers.tick(100);
  await setImmediate();
  assert.deepEqual(ends, ['open']);
  t.mock.timers.tick(1_900);
  await setImmediate();
  assert.deepEqual(ends, ['open', 'fenced']);
});
