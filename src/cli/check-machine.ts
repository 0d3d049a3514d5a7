import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { type Check, combine, isSound } from '../agent/exploration/check.js';
import { type Bounds, defaultBounds } from '../agent/exploration/configuration.js';
import { unreached } from '../agent/exploration/unreached.js';
import { agent } from '../agent/machine.js';
import { views } from '../agent/views/views.js';
import { writeIfThere, writeWhole } from '../terminal/print.js';
import { count, textOf } from './check-text.js';
import { type ExitCode, exitCodes } from './exit-codes.js';
import { exploreAll, serveExplorer } from './explorers.js';
import { usageStop } from './flags.js';

/** `pawl machine --check`: every way through the machine within bounds, and what is true of all of them. */

export type CheckFlags = { readonly bounds?: string; readonly json?: true };

/** Beyond this an exploration is given up: it would not fit into memory. */
const statesMax = 20_000_000;
const TRACE_FILE = 'counterexample.trace';

/** `reads=3,retries=1`: what is not named stays as it is by default. */
export const readBounds = (text: string): Bounds => {
  // A bound that is not known does not get past the check below.
  const bounds: Record<string, number> = { ...defaultBounds };
  for (const word of text.split(',').filter((one) => one !== '')) {
    const [, name = '', value = ''] = /^(\w+)=(\d{1,2})$/.exec(word) ?? [];
    if (!(name in bounds))
      throw usageStop(
        `--bounds takes name=number, with commas between; the names are ${Object.keys(defaultBounds).join(', ')}. '${word}' is none of them.`,
      );
    bounds[name] = Number(value);
  }
  return { ...defaultBounds, ...bounds };
};

/** Smaller bounds than the default ones leave arrows out, and nobody has to say why. */
const isDemanding = (bounds: Bounds): boolean => {
  const least: Readonly<Record<string, number>> = defaultBounds;
  return Object.entries(bounds).every(([name, value]) => value >= (least[name] ?? 0));
};

const tellProgress = (name: string, progress: { readonly states: number; readonly steps: number }): void =>
  writeIfThere(2, `${name}: ${count(progress.states)} states, ${count(progress.steps)} steps\n`);

/** The shortest way to what is wrong, as a trace in `folder`; what to tell the user of it. */
export const leaveTrace = ({ violation }: Check, folder: string): string => {
  if (violation === null) return '';
  const file = join(folder, TRACE_FILE);
  writeFileSync(file, violation.trace);
  const faults = violation.faults.map((fault) => `  ${fault}\n`).join('');
  const place = `after ${violation.events} events in the configuration '${violation.configuration}'`;
  return `pawl: ${place}:\n${faults}The events are in ${file}.\n`;
};

export const exitOf = (check: Check, bounds: Bounds): ExitCode => {
  const sound = isDemanding(bounds) ? isSound(check) : check.complete && check.violation === null;
  return sound ? exitCodes.done : exitCodes.taskFailed;
};

export const checkMachine = async (flags: CheckFlags): Promise<number> => {
  if (!isMainThread) return serveExplorer();
  const bounds = readBounds(flags.bounds ?? '');
  const explored = await exploreAll({ bounds, statesMax }, tellProgress);
  const check = combine(explored, agent.edges, views, unreached);
  writeWhole(1, flags.json ? `${JSON.stringify({ bounds, ...check }, null, 2)}\n` : textOf(check));
  writeIfThere(2, leaveTrace(check, process.cwd()));
  return exitOf(check, bounds);
};
