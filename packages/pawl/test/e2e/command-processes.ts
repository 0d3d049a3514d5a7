import { readFileSync } from 'node:fs';
import { type LivingProcess, livingWith } from '../../../../test/kit/tools/processes.js';
import type { Place } from './pawl.js';

/** Processes of the commands of one place. */

const readProc = (name: string): string => {
  try {
    return readFileSync(`/proc/${name}`, 'latin1');
  } catch {
    return ''; // it has ended
  }
};

/** Those that stand in the folder of a place, or name it in their command line or environment. */
export const processesOf = ({ folder }: Place): readonly LivingProcess[] => livingWith(folder);

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended since it was found
  }
};

/** Kills the shells of the launcher, which can't report anything then, and the commands with them unless they are spared. */
export const killLaunchers = (place: Place, commands: 'spared' | 'killed'): void => {
  const all = processesOf(place);
  const isShell = ({ line }: LivingProcess): boolean => line.includes('pawl-launcher');
  for (const { pid } of all.filter(isShell)) kill(pid);
  if (commands === 'killed') for (const { pid } of all) kill(pid);
};

/** The leaders of the launchers' process groups: the shells that take orders. */
export const launcherLeaders = (place: Place): readonly number[] =>
  processesOf(place)
    .filter(({ line }) => line.includes('pawl-launcher'))
    .map(({ pid }) => pid)
    .filter((pid) => {
      const stat = readProc(`${pid}/stat`);
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]) === pid;
    });
