/**
 * Measures the cost of the sandbox for a command: the same tool and shell with it and without, in a
 * git repository, in alternation, each level in a session of its own and with a pause before each
 * command, as a model makes one; beside it the least that bubblewrap costs. On a busy machine the
 * fastest tenth says more than the median.
 */

import { execFileSync } from 'node:child_process';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSessionSandbox } from '../packages/agent/src/command/session-sandbox.js';
import type { CommandLevel } from '../packages/agent/src/policy/decide.js';
import { createJobs, type Tool, type ToolContext } from '../packages/agent/src/ports/tool.js';
import { commandTool } from '../packages/agent/src/tools/builtin-tools.js';
import { createFileMemory } from '../packages/agent/src/tools/file-change.js';
import { median } from './figures.js';

const TIMES = 200;
const WARM_UP = 10;
const PAUSE_MS = 30;
const COMMAND = 'echo x';
const LEAST = ['--ro-bind', '/', '/', 'true'];
const LEVELS: readonly CommandLevel[] = ['off', 'workspace', 'workspace+net', 'read-only', 'reads'];

const contextAt = (workspace: string, sandbox: CommandLevel): ToolContext => {
  const never = new AbortController().signal;
  return {
    workspace,
    sandbox,
    batchId: 'bench',
    callId: 'bench',
    paths: [workspace],
    hosts: [],
    signal: never,
    force: never,
    files: createFileMemory(),
    jobs: createJobs(),
    progress: () => undefined,
    blobs: { put: async () => '', get: async () => undefined },
    left: () => ({ usd: { type: 'unlimited' }, tokens: { type: 'unlimited' } }),
  };
};

const timeOf = async (tool: Tool, context: ToolContext): Promise<number> => {
  const started = performance.now();
  const outcome = await tool.run({ command: COMMAND }, context);
  if (outcome.status !== 'ok') throw new Error(`${context.sandbox}: ${outcome.text}`);
  return performance.now() - started;
};

const timeOfLeast = (): number => {
  const started = performance.now();
  execFileSync('bwrap', LEAST);
  return performance.now() - started;
};

type Row = {
  readonly name: string;
  readonly time: () => Promise<number> | number;
  readonly times: number[];
};

const tenthOf = (times: readonly number[]): number =>
  times.toSorted((one, other) => one - other)[Math.floor(times.length / 10)] ?? 0;

/**
 * Two groups of columns: the median and the fastest tenth, each with what it is above the first
 * row's.
 */
const rowOf = ({ name, times }: Row, floor: readonly number[]): string => {
  const columns = [median, tenthOf].flatMap((of) => [of(times), of(times) - of(floor)]);
  return `| ${name} | ${columns.map((value) => value.toFixed(1)).join(' | ')} |`;
};

export const benchCommands = async (): Promise<string> => {
  const workspace = await realpath(await mkdtemp(path.join(tmpdir(), 'pawl-bench-')));
  execFileSync('git', ['init', '--quiet', workspace]);
  const sessions = LEVELS.map((level) => {
    const sandbox = createSessionSandbox({ environment: process.env });
    return { level, sandbox, tool: commandTool({ sandbox }) };
  });
  const rows: readonly Row[] = [
    ...sessions.map(({ level, tool }) => ({
      name: level,
      times: [],
      time: () => timeOf(tool, contextAt(workspace, level)),
    })),
    { name: `\`bwrap ${LEAST.join(' ')}\``, times: [], time: timeOfLeast },
  ];
  try {
    for (let time = -WARM_UP; time < TIMES; time++) {
      for (const { time: measure, times } of rows) {
        await sleep(PAUSE_MS);
        const took = await measure();
        if (time >= 0) times.push(took);
      }
    }
  } finally {
    for (const { sandbox } of sessions) await sandbox.close();
    await rm(workspace, { recursive: true, force: true });
  }
  const floor = rows[0]?.times ?? [];
  return [
    '| sandbox | median, ms | more than off | fastest tenth, ms | more than off |',
    '|---|--:|--:|--:|--:|',
    ...rows.map((row) => rowOf(row, floor)),
    '',
    `\`${COMMAND}\` in a new git repository, ${TIMES} times each, ${PAUSE_MS} ms apart; load ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} cores.`,
  ].join('\n');
};
