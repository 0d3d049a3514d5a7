import * as budget from './moves/budget.js';
import { stopClock } from './moves/clock.js';
import * as compaction from './moves/compaction.js';
import * as hooks from './moves/hooks.js';
import * as settle from './moves/settle.js';
import * as shutdown from './moves/shutdown.js';
import * as stop from './moves/stop.js';
import * as turn from './moves/turn.js';
import type { AgentTable } from './spec.js';

/** The part of the table that needs no event. */
export const passing: Pick<AgentTable, 'passed' | 'entry' | 'exit' | 'rest'> = {
  /** Resting states that are passed within the step when they have nothing to wait for. */
  passed: {
    WaitingForUserInput: {
      tried: 'always',
      branches: [
        { when: turn.sessionLimitReached, to: 'WaitingForUserInput', then: turn.holdForBudget },
        { when: turn.windowIsFilling, to: 'Compacting', as: 'idle', then: turn.compactFirst },
        { when: turn.turnIsReleased, to: 'CallingLlm', as: 'user', then: turn.beginTurn },
      ],
    },
    ExecutingTools: {
      tried: 'always',
      branches: [
        { when: settle.cancelledByTime, to: 'BudgetExceeded', then: settle.settleOutOfTime },
        { when: settle.cancelledByUser, to: 'Cancelled', then: settle.settleCancelled },
        { when: settle.stoppedForApproval, to: 'Cancelled', then: settle.settleUnapproved },
        { when: settle.allCallsEnded, to: 'PostToolsHook', as: 'CheckingGitCommits', then: settle.settle },
      ],
    },
    PostToolsHook: {
      tried: 'entry',
      branches: [{ when: hooks.hookNotWanted, to: 'CheckingBudget', then: hooks.skipHook }],
    },
  },
  entry: {
    WaitingForUserInput: stopClock,
    ShuttingDown: stopClock,
    CheckingBudget: budget.countRound,
    GatheringAdditionalMessages: compaction.gatherSteers,
  },
  exit: { Error: stop.cancelRetryTimer, ExecutingTools: settle.cancelGraceTimers },
  rest: {
    WaitingForUserInput: turn.promptForInput,
    PostToolsHook: hooks.runHook,
    ShuttingDown: shutdown.sayGoodbye,
  },
};
