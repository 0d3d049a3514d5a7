import { type FileJournalOptions, fileJournalsOf } from '@pawl/agent/journal/file-store';
import { fingerprintOf, type JournaledMachine } from '@pawl/agent/journal/journaled-machine';
import type { InspectableStore } from '@pawl/agent/journal/read/read-without-lock';
import type { PastFiles } from '@pawl/agent/machine/file-hashes-from-events';
import type { AskTypes } from '../environment-and-journal-types.js';
import { codeMode } from '../run/machine.js';
import { stepTreeUnchecked } from '../tree/step-tree.js';
import { initialTree } from '../tree/tree-state.js';
import { createTreeCheck } from './hash-tree-state.js';

/** A resumed run needs only the time of its last event. */
const collectPast = (): { see(event: AskTypes['event']): void; past(): PastFiles } => {
  let lastAt: number | null = null;
  return {
    see({ at }) {
      lastAt = at;
    },
    past: () => ({ lastAt, hashes: new Map(), batchId: null, seen: new Map() }),
  };
};

/** As MACHINE_VERSION of the agent. Runs of an earlier version go on; their recorded hashes are not compared. */
const ASK_VERSION = 1;

/** The code mode machine for the journal: one journal holds a whole tree of runs. */
export const askMachine: JournaledMachine<AskTypes> = {
  kind: 'ask',
  initialState: initialTree,
  // Events in a journal were checked when they were written.
  step: stepTreeUnchecked,
  fingerprint: fingerprintOf(codeMode.edges),
  version: ASK_VERSION,
  isAtRest: ({ name }) => name !== 'Running',
  collectPast,
  createCheck: createTreeCheck,
};

/** A store that keeps the journals of code mode as files under `folder`, beside the agent's sessions. */
export const fileAskJournals = (options: FileJournalOptions): InspectableStore<AskTypes> =>
  fileJournalsOf(askMachine, options);
