import type { HookPhase, RequestPurpose } from './action.js';
import type { Call, JudgedCall } from './call.js';
import type { Conversation } from './conversation.js';
import type { HookEffect, ModelError, QueuedInput, StopReason } from './event.js';
import type { AssistantMessage } from './message.js';
import type { Dimension, Grant, Settings } from './settings.js';
import type { FailureKind, FailureOrigin } from './values/failure-origin.js';
import type { HookVerdicts } from './values/hook-verdict.js';
import type { Limit } from './values/limit-value.js';
import type { CancelCause, StopCause } from './values/stop-cause.js';
import type { Usage } from './values/usage.js';

/** Sums over the session. `unpriced` counts model calls with an unknown price. */
export type UsageTotals = Omit<Usage, 'costUsd'> & { readonly costUsd: number; readonly unpriced: number };

/** Fires `delayMs` after it was scheduled, independent of the clock. `dueAt`: that time by the current clock. */
export type Timer = { readonly timerId: string; readonly dueAt: number; readonly delayMs: number };

/** Counters and limits of the current turn. */
export type TurnProgress = {
  readonly turnId: string;
  readonly rounds: number;
  /** Consecutive replies that were cut off in the middle of their calls. */
  readonly truncations: number;
  readonly streaks: {
    /** Fingerprints of the last batch's calls and results. */
    readonly calls: string;
    readonly results: string;
    readonly repeats: number;
    readonly errors: number;
    readonly sameResults: number;
  };
  /** The limit at which the model was asked for its answer; tools no longer run (`atLimit`). */
  readonly finishing: 'no' | Dimension;
  readonly startedAt: number;
  readonly timeLimit: Timer | null;
  /** Limits that the user was already warned about. */
  readonly warned: readonly Dimension[];
  /** Turns in a row that began because a hook objected to the end of the one before; absent: none. */
  readonly objections?: number;
};

/** The data that every state carries. */
export type SessionData = {
  readonly conversation: Conversation;
  readonly queue: readonly QueuedInput[];
  readonly settings: Settings;
  readonly grants: readonly Grant[];
  readonly usage: UsageTotals;
  /** Ids of requests, compactions and hooks without usage so far (docs/rules.md#usage-counts-once). */
  readonly unaccounted: readonly string[];
  /** Tokens of the conversation: the model's last count plus an estimate of later messages. */
  readonly contextTokens: number;
  /** The amounts that `autoRearm` adds to a limit: the limits as they were first set. */
  readonly slices: { readonly usd: Limit; readonly tokens: Limit };
  /** Consecutive empty replies (docs/rules.md#empty-reply). */
  readonly emptyReplies: number;
  /**
   * `no` from the start of an automatic compaction to the next reply or input
   * (docs/rules.md#one-compaction-between-replies).
   */
  readonly mayCompact: 'yes' | 'no';
  /** Notes for the model, sent with the next user message. */
  readonly notes: readonly string[];
  readonly turn: TurnProgress;
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
  | {
      readonly kind: 'error';
      readonly error: FailureKind;
      readonly origin: FailureOrigin;
      readonly message: string;
    }
  | { readonly kind: 'compacted' }
  | { readonly kind: 'resumed' };

/**
 * `rest`: wait for the user. `sendQueue`: send the queue. `sendAgain`: send the same conversation again
 * (docs/rules.md#nothing-to-wait-for, docs/rules.md#begin-turn).
 */
export type NextTurn = 'rest' | 'sendQueue' | 'sendAgain';

type Named<N extends string, Own = unknown> = { readonly name: N; readonly session: SessionData } & Own;

export type RestingState =
  | Named<'Ready'>
  | Named<'WaitingForUserInput', { readonly reason: WaitReason; readonly next: NextTurn }>
  | Named<
      'CallingLlm',
      {
        readonly purpose: RequestPurpose;
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
        readonly purpose: RequestPurpose;
        readonly attempt: number;
        readonly error: { readonly kind: ModelError['kind'] | 'empty'; readonly message: string };
        readonly timerId: string;
        readonly dueAt: number;
        readonly delayMs: number;
      }
    >
  | Named<
      'ExecutingTools',
      {
        readonly batchId: string;
        readonly calls: readonly Call[];
        readonly phase:
          | { readonly mode: 'running' }
          /** A call was denied because no user can be asked (`onAsk: stop`): the turn ends after the batch. */
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
        /** Mutating calls of the batch that ran; with `hooks: mutatingOk` only those that ended ok. */
        readonly mutated: readonly string[];
        /** The working tree as the last completed phase saw it. */
        readonly tree: 'unknown' | 'clean' | 'dirty';
        /** Effects that the phase was about to have, for a resumed session; absent: none. */
        readonly prepared?: readonly HookEffect[];
      }
    >
  | Named<
      'Compacting',
      {
        readonly compactionId: string;
        /** Messages that the summary replaces. */
        readonly length: number;
        /** What the summary must keep, in the user's words. */
        readonly instructions?: string;
        readonly mode:
          | { readonly kind: 'idle'; readonly resume: NextTurn }
          | { readonly kind: 'mid' }
          | { readonly kind: 'overflow'; readonly purpose: RequestPurpose; readonly attempt: number };
      }
    >
  | Named<'ShuttingDown'>;

/** A reply in the transient states between its arrival and the tools. */
export type PendingReply = {
  readonly message: AssistantMessage | null;
  readonly calls: readonly JudgedCall[];
  readonly stopReason: StopReason;
  /** Text that was already streamed to the user. */
  readonly shown: string;
  readonly draining: CancelCause | null;
  readonly requestId: string;
  readonly hooks: HookVerdicts;
};

export type TransientState =
  | Named<'ProcessingLlmResponse', { readonly reply: PendingReply }>
  /** `objected`: a hook wants the model to go on. */
  | Named<
      'EndOfTurn',
      { readonly cause: 'answer' | 'empty' | 'refused' | 'truncated'; readonly objected?: 'yes' }
    >
  | Named<'ToolUseRequested', { readonly reply: PendingReply }>
  | Named<'CheckingForCancellation', { readonly reply: PendingReply }>
  | Named<'CheckingBudget'>
  | Named<'GatheringAdditionalMessages'>
  /** `text`: the notice for the user. */
  | Named<'Cancelled', { readonly cause: StopCause; readonly text: string }>
  | Named<'BudgetExceeded', { readonly dimension: Dimension }>
  | Named<'Failed', { readonly error: FailureKind; readonly message: string }>;

export type State = RestingState | TransientState;
export type StateName = State['name'];
export type In<N extends StateName> = Extract<State, { readonly name: N }>;
