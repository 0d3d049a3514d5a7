import type { State } from '../../agent/state.js';
import { fileJournals } from '../../journal/file-store.js';
import { agentMachine } from '../../journal/read/replay.js';
import type { Header, Journal, JournalStore } from '../../ports/journal.js';
import type { Job, Jobs } from '../../ports/tool.js';
import { createRuntime, type LocalRuntime } from '../../runtime/local-runtime.js';
import { checkReplay, SESSION_ID, unacknowledgedIn } from './checks/journal.js';
import { recordCalls } from './checks/steps.js';
import type { Life } from './life.js';
import { simulatedHooks } from './parts/hooks.js';
import { SUMMARISE, simulatedModel } from './parts/model.js';
import { simulatedTools } from './parts/tools.js';
import type { World } from './world.js';

/** The production runtime, on the ports of one life. */

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

/** Notes when the journal refuses a write, after which nothing may happen any more. */
const watchedJournal = (life: Life, journal: Journal): Journal => ({
  ...journal,
  get seq() {
    return journal.seq;
  },
  append: async (drafts) => {
    try {
      await journal.append(drafts);
    } catch (error) {
      life.hasFailedToWrite = true;
      throw error;
    }
  },
});

export type SimulatedProcess = {
  readonly runtime: LocalRuntime;
  /** The state that the journal led to when it was opened; null before. */
  opened(): State | null;
};

const watchedStore = (life: Life, folder: string, onOpened: (state: State) => void): JournalStore => {
  const store = fileJournals({ folder, checkEvery: 8 });
  return {
    ...store,
    create: async (header: Header) => watchedJournal(life, await store.create(header)),
    open: async (sessionId) => {
      const opened = await store.open(sessionId);
      checkReplay(life.world, opened.journal.seq, opened.state);
      for (const event of unacknowledgedIn(life.world, opened.journal.seq)) recordCalls(life.world, event);
      if (opened.tornTail !== null) life.world.meet('torn tail');
      onOpened(opened.state);
      return { ...opened, journal: watchedJournal(life, opened.journal) };
    },
  };
};

/** EPIPE is the end of a reader of ours: the session goes on without it. */
const isExpected = (fault: Error): boolean => fault.message.startsWith('EPIPE');

export const startProcess = (life: Life, folder: string): SimulatedProcess => {
  const { world } = life;
  let opened: State | null = null;
  const model = simulatedModel(life);
  const runtime = createRuntime({
    journals: watchedStore(life, folder, (state) => {
      opened = state;
      life.state = null;
      life.hasFailedToWrite = false;
    }),
    clock: life.clock,
    machine: agentMachine.fingerprint,
    equip: async () => ({
      model: () => model,
      tools: simulatedTools(life),
      files: new Map<string, string>(),
      jobs: jobs(),
      compactionInstructions: () => SUMMARISE,
      hooks: simulatedHooks(life),
    }),
    newSessionId: () => SESSION_ID,
    random: () => world.choices.share(),
    report: (fault) => {
      if (!life.isDead && !isExpected(fault))
        world.violate('known-end', `a fault was reported: ${fault.stack ?? fault.message}`);
    },
  });
  return { runtime, opened: () => opened };
};

/** A watcher whose output is closed. */
export const closedOutput = (world: World) => (): void => {
  world.meet('EPIPE at a watcher');
  throw new Error('EPIPE: nobody reads this any more');
};
