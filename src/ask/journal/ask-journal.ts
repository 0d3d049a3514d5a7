import { type FileJournalOptions, fileJournalsOf } from '../../journal/file-store.js';
import { fingerprintOf, type JournaledMachine } from '../../journal/journaled-machine.js';
import type { InspectableStore } from '../../journal/read/inspect.js';
import type { AskTypes } from '../ports.js';
import { codeMode } from '../run/machine.js';
import { stepTreeUnchecked } from '../tree/step-tree.js';
import { initialTree } from '../tree/tree-state.js';
import { createTreeCheck } from './tree-check.js';

/** The code mode machine for the journal: one journal holds a whole tree of runs. */
export const askMachine: JournaledMachine<AskTypes> = {
  kind: 'ask',
  initialState: initialTree,
  // Events in a journal were checked when they were written.
  step: stepTreeUnchecked,
  fingerprint: fingerprintOf(codeMode.edges),
  isAtRest: ({ name }) => name !== 'Running',
  createCheck: createTreeCheck,
};

/** A store that keeps the journals of code mode as files under `folder`, beside the agent's sessions. */
export const fileAskJournals = (options: FileJournalOptions): InspectableStore<AskTypes> =>
  fileJournalsOf(askMachine, options);
