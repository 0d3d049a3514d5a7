/**
 * Many sessions in one process, at once: each is asked something, reads a file by the real tool,
 * answers, and rests, its journal on the disk. What one costs must not depend on how many there
 * are.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileJournals } from '../packages/agent/src/journal/file-store.js';
import { scriptedModel } from '../packages/agent/src/models/scripted-model.js';
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
  ].join('\n');
};

const [, , own, count] = process.argv;
if (own === '--own-process') process.stdout.write(JSON.stringify(await measure(Number(count))));
