/**
 * Ends all processes of a command: asks them to end, kills them, or kills those that outlive it.
 *
 * A process belongs to a command if it is in its group or session, descends from it, or has its
 * marker in the environment. A process without all four (a new session, a gone parent, an empty
 * environment) escapes. Other systems than Linux tell less of a process (platform/processes.ts).
 *
 * A fence is the sandbox around a command: a chain of processes, each started by the one before,
 * and the command inside the last one. A guard is a process of ours beside a command, which takes
 * over when Pawl is killed: it ends the command at once, or at its deadline.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { findByVariable, listProcesses, type ProcessStatus } from '../platform/processes.js';

/** The variable with the marker. Each command has another one. */
export const MARKER = 'PAWL_CALL';

/** A command's process: leader of a group and session. */
export type ProcessRoot = {
  readonly pid: number;
  readonly marker: string;
  /** See `readProcess`; 0 if it is unknown. No process of the command is older. */
  readonly startedAt: number;
};

/** Identities of processes. */
export type ProcessFamily = ReadonlySet<string>;

const NO_FAMILY: ProcessFamily = new Set();

/** A process that was started while the list was read may be missing in it. */
const QUIET_ROUNDS = 2;
const ROUNDS_MAX = 100;
/** Each may take seconds. A table of processes that was full has room again after the first. */
export const UNTOLD_ROUNDS_MAX = 3;
/**
 * Killed processes are mostly gone after the first pause, in ms. Later pauses are longer, up to the
 * second one.
 */
const FIRST_PAUSE_MS = 1;
const PAUSE_MS = 5;

/** Signals a process (or, if negative, a group). Returns whether it is there and ours. */
const send = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(pid, signal);
  } catch {
    return false; // gone, or owned by another user: nothing to end
  }
};

const withMarker = (all: readonly ProcessStatus[], marker: string): ReadonlySet<number> | null =>
  findByVariable(
    all.map(({ pid }) => pid),
    MARKER,
    marker,
  );

/** `isWhole`: the system has told of all its processes. */
type FoundFamily = { readonly living: readonly ProcessStatus[]; readonly isWhole: boolean };

/** All living processes of the command, those in `known`, and their descendants. */
const findFamily = (root: ProcessRoot, known: ProcessFamily): FoundFamily => {
  const listed = listProcesses();
  const all = (listed ?? []).filter(({ pid }) => pid !== process.pid);
  const family = new Map<number, ProcessStatus>();
  for (const status of all) {
    const { pid, group, session, identity } = status;
    if ([pid, group, session].includes(root.pid) || known.has(identity)) family.set(pid, status);
  }
  // To read the environment of each process of the machine takes longer than all else.
  const later = all.filter(({ pid, startedAt }) => startedAt >= root.startedAt && !family.has(pid));
  const marked = withMarker(later, root.marker);
  for (const status of later) if (marked?.has(status.pid)) family.set(status.pid, status);
  for (let before = -1; before !== family.size; ) {
    before = family.size;
    for (const status of all) {
      if (status.parent === root.pid || family.has(status.parent)) family.set(status.pid, status);
    }
  }
  return { living: [...family.values()], isWhole: listed !== null && marked !== null };
};

const listIdentities = (family: readonly ProcessStatus[]): ProcessFamily =>
  new Set(family.map(({ identity }) => identity));

/**
 * Sends SIGTERM to the process group; endTree ends processes outside it. Returns the processes of
 * the command as they were before.
 */
export const askToEnd = (root: ProcessRoot): ProcessFamily => {
  const { living } = findFamily(root, NO_FAMILY);
  send(-root.pid, 'SIGTERM');
  return listIdentities(living);
};

/** The first child. Orphans become children of a fence's first process too, but later. */
const oldestChild = (all: readonly ProcessStatus[], parent: number): ProcessStatus | undefined =>
  all
    .filter((status) => status.parent === parent)
    .toSorted((one, other) => one.startedAt - other.startedAt || one.pid - other.pid)[0];

/** The chain of processes from `root` on: those of bubblewrap, and the shell that they start. */
const findFence = (all: readonly ProcessStatus[], root: ProcessRoot): ReadonlySet<number> => {
  const fence = new Set<number>();
  const first = all.find(({ pid }) => pid === root.pid);
  let next = first;
  while (next !== undefined) {
    fence.add(next.pid);
    next = next.name === first?.name ? oldestChild(all, next.pid) : undefined;
  }
  return fence;
};

