import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Ending everything that a command started.
 *
 * 1. A process belongs to a command if it is in its group or session, descends from it, or has its marker in the
 *    environment. A process that leaves all four (a new session, its parent gone, an empty environment) escapes.
 * 2. Without /proc only the group is known.
 * 3. What still runs when this program exits by itself is ended then.
 */

export const MARKER = 'PAWL_CALL';

/** A command's process: leader of its own group and session. */
export type Root = { readonly pid: number; readonly marker: string };

type Status = {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** The pid with its start time: unlike the pid, never used twice. */
  readonly identity: string;
};

/** Identities of processes. */
export type Family = ReadonlySet<string>;

const NOBODY: Family = new Set();

const QUIET_ROUNDS = 2;
const ROUNDS_MAX = 100;
const ROUND_MS = 5;
/** Of the fields that follow the name in /proc/PID/stat. */
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
const familyOf = (root: Root, known: Family): readonly Status[] => {
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

/** Asks the group to end; what left the group is only asked for by endTree. */
export const askToEnd = (root: Root): void => {
  send(-root.pid, 'SIGTERM');
};

/** Kills, once and at once, all that belongs to the command; how many processes that were. */
const killNow = (root: Root, known: Family): number => {
  send(-root.pid, 'SIGKILL');
  const family = familyOf(root, known);
  for (const { pid } of family) send(pid, 'SIGKILL');
  return family.length;
};

/** Kills all that belongs to the command; resolves when none of it is alive any more. The first kill is immediate. */
export const endTree = async (root: Root, known: Family = NOBODY): Promise<void> => {
  let quiet = 0;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    quiet = killNow(root, known) === 0 ? quiet + 1 : 0;
    if (quiet === QUIET_ROUNDS) return;
    await sleep(ROUND_MS);
  }
};

/** Who belongs to the command now: remembered, they are found again even when their parents are gone. */
export const rememberFamily = (root: Root): Family =>
  new Set(familyOf(root, NOBODY).map(({ identity }) => identity));

/** Kills what a command that has ended left in its group; whether there was anything. Costs one system call if not. */
export const endLeftovers = (root: Root): boolean => {
  if (!send(-root.pid, 0)) return false;
  const left = listProcesses().some(({ group }) => group === root.pid);
  send(-root.pid, 'SIGKILL');
  return left;
};

const alive = new Set<Root>();
const killAlive = (): void => {
  for (const root of alive) killNow(root, NOBODY);
};

/** Keeps the promise of invariant 3 for this command until the returned function is called. */
export const watchOver = (root: Root): (() => void) => {
  if (alive.size === 0) process.once('exit', killAlive);
  alive.add(root);
  return () => {
    alive.delete(root);
    if (alive.size === 0) process.off('exit', killAlive);
  };
};
