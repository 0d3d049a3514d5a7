/** Starts the production runtime with the disk, clock, model and tools of one simulated process. */

import { fileJournals } from '@pawl/agent/journal/file-store';
import { agentMachine } from '@pawl/agent/journal/journaled-agent-machine';
import type { State } from '@pawl/agent/machine/state';
import { errorCode } from '@pawl/agent/platform/files';
import type { Header, Journal, JournalStore } from '@pawl/agent/ports/journal';
import type { Job, Jobs } from '@pawl/agent/ports/tool';
import { LocalRuntime } from '@pawl/agent/session/runtime';
import { simulatedHooks } from './after-tool-hooks.js';
import { disturbClock } from './disturbances.js';
import { checkReplay, reservedBytes, SESSION_ID, unacknowledgedIn } from './journal-checks.js';
import { SUMMARISE, simulatedModel } from './model.js';
import type { SimulatedProcess } from './simulated-process.js';
import { recordUnacknowledged } from './step-checks.js';
import { simulatedTools } from './tools.js';
import type { World } from './world.js';

export type StartedRuntime = {
  readonly runtime: LocalRuntime;
  /** The state of the journal when it was opened; null before. */
  opened(): State | null;
};

export const startProcess = (process: SimulatedProcess, folder: string): StartedRuntime => {
  const { world } = process;
  let opened: State | null = null;
  const runtime = new LocalRuntime({
    // Each opening begins without a step and without failed writes.
    journals: watchStore(process, folder, (state) => {
      opened = state;
      process.state = null;
      process.hasFailedToWrite = false;
      process.hasUsedReserve = false;
    }),
    clock: process.clock,
    machine: agentMachine.fingerprint,
    equip: async () => ({
      model: (id) => simulatedModel(process, id),
      tools: simulatedTools(process),
      files: new Map<string, string>(),
      jobs: jobs(),
      compactionInstructions: () => SUMMARISE,
      hooks: simulatedHooks(process),
    }),
    newSessionId: () => SESSION_ID,
    random: () => world.choices.share(),
    report: (fault) => {
      if (!process.isDead && !isExpected(fault))
        world.violate('known-end', `a fault was reported: ${fault.stack ?? fault.message}`);
    },
  });
  return { runtime, opened: () => opened };
};

/** Commands in the background: only a list. */
const jobs = (): Jobs => {
  const list: Job[] = [];
  return {
    add: (start) => {
      const job = start(`job-${list.length + 1}`);
      list.push(job);
      return job;
    },
    restore: (job) => void list.push(job),
    get: (jobId) => list.find((job) => job.jobId === jobId),
    list: () => list,
  };
};

/** Records refused writes and used reserved space: afterwards nothing may happen. */
const watchJournal = (process: SimulatedProcess, journal: Journal): Journal => ({
  ...journal,
  // The copy above has the values of now; these two change.
  get seq() {
    return journal.seq;
  },
  get full() {
    return journal.full ?? null;
  },
  append: async (drafts) => {
    process.isAppending = true;
    // after the events have their times, before their timers start
    disturbClock(process, drafts.at(-1)?.state ?? null);
    try {
      await journal.append(drafts);
      // `full`: the disk is full, and the entries are in the space that was reserved.
      if ((journal.full ?? null) === null) return;
      process.hasUsedReserve = true;
      process.world.noteSituation('entries in reserved space');
    } catch (error) {
      process.hasFailedToWrite = true;
      if (!process.isDead) await checkRefusal(process, journal, drafts, error);
      throw error;
    } finally {
      process.isAppending = false;
    }
  },
});

/** Checks that a failed journal takes no more entries, and had used its reserved space. */
const checkRefusal = async (
  { world }: SimulatedProcess,
  journal: Journal,
  drafts: Parameters<Journal['append']>[0],
  error: unknown,
): Promise<void> => {
  const isFull = error instanceof Error && errorCode(error.cause) === 'ENOSPC';
  if (isFull && reservedBytes(world) > 0)
    world.violate('reserve-is-used', 'entries were refused, and reserved space was not given back');
  const isTaken = await journal.append(drafts).then(
    () => true,
    () => false,
  );
  if (isTaken)
    world.violate('no-effect-after-failed-write', 'the journal takes entries after a failed write');
};

const watchStore = (
  process: SimulatedProcess,
  folder: string,
  onOpened: (state: State) => void,
): JournalStore => {
  // More often than usual, so that short sessions have snapshots and state checks, too.
  const snapshots = { every: 10, later: (work: () => void) => void process.after(1, work) };
  const store = fileJournals({ folder, checkEvery: 8, snapshots });
  return {
    ...store,
    create: async (header: Header) => watchJournal(process, await store.create(header)),
    open: async (sessionId) => {
      // The first entry that was read again. Those before it were in a snapshot (a stored state).
      let first = Number.POSITIVE_INFINITY;
      const visit = ({ seq }: { readonly seq: number }): void => {
        first = Math.min(first, seq);
      };
      const opened = await store.open(sessionId, { visit, visitLast: 0 });
      if (opened.journal.seq > 0 && first > 1)
        process.world.noteSituation('resume from a snapshot');
      checkReplay(process.world, opened.journal.seq, opened.state);
      recordUnacknowledged(process.world, unacknowledgedIn(process.world, opened.journal.seq));
      if (opened.tornTail !== null) process.world.noteSituation('torn tail');
      onOpened(opened.state);
      return { ...opened, journal: watchJournal(process, opened.journal) };
    },
  };
};

/** EPIPE is a closed watcher: the session continues without it. */
const isExpected = (fault: Error): boolean => fault.message.startsWith('EPIPE');

/** A watcher whose output is closed. */
export const closedOutput = (world: World) => (): void => {
  world.noteSituation('EPIPE at a watcher');
  throw new Error('EPIPE: nobody reads this any more');
};
