import type { CallOutcome, JudgedCall, SeenFile } from './call.js';
import type { AssistantMessage, Image } from './message.js';
import type { Dimension, Grant, Settings } from './settings.js';
import type { Prices, Usage } from './usage.js';

/** Failures of a model call, classified once where the provider is called; nobody reads the text again. */
export type ModelErrorKind =
  | 'rateLimited'
  | 'overloaded'
  | 'unreachable'
  | 'timeout'
  | 'contextOverflow'
  | 'auth'
  | 'badRequest'
  | 'quotaExhausted'
  | 'refused'
  | 'malformed';

export type ModelError = {
  readonly kind: ModelErrorKind;
  readonly message: string;
  readonly retryable: boolean;
  /** The wait the provider asked for. */
  readonly retryAfterMs: number | null;
};

/** Why the model stopped, in the provider's own words made one: only `end` and `toolUse` are whole replies. */
export type StopReason = 'end' | 'toolUse' | 'maxTokens' | 'refusal' | 'contentFilter' | 'other';

export type InputMode = 'steer' | 'followUp';
export type QueuedInput = {
  readonly inputId: string;
  readonly text: string;
  readonly mode: InputMode;
  readonly images?: readonly Image[];
};

export type ApprovalAnswer = { readonly kind: 'allow' } | { readonly kind: 'deny'; readonly reason: string };
export type ApprovalScope = 'once' | 'shape' | 'session';

type Of<T extends string, Body = unknown> = { readonly type: T; readonly at: number } & Body;

/** Facts from outside: past tense, plain JSON, each with its time `at` in milliseconds since 1970. */
export type UserEvent =
  | Of<'Start'>
  /** `images` go with the text, which may not be blank; their blobs are there before the event. */
  | Of<'UserInput', { readonly text: string; readonly mode: InputMode; readonly images?: readonly Image[] }>
  | Of<'RetryLast'>
  | Of<'RetryNow'>
  | Of<'CancelTurn'>
  | Of<'CancelTool', { readonly batchId: string; readonly callId: string }>
  /** The whole queue as the user wants it: items are known by id; what is missing was removed. */
  | Of<'EditQueue', { readonly items: readonly QueuedInput[] }>
  /** `instructions`: what the summary is to keep, in the user's own words. */
  | Of<'CompactRequested', { readonly instructions?: string }>
  | Of<'ApproveBudget', { readonly dimension: Dimension; readonly limit: number }>
  | Of<
      'ApprovalAnswered',
      {
        readonly batchId: string;
        readonly callId: string;
        readonly answer: ApprovalAnswer;
        readonly scope: ApprovalScope;
      }
    >
  /**
   * `prices`: of the model that the patch names, as the runtime knows them; so that costs can be checked later.
   * `grants`: what the user allows from now on, in place of what was allowed before.
   */
  | Of<
      'SettingsChanged',
      {
        readonly patch: Partial<Settings>;
        readonly prices?: Prices | null;
        readonly grants?: readonly Grant[];
      }
    >
  | Of<'ShutdownRequested'>
  | Of<'InputFailed', { readonly message: string }>;

export type LlmEvent =
  | Of<'TextDelta', { readonly requestId: string; readonly text: string }>
  | Of<'ReasoningDelta', { readonly requestId: string; readonly text: string }>
  | Of<'ToolCallDelta', { readonly requestId: string; readonly tool: string; readonly text: string }>
  /** `message` is null where the reply had nothing that could be stored; `calls` are its calls, judged, in order. */
  | Of<
      'LlmCompleted',
      {
        readonly requestId: string;
        readonly message: AssistantMessage | null;
        readonly calls: readonly JudgedCall[];
        readonly stopReason: StopReason;
        readonly usage: Usage;
      }
    >
  | Of<
      'LlmFailed',
      {
        readonly requestId: string;
        readonly error: ModelError;
        readonly usage: Usage | null;
        /** Random share of extra delay, 0 to 1, drawn by the runtime: the machine draws nothing. */
        readonly jitter: number;
      }
    >
  /** The user's stopping policy held the call back: it was not sent. */
  | Of<'PolicyStopped', { readonly requestId: string; readonly why: string }>;

export type ToolEvent =
  /**
   * Durable before the effect. `before` is the sha256 of the file a probeable call is about to change, `after` what it
   * will be when the call has taken effect.
   */
  | Of<
      'ToolStarted',
      {
        readonly batchId: string;
        readonly callId: string;
        readonly before?: string;
        readonly after?: string;
      }
    >
  | Of<'ToolProgress', { readonly batchId: string; readonly callId: string; readonly text: string }>
  | Of<'ToolCompleted', { readonly batchId: string; readonly callId: string; readonly outcome: CallOutcome }>
  | Of<'ToolsFailed', { readonly batchId: string; readonly message: string }>;

export type HookEvent =
  | Of<
      'HookCompleted',
      {
        readonly hookId: string;
        readonly commits: readonly { readonly hash: string; readonly subject: string }[];
        readonly changedFiles: readonly string[];
        readonly dirty: boolean;
        /** Told to the model after the results; empty for nothing. */
        readonly note: string;
        /** Shown to the user; empty for nothing. */
        readonly warning: string;
        readonly proceed: boolean;
        /** The last word on what the phase used: null means nothing. */
        readonly usage: Usage | null;
        /** Files that the phase rewrote: a session that is opened again remembers them. */
        readonly seen?: readonly SeenFile[];
      }
    >
  | Of<'HookFailed', { readonly hookId: string; readonly message: string }>;

export type OtherEvent =
  | Of<'TimerFired', { readonly timerId: string }>
  | Of<
      'CompactionCompleted',
      { readonly compactionId: string; readonly summary: string; readonly usage: Usage }
    >
  | Of<
      'CompactionFailed',
      { readonly compactionId: string; readonly message: string; readonly usage: Usage | null }
    >
  /** Late usage of a request, compaction or hook, by its id. */
  | Of<'UsageReported', { readonly usageId: string; readonly usage: Usage }>
  /** The session was opened again; `epoch` counts the openings. */
  | Of<'Resumed', { readonly epoch: number }>;

export type Event = UserEvent | LlmEvent | ToolEvent | HookEvent | OtherEvent;
export type EventType = Event['type'];
export type On<T extends EventType> = Extract<Event, { readonly type: T }>;
