import { readFileSync, readlinkSync } from 'node:fs';

/** Tells a process from a later one with the same pid. Empty strings: unknown on this platform. */
export type ProcessIdentity = {
  readonly pid: number;
  /** Start time in kernel ticks. */
  readonly started: string;
  /** Boot id of the kernel. */
  readonly bootId: string;
  /** The pid namespace, within which the pid is valid. */
  readonly pids: string;
};

const orEmpty = (read: () => string): string => {
  try {
    return read().trim();
  } catch {
    return ''; // unknown: every use of it then counts the process as alive
  }
};

/**
 * State and start time of a process: fields 3 and 22 of its stat line, counted from after its name.
 * Empty if there is no such process, or no /proc.
 */
export const readProcessStat = (
  pid: number,
): { readonly state: string; readonly started: string } => {
  const line = orEmpty(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', started: fields[19] ?? '' };
};

/** Differs after each start of the machine. Empty where it is unknown. */
export const bootId = (): string =>
  orEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
/** Names the space in which process numbers mean the same. Empty where it is unknown. */
export const pidNamespace = (): string => orEmpty(() => readlinkSync('/proc/self/ns/pid'));

export const identifyProcess = (pid: number = process.pid): ProcessIdentity => ({
  pid,
  started: readProcessStat(pid).started,
  bootId: bootId(),
  pids: pidNamespace(),
});

const isKnown = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
};

/** True if the process has certainly ended; false if it lives, or nobody can tell from here. */
export const hasEnded = ({ pid, started, bootId: boot, pids }: ProcessIdentity): boolean => {
  const here = bootId();
  if (boot !== '' && here !== '' && boot !== here) return true;
  if (pids !== pidNamespace()) return false;
  if (!isKnown(pid)) return true;
  const now = readProcessStat(pid);
  if (started !== '' && now.started !== '' && now.started !== started) return true;
  return now.state === 'Z' || now.state === 'X';
};
