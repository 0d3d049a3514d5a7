import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { agent } from '@pawl/agent/machine/machine';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { type Bounds, defaultBounds } from '@pawl/verify/exploration/configurations/configuration';
import {
  type CheckResult,
  combineResults,
  excusedArrows,
  isSound,
} from '@pawl/verify/exploration/exploration-result';
import { projections } from '@pawl/verify/projections/all-projections';
import { type ExitCode, exitCodes } from '../../exit-codes.js';
import { usageStop } from '../../flags.js';
import { count, textOf } from './check-report.js';
import { exploreAll, serveExplorer } from './explorer-threads.js';

/** `pawl machine --check`: explores every path through the machine within bounds, and checks each step. */

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
    if (!(name in bounds))
      throw usageStop(
        `--bounds needs name=number, separated by commas; the names are ${Object.keys(defaultBounds).join(', ')}. '${word}' is not one of them.`,
      );
    bounds[name] = Number(value);
  }
  return { ...defaultBounds, ...bounds };
};

/** Whether every arrow must be reached. Below the default bounds some can't be, and need no excuse. */
const isDemanding = (bounds: Bounds): boolean => {
  const least: Readonly<Record<string, number>> = defaultBounds;
  return Object.entries(bounds).every(([name, value]) => value >= (least[name] ?? 0));
};

const tellProgress = (name: string, progress: { readonly states: number; readonly steps: number }): void =>
  writeError(
    safe`${makeSafe(name)}: ${makeSafe(count(progress.states))} states, ${makeSafe(count(progress.steps))} steps\n`,
  );

/** Writes the shortest trace that leads to the violation into `folder`. Returns the message for the user. */
export const leaveTrace = ({ violation }: CheckResult, folder: string): string => {
  if (violation === null) return '';
  const file = join(folder, TRACE_FILE);
  writeFileSync(file, violation.trace);
  const faults = violation.faults.map((fault) => `  ${fault}\n`).join('');
  const place = `after ${violation.events} events in the configuration '${violation.configuration}'`;
  return `pawl: ${place}:\n${faults}The events are in ${file}.\n`;
};

export const exitOf = (check: CheckResult, bounds: Bounds): ExitCode => {
  const sound = isDemanding(bounds) ? isSound(check) : check.complete && check.violation === null;
  return sound ? exitCodes.done : exitCodes.taskFailed;
};

export const checkMachine = async (flags: CheckFlags): Promise<number> => {
  if (!isMainThread) return serveExplorer();
  const bounds = readBounds(flags.bounds ?? '');
  const explored = await exploreAll({ bounds, statesMax }, tellProgress);
  const check = combineResults(explored, agent.edges, projections, excusedArrows);
  if (flags.json) writeJson({ bounds, ...check }, 2);
  else writeOut(makeSafe(textOf(check)));
  writeError(makeSafe(leaveTrace(check, process.cwd())));
  return exitOf(check, bounds);
};
