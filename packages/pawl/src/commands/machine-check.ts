/**
 * `pawl machine --check`: explores every path through the machine within bounds, in worker threads,
 * and checks each step.
 *
 * A configuration is a small machine to explore: its settings and the events that may come. Each
 * arrow of the machine must be reached by some path, or have an excuse: a reason why it can't be.
 */

import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { agent } from '@pawl/agent/machine/machine';
import { groupDigits } from '@pawl/agent/platform/text';
import type { Progress } from '@pawl/machine/explorer/explore';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import {
  type Bounds,
  type Configuration,
  defaultBounds,
} from '@pawl/verify/exploration/configuration';
import { createConfigurations } from '@pawl/verify/exploration/configurations';
import {
  type CheckResult,
  type Coverage,
  combineResults,
  type ExplorationResult,
  excusedArrows,
  exploreOne,
  isSound,
} from '@pawl/verify/exploration/explore';
import { projections } from '@pawl/verify/projections/all-projections';
import { type ExitCode, exitCodes } from '../process/exit-codes.js';
import { packageFolder } from '../process/package-folder.js';
import { usageStop } from '../settings/flags.js';

export type CheckFlags = { readonly bounds?: string; readonly json?: true };

/** An exploration stops at this many states: more would not fit into memory. */
const statesMax = 20_000_000;
const TRACE_FILE = 'counterexample.trace';

/** Parses `reads=3,retries=1`. Bounds that are not named keep their defaults. */
export const readBounds = (text: string): Bounds => {
  // The loop below rejects unknown names, so only bounds get in.
  const bounds: Record<string, number> = { ...defaultBounds };
  for (const word of text.split(',').filter((one) => one !== '')) {
    const [, name = '', value = ''] = /^(\w+)=(\d{1,2})$/.exec(word) ?? [];
    if (!Object.hasOwn(bounds, name))
      throw usageStop(
        '--bounds needs name=number, separated by commas; the names are ' +
          `${Object.keys(defaultBounds).join(', ')}. '${word}' is not one of them.`,
      );
    bounds[name] = Number(value);
  }
  return { ...defaultBounds, ...bounds };
};

/**
 * Whether every arrow must be reached. Below the default bounds some can't be, and need no excuse.
 */
const isDemanding = (bounds: Bounds): boolean => {
  const least: Readonly<Record<string, number>> = defaultBounds;
  return Object.entries(bounds).every(([name, value]) => value >= (least[name] ?? 0));
};

const printProgress = (
  name: string,
  progress: { readonly states: number; readonly steps: number },
): void =>
  writeError(
    safe`${makeSafe(name)}: ${makeSafe(count(progress.states))} states, ${makeSafe(count(progress.steps))} steps\n`,
  );

/**
 * Writes the shortest trace that leads to the violation into `folder`. Returns the message for the
 * user.
 */
export const leaveTrace = ({ violation }: CheckResult, folder: string): string => {
  if (violation === null) return '';
  const file = join(folder, TRACE_FILE);
  writeFileSync(file, violation.trace);
  const faults = violation.faults.map((fault) => `  ${fault}\n`).join('');
  const place = `after ${violation.events} events in the configuration '${violation.configuration}'`;
  return `pawl: ${place}:\n${faults}The events are in ${file}.\n`;
};

export const checkExit = (check: CheckResult, bounds: Bounds): ExitCode => {
  const sound = isDemanding(bounds) ? isSound(check) : check.complete && check.violation === null;
  return sound ? exitCodes.done : exitCodes.taskFailed;
};

export const checkMachine = async (flags: CheckFlags): Promise<number> => {
  if (!isMainThread) return serveExplorer(); // in a thread that `runThread` has started
  const bounds = readBounds(flags.bounds ?? '');
  const explored = await exploreAll({ bounds, statesMax }, printProgress);
  const check = combineResults(explored, agent.edges, projections, excusedArrows);
  if (flags.json) writeJson({ bounds, ...check }, 2);
  else writeOut(makeSafe(reportText(check)));
  writeError(makeSafe(leaveTrace(check, process.cwd())));
  return checkExit(check, bounds);
};

// Text output of `pawl machine --check`.

const count = (amount: number): string => groupDigits(amount);

/** Most unreached arrows that are listed: small bounds leave many out. */
const LISTED_MAX = 20;

