import { readdirSync, readFileSync } from 'node:fs';

/** Processes below another one, found in /proc. */

const readProc = (name: string): string => {
  try {
    return readFileSync(`/proc/${name}`, 'latin1');
  } catch {
    return ''; // it ended meanwhile
  }
};

type Status = { readonly pid: number; readonly parent: number; readonly state: string };

const statusOf = (pid: number): Status | null => {
  const line = readProc(`${pid}/stat`);
  const [state, parent] = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return state === undefined || state === '' ? null : { pid, parent: Number(parent), state };
};

const allProcesses = (): readonly Status[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statusOf(Number(name)) ?? []);

/** Pids of all that descends from it, zombies too. */
export const familyOf = (pid: number): readonly number[] => {
  const all = allProcesses();
  const found = new Set([pid]);
  for (let before = 0; before !== found.size; ) {
    before = found.size;
    for (const status of all) if (found.has(status.parent)) found.add(status.pid);
  }
  return [...found].filter((one) => one !== pid);
};

/** Those below this process that have the word in their command line. */
export const ownProcesses = (word: string): readonly number[] =>
  familyOf(process.pid).filter((pid) => readProc(`${pid}/cmdline`).includes(word));

/** Whether it still is one that does something. */
export const isAlive = (pid: number): boolean => {
  const status = statusOf(pid);
  return status !== null && status.state !== 'Z' && status.state !== 'X';
};
