import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import type { Place } from './pawl.js';

/** Processes of the commands of one place: those that stand in its folder, or name it in their command line. */

const readProc = (name: string): string => {
  try {
    return readFileSync(`/proc/${name}`, 'latin1');
  } catch {
    return ''; // it has ended
  }
};

const folderOf = (pid: string): string => {
  try {
    return realpathSync(`/proc/${pid}/cwd`);
  } catch {
    return ''; // it has ended, or stands in a folder that only it sees
  }
};

export type PlaceProcess = { readonly pid: number; readonly line: string };

export const processesOf = ({ folder }: Place): readonly PlaceProcess[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    .map((name) => ({ name, line: readProc(`${name}/cmdline`).replaceAll('\0', ' ').trim() }))
    // Threads of the kernel have no command line, nor have processes that have ended.
    .filter(
      ({ name, line }) =>
        line !== '' && (line.includes(folder) || folderOf(name).startsWith(folder)),
    )
    .map(({ name, line }) => ({ pid: Number(name), line }));

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
  const isShell = ({ line }: PlaceProcess): boolean => line.includes('pawl-launcher');
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
