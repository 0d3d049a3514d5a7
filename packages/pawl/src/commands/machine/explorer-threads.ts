import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { agent } from '@pawl/agent/machine/machine';
import type { Progress } from '@pawl/machine/explorer/explore-states';
import { configurationsOf } from '@pawl/verify/exploration/configurations/all-configurations';
import type { Bounds, Configuration } from '@pawl/verify/exploration/configurations/configuration';
import type { ExplorationResult } from '@pawl/verify/exploration/exploration-result';
import { exploreOne } from '@pawl/verify/exploration/explore-one';
import { projections } from '@pawl/verify/projections/all-projections';
import { packageFolder } from '../../package-folder.js';

/** Explores configurations in worker threads. Each thread runs this program and takes one configuration after the other. */

/** One thread per core, at most 4: more do not make it faster. */
const threadsMax = Math.max(1, Math.min(4, availableParallelism()));

export type Plan = { readonly bounds: Bounds; readonly statesMax: number };

type Report =
  | { readonly type: 'progress'; readonly name: string; readonly progress: Progress }
  | { readonly type: 'explored'; readonly explored: ExplorationResult };

export type ExplorerWatch = (name: string, progress: Progress) => void;

/** Explores all configurations of a plan; results are in its order. `watch` gets the progress of each, and its end. */
export const exploreAll = async (plan: Plan, watch: ExplorerWatch): Promise<readonly ExplorationResult[]> => {
  const names = configurationsOf(plan.bounds).map(({ name }) => name);
  const left = [...names];
  const found = new Map<string, ExplorationResult>();
  const threads = Array.from({ length: Math.min(threadsMax, names.length) }, () =>
    runThread(plan, () => left.shift(), watch, found),
  );
  await Promise.all(threads);
  return names.flatMap((name) => found.get(name) ?? []);
};

/** Runs one thread until no name is left. */
const runThread = (
  plan: Plan,
  next: () => string | undefined,
  watch: ExplorerWatch,
  found: Map<string, ExplorationResult>,
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

/** The worker's side: explores each configuration that it is sent, until it is terminated. */
export const serveExplorer = (): Promise<never> =>
  new Promise(() => {
    // The copy of the plan that runThread passed.
    const { bounds, statesMax } = workerData as Plan;
    const configurations = configurationsOf(bounds);
    parentPort?.on('message', (name: string) => {
      const configuration = configurations.find((one) => one.name === name);
      if (configuration === undefined) return;
      parentPort?.postMessage({ type: 'explored', explored: exploreHere(configuration, statesMax) });
    });
  });

const exploreHere = (configuration: Configuration, statesMax: number): ExplorationResult =>
  exploreOne(configuration, agent, projections, statesMax, (progress) =>
    parentPort?.postMessage({ type: 'progress', name: configuration.name, progress } satisfies Report),
  );
