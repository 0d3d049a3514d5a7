import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CommandRequest, prepareCommand, startCommand } from '../../src/command/command.js';
import type { CommandSandbox, ParkedCommand } from '../../src/command/command-sandbox.js';
import type { EarlierCommands } from '../../src/command/earlier-processes.js';
import type { FoundCommand, LaunchedEnd } from '../../src/command/launched-command.js';
import type { SessionSandbox } from '../../src/command/session-sandbox.js';
import { sinceBoot } from '../../src/platform/processes.js';
import type { Job } from '../../src/ports/tool.js';
import { settleEarlier } from '../../src/tools/bash-recovery.js';

// What a command is started with, and what is asked about those of an earlier process: without any process.

type Due = number | null | undefined;

const ENDED: LaunchedEnd = {
  how: { kind: 'exited', code: 0 },
  report: 'noneLeft',
  isCut: false,
  isWhole: true,
  endedAt: null,
  why: 'lost',
};

/** A command whose process has ended already, or never was. */
const parkedOf = (ended: Promise<LaunchedEnd>, start = (): void => undefined): ParkedCommand => ({
  start() {
    start();
    return { process: null, ended, recordCancellation: () => undefined };
  },
  finish: async () => [],
});

const sandboxOf = (parked: ParkedCommand | null, dues: Due[]): CommandSandbox => ({
  async prepare(spec) {
    dues.push(spec.due);
    throw new Error('enough was seen');
  },
  async takeParked(spec) {
    dues.push(spec.due);
    return parked;
  },
  allow: () => undefined,
  settle: () => [],
  close: async () => undefined,
});

const requestOf = (sandbox: CommandSandbox, deadlineMs: number | null): CommandRequest => ({
  sandbox: async () => sandbox,
  level: 'off',
  fresh: false,
  program: 'sh',
  ownEnvironment: { PATH: process.env.PATH },
  command: 'true',
  workspace: '/',
  environment: {},
  deadlineMs,
  record: { call: 'batch-1 call-1', marker: 'none', job: null },
  progress: () => undefined,
});

test('a command without a time limit is never due, one with a limit when it is over', async () => {
  const dues: Due[] = [];
  for (const deadlineMs of [null, 500])
    await prepareCommand(requestOf(sandboxOf(null, dues), deadlineMs), 1_000, 'direct');
  assert.deepEqual(dues, [null, 1_500]);
});

test('a command that waits for its start is told when it is due', async () => {
  for (const deadlineMs of [null, 60_000]) {
    const dues: Due[] = [];
    const before = sinceBoot();
    const parked = parkedOf(Promise.resolve(ENDED));
    const { ended } = startCommand(requestOf(sandboxOf(parked, dues), deadlineMs));
    assert.deepEqual((await ended).how, { kind: 'exited', code: 0 });
    const [due = null] = dues;
    if (deadlineMs === null) assert.equal(due, null);
    else assert.ok(due !== null && due >= before + deadlineMs && due <= sinceBoot() + deadlineMs);
  }
});

test('a command that is started once more keeps the lines of its first attempt', async () => {
  const never = { ...ENDED, how: { kind: 'neverStarted' } } as const;
  const parked = { ...parkedOf(Promise.resolve(never)), finish: async () => ['set aside'] };
  const { how, notes } = await startCommand(requestOf(sandboxOf(parked, []), null)).ended;
  assert.deepEqual([how.kind, notes], ['notStarted', ['set aside']]);
});

test('to stop a command without a process signals nobody', async (t) => {
  const { mock } = t.mock.method(process, 'kill', () => true);
  let end: (how: LaunchedEnd) => void = () => undefined;
  const ended = new Promise<LaunchedEnd>((resolve) => {
    end = resolve;
  });
  const running = await new Promise<ReturnType<typeof startCommand>>((resolve) => {
    const parked = parkedOf(ended, () => resolve(started));
    const started = startCommand(requestOf(sandboxOf(parked, []), null));
  });
  running.stop();
  await Promise.resolve();
  end(ENDED);
  await running.ended;
  assert.deepEqual(
    mock.calls.map((call) => call.arguments),
    [],
  );
});

const JOBS = {
  add: () => assert.fail('nothing to add'),
  restore: () => assert.fail('nothing to restore'),
  get: () => undefined,
  list: () => [],
};

const PLACE = { workspace: '/', home: '/', unattended: false };

const sandboxAfter = (earlier: Partial<EarlierCommands> | null): SessionSandbox => ({
  of: () => assert.fail('not asked'),
  announce: () => undefined,
  sentCalls: {
    announce: () => undefined,
    record: () => undefined,
    find: async () => 'unknown',
  },
  earlier: async () => earlier as EarlierCommands | null, // what is asked about
  settle: async () => [],
  guard: async () => undefined,
  close: async () => undefined,
});

test('where nothing is known of earlier processes, no job is listed and no command is ended', () =>
  settleEarlier(sandboxAfter(null), JOBS, PLACE, []));

test('the history of git folders is checked at once unless a call that is waited for does it at its end', async () => {
  const checks = async (kind: string): Promise<number> => {
    let count = 0;
    const finishHistory = (): readonly string[] => {
      count += 1;
      return [];
    };
    const found = { record: { job: null, call: 'batch-1 c1' }, verdict: () => ({ kind }) };
    const commands = [found as unknown as FoundCommand]; // what is asked about
    const sandbox = sandboxAfter({ commands, elsewhere: [], finishHistory });
    await settleEarlier(sandbox, JOBS, PLACE, ['batch-1 c1']);
    return count;
  };
  assert.deepEqual(
    [await checks('direct'), await checks('neverStarted'), await checks('running')],
    [1, 1, 0],
  );
});

test('a job of an earlier process advises nobody to ask where no user can be asked', async () => {
  const record = { job: { jobId: 'job-1', command: 'npm install x' }, call: 'c', isFenced: true };
  const ended = Promise.resolve({ ...ENDED, how: { kind: 'exited', code: 1 } });
  const found = {
    record,
    verdict: () => ({ kind: 'exited' }),
    follow: () => ({ process: null, ended, recordCancellation: () => undefined }),
  };
  const commands = [found as unknown as FoundCommand]; // what is asked about
  const sandbox = sandboxAfter({ commands, elsewhere: [], finishHistory: () => [] });
  const outputs: string[] = [];
  for (const unattended of [false, true]) {
    const restored: Job[] = [];
    const jobs = { ...JOBS, restore: (job: Job) => void restored.push(job) };
    await settleEarlier(sandbox, jobs, { ...PLACE, unattended }, []);
    outputs.push(restored[0]?.output() ?? '');
  }
  const [attended = '', alone = ''] = outputs;
  assert.match(attended, /ask again with needs/);
  assert.match(alone, /nobody can be asked here/);
});
