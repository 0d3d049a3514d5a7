import type { JudgedCall } from './call.js';
import type { HookPhase, Purpose } from './purpose.js';

/** Wishes for the runtime: plain JSON, performed in order; what comes of them returns as events. */
export type Action =
  /** Send the first `length` messages of the conversation. */
  | {
      readonly type: 'SendLlmRequest';
      readonly requestId: string;
      readonly purpose: Purpose;
      readonly length: number;
    }
  | { readonly type: 'AbortLlmRequest'; readonly requestId: string }
  | {
      readonly type: 'RequestApproval';
      readonly batchId: string;
      readonly call: JudgedCall;
      readonly why: string;
    }
  | { readonly type: 'WithdrawApproval'; readonly batchId: string; readonly callId: string }
  /** The calls to start now. */
  | { readonly type: 'ExecuteTools'; readonly batchId: string; readonly calls: readonly JudgedCall[] }
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
      /** Mutating calls of the batch that ended ok. */
      readonly callIds: readonly string[];
    }
  | { readonly type: 'AbortHook'; readonly hookId: string }
  /** Summarise the first `length` messages; `instructions` are what the user wants kept. */
  | {
      readonly type: 'StartCompaction';
      readonly compactionId: string;
      readonly length: number;
      readonly instructions?: string;
    }
  | { readonly type: 'AbortCompaction'; readonly compactionId: string }
  | { readonly type: 'ScheduleTimer'; readonly timerId: string; readonly dueAt: number }
  | { readonly type: 'CancelTimer'; readonly timerId: string }
  | { readonly type: 'DisplayText'; readonly text: string }
  | {
      readonly type: 'DisplayToolResult';
      readonly batchId: string;
      readonly callId: string;
      readonly tool: string;
      readonly status: string;
      readonly text: string;
      readonly diff: string | null;
    }
  | { readonly type: 'DisplayError'; readonly text: string }
  | { readonly type: 'DisplayWarning'; readonly kind: WarningKind; readonly text: string }
  | {
      readonly type: 'DisplayNotice';
      readonly kind: NoticeKind;
      readonly text: string;
      /** Of `compacted`: what the model goes on with in place of the messages. */
      readonly summary?: string;
    }
  | { readonly type: 'RetractPartial'; readonly requestId: string }
  | { readonly type: 'RestoreQueue'; readonly texts: readonly string[] }
  | { readonly type: 'PromptForInput' }
  | { readonly type: 'Shutdown' };

export type WarningKind = 'retry' | 'empty' | 'truncated' | 'refused' | 'hook' | 'compaction' | 'budget';
export type NoticeKind =
  | 'queued'
  | 'cancelled'
  | 'budget'
  | 'approveBudget'
  | 'commits'
  | 'formatted'
  | 'nothingToDo'
  | 'retryLast'
  | 'compacted';
export type ActionType = Action['type'];
