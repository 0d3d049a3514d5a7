/**
 * The whole machine. Each state has one row, in the order in which its parts run:
 * 1. `entry` runs when the state is entered.
 * 2. `always` has branches without an event. A transient state has only these; a resting one tries
 *    them on entry and after each event that stays, those of `alwaysOnEntry` on entry only.
 * 3. `rest` runs when no branch applies.
 * 4. `on` has a cell for each event (or `defaults` below has it): a missing cell does not compile.
 *    The first branch whose guard holds is taken.
 * 5. `exit` runs when the state is left.
 * A branch: `when` its guard holds, the machine goes `to` a state (the same one is left and entered
 * again; `stay`: it is not), the arrow is called `as`, the move `then` computes state and actions.
 * `late`: the event came too late and changes nothing; `fault`: the runtime broke the protocol.
 * `cancelled(f)`, `exceeded(f)`: f ends the work of a stopped turn. Shared cells come first.
 */

import { fault, late } from '@pawl/machine/kernel/table';
import * as tools from './moves/batch-events.js';
import * as budget from './moves/budget.js';
import * as compaction from './moves/compaction.js';
import * as hooks from './moves/hooks.js';
import * as reply from './moves/reply.js';
import * as request from './moves/request.js';
import * as retry from './moves/retry.js';
import * as rewind from './moves/rewind.js';
import * as session from './moves/shutdown-and-resume.js';
import * as stop from './moves/stop.js';
import { cancelled, exceeded, isStopping, isStoppingAtLimit, isTurnLimit } from './moves/stop.js';
import { startBatch } from './moves/tool-batch.js';
import * as turn from './moves/turn.js';
import type { AgentTable } from './names.js';

const IS_OPEN = late('the session is open already');
const NOT_OPEN = late('the session has not been opened');
const IS_OVER = late('the session is over');
const BUSY = late('a turn is running');
const REWINDS = late('files are being taken back; it takes a moment');
const NO_TOOLS = late('no tool is running');
const NO_APPROVAL = late('no call awaits approval');
const NOT_WAITING = late('nothing is waiting for a retry');
const NO_TIMER = late('stale: the wait was already over');
const STALE_REPLY = late('stale: it belongs to an old request');
const STALE_HOOK = late('stale: it belongs to an old hook');
/** Only usage counts. */
const STALE = { stay: request.countStale };
const EDIT = { stay: turn.editQueue };
const RAISE = { stay: budget.raiseLimit };
const OTHER_REQUEST = { when: request.isStaleMeasure, stay: request.ignoreMeasure };
const PAID = { when: request.isPaid, stay: request.reserve };
/** From before the session was opened last. */
const OLD_EPOCH = { when: session.isOldEpoch, stay: session.ignoreEpoch };

const noDelta = { TextDelta: STALE_REPLY, ReasoningDelta: STALE_REPLY, ToolCallDelta: STALE_REPLY };
const noModelCall = {
  ...noDelta,
  LlmCompleted: STALE,
  LlmFailed: STALE,
  PolicyStopped: STALE_REPLY,
};
const noTools = {
  CancelTool: NO_TOOLS,
  ApprovalAnswered: NO_APPROVAL,
  CallPreviewed: NO_APPROVAL,
  ToolStarted: NO_TOOLS,
  ToolProgress: NO_TOOLS,
  ToolCompleted: STALE,
  ToolsFailed: NO_TOOLS,
};
const noHook = { HookPrepared: STALE_HOOK, HookCompleted: STALE, HookFailed: STALE_HOOK };
const noCompaction = { CompactionCompleted: STALE, CompactionFailed: STALE };
const noWork = { ...noModelCall, ...noTools, ...noHook, ...noCompaction };
const sessionIsNew = { RetryLast: NOT_OPEN, CompactRequested: NOT_OPEN, InputFailed: NOT_OPEN };
const noTimer = { RetryNow: NOT_WAITING, TimerFired: NO_TIMER };
const turnRuns = {
  Start: IS_OPEN,
  UserInput: { stay: turn.queueInput },
  RetryLast: BUSY,
  EditQueue: EDIT,
  CompactRequested: BUSY,
  ApproveBudget: RAISE,
  InputFailed: fault('input is read only between turns'),
};
const sessionIsOver = {
  Start: IS_OVER,
  RetryLast: IS_OVER,
  RetryNow: IS_OVER,
  CancelTurn: IS_OVER,
  EditQueue: IS_OVER,
  CompactRequested: IS_OVER,
  ApproveBudget: IS_OVER,
  SettingsChanged: IS_OVER,
  InputFailed: IS_OVER,
  TimerFired: IS_OVER,
};

