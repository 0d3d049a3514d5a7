import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { type Explored, exploreOne } from '../agent/exploration/check.js';
import type { Bounds, Configuration } from '../agent/exploration/configuration.js';
import { configurationsOf } from '../agent/exploration/configurations.js';
import { agent } from '../agent/machine.js';
import { views } from '../agent/views/views.js';
import type { Progress } from '../kernel/explore.js';
import { packageFolder } from './package-folder.js';

/** Explores configurations, one a thread at a time: this program, started again as threads that take names. */

/** As many threads as there are cores, and not more than pay. */
const threadsMax = Math.max(1, Math.min(4, availableParallelism()));

export type Plan = { readonly bounds: Bounds; readonly statesMax: number };

type Report =
  | { readonly type: 'progress'; readonly name: string; readonly progress: Progress }
  | { readonly type: 'explored'; readonly explored: Explored };

export type Watch = (name: string, progress: Progress) => void;

/** All configurations of a plan, in their order. `watch` hears of each from time to time, and when it is done. */
export const exploreAll = async (plan: Plan, watch: Watch): Promise<readonly Explored[]> => {
  const names = configurationsOf(plan.bounds).map(({ name }) => name);
  const left = [...names];
  const found = new Map<string, Explored>();
  const threads = Array.from({ length: Math.min(threadsMax, names.length) }, () =>
    runThread(plan, () => left.shift(), watch, found),
  );
  await Promise.all(threads);
  return names.flatMap((name) => found.get(name) ?? []);
};

/** One thread, from its start until there is no name left. */
const runThread = (
  plan: Plan,
  next: () => string | undefined,
  watch: Watch,
  found: Map<string, Explored>,
): Promise<void> =>
  new Promise((resolve, reject) => {
    const thread = new Worker(join(packageFolder(), 'dist', 'cli.cjs'), {
      argv: ['machine', '--check'],
      workerData: plan,
    });
    const give = (): void => {
      const name = next();
      if (name === undefined) void thread.terminate().then(() => resolve(), reject);
      else thread.postMessage(name);
    };
    thread.on('message', (report: Report) => {
      if (report.type === 'progress') {
        watch(report.name, report.progress);
        return;
      }
      found.set(report.explored.name, report.explored);
      watch(report.explored.name, report.explored);
      give();
    });
    thread.on('error', reject);
    give();
  });

/** The thread's side: explores what it is told to until it is ended. */
export const serveExplorer = (): Promise<never> =>
  new Promise(() => {
    // The plan that runThread gave: plain values, copied.
    const { bounds, statesMax } = workerData as Plan;
    const configurations = configurationsOf(bounds);
    parentPort?.on('message', (name: string) => {
      const configuration = configurations.find((one) => one.name === name);
      if (configuration === undefined) return;
      parentPort?.postMessage({ type: 'explored', explored: exploreHere(configuration, statesMax) });
    });
  });

const exploreHere = (configuration: Configuration, statesMax: number): Explored =>
  exploreOne(configuration, agent, views, statesMax, (progress) =>
    parentPort?.postMessage({ type: 'progress', name: configuration.name, progress } satisfies Report),
  );
