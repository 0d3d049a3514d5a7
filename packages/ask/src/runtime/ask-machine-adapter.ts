import type { MachineAdapter } from '@pawl/agent/session/machine-adapter-type';
import type { AskTypes } from '../environment-and-journal-types.js';
import { stepTree } from '../tree/step-tree.js';

/** Adapts the tree to journaled sessions: every event is journaled at once, and none is delayed. */
export const askAdapter: MachineAdapter<AskTypes> = {
  step: stepTree,
  isVolatile: () => false,
  keep: (kept) => kept,
  holds: () => false,
  startOf: () => null,
};
