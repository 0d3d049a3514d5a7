import type { AskTypes } from '../needs-recursive.js';
import { codeMode } from '../recursive/machine.js';
import { stepTree } from '../recursive/tree.js';
import { initialTree } from '../recursive/tree-state.js';
import { type FileJournalOptions, fileJournalsOf } from './file.js';
import type { InspectableStore } from './inspection.js';
import { fingerprintOf, type Machine } from './machine.js';
import { createTreeCheck } from './tree-check.js';

/** Code mode as journals see it: one journal for a tree of runs. */
export const askMachine: Machine<AskTypes> = {
  kind: 'ask',
  initialState: initialTree,
  step: stepTree,
  fingerprint: fingerprintOf(codeMode.edges),
  isAtRest: ({ name }) => name !== 'Running',
  createCheck: createTreeCheck,
};

/** Runs of code mode as files under `folder`, beside the agent's sessions. */
export const fileAskJournals = (options: FileJournalOptions): InspectableStore<AskTypes> =>
  fileJournalsOf(askMachine, options);
