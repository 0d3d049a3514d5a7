/**
 * The actions of the agent's machine: what it asks the runtime to do. session/perform.ts performs
 * each; the event that answers it is listed below, and docs/design/machine.md comes from its list.
 */

import type { ApprovalRequest } from '../policy/approval-question.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { EventType, FailureOrigin, HookEffect } from './event.js';
import type { Image } from './message.js';

/** The message that a model call answers: the user's, or the results of tools. */
export type RequestPurpose = 'user' | 'toolResults';

/** Work after a batch of tools, in this order. */
export type HookPhase = 'CheckingGitCommits' | 'RunningAutoformatters' | 'AutoCommitting';

/** Requests to the runtime: plain JSON, performed in order. Their results come back as events. */
export type Action =
  /** Send the first `length` messages of the conversation. */
  | {
      readonly type: 'SendLlmRequest';
      readonly requestId: string;
      readonly purpose: RequestPurpose;
      readonly length: number;
    }
  | { readonly type: 'AbortLlmRequest'; readonly requestId: string }
  /** Ask the tool what a call would change, before the user is asked. */
  | { readonly type: 'PreviewCall'; readonly batchId: string; readonly call: JudgedCall }
  /** Ask the user whether a call may run. */
  | ApprovalRequest
  /** Ends a preview or a question to the user. */
  | { readonly type: 'WithdrawApproval'; readonly batchId: string; readonly callId: string }
  /** The calls to start now. */
  | {
      readonly type: 'ExecuteTools';
      readonly batchId: string;
      readonly calls: readonly JudgedCall[];
    }
  /** Stop calls: first they are asked to end; with `force` the machine no longer waits for them. */
  | {
      readonly type: 'CancelTools';
      readonly batchId: string;
      readonly callIds: readonly string[];
      readonly force: boolean;
    }
  | {
      readonly type: 'RunHook';
      readonly hookId: string;
      readonly phase: HookPhase;
      /**
       * Mutating calls of the batch that ran, however they ended, in call order. With the setting
       * `hooks` at `mutatingOk` only those that ended ok.
       */
      readonly callIds: readonly string[];
      /**
       * Only after an interruption: the effects that the interrupted run of this phase was about to
       * have.
       */
      readonly interrupted?: readonly HookEffect[];
    }
  | { readonly type: 'AbortHook'; readonly hookId: string }
  /** Summarise the first `length` messages. `instructions`: what the summary must keep. */
  | {
      readonly type: 'StartCompaction';
      readonly compactionId: string;
      readonly length: number;
      readonly instructions?: string;
    }
  | { readonly type: 'AbortCompaction'; readonly compactionId: string }
  /** Change files by a stored plan; what is done already is left as it is. */
  | { readonly type: 'RestoreFiles'; readonly rewindId: string; readonly plan: string }
  /** Post TimerFired after `delayMs`, independent of the clock; `dueAt` is for display. */
  | {
      readonly type: 'ScheduleTimer';
      readonly timerId: string;
      readonly dueAt: number;
      readonly delayMs: number;
    }
  | { readonly type: 'CancelTimer'; readonly timerId: string }
  | { readonly type: 'DisplayText'; readonly text: string }
  | {
      readonly type: 'DisplayToolResult';
      readonly batchId: string;
      readonly callId: string;
      readonly tool: string;
      readonly status: string;
      readonly text: string;
      /** In the words of the tool; absent if it has none. */
      readonly title?: string;
      readonly summary?: string;
      readonly diff: string | null;
    }
  /** `origin`: the source of the failure. */
  | { readonly type: 'DisplayError'; readonly text: string; readonly origin: FailureOrigin }
  | { readonly type: 'DisplayWarning'; readonly kind: WarningKind; readonly text: string }
  | {
      readonly type: 'DisplayNotice';
      readonly kind: NoticeKind;
      readonly text: string;
      /** For `compacted`: the summary that replaces the messages. */
      readonly summary?: string;
    }
  /** Take back the text of the reply that was shown: it is not stored. */
  | { readonly type: 'RetractPartial'; readonly requestId: string }
  /** Give texts back to the editor. `images`: those of each text, if any text has some. */
  | {
      readonly type: 'RestoreQueue';
      readonly texts: readonly string[];
      readonly images?: readonly (readonly Image[])[];
    }
  | { readonly type: 'PromptForInput' }
  | { readonly type: 'Shutdown' };

export type WarningKind =
  | 'retry'
  | 'fallback'
  | 'empty'
  | 'truncated'
  | 'refused'
  | 'stopped'
  | 'callAsText'
  | 'hook'
  | 'objection'
  | 'compaction'
  | 'budget'
  | 'usage'
  | 'effort';
export type NoticeKind =
  | 'queued'
  | 'cancelled'
  | 'budget'
  | 'approveBudget'
  | 'commits'
  | 'formatted'
  | 'nothingToDo'
  | 'retryLast'
  | 'fallback'
  | 'compacted'
  | 'checkpoint'
  | 'rewound'
  | 'hook';
export type ActionType = Action['type'];

/**
 * Which events answer an action. The table in docs/design/machine.md is made from this, and a test
 * walks every arrow of the machine and sees each of them.
 *
 * `last`: exactly one of them ends what the action began, unless it was aborted; of ExecuteTools
 * and CancelTools, one for each call. `before`: any number of them may come before it. `late`: may
 * come after it, or after an abort. All of them but UserInput carry the id of the action.
 */
export type Answers = {
  readonly before: readonly EventType[];
  readonly last: readonly EventType[];
  readonly late: readonly EventType[];
};

const NONE: Answers = { before: [], last: [], late: [] };

/**
 * The events that answer each action. Those without any are for display, take back another one, or
 * end the session (Shutdown).
 */
export const answersTo: Readonly<Record<ActionType, Answers>> = {
  SendLlmRequest: {
    before: ['RequestMeasured', 'TextDelta', 'ReasoningDelta', 'ToolCallDelta', 'UserHooksRan'],
    last: ['LlmCompleted', 'LlmFailed', 'PolicyStopped'],
    late: ['UsageReported'],
  },
  AbortLlmRequest: { ...NONE, late: ['UsageReported'] },
  PreviewCall: { ...NONE, last: ['CallPreviewed'] },
  RequestApproval: { ...NONE, last: ['ApprovalAnswered'] },
  WithdrawApproval: NONE,
  ExecuteTools: {
    before: ['ToolStarted', 'ToolProgress'],
    last: ['ToolCompleted', 'ToolsFailed'],
    late: [],
  },
  CancelTools: { ...NONE, last: ['ToolCompleted'] },
  RunHook: {
    before: ['HookPrepared', 'RequestMeasured'],
    last: ['HookCompleted', 'HookFailed'],
    late: ['UsageReported'],
  },
  AbortHook: { ...NONE, late: ['UsageReported'] },
  StartCompaction: {
    before: ['RequestMeasured'],
    last: ['CompactionCompleted', 'CompactionFailed'],
    late: ['UsageReported'],
  },
  AbortCompaction: { ...NONE, late: ['UsageReported'] },
  RestoreFiles: { ...NONE, last: ['Rewound'] },
  ScheduleTimer: { ...NONE, last: ['TimerFired'] },
  CancelTimer: NONE,
  DisplayText: NONE,
  DisplayToolResult: NONE,
  DisplayError: NONE,
  DisplayWarning: NONE,
  DisplayNotice: NONE,
  RetractPartial: NONE,
  RestoreQueue: NONE,
  PromptForInput: { ...NONE, last: ['UserInput'] },
  Shutdown: NONE,
};
