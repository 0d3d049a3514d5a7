/**
 * How much CPU time the tests have used.
 */

import { readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second for programs, whatever the kernel's own clock is. */
const TICK_MS = 10;

/**
 * CPU time of this process and of its children that have ended, with theirs, in ms. Without /proc
 * only its own.
 */
export const spentCpuMs = (): number => {
  try {
    const text = readFileSync('/proc/self/stat', 'latin1');
    // The name of the program, in parentheses, may hold spaces. Behind it stands the state, the
    // third field.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = fields.slice(11, 15); // utime, stime, cutime, cstime
    return ticks.reduce((sum, one) => sum + Number(one), 0) * TICK_MS;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
};