const reachText = (
  what: string,
  { reached, all, explained, missing, mistaken }: Coverage,
): readonly string[] => [
  `${what}: ${reached} of ${all} arrows reached`,
  ...explained.map(({ id, why }) => `  ${id} can't be: ${why}`),
  ...missing.slice(0, LISTED_MAX).map((id) => `  ${id} was not reached`),
  ...(missing.length > LISTED_MAX
    ? [`  and ${missing.length - LISTED_MAX} more, which --json lists`]
    : []),
  ...mistaken.map((id) => `  ${id} was reached, or is gone: strike the reason why it can't be`),
];

/** The result as text: a table of configurations, then the coverage of machine and views. */
export const reportText = (check: CheckResult): string => {
  const rows = [
    ['configuration', 'states', 'steps', 'depth', ''],
    ...check.configurations.map((one) => [
      one.name,
      count(one.states),
      count(one.steps),
      `${one.depth}${one.complete ? '' : ', not all'}`,
      one.about,
    ]),
    ['together', count(check.states), count(check.steps), '', ''],
  ];
  const widths = [0, 1, 2, 3].map((column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const table = rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0
          ? cell.padEnd(widths[0] ?? 0)
          : column < 4
            ? cell.padStart(widths[column] ?? 0)
            : cell,
      )
      .join('  ')
      .trimEnd(),
  );
  return [
    ...table,
    '',
    `${check.complete ? 'complete' : 'not complete'}: ${count(check.violations)} violations, ` +
      `${count(check.illegalProjections)} illegal projections`,
    ...reachText('machine', check.edges),
    ...check.views.flatMap((view) => reachText(`view ${view.name}`, view)),
    '',
  ].join('\n');
};

// Explores configurations in worker threads. Each thread runs this program and takes one
// configuration after the other.

/** One thread per core, at most 4: more do not make it faster. */
const threadsMax = Math.max(1, Math.min(4, availableParallelism()));

type Plan = { readonly bounds: Bounds; readonly statesMax: number };

type Report =
  | { readonly type: 'progress'; readonly name: string; readonly progress: Progress }
  | { readonly type: 'explored'; readonly explored: ExplorationResult };

type ExplorerWatch = (name: string, progress: Progress) => void;

/**
 * Explores all configurations of a plan; results are in its order. `watch` gets the progress of
 * each, and its end.
 */
const exploreAll = async (
  plan: Plan,
  watch: ExplorerWatch,
): Promise<readonly ExplorationResult[]> => {
  const names = createConfigurations(plan.bounds).map(({ name }) => name);
  const waiting = [...names];
  const results = new Map<string, ExplorationResult>();
  const threads = Array.from({ length: Math.min(threadsMax, names.length) }, () =>
    runThread(plan, () => waiting.shift(), watch, results),
  );
  await Promise.all(threads);
  return names.flatMap((name) => results.get(name) ?? []);
};

/** Runs one thread until no name is left. */
const runThread = (
  plan: Plan,
  next: () => string | undefined,
  watch: ExplorerWatch,
  results: Map<string, ExplorationResult>,
): Promise<void> =>
  new Promise((resolve, reject) => {
    const thread = new Worker(join(packageFolder(), 'dist', 'cli.cjs'), {
      argv: ['machine', '--check'],
      workerData: plan,
    });
    let isDone = false;
    const sendNext = (): void => {
      const name = next();
      isDone = name === undefined;
      if (isDone) void thread.terminate();
      else thread.postMessage(name);
    };
    thread.on('message', (report: Report) => {
      if (report.type === 'progress') {
        watch(report.name, report.progress);
        return;
      }
      results.set(report.explored.name, report.explored);
      watch(report.explored.name, report.explored);
      sendNext();
    });
    thread.on('error', reject);
    thread.on('exit', (code) => {
      if (isDone) resolve();
      else reject(new Error(`a thread of the check ended with exit code ${code}`));
    });
    sendNext();
  });

/** The worker's side: explores each configuration that it is sent, until it is terminated. */
const serveExplorer = (): Promise<never> =>
  new Promise(() => {
    // The copy of the plan that runThread passed.
    const { bounds, statesMax } = workerData as Plan;
    const configurations = createConfigurations(bounds);
    parentPort?.on('message', (name: string) => {
      const configuration = configurations.find((one) => one.name === name);
      if (configuration === undefined) throw new Error(`there is no configuration ${name}`);
      parentPort?.postMessage({
        type: 'explored',
        explored: exploreHere(configuration, statesMax),
      });
    });
  });

const exploreHere = (configuration: Configuration, statesMax: number): ExplorationResult =>
  exploreOne(configuration, agent, projections, statesMax, (progress) =>
    parentPort?.postMessage({
      type: 'progress',
      name: configuration.name,
      progress,
    } satisfies Report),
  );
