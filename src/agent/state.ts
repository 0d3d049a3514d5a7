import type { Call, JudgedCall } from './call.js';
import type { Conversation } from './conversation.js';
import type { ModelError, QueuedInput, StopReason } from './event.js';
import type { AssistantMessage } from './message.js';
import type { HookPhase, Purpose } from './purpose.js';
import type { Dimension, Grant, Settings } from './settings.js';
import type { Usage } from './usage.js';

export type CancelCause = 'user' | 'time';

/** Sums over the session; `unpriced` counts model calls whose price was unknown. */
export type UsageTotals = Omit<Usage, 'costUsd'> & { readonly costUsd: number; readonly unpriced: number };

export type Timer = { readonly timerId: string; readonly dueAt: number };

/** What counts per turn. */
export type Turn = {
  readonly turnId: string;
  readonly rounds: number;
  /** Replies in a row that were cut off in the middle of their calls. */
  readonly truncations: number;
  readonly streaks: {
    /** Fingerprints of the last batch's calls and results. */
    readonly calls: string;
    readonly results: string;
    readonly repeats: number;
    readonly errors: number;
    readonly sameResults: number;
  };
  /** The limit at which the model was asked for its answer: no tool runs any more (atLimit). */
  readonly finishing: 'no' | Dimension;
  readonly startedAt: number;
  readonly timeLimit: Timer | null;
  /** Limits the user was warned about, so that each warning comes once. */
  readonly warned: readonly Dimension[];
};

/** What every state carries: one session, one life on disk. */
export type Session = {
  readonly conversation: Conversation;
  readonly queue: readonly QueuedInput[];
  readonly settings: Settings;
  readonly grants: readonly Grant[];
  readonly usage: UsageTotals;
  /** Ids of requests, compactions and hooks whose usage has not come yet (R0b). */
  readonly unaccounted: readonly string[];
  /** Size of the conversation as the model last reported it, plus an estimate of what came after. */
  readonly contextTokens: number;
  /** What each automatic re-arming adds to a limit; the limits as they were set (autoRearm). */
  readonly slices: { readonly usd: number; readonly tokens: number };
  /** Empty replies in a row (R12). */
  readonly emptyReplies: number;
  /** `no` from the start of an automatic compaction to the next reply or input (R74). */
  readonly mayCompact: 'yes' | 'no';
  /** Told to the model with the next user message. */
  readonly notes: readonly string[];
  readonly turn: Turn;
  readonly counters: {
    readonly request: number;
    readonly batch: number;
    readonly timer: number;
    readonly hook: number;
    readonly compaction: number;
    readonly input: number;
    readonly turn: number;
  };
  readonly epoch: number;
};

/** Why the machine waits for the user. */
export type WaitReason =
  | { readonly kind: 'start' }
  | { readonly kind: 'endOfTurn'; readonly cause: 'answer' | 'empty' | 'refused' | 'truncated' }
  | { readonly kind: 'cancelled'; readonly cause: StopCause }
  | { readonly kind: 'budget'; readonly dimension: Dimension }
  | { readonly kind: 'error'; readonly error: FailureKind; readonly message: string }
  | { readonly kind: 'compacted' }
  | { readonly kind: 'resumed' };

export type StopCause = 'user' | 'veto' | 'approval' | 'policy';
export type FailureKind = ModelError['kind'] | 'input' | 'tools' | 'compaction';

/** `rest`: wait; otherwise pass through: send what is queued, or the conversation as it stands (R0c, R0f). */
export type NextTurn = 'rest' | 'sendQueue' | 'sendAgain';

type Named<N extends string, Own = unknown> = { readonly name: N; readonly session: Session } & Own;

export type RestingState =
  | Named<'Ready'>
  | Named<'WaitingForUserInput', { readonly reason: WaitReason; readonly next: NextTurn }>
  | Named<
      'CallingLlm',
      {
        readonly purpose: Purpose;
        readonly requestId: string;
        /** From 1. */
        readonly attempt: number;
        readonly partial: string;
        readonly call: { readonly mode: 'open' } | { readonly mode: 'draining'; readonly cause: CancelCause };
      }
    >
  | Named<
      'Error',
      {
        readonly purpose: Purpose;
        readonly attempt: number;
        readonly error: { readonly kind: ModelError['kind'] | 'empty'; readonly message: string };
        readonly timerId: string;
        readonly dueAt: number;
      }
    >
  | Named<
      'ExecutingTools',
      {
        readonly batchId: string;
        readonly calls: readonly Call[];
        readonly phase:
          | { readonly mode: 'running' }
          /** Denied for want of somebody to ask (onAsk stop): the turn ends after the batch. */
          | { readonly mode: 'stopping' }
          | {
              readonly mode: 'cancelling';
              readonly graceTimerId: string | null;
              readonly cause: CancelCause;
            };
      }
    >
  | Named<
      'PostToolsHook',
      {
        readonly phase: HookPhase;
        readonly hookId: string;
        /** Mutating calls of the batch that ended ok. */
        readonly mutated: readonly string[];
        /** The working tree as the last finished phase saw it. */
        readonly tree: 'unknown' | 'clean' | 'dirty';
      }
    >
  | Named<
      'Compacting',
      {
        readonly compactionId: string;
        /** Messages that the summary replaces. */
        readonly length: number;
        /** What the user wants kept. */
        readonly instructions?: string;
        readonly mode:
          | { readonly kind: 'idle'; readonly resume: NextTurn }
          | { readonly kind: 'mid' }
          | { readonly kind: 'overflow'; readonly purpose: Purpose; readonly attempt: number };
      }
    >
  | Named<'ShuttingDown'>;

/** A reply on its way through the transient states. */
export type Reply = {
  readonly message: AssistantMessage | null;
  readonly calls: readonly JudgedCall[];
  readonly stopReason: StopReason;
  /** Text that was already streamed to the user. */
  readonly shown: string;
  readonly draining: CancelCause | null;
  readonly requestId: string;
};

export type TransientState =
  | Named<'ProcessingLlmResponse', { readonly reply: Reply }>
  | Named<'EndOfTurn', { readonly cause: 'answer' | 'empty' | 'refused' | 'truncated' }>
  | Named<'ToolUseRequested', { readonly reply: Reply }>
  | Named<'CheckingForCancellation', { readonly reply: Reply }>
  | Named<'CheckingBudget'>
  | Named<'GatheringAdditionalMessages'>
  | Named<'Cancelled', { readonly cause: StopCause }>
  | Named<'BudgetExceeded', { readonly dimension: Dimension }>
  | Named<'Failed', { readonly error: FailureKind; readonly message: string }>;

export type State = RestingState | TransientState;
export type StateName = State['name'];
export type In<N extends StateName> = Extract<State, { readonly name: N }>;
