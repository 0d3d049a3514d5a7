import { rmSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { SimulationReport } from '../../src/testing/simulation/report.js';
import { buildWorker, type PlantedFault } from './build.js';

/** Sessions that one thread runs before the next one begins: what ended processes leave in memory goes with it. */
const PER_WORKER = 2_500;

export type RunOptions = {
  readonly seed: number;
  readonly sessions: number;
  readonly threads: number;
  readonly isShrunk?: boolean;
  readonly fault?: PlantedFault | null;
  /** Told after each part. */
  onPart?(done: SimulationReport): void;
};

const runPart = (
  program: string,
  seed: number,
  sessions: number,
  isShrunk: boolean,
): Promise<SimulationReport> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(program, { workerData: { seed, sessions, isShrunk } });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`a worker ended with ${code} before its report`)));
  });

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

/** Runs sessions in several threads; no part begins after one has failed. */
export const runWorkers = async (options: RunOptions): Promise<SimulationReport> => {
  const { seed, sessions, threads, isShrunk = true, fault = null, onPart } = options;
  const program = await buildWorker(fault === null ? 'plain' : 'planted', fault);
  let next = 0;
  let total: SimulationReport = { sessions: 0, events: 0, situations: {}, failure: null };
  const work = async (): Promise<void> => {
    while (next < sessions && total.failure === null) {
      const from = next;
      const count = Math.min(PER_WORKER, Math.ceil(sessions / threads), sessions - from);
      next += count;
      const part = await runPart(program, seed + from, count, isShrunk);
      total = sum(total, part);
      onPart?.(total);
    }
  };
  try {
    await Promise.all(Array.from({ length: threads }, work));
  } finally {
    rmSync(program, { force: true });
  }
  return total;
};