export const table: AgentTable = {
  states: {
    Ready: {
      on: {
        ...sessionIsNew,
        ...noTimer,
        ...noWork,
        Start: { to: 'WaitingForUserInput', then: turn.startSession },
        UserInput: [
          { when: turn.isBlank, stay: turn.queueInput },
          { to: 'WaitingForUserInput', then: turn.releaseInput },
        ],
        CancelTurn: late('no turn is running'),
        EditQueue: EDIT,
        ApproveBudget: RAISE,
      },
    },

    WaitingForUserInput: {
      entry: budget.stopClock,
      always: [
        { when: turn.sessionLimitReached, to: 'WaitingForUserInput', then: turn.holdForBudget },
        { when: turn.fellBack, to: 'WaitingForUserInput', then: turn.returnToPrimary },
        { when: turn.windowIsFilling, to: 'Compacting', as: 'idle', then: turn.compactFirst },
        { when: turn.turnIsReleased, to: 'CallingLlm', as: 'user', then: turn.beginTurn },
      ],
      rest: turn.promptForInput,
      on: {
        ...noTimer,
        ...noWork,
        Start: IS_OPEN,
        UserInput: [
          { when: turn.isBlank, to: 'WaitingForUserInput', then: turn.ignoreBlank },
          { to: 'WaitingForUserInput', then: turn.releaseInput },
        ],
        RetryLast: [
          { when: turn.lastIsUsers, to: 'WaitingForUserInput', then: turn.releaseAgain },
          { to: 'WaitingForUserInput', then: turn.nothingToRetry },
        ],
        CancelTurn: { to: 'WaitingForUserInput', then: turn.nothingToCancel },
        EditQueue: EDIT,
        CompactRequested: [
          { when: turn.canCompact, to: 'Compacting', as: 'idle', then: compaction.compactNow },
          { to: 'WaitingForUserInput', then: turn.nothingToCompact },
        ],
        ApproveBudget: [
          { when: turn.isNoLimit, to: 'WaitingForUserInput', then: turn.refuseLimit },
          { when: turn.queueWaitsForBudget, to: 'WaitingForUserInput', then: turn.approveAndSend },
          {
            when: turn.conversationWaitsForBudget,
            to: 'WaitingForUserInput',
            then: turn.approveAndOfferRetry,
          },
          { to: 'WaitingForUserInput', then: turn.approveLimit },
        ],
        InputFailed: { to: 'Failed', then: turn.failInput },
        RewindRequested: [
          { when: rewind.isImpossible, stay: rewind.refuseRewind },
          { when: rewind.changesFiles, to: 'Rewinding', then: rewind.beginRewind },
          { to: 'WaitingForUserInput', then: rewind.replaceConversation },
        ],
        Resumed: [OLD_EPOCH, { stay: session.goOnWaiting }],
      },
    },

    CallingLlm: {
      alwaysOnEntry: [
        { when: budget.sessionIsSpent, to: 'BudgetExceeded', then: budget.stopBeforeCall },
      ],
      rest: request.sendCall,
      on: {
        ...turnRuns,
        ...noTools,
        ...noHook,
        ...noCompaction,
        RetryNow: NOT_WAITING,
        CancelTurn: [
          { when: stop.mustDrain, stay: stop.drain },
          { when: isStoppingAtLimit, to: 'BudgetExceeded', then: exceeded(stop.stopReply) },
          { to: 'Cancelled', then: cancelled(stop.stopReply) },
        ],
        TextDelta: [
          { when: reply.isStaleReply, stay: reply.ignoreOldReply },
          { stay: reply.showDelta },
        ],
        ReasoningDelta: [
          { when: reply.isStaleReply, stay: reply.ignoreOldReply },
          { stay: reply.showOnly },
        ],
        ToolCallDelta: [
          { when: reply.isStaleReply, stay: reply.ignoreOldReply },
          { stay: reply.showOnly },
        ],
        LlmCompleted: [
          { when: reply.isStaleReply, stay: request.countStale },
          {
            when: reply.drainedInVainAtLimit,
            to: 'BudgetExceeded',
            then: exceeded(reply.keepDrained),
          },
          { when: reply.drainedInVain, to: 'Cancelled', then: cancelled(reply.keepDrained) },
          { when: reply.emptyMayRetry, to: 'Error', then: retry.waitAfterEmpty },
          { to: 'ProcessingLlmResponse', then: reply.readReply },
        ],
        LlmFailed: [
          { when: reply.isStaleReply, stay: request.countStale },
          { when: isStoppingAtLimit, to: 'BudgetExceeded', then: exceeded(stop.keepFailedDrain) },
          { when: isStopping, to: 'Cancelled', then: cancelled(stop.keepFailedDrain) },
          {
            when: retry.overflowMayCompact,
            to: 'Compacting',
            as: 'overflow',
            then: retry.compactOverflow,
          },
          {
            when: retry.mayCutResults,
            to: 'CallingLlm',
            as: 'toolResults',
            then: retry.sendCutResults,
          },
          { when: retry.inputOverflowed, to: 'Failed', then: retry.giveBackInput },
          { when: retry.mayRetry, to: 'Error', then: retry.waitToRetry },
          { when: retry.pictureIsRefused, to: 'CallingLlm', then: retry.sendWithoutPictures },
          { when: retry.mayFallBack, to: 'CallingLlm', as: 'fallback', then: retry.fallBack },
          { to: 'Failed', then: retry.giveUp },
        ],
        PolicyStopped: [
          { when: reply.isStaleReply, stay: reply.ignoreOldReply },
          { to: 'Cancelled', then: stop.stopForPolicy },
        ],
        RequestMeasured: [OTHER_REQUEST, PAID, { to: 'BudgetExceeded', then: request.stopUnpaid }],
        TimerFired: [
          { when: stop.isOtherTimer, stay: stop.ignoreTimer },
          { when: isStopping, stay: stop.ignoreSecondLimit },
          { when: stop.mustDrain, stay: stop.drain },
          { to: 'BudgetExceeded', then: exceeded(stop.stopReply) },
        ],
        Resumed: [
          OLD_EPOCH,
          { when: isStoppingAtLimit, to: 'BudgetExceeded', then: exceeded(session.endDrain) },
          { when: isStopping, to: 'Cancelled', then: cancelled(session.endDrain) },
          { to: 'CallingLlm', then: session.sendSame },
        ],
      },
    },

    Error: {
      on: {
        ...turnRuns,
        ...noWork,
        RetryNow: { to: 'CallingLlm', then: retry.tryAgain },
        CancelTurn: { to: 'Cancelled', then: cancelled(stop.stopRetrying) },
        TimerFired: [
          { when: retry.isRetryTimer, to: 'CallingLlm', then: retry.tryAgain },
          { when: isTurnLimit, to: 'BudgetExceeded', then: exceeded(stop.stopRetrying) },
          { stay: stop.ignoreTimer },
        ],
        Resumed: [OLD_EPOCH, { stay: session.goOnRetrying }],
      },
      exit: stop.cancelRetryTimer,
    },

    ProcessingLlmResponse: {
      always: [
        { when: reply.malformed, to: 'Failed', then: reply.refuseReply },
        { when: reply.hasCalls, to: 'ToolUseRequested', then: reply.storeCalls },
        { when: reply.refusedWithCalls, to: 'EndOfTurn', then: reply.endRefused },
        { when: reply.saidNothing, to: 'EndOfTurn', then: reply.endEmpty },
        { to: 'EndOfTurn', then: reply.endWithText },
      ],
    },

    EndOfTurn: {
      always: [
        { when: turn.nextTurnWaits, to: 'WaitingForUserInput', then: turn.endTurnAndBeginNext },
        { when: budget.sessionIsSpent, to: 'WaitingForUserInput', then: turn.endTurnAtLimit },
        { to: 'WaitingForUserInput', then: turn.endTurn },
      ],
    },

    ToolUseRequested: { always: { to: 'CheckingForCancellation', then: reply.passOn } },

    CheckingForCancellation: {
      always: [
        { when: isStoppingAtLimit, to: 'BudgetExceeded', then: exceeded(reply.answerStopped) },
        { when: isStopping, to: 'Cancelled', then: cancelled(reply.answerStopped) },
        { to: 'ExecutingTools', then: startBatch },
      ],
    },

    ExecutingTools: {
      always: [
        { when: tools.stoppedAtLimit, to: 'BudgetExceeded', then: exceeded(tools.settleStopped) },
        { when: tools.stoppedTurn, to: 'Cancelled', then: cancelled(tools.settleStopped) },
        { when: tools.stoppedForApproval, to: 'Cancelled', then: tools.settleUnapproved },
        {
          when: tools.allCallsEnded,
          to: 'PostToolsHook',
          as: 'CheckingGitCommits',
          then: tools.settle,
        },
      ],
      on: {
        ...turnRuns,
        ...noModelCall,
        ...noHook,
        ...noCompaction,
        RetryNow: NOT_WAITING,
        CancelTurn: [
          { when: tools.isCancelling, stay: tools.forceBatch },
          { stay: tools.stopBatch },
        ],
        CancelTool: [
          { when: tools.cancelsWaiting, stay: tools.cancelWaitingCall },
          { when: tools.cancelsAgain, stay: tools.forceCancelledCall },
          { when: tools.cancelsRunning, stay: tools.cancelRunningCall },
          { stay: tools.ignoreCancel },
        ],
        ApprovalAnswered: [
          { when: tools.isAwaiting, stay: tools.takeAnswer },
          { when: tools.acceptsPlan, stay: tools.acceptPlan },
          { when: tools.isQuestion, stay: tools.takeReply },
          { stay: tools.ignoreAnswer },
        ],
        CallPreviewed: [
          { when: tools.isPreviewing, stay: tools.takePreview },
          { stay: tools.ignorePreview },
        ],
        ToolStarted: [
          { when: tools.isStarting, stay: tools.markRunning },
          { stay: tools.ignoreStart },
        ],
        ToolProgress: [
          { when: tools.isRunningCall, stay: tools.showProgress },
          { stay: tools.ignoreProgress },
        ],
        ToolCompleted: [
          { when: tools.isRunningCall, stay: tools.recordOutcome },
          { stay: tools.countLate },
        ],
        ToolsFailed: [
          { when: tools.isOtherBatch, stay: request.countStale },
          { to: 'Failed', then: tools.failBatch },
        ],
        TimerFired: [
          { when: tools.isBatchGrace, stay: tools.forceBatch },
          { when: tools.isCallGrace, stay: tools.forceLateCall },
          { when: tools.limitWhileCancelling, stay: stop.ignoreSecondLimit },
          { when: isTurnLimit, stay: tools.stopBatch },
          { stay: stop.ignoreTimer },
        ],
        Resumed: [
          OLD_EPOCH,
          { when: tools.isCancelling, stay: session.endBatch },
          { stay: session.goOnWithBatch },
        ],
      },
      exit: tools.cancelGraceTimers,
    },

    PostToolsHook: {
      alwaysOnEntry: [{ when: hooks.hookNotWanted, to: 'CheckingBudget', then: hooks.skipHook }],
      rest: hooks.runHook,
      on: {
        ...turnRuns,
        ...noModelCall,
        ...noTools,
        ...noCompaction,
        RetryNow: NOT_WAITING,
        CancelTurn: { to: 'Cancelled', then: cancelled(stop.stopHook) },
        HookPrepared: [
          { when: hooks.isStaleHook, stay: hooks.ignorePrepared },
          { stay: hooks.recordPrepared },
        ],
        RequestMeasured: [OTHER_REQUEST, PAID, { stay: request.refuseSideRequest }],
        HookCompleted: [
          { when: hooks.isStaleHook, stay: request.countStale },
          { when: hooks.vetoed, to: 'Cancelled', then: hooks.stopForVeto },
          {
            when: hooks.formatterIsDue,
            to: 'PostToolsHook',
            as: 'RunningAutoformatters',
            then: hooks.formatNext,
          },
          {
            when: hooks.commitIsDue,
            to: 'PostToolsHook',
            as: 'AutoCommitting',
            then: hooks.commitNext,
          },
          { to: 'CheckingBudget', then: hooks.finishHooks },
        ],
        HookFailed: [
          { when: hooks.isStaleHook, stay: request.countStale },
          {
            when: hooks.commitIsDueAnyway,
            to: 'PostToolsHook',
            as: 'AutoCommitting',
            then: hooks.commitAfterFailure,
          },
          { to: 'CheckingBudget', then: hooks.goOnWithoutHook },
        ],
        TimerFired: [
          { when: isTurnLimit, to: 'BudgetExceeded', then: exceeded(stop.stopHook) },
          { stay: stop.ignoreTimer },
        ],
      },
    },

    CheckingBudget: {
      entry: budget.countRound,
      always: [
        { when: budget.mayFinish, to: 'GatheringAdditionalMessages', then: budget.askToFinish },
        { when: budget.limitReached, to: 'BudgetExceeded', then: budget.exceedBudget },
        { to: 'GatheringAdditionalMessages', then: budget.warnOfBudget },
      ],
    },

    GatheringAdditionalMessages: {
      entry: compaction.gatherSteers,
      always: [
        {
          when: compaction.aboveMidThreshold,
          to: 'Compacting',
          as: 'mid',
          then: compaction.compactMidTurn,
        },
        { to: 'CallingLlm', as: 'toolResults', then: compaction.sendResults },
      ],
    },

    Compacting: {
      alwaysOnEntry: [
        { when: budget.sessionIsSpent, to: 'BudgetExceeded', then: budget.stopBeforeCall },
      ],
      rest: compaction.startCompaction,
      on: {
        ...turnRuns,
        ...noModelCall,
        ...noTools,
        ...noHook,
        RetryNow: NOT_WAITING,
        CancelTurn: { to: 'Cancelled', then: cancelled(stop.stopCompaction) },
        TimerFired: [
          { when: isTurnLimit, to: 'BudgetExceeded', then: exceeded(stop.stopCompaction) },
          { stay: stop.ignoreTimer },
        ],
        CompactionCompleted: [
          { when: compaction.isStaleCompaction, stay: request.countStale },
          {
            when: compaction.beforeTurn,
            to: 'WaitingForUserInput',
            then: compaction.returnCompacted,
          },
          { to: 'CallingLlm', then: compaction.sendCompacted },
        ],
        CompactionFailed: [
          { when: compaction.isStaleCompaction, stay: request.countStale },
          {
            when: compaction.beforeWaitingTurn,
            to: 'WaitingForUserInput',
            then: compaction.goOnUncompacted,
          },
          {
            when: compaction.midTurnAndFits,
            to: 'CallingLlm',
            as: 'toolResults',
            then: compaction.sendUncompacted,
          },
          { to: 'Failed', then: compaction.failCompaction },
        ],
        RequestMeasured: [OTHER_REQUEST, PAID, { to: 'BudgetExceeded', then: request.stopUnpaid }],
        Resumed: [OLD_EPOCH, { to: 'Compacting', then: session.compactSame }],
      },
    },

    Rewinding: {
      rest: rewind.restoreFiles,
      on: {
        ...turnRuns,
        ...noTimer,
        ...noWork,
        RetryLast: REWINDS,
        CancelTurn: REWINDS,
        CompactRequested: REWINDS,
        Rewound: [
          { when: rewind.isOtherRewind, stay: rewind.ignoreRewound },
          { to: 'WaitingForUserInput', then: rewind.finishRewind },
        ],
        Resumed: [OLD_EPOCH, { to: 'Rewinding', then: session.rewindSame }],
      },
    },

    Cancelled: {
      always: [
        { when: stop.queueGoesOn, to: 'WaitingForUserInput', then: stop.returnAndSendQueue },
        { when: stop.queueGoesBack, to: 'WaitingForUserInput', then: stop.returnAndRestoreQueue },
        { to: 'WaitingForUserInput', then: stop.returnCancelled },
      ],
    },

    BudgetExceeded: { always: { to: 'WaitingForUserInput', then: budget.stopForBudget } },

    Failed: { always: { to: 'WaitingForUserInput', then: stop.returnFailed } },

    ShuttingDown: {
      entry: budget.stopClock,
      rest: session.sayGoodbye,
      on: {
        ...noWork,
        ...sessionIsOver,
        UserInput: { stay: session.keepInput },
        ShutdownRequested: { stay: session.sayGoodbye },
        Resumed: [OLD_EPOCH, { to: 'WaitingForUserInput', then: session.openAgain }],
      },
    },
  },

  /** For every resting state without a cell of its own. */
  defaults: {
    ShutdownRequested: { to: 'ShuttingDown', then: session.shutDown },
    SettingsChanged: { stay: session.changeSettings },
    UsageReported: { stay: request.countReported },
    RequestMeasured: { stay: request.ignoreMeasure },
    UserHooksRan: { stay: hooks.hearHooks },
    CheckpointTaken: { stay: rewind.noteCheckpoint },
    RewindRequested: { stay: rewind.ignoreRewind },
    Rewound: { stay: rewind.ignoreRewound },
    Resumed: { stay: session.goOn },
  },
};
