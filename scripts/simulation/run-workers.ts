/** Runs simulated sessions in several threads, in parts, and adds up their reports. */

import { once } from 'node:events';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import type { SimulationReport } from '../../packages/verify/src/simulation/report-types.js';
import { type Fault, plantFault } from '../plant/fault.js';
import { workspacePackages } from '../workspace-packages.js';

/**
 * Sessions that a thread runs at once, and until it is replaced: what ended processes leave in
 * memory goes with it.
 */
const PER_PART = 100;
const PER_THREAD = 50_000;

export type RunOptions = {
  readonly seed: number;
  readonly sessions: number;
  readonly threads: number;
  /** Whether a session that fails is made as short as possible. Default: yes. */
  readonly isShrunk?: boolean;
  /** What is planted in the sources. */
  readonly fault?: Fault | null;
  /** Told after each part. */
  onPart?(done: SimulationReport): void;
};

type Part = { readonly seed: number; readonly sessions: number; readonly isShrunk: boolean };

/** A thread lives long: it takes some thousand sessions until its code is compiled well. */
class Thread {
  readonly #program: string;
  #worker: Worker | null = null;
  #sessions = 0;

  constructor(program: string) {
    this.#program = program;
  }

  async run(part: Part): Promise<SimulationReport> {
    if (this.#sessions >= PER_THREAD) await this.end();
    this.#sessions += part.sessions;
    this.#worker ??= new Worker(this.#program);
    return reportOf(this.#worker, part);
  }

  async end(): Promise<void> {
    await this.#worker?.terminate();
    this.#worker = null;
    this.#sessions = 0;
  }
}

const reportOf = async (worker: Worker, part: Part): Promise<SimulationReport> => {
  const over = new AbortController();
  const { signal } = over;
  worker.postMessage(part);
  try {
    return await Promise.race([
      once(worker, 'message', { signal }).then(([report]) => report as SimulationReport), // what worker.ts posts
      once(worker, 'exit', { signal }).then(([code]) => {
        throw new Error(`a worker ended with ${code} before its report`);
      }),
    ]);
  } finally {
    over.abort();
  }
};

const sum = (one: SimulationReport, other: SimulationReport): SimulationReport => {
  const names = [...new Set([...Object.keys(one.situations), ...Object.keys(other.situations)])];
  return {
    sessions: one.sessions + other.sessions,
    events: one.events + other.events,
    situations: Object.fromEntries(
      names.map((name) => [name, (one.situations[name] ?? 0) + (other.situations[name] ?? 0)]),
    ),
    failure: one.failure ?? other.failure,
  };
};

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Writes the program of a thread (worker.ts); returns its path. */
const buildWorker = async (fault: Fault | null): Promise<string> => {
  const outfile = path.join(root, `node_modules/.cache/pawl-simulation/${process.pid}.mjs`);
  await build({
    absWorkingDir: root,
    entryPoints: ['scripts/simulation/worker.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    logLevel: 'silent',
    plugins: [workspacePackages(root), plantFault(fault)],
  });
  return outfile;
};

/** Runs sessions in several threads; no part begins after one has failed. */
export const runWorkers = async (options: RunOptions): Promise<SimulationReport> => {
  const { seed, sessions, threads, isShrunk = true, fault = null, onPart } = options;
  const program = await buildWorker(fault);
  let next = 0;
  let total: SimulationReport = { sessions: 0, events: 0, situations: {}, failure: null };
  const work = async (): Promise<void> => {
    const thread = new Thread(program);
    try {
      while (next < sessions && total.failure === null) {
        const from = next;
        const count = Math.min(PER_PART, Math.ceil(sessions / threads), sessions - from);
        next += count;
        const part = await thread.run({ seed: seed + from, sessions: count, isShrunk });
        total = sum(total, part);
        onPart?.(total);
      }
    } finally {
      await thread.end();
    }
  };
  try {
    await Promise.all(Array.from({ length: threads }, work));
  } finally {
    rmSync(program, { force: true });
  }
  return total;
};
