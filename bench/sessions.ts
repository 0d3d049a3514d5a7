/**
 * Many sessions in one process, at once: each is asked something, reads a file by the real tool,
 * answers, and rests, its journal on the disk. What one costs must not depend on how many there
 * are.
 */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { fileJournals } from '../packages/agent/src/journal/file-store.js';
import { scriptedModel } from '../packages/agent/src/models/scripted-model.js';
import { identifyProcess } from '../packages/agent/src/platform/start-program.js';
import { createAgent, type Session } from '../packages/agent/src/session/create-agent.js';
import { median } from './figures.js';
import { inOwnProcess } from './own-process.js';

const COUNTS = [1, 10, 100, 1_000] as const;
const TIMES = 3;

type Run = {
  readonly wallMs: number;
  readonly cpuMs: number;
  /** Bytes in use at rest after a garbage collection, minus those before the first session. */
  readonly heapMegabytes: number;
  readonly residentMegabytes: number;
};

const script = {
  replies: [
    { text: 'I look.', calls: [{ tool: 'read', input: { path: 'notes.txt' } }] },
    { text: 'It says: hello.' },
  ],
};

const collected = (): NodeJS.MemoryUsage => {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc');
  for (let time = 0; time < 3; time += 1) globalThis.gc();
  return process.memoryUsage();
};

const useOne = async (session: Session): Promise<void> => {
  await session.send({ type: 'UserInput', text: 'What do the notes say?', mode: 'steer' });
  const state = await session.idle();
  if (state.name !== 'WaitingForUserInput' || state.reason.kind !== 'endOfTurn')
    throw new Error(`a session came to ${JSON.stringify(state).slice(0, 400)}`);
};

/** Runs in the child: one session to warm up, then `count` at once. */
const measure = async (count: number): Promise<Run> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-sessions-'));
  try {
    await writeFile(path.join(folder, 'notes.txt'), 'hello\n');
    const agent = createAgent({ model: scriptedModel(script), journals: fileJournals({ folder }) });
    const open = (): Promise<Session> => agent.open({ workspace: folder });
    const first = await open();
    await useOne(first);
    const before = collected();
    const startedAt = performance.now();
    const startedCpu = process.cpuUsage();
    const sessions = await Promise.all(
      Array.from({ length: count }, async () => {
        const session = await open();
        await useOne(session);
        return session;
      }),
    );
    const wallMs = performance.now() - startedAt;
    const { user, system } = process.cpuUsage(startedCpu);
    const after = collected();
    await Promise.all([first, ...sessions].map((session) => session.close()));
    return {
      wallMs,
      cpuMs: (user + system) / 1_000,
      heapMegabytes: (after.heapUsed - before.heapUsed) / 1e6,
      residentMegabytes: (after.rss - before.rss) / 1e6,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

const rowOf = (count: number, runs: readonly Run[]): string => {
  const middle = (figure: (run: Run) => number): number => median(runs.map(figure));
  const each = (figure: number, digits: number): string => (figure / count).toFixed(digits);
  const wallMs = middle((run) => run.wallMs);
  return `| ${count.toLocaleString('en-US')} | ${wallMs.toFixed(0)} | ${each(wallMs, 2)} | ${each(
    middle((run) => run.cpuMs),
    2,
  )} | ${each(middle((run) => run.heapMegabytes) * 1_000, 1)} | ${middle((run) => run.residentMegabytes).toFixed(1)} |`;
};

const LIVE = 50;
const LIVE_TIMES = 11;

/**
 * Records of detached sessions, each with a socket that answers, as `pawl sessions --live` finds
 * them.
 */
const writeLive = async (stateFolder: string): Promise<readonly Server[]> => {
  const folder = path.join(stateFolder, 'pawl', 'detached');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const now = Date.now();
  const activity = {
    kind: 'resting',
    words: 'has answered',
    sinceMs: now,
    questions: [],
    costUsd: 0.1,
    rounds: 3,
  };
  const place = { workspace: folder, cwd: folder, title: 'make the tests pass', flags: {} };
  const common = {
    ...place,
    version: 1,
    startedAtMs: now,
    process: identifyProcess(),
    activity,
    end: null,
  };
  return Promise.all(
    Array.from({ length: LIVE }, async (_, index) => {
      const file = path.join(folder, `20260101-000000-${index}`);
      const record = { ...common, sessionId: path.basename(file) };
      await writeFile(`${file}.json`, JSON.stringify(record), { mode: 0o600 });
      const server = createServer((socket) => socket.destroy());
      await new Promise<void>((resolve) => server.listen(`${file}.sock`, resolve));
      return server;
    }),
  );
};

/** `pawl sessions --live` with many rows against the same without any, in alternation. */
const benchLiveList = async (): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-live-'));
  const [full, empty] = [path.join(folder, 'full'), path.join(folder, 'empty')];
  const servers = await writeLive(full);
  try {
    const timed = async (state: string, rows: number): Promise<number> => {
      const startedAt = performance.now();
      const words = [path.resolve('packages/pawl/bin/pawl.js'), 'sessions', '--live'];
      const env = { ...process.env, XDG_STATE_HOME: state };
      const { stdout } = await promisify(execFile)(process.execPath, words, { env });
      if (stdout.split('\n').length - 1 !== rows) throw new Error(`listed: ${stdout}`);
      return performance.now() - startedAt;
    };
    const times: Readonly<Record<'none' | 'many', number[]>> = { none: [], many: [] };
    for (let time = 0; time < LIVE_TIMES; time += 1) {
      times.none.push(await timed(empty, 0));
      times.many.push(await timed(full, LIVE));
    }
    const [none, many] = [median(times.none), median(times.many)];
    return [
      '| `pawl sessions --live`, wall, ms | no session | 50 sessions | for the 50 |',
      '|---|--:|--:|--:|',
      `| median of ${LIVE_TIMES} | ${none.toFixed(0)} | ${many.toFixed(0)} | ${(many - none).toFixed(0)} |`,
    ].join('\n');
  } finally {
    for (const server of servers) server.close();
    await rm(folder, { recursive: true, force: true });
  }
};

export const benchSessions = async (): Promise<string> => {
  const rows: string[] = [];
  for (const count of COUNTS) {
    const runs: Run[] = [];
    for (let time = 0; time < TIMES; time += 1)
      runs.push(await inOwnProcess<Run>('bench/sessions.ts', String(count)));
    rows.push(rowOf(count, runs));
  }
  return [
    '| sessions at once | wall, ms | wall of one, ms | CPU of one, ms | heap of one at rest, kB | resident, all, MB |',
    '|--:|--:|--:|--:|--:|--:|',
    ...rows,
    '',
    `Median of ${TIMES} runs; two requests to the scripted model, one file read, one journal on the disk each. All sessions are open and idle when memory is looked at.`,
    '',
    await benchLiveList(),
  ].join('\n');
};

const [, , own, count] = process.argv;
if (own === '--own-process') process.stdout.write(JSON.stringify(await measure(Number(count))));
