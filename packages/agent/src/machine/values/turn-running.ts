import type { State } from '../state.js';

/**
 * Whether a turn is running: it has begun and has not returned to the user. A compaction before a turn does not count.
 * A new state does not compile until it has a case here.
 */
export const turnRuns = (state: State): boolean => {
  switch (state.name) {
    case 'Ready':
    case 'WaitingForUserInput':
    case 'ShuttingDown':
      return false;
    case 'Compacting':
      return state.mode.kind !== 'idle';
    case 'CallingLlm':
    case 'Error':
    case 'ExecutingTools':
    case 'PostToolsHook':
    case 'ProcessingLlmResponse':
    case 'EndOfTurn':
    case 'ToolUseRequested':
    case 'CheckingForCancellation':
    case 'CheckingBudget':
    case 'GatheringAdditionalMessages':
    case 'Cancelled':
    case 'BudgetExceeded':
    case 'Failed':
      return true;
    default:
      return state satisfies never;
  }
};

/** Whether the program is working: a turn runs, or a compaction before one. */
export const isBusy = (state: State): boolean => turnRuns(state) || state.name === 'Compacting';