/**
 * Asks the processes inside a fence to end. Ending the fence itself would kill the command without
 * notice; it ends by itself after the command. If there is no command yet, the whole fence is
 * asked. Returns the processes of the command as they were before.
 */
export const askFencedToEnd = (root: ProcessRoot): ProcessFamily => {
  const { living: all } = findFamily(root, NO_FAMILY);
  const fence = findFence(all, root);
  // The group of the fence's first process holds only parts of the sandbox, such as the guard.
  const commands = all.filter(({ pid, group }) => !fence.has(pid) && group !== root.pid);
  if (commands.length === 0) send(-root.pid, 'SIGTERM');
  for (const { pid } of commands) send(pid, 'SIGTERM');
  return listIdentities(all);
};

/** Kills all processes of the command once. Returns those that were alive. */
export const killNow = (root: ProcessRoot, known: ProcessFamily = NO_FAMILY): FoundFamily => {
  send(-root.pid, 'SIGKILL');
  const { living, isWhole } = findFamily(root, known);
  const killed = living.filter(({ isEnding }) => !isEnding);
  for (const { pid } of killed) send(pid, 'SIGKILL');
  return { living: killed, isWhole };
};

/**
 * Kills all processes of the command, and those in `remembered`, even after their parents have
 * ended. Resolves when none is alive, or after half a second: the kernel may hold one, and those of
 * another user can't be killed. The first kill is immediate. False: the system does not tell
 * whether all have ended.
 */
export const endTree = async (
  root: ProcessRoot,
  remembered: ProcessFamily = NO_FAMILY,
): Promise<boolean> => {
  const known = new Set(remembered);
  let quiet = 0;
  let untold = 0;
  for (let round = 0; round < ROUNDS_MAX && untold < UNTOLD_ROUNDS_MAX; round++) {
    const { living, isWhole } = killNow(root, known);
    for (const { identity } of living) known.add(identity);
    quiet = living.length === 0 && isWhole ? quiet + 1 : 0;
    untold = isWhole ? 0 : untold + 1;
    if (quiet === QUIET_ROUNDS) return true;
    if (quiet === 0) await sleep(Math.min(FIRST_PAUSE_MS + round, PAUSE_MS));
  }
  return untold === 0;
};

/** Grace period in ms for processes that are ending, such as process substitutions. */
const ENDING_MS = 50;

/** What came of the end of processes. `unseen`: the system does not tell whether there are any. */
export type Leftovers = 'none' | 'ended' | 'unseen';

/** Kills the leftovers of an ended command. If there are none, this is one system call. */
export const endLeftovers = async (root: ProcessRoot): Promise<Leftovers> => {
  if (isLeft(root) === false) return 'none';
  await sleep(ENDING_MS);
  const isStillLeft = isLeft(root);
  send(-root.pid, 'SIGKILL');
  if (isStillLeft === null) return 'unseen';
  return isStillLeft ? 'ended' : 'none';
};

/**
 * Whether a process of its group lives; null if the system does not tell. The first question is
 * quick: mostly there is no group.
 */
const isLeft = (root: ProcessRoot): boolean | null => {
  if (!send(-root.pid, 0)) return false;
  const listed = listProcesses();
  return listed?.some(({ group, isEnding }) => group === root.pid && !isEnding) ?? null;
};

/**
 * Living processes with this marker; null if the system does not tell. Their first process has
 * ended, so its number says nothing any more.
 */
export const listMarked = (marker: string): readonly number[] | null => {
  const listed = listProcesses();
  const marked = listed === null ? null : withMarker(listed, marker);
  return marked === null ? null : [...marked].filter((pid) => pid !== process.pid);
};

/** Kills all processes with this marker. */
export const endMarked = async (marker: string): Promise<Leftovers> => {
  let hasKilled = false;
  let untold = 0;
  for (let round = 0; round < ROUNDS_MAX && untold < UNTOLD_ROUNDS_MAX; round++) {
    const pids = listMarked(marker);
    if (pids?.length === 0) return hasKilled ? 'ended' : 'none';
    untold = pids === null ? untold + 1 : 0;
    for (const pid of pids ?? []) hasKilled = send(pid, 'SIGKILL') || hasKilled;
    await sleep(PAUSE_MS);
  }
  return untold > 0 ? 'unseen' : 'ended';
};
