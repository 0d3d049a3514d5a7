import { late } from '../kernel/table.js';
import * as cells from './cells.js';
import { countReported, countStale } from './moves/account.js';
import { startBatch } from './moves/batch.js';
import * as budget from './moves/budget.js';
import * as cancel from './moves/cancel.js';
import * as compaction from './moves/compaction.js';
import * as hooks from './moves/hooks.js';
import { isBlank, queueInput } from './moves/queue.js';
import * as reply from './moves/reply.js';
import * as resume from './moves/resume.js';
import * as retry from './moves/retry.js';
import { changeSettings } from './moves/settings.js';
import * as settle from './moves/settle.js';
import * as shutdown from './moves/shutdown.js';
import * as stop from './moves/stop.js';
import * as tools from './moves/tools.js';
import * as turn from './moves/turn.js';
import { passing } from './passing.js';
import type { AgentTable } from './spec.js';

/** The whole machine: every resting state against every event. First match wins; a missing cell does not compile. */
export const table: AgentTable = {
  on: {
    Ready: {
      ...cells.notOpen,
      ...cells.noWait,
      ...cells.noCall,
      ...cells.noTools,
      ...cells.noHook,
      ...cells.noCompaction,
      Start: { to: 'WaitingForUserInput', then: turn.startSession },
      UserInput: [
        { when: isBlank, stay: queueInput },
        { to: 'WaitingForUserInput', then: turn.releaseInput },
      ],
      CancelTurn: late('no turn is running'),
      EditQueue: cells.EDIT,
      ApproveBudget: cells.RAISE,
    },

    WaitingForUserInput: {
      ...cells.noWait,
      ...cells.noCall,
      ...cells.noTools,
      ...cells.noHook,
      ...cells.noCompaction,
      Start: cells.OPEN,
      UserInput: [
        { when: isBlank, to: 'WaitingForUserInput', then: turn.ignoreBlank },
        { to: 'WaitingForUserInput', then: turn.releaseInput },
      ],
      RetryLast: [
        { when: turn.lastIsUsers, to: 'WaitingForUserInput', then: turn.releaseAgain },
        { to: 'WaitingForUserInput', then: turn.nothingToRetry },
      ],
      CancelTurn: { to: 'WaitingForUserInput', then: turn.nothingToCancel },
      EditQueue: cells.EDIT,
      CompactRequested: [
        { when: turn.canCompact, to: 'Compacting', as: 'idle', then: compaction.compactNow },
        { to: 'WaitingForUserInput', then: turn.nothingToCompact },
      ],
      ApproveBudget: [
        { when: turn.isNoLimit, to: 'WaitingForUserInput', then: turn.refuseLimit },
        { when: turn.queueWaitsForBudget, to: 'WaitingForUserInput', then: turn.approveAndSend },
        { when: turn.conversationWaitsForBudget, to: 'WaitingForUserInput', then: turn.approveAndOfferRetry },
        { to: 'WaitingForUserInput', then: turn.approveLimit },
      ],
      InputFailed: { to: 'Failed', then: turn.failInput },
      Resumed: [cells.OLD_EPOCH, { stay: resume.goOnWaiting }],
    },

    CallingLlm: {
      ...cells.inTurn,
      ...cells.noTools,
      ...cells.noHook,
      ...cells.noCompaction,
      RetryNow: cells.NOT_WAITING,
      CancelTurn: [
        { when: stop.mustDrain, stay: stop.drainForUser },
        { when: stop.isDrainingByTime, to: 'BudgetExceeded', then: stop.stopReplyForTime },
        { to: 'Cancelled', then: stop.stopReply },
      ],
      TextDelta: [{ when: retry.isStaleReply, stay: reply.ignoreOldReply }, { stay: reply.showDelta }],
      ReasoningDelta: [{ when: retry.isStaleReply, stay: reply.ignoreOldReply }, { stay: reply.showOnly }],
      ToolCallDelta: [{ when: retry.isStaleReply, stay: reply.ignoreOldReply }, { stay: reply.showOnly }],
      LlmCompleted: [
        { when: retry.isStaleReply, stay: countStale },
        { when: reply.drainedByTime, to: 'BudgetExceeded', then: reply.keepDrainedForTime },
        { when: reply.drainedByUser, to: 'Cancelled', then: reply.keepDrained },
        { when: reply.emptyMayRetry, to: 'Error', then: retry.waitAfterEmpty },
        { to: 'ProcessingLlmResponse', then: reply.readReply },
      ],
      LlmFailed: [
        { when: retry.isStaleReply, stay: countStale },
        { when: stop.isDrainingByTime, to: 'BudgetExceeded', then: stop.keepFailedDrainForTime },
        { when: stop.isDraining, to: 'Cancelled', then: stop.keepFailedDrain },
        { when: retry.overflowMayCompact, to: 'Compacting', as: 'overflow', then: retry.compactOverflow },
        { when: retry.mayCutResults, to: 'CallingLlm', as: 'toolResults', then: retry.sendCutResults },
        { when: retry.inputOverflowed, to: 'Failed', then: retry.giveBackInput },
        { when: retry.mayRetry, to: 'Error', then: retry.waitToRetry },
        { to: 'Failed', then: retry.giveUp },
      ],
      PolicyStopped: [
        { when: retry.isStaleReply, stay: reply.ignoreOldReply },
        { to: 'Cancelled', then: stop.stopForPolicy },
      ],
      TimerFired: [
        { when: stop.drainedByLimit, stay: cancel.ignoreSecondLimit },
        { when: stop.limitMustDrain, stay: stop.drainForTime },
        { when: stop.isTurnLimit, to: 'BudgetExceeded', then: stop.stopReplyForTime },
        { stay: stop.ignoreTimer },
      ],
      Resumed: [
        cells.OLD_EPOCH,
        { when: stop.isDrainingByTime, to: 'BudgetExceeded', then: resume.endDrainForTime },
        { when: stop.isDraining, to: 'Cancelled', then: resume.endDrain },
        { stay: resume.sendSame },
      ],
    },

    Error: {
      ...cells.inTurn,
      ...cells.noCall,
      ...cells.noTools,
      ...cells.noHook,
      ...cells.noCompaction,
      RetryNow: { to: 'CallingLlm', then: retry.tryAgain },
      CancelTurn: { to: 'Cancelled', then: stop.stopRetrying },
      TimerFired: [
        { when: retry.isRetryTimer, to: 'CallingLlm', then: retry.tryAgain },
        { when: stop.isTurnLimit, to: 'BudgetExceeded', then: stop.stopRetryingForTime },
        { stay: stop.ignoreTimer },
      ],
    },

    ExecutingTools: {
      ...cells.inTurn,
      ...cells.noCall,
      ...cells.noHook,
      ...cells.noCompaction,
      RetryNow: cells.NOT_WAITING,
      CancelTurn: [{ when: cancel.isCancelling, stay: cancel.forceBatch }, { stay: cancel.stopBatchForUser }],
      CancelTool: [
        { when: cancel.cancelsWaiting, stay: cancel.cancelWaitingCall },
        { when: cancel.cancelsAgain, stay: cancel.forceCancelledCall },
        { when: cancel.cancelsRunning, stay: cancel.cancelRunningCall },
        { stay: cancel.ignoreCancel },
      ],
      ApprovalAnswered: [{ when: tools.isAwaiting, stay: tools.takeAnswer }, { stay: tools.ignoreAnswer }],
      ToolStarted: [{ when: tools.isStarting, stay: tools.markRunning }, { stay: tools.ignoreStart }],
      ToolProgress: [{ when: tools.isRunningCall, stay: tools.showProgress }, { stay: tools.ignoreProgress }],
      ToolCompleted: [
        { when: tools.isRunningCall, stay: tools.recordOutcome },
        { stay: tools.countLateOutcome },
      ],
      ToolsFailed: [
        { when: settle.isOtherBatch, stay: countStale },
        { to: 'Failed', then: settle.failBatch },
      ],
      TimerFired: [
        { when: cancel.isBatchGrace, stay: cancel.forceBatch },
        { when: cancel.isCallGrace, stay: cancel.forceLateCall },
        { when: cancel.limitWhileCancelling, stay: cancel.ignoreSecondLimit },
        { when: stop.isTurnLimit, stay: cancel.stopBatchForTime },
        { stay: stop.ignoreTimer },
      ],
      Resumed: [
        cells.OLD_EPOCH,
        { when: cancel.isCancelling, stay: resume.endBatch },
        { stay: resume.goOnWithBatch },
      ],
    },

    PostToolsHook: {
      ...cells.inTurn,
      ...cells.noCall,
      ...cells.noTools,
      ...cells.noCompaction,
      RetryNow: cells.NOT_WAITING,
      CancelTurn: { to: 'Cancelled', then: stop.stopHook },
      HookCompleted: [
        { when: hooks.isStaleHook, stay: countStale },
        { when: hooks.vetoed, to: 'Cancelled', then: hooks.stopForVeto },
        {
          when: hooks.formatterIsDue,
          to: 'PostToolsHook',
          as: 'RunningAutoformatters',
          then: hooks.formatNext,
        },
        { when: hooks.commitIsDue, to: 'PostToolsHook', as: 'AutoCommitting', then: hooks.commitNext },
        { to: 'CheckingBudget', then: hooks.finishHooks },
      ],
      HookFailed: [
        { when: hooks.isStaleHook, stay: countStale },
        {
          when: hooks.commitIsDueAnyway,
          to: 'PostToolsHook',
          as: 'AutoCommitting',
          then: hooks.commitAfterFailure,
        },
        { to: 'CheckingBudget', then: hooks.goOnWithoutHook },
      ],
      TimerFired: [
        { when: stop.isTurnLimit, to: 'BudgetExceeded', then: stop.stopHookForTime },
        { stay: stop.ignoreTimer },
      ],
    },

    Compacting: {
      ...cells.inTurn,
      ...cells.noCall,
      ...cells.noTools,
      ...cells.noHook,
      RetryNow: cells.NOT_WAITING,
      CancelTurn: { to: 'Cancelled', then: compaction.cancelCompaction },
      TimerFired: [
        { when: stop.isTurnLimit, to: 'BudgetExceeded', then: compaction.stopCompactionForTime },
        { stay: stop.ignoreTimer },
      ],
      CompactionCompleted: [
        { when: compaction.isStaleCompaction, stay: countStale },
        { when: compaction.beforeTurn, to: 'WaitingForUserInput', then: compaction.returnCompacted },
        { to: 'CallingLlm', then: compaction.sendCompacted },
      ],
      CompactionFailed: [
        { when: compaction.isStaleCompaction, stay: countStale },
        { when: compaction.beforeWaitingTurn, to: 'WaitingForUserInput', then: compaction.goOnUncompacted },
        {
          when: compaction.midTurnAndFits,
          to: 'CallingLlm',
          as: 'toolResults',
          then: compaction.sendUncompacted,
        },
        { to: 'Failed', then: compaction.failCompaction },
      ],
    },

    ShuttingDown: {
      ...cells.noCall,
      ...cells.noTools,
      ...cells.noHook,
      ...cells.noCompaction,
      ...cells.userGone,
      UserInput: { stay: shutdown.keepInput },
      ShutdownRequested: { stay: shutdown.sayGoodbye },
      Resumed: [cells.OLD_EPOCH, { to: 'WaitingForUserInput', then: resume.openAgain }],
    },
  },

  // The four events that have a default row.
  any: {
    ShutdownRequested: { to: 'ShuttingDown', then: shutdown.shutDown },
    SettingsChanged: { stay: changeSettings },
    UsageReported: { stay: countReported },
    Resumed: { stay: resume.goOn },
  },

  // Passed within one step: each takes the first branch that applies.
  transient: {
    ProcessingLlmResponse: [
      { when: reply.malformed, to: 'Failed', then: reply.refuseReply },
      { when: reply.hasCalls, to: 'ToolUseRequested', then: reply.storeCalls },
      { when: reply.refusedWithCalls, to: 'EndOfTurn', then: reply.endRefused },
      { when: reply.saidNothing, to: 'EndOfTurn', then: reply.endEmpty },
      { to: 'EndOfTurn', then: reply.endWithText },
    ],
    EndOfTurn: [
      { when: turn.queueWaits, to: 'WaitingForUserInput', then: turn.endTurnAndSendQueue },
      { when: turn.budgetHoldsQueue, to: 'WaitingForUserInput', then: turn.holdQueueAtLimit },
      { when: turn.endedAtLimit, to: 'WaitingForUserInput', then: turn.endTurnAtLimit },
      { to: 'WaitingForUserInput', then: turn.endTurn },
    ],
    ToolUseRequested: { to: 'CheckingForCancellation', then: reply.passOn },
    CheckingForCancellation: [
      { when: reply.drainedForTime, to: 'BudgetExceeded', then: reply.answerOutOfTime },
      { when: reply.drainedForUser, to: 'Cancelled', then: reply.answerCancelled },
      { to: 'ExecutingTools', then: startBatch },
    ],
    CheckingBudget: [
      { when: budget.mayFinish, to: 'GatheringAdditionalMessages', then: budget.askToFinish },
      { when: budget.limitReached, to: 'BudgetExceeded', then: budget.exceedBudget },
      { to: 'GatheringAdditionalMessages', then: budget.warnOfBudget },
    ],
    GatheringAdditionalMessages: [
      { when: compaction.aboveMidThreshold, to: 'Compacting', as: 'mid', then: compaction.compactMidTurn },
      { to: 'CallingLlm', as: 'toolResults', then: compaction.sendResults },
    ],
    Cancelled: [
      { when: stop.queueGoesOn, to: 'WaitingForUserInput', then: stop.returnAndSendQueue },
      { when: stop.queueGoesBack, to: 'WaitingForUserInput', then: stop.returnAndRestoreQueue },
      { to: 'WaitingForUserInput', then: stop.returnCancelled },
    ],
    BudgetExceeded: { to: 'WaitingForUserInput', then: budget.stopForBudget },
    Failed: { to: 'WaitingForUserInput', then: stop.returnFailed },
  },

  // Resting states that are passed when they have nothing to wait for; what is done on entering, leaving, resting.
  ...passing,
};
