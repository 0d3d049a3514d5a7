import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Ending everything that a command started.
 *
 * 1. A process belongs to a command if it is in its group or session, descends from it, or has its marker in the
 *    environment. A process that leaves all four (a new session, its parent gone, an empty environment) escapes.
 * 2. Without /proc only the group is known.
 * 3. Processes still running when Pawl exits by itself are ended then.
 */

export const MARKER = 'PAWL_CALL';

/** A command's process: leader of its own group and session. */
export type ProcessRoot = { readonly pid: number; readonly marker: string };

type Status = {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** The pid with its start time: unlike the pid, never used twice. */
  readonly identity: string;
};

/** Identities of processes. */
export type ProcessFamily = ReadonlySet<string>;

const NOBODY: ProcessFamily = new Set();

const QUIET_ROUNDS = 2;
const ROUNDS_MAX = 100;
const ROUND_MS = 5;
/** Indexes of the fields behind the name in /proc/PID/stat. */
const START_TIME = 19;

/** Sends a signal to a process (or, negative, to a group); whether there was one to get it. */
const send = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(pid, signal);
  } catch {
    return false; // it is gone, or not ours to signal: there is nothing to end
  }
};

const readProc = (name: string): string => {
  try {
    return readFileSync(`/proc/${name}`, 'latin1');
  } catch {
    return ''; // the process ended while we looked, or belongs to another user
  }
};

/** Living processes; zombies are dead. */
const listProcesses = (): Status[] => {
  let names: string[];
  try {
    names = readdirSync('/proc');
  } catch {
    return []; // no /proc on this system: see invariant 2
  }
  const found: Status[] = [];
  for (const name of names) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const line = readProc(`${name}/stat`);
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
    const [state, parent, group, session] = fields;
    if (state === undefined || state === '' || state === 'Z' || state === 'X') continue;
    const identity = `${pid}@${fields[START_TIME]}`;
    found.push({ pid, parent: Number(parent), group: Number(group), session: Number(session), identity });
  }
  return found;
};

const hasMarker = (pid: number, marker: string): boolean => {
  const entry = readProc(`${pid}/environ`)
    .split('\0')
    .find((line) => line.startsWith(`${MARKER}=`));
  const markers = entry?.slice(MARKER.length + 1).split(' ');
  return markers?.includes(marker) ?? false;
};

/** Everything alive that belongs to the command (invariant 1), what is in `known`, and what descends from these. */
const familyOf = (root: ProcessRoot, known: ProcessFamily): readonly Status[] => {
  const all = listProcesses().filter(({ pid }) => pid !== process.pid);
  const family = new Map<number, Status>();
  for (const status of all) {
    const { pid, group, session, identity } = status;
    const near = pid === root.pid || group === root.pid || session === root.pid || known.has(identity);
    if (near || hasMarker(pid, root.marker)) family.set(pid, status);
  }
  for (let before = -1; before !== family.size; ) {
    before = family.size;
    for (const status of all) {
      if (status.parent === root.pid || family.has(status.parent)) family.set(status.pid, status);
    }
  }
  return [...family.values()];
};

/** Sends SIGTERM to the process group; processes that left it are ended by endTree. */
export const askToEnd = (root: ProcessRoot): void => {
  send(-root.pid, 'SIGTERM');
};

const startOf = ({ identity }: Status): number => Number(identity.split('@')[1]);

/** The child that was started first: orphans are children of a fence's first process, too, but come later. */
const oldestChild = (all: readonly Status[], parent: number): Status | undefined =>
  all
    .filter((status) => status.parent === parent)
    .toSorted((one, other) => startOf(one) - startOf(other) || one.pid - other.pid)[0];

/**
 * Asks what runs inside a fence to end. The fence itself, `depth` processes one below the other from `root` on, would
 * take the command down with it, without a word to it: it ends with the command. Where there is no command yet, all of
 * it is asked.
 */
export const askFencedToEnd = (root: ProcessRoot, depth: number): void => {
  const all = familyOf(root, NOBODY);
  const fence = new Set<number>();
  let next: number | undefined = root.pid;
  for (let level = 0; level < depth && next !== undefined; level++) {
    fence.add(next);
    next = oldestChild(all, next)?.pid;
  }
  const commands = all.filter(({ pid }) => !fence.has(pid));
  if (commands.length === 0) askToEnd(root);
  for (const { pid } of commands) send(pid, 'SIGTERM');
};

/** Kills, once and at once, all that belongs to the command; how many processes that were. */
const killNow = (root: ProcessRoot, known: ProcessFamily): number => {
  send(-root.pid, 'SIGKILL');
  const family = familyOf(root, known);
  for (const { pid } of family) send(pid, 'SIGKILL');
  return family.length;
};

/** Kills all that belongs to the command; resolves when none of it is alive any more. The first kill is immediate. */
export const endTree = async (root: ProcessRoot, known: ProcessFamily = NOBODY): Promise<void> => {
  let quiet = 0;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    quiet = killNow(root, known) === 0 ? quiet + 1 : 0;
    if (quiet === QUIET_ROUNDS) return;
    await sleep(ROUND_MS);
  }
};

/** The processes of the command now. Remembered ones are found again after their parents are gone. */
export const rememberFamily = (root: ProcessRoot): ProcessFamily =>
  new Set(familyOf(root, NOBODY).map(({ identity }) => identity));

/** Grace period in ms for processes about to end, such as process substitutions. */
const ENDING_MS = 50;
const isLeft = (root: ProcessRoot): boolean =>
  send(-root.pid, 0) && listProcesses().some(({ group }) => group === root.pid);

/** Kills what a command that has ended left in its group; whether there was anything. Costs one system call if not. */
export const endLeftovers = async (root: ProcessRoot): Promise<boolean> => {
  if (!isLeft(root)) return false;
  await sleep(ENDING_MS);
  const left = isLeft(root);
  send(-root.pid, 'SIGKILL');
  return left;
};

const alive = new Set<ProcessRoot>();
const killAlive = (): void => {
  for (const root of alive) killNow(root, NOBODY);
};

/** Keeps the promise of invariant 3 for this command until the returned function is called. */
export const watchOver = (root: ProcessRoot): (() => void) => {
  if (alive.size === 0) process.once('exit', killAlive);
  alive.add(root);
  return () => {
    alive.delete(root);
    if (alive.size === 0) process.off('exit', killAlive);
  };
};
