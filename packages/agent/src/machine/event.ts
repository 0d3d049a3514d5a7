/**
 * The events of the agent's machine: everything that can happen to a session, and the only thing
 * that its journal stores.
 *
 * From top to bottom: the parts of events; events of the user, of the model, of tools, of the work
 * after tools, and others; rewinds; the union `Event`; and makers of events for programs that drive
 * the machine themselves. Later versions replay old journals, so a new field is optional.
 *
 * A judged call is a tool call with the judgement of its tool: whether it is valid, how the tool
 * behaves, what it touches. A grant is a permission of the user for the session. A "carried"
 * session has a form that every version of the machine reads.
 */

import type { Count, JsonObject, Share } from '@pawl/machine/kernel/shape';
import type {
  CallFacts,
  CallTraits,
  HookVerdicts,
  JudgedCall,
  ReportedMoment,
} from '../policy/judged-call.js';
import type { ApprovalScope, Grant } from '../policy/rules.js';
import type { CallOutcome, CallPreview, EndedStatus, SeenFile } from './call.js';
import type { AssistantMessage, AssistantPart, Image, Message } from './message.js';
import {
  type Dimension,
  noUsage,
  type Prices,
  type RequestedLimit,
  type Settings,
  type Usage,
  type UsageTotals,
} from './settings.js';

/**
 * Kinds of model failures. The provider adapter classifies each once; no other code reads the text.
 */
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
  /** `no`: the request never reached the provider. */
  readonly sent?: 'no';
  /** The provider refused a picture in the request; absent: another reason, or unknown. */
  readonly about?: 'picture';
  /** A server answered, though not with a whole reply; absent: none did, or unknown. */
  readonly answered?: 'yes';
};

/**
 * Why the model stopped, the same words for all providers. Only `end` and `toolUse` are complete
 * replies.
 */
export type StopReason = 'end' | 'toolUse' | 'maxTokens' | 'refusal' | 'contentFilter' | 'other';

/**
 * `steer`: the text reaches the model with its next request; `followUp`: it begins the next turn.
 */
export type InputMode = 'steer' | 'followUp';
export type QueuedInput = {
  readonly inputId: string;
  readonly text: string;
  readonly mode: InputMode;
  readonly images?: readonly Image[];
};

export type ApprovalAnswer =
  | { readonly kind: 'allow' }
  | { readonly kind: 'deny'; readonly reason: string }
  /** The answer to a call that asks the user something; only for such a call. */
  | { readonly kind: 'reply'; readonly text: string };

/** An event of this type, with its fields. */
type Of<T extends string, Body = unknown> = { readonly type: T; readonly at: number } & Body;

/** A call of a batch that was in flight. `startedAt`: null if it has not started. */
export type CarriedCall = {
  readonly judged: JudgedCall;
  readonly requestedAt: number;
  readonly startedAt: number | null;
  /** Absent if it has no outcome. */
  readonly ended?: CarriedOutcome;
};

/** How a call of a batch that was in flight ended. */
export type CarriedOutcome = {
  readonly status: EndedStatus;
  readonly ran: boolean;
  readonly at: number;
  readonly text: string;
  readonly images?: readonly Image[];
};

/** What goes on. `closed`: the session was shut down. Old journals have `request` and `rewind`. */
export type CarriedWork =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'closed' }
  | { readonly kind: 'request' }
  | { readonly kind: 'calls'; readonly batchId: string; readonly calls: readonly CarriedCall[] }
  /** Files are being taken back. */
  | {
      readonly kind: 'rewind';
      readonly rewindId: string;
      readonly to: Count;
      readonly plan: string;
      readonly conversation?: RewoundConversation;
    };

/**
 * A session in a form that depends on no version of the machine, so that any later one continues
 * it.
 */
export type CarriedSession = {
  /** Oldest first. */
  readonly messages: readonly Message[];
  /** Inputs that were not sent. */
  readonly queue: readonly QueuedInput[];
  readonly usage: UsageTotals;
  /** Ids of work that has ended without usage, and may have cost something; absent: none. */
  readonly unaccounted?: readonly string[];
  readonly work: CarriedWork;
  /** Numbers of new ids begin above it, so that no id of an earlier machine is used again. */
  readonly idsFrom: Count;
  /** Time of the last event. */
  readonly at: number;
};

/**
 * A session continues under a later version of the machine. `session`: the state before this event,
 * if the later version does not reach it by replaying the entries; absent if it does.
 */
export type MachineUpgrade = {
  readonly from: Count;
  readonly to: Count;
  readonly session?: CarriedSession;
};

/** A call that the runtime has stopped for a shutdown. */
export type StoppedCall = {
  readonly batchId: string;
  readonly callId: string;
  readonly outcome: CallOutcome;
};

/**
 * Events of the user: plain JSON, each with its time `at` in ms since 1970. With `clientRequestId`
 * the sender can send it again, and it counts once.
 */
export type UserEvent = UserEventBody & { readonly clientRequestId?: string };

type UserEventBody =
  | Of<'Start'>
  /**
   * `images` accompany the text, which may not be blank. Their blobs are stored before the event.
   */
  | Of<
      'UserInput',
      { readonly text: string; readonly mode: InputMode; readonly images?: readonly Image[] }
    >
  | Of<'RetryLast'>
  | Of<'RetryNow'>
  | Of<'CancelTurn'>
  | Of<'CancelTool', { readonly batchId: string; readonly callId: string }>
  /** The whole edited queue. Items are identified by id; missing items are removed. */
  | Of<'EditQueue', { readonly items: readonly QueuedInput[] }>
  /** `instructions`: what the summary must keep, in the user's words. */
  | Of<'CompactRequested', { readonly instructions?: string }>
  | Of<'ApproveBudget', { readonly dimension: Dimension; readonly limit: RequestedLimit }>
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
   * `prices`: the runtime's prices for the model in the patch, so that costs can be checked later.
   * `grants` replace all earlier grants.
   */
  | Of<
      'SettingsChanged',
      {
        readonly patch: Partial<Settings>;
        readonly prices?: Prices | null;
        readonly grants?: readonly Grant[];
        /** While a session is resumed: as in Resumed, which follows. */
        readonly stoppedAt?: Count;
      }
    >
  /** `outcomes`: those of the calls that the runtime has stopped for this, as far as known. */
  | Of<'ShutdownRequested', { readonly outcomes?: readonly StoppedCall[] }>
  | Of<'InputFailed', { readonly message: string }>;

export type LlmEvent =
  | Of<'TextDelta', { readonly requestId: string; readonly text: string }>
  | Of<'ReasoningDelta', { readonly requestId: string; readonly text: string }>
  | Of<
      'ToolCallDelta',
      { readonly requestId: string; readonly text: string; readonly tool: string }
    >
  /**
   * `message` is null if the reply had nothing to store. `calls`: its judged calls, in order.
   * `firstPieceAt`: the time at which the first piece of the reply came; absent if there was none.
   */
  | Of<
      'LlmCompleted',
      {
        readonly requestId: string;
        readonly message: AssistantMessage | null;
        readonly calls: readonly JudgedCall[];
        readonly stopReason: StopReason;
        readonly usage: Usage;
        readonly firstPieceAt?: number;
        /** `refused`: the server refused the level of effort, so the request had none. */
        readonly effort?: 'refused';
        /** Verdicts of hooks about the end of the turn; absent if none ran. */
        readonly hooks?: HookVerdicts;
      }
    >
  | Of<
      'LlmFailed',
      {
        readonly requestId: string;
        readonly error: ModelError;
        readonly usage: Usage | null;
        /** `whole` without usage: it cost nothing. Absent: more may have been used. */
        readonly coverage?: 'whole';
        /**
         * Random share of the extra delay, 0 to 1, drawn by the runtime, since the machine is
         * deterministic.
         */
        readonly jitter: Share;
        readonly firstPieceAt?: number;
      }
    >
  /** The user's stopping policy held the call back, so it was not sent. */
  | Of<'PolicyStopped', { readonly requestId: string; readonly why: string }>
  /**
   * The size of a request, before it is sent under a limit in dollars. `usageId`: the id of the
   * request, compaction or hook. `bytes`: of all its texts; `images`: their number;
   * `outputTokensMax`: the most that the model writes; `prices`: null if unknown.
   */
  | Of<
      'RequestMeasured',
      {
        readonly usageId: string;
        readonly model: string;
        readonly bytes: Count;
        readonly images: Count;
        readonly outputTokensMax: Count;
        readonly prices: Prices | null;
        /** Bytes that the conversation does not hold; absent: unknown. */
        readonly freshBytes?: Count;
      }
    >;

export type ToolEvent =
  /** Answers PreviewCall. */
  | Of<
      'CallPreviewed',
      { readonly batchId: string; readonly callId: string; readonly preview: CallPreview }
    >
  /**
   * Durable before the effect. For a probeable call (its file shows whether it had its effect),
   * `before` and `after` are the sha256 of the file before and after the effect.
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
  | Of<
      'ToolCompleted',
      { readonly batchId: string; readonly callId: string; readonly outcome: CallOutcome }
    >
  /** The runtime can't continue the batch. */
  | Of<'ToolsFailed', { readonly batchId: string; readonly message: string }>;

/**
 * An effect that a phase of the work after tools is about to have, with the facts that show later
 * whether it happened.
 *
 * `file`: sha256 of the file before and after. `commit`: the branch `ref` (or HEAD, if it is
 * detached) of the repository `gitFolder` is to move from `before` (null: no commit yet) to
 * `commit`. `claim` is in old journals only, and is ignored.
 */
export type HookEffect =
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly before: string;
      readonly after: string;
    }
  | {
      readonly kind: 'commit';
      readonly gitFolder: string;
      readonly claim?: string;
      readonly ref: string;
      readonly before: string | null;
      readonly commit: string;
    };

/** Events of the work after tools: looking for commits, formatting, committing. */
export type HookEvent =
  /** Durable before the effect. */
  | Of<'HookPrepared', { readonly hookId: string; readonly effect: HookEffect }>
  | Of<
      'HookCompleted',
      {
        readonly hookId: string;
        readonly commits: readonly { readonly hash: string; readonly subject: string }[];
        readonly changedFiles: readonly string[];
        /** The working tree has uncommitted changes. */
        readonly dirty: boolean;
        /** Text for the model after the results; may be empty. */
        readonly note: string;
        /** Text for the user; may be empty. */
        readonly warning: string;
        /** False: the hook stops the turn. */
        readonly proceed: boolean;
        /** Final usage of the phase; null means none. `coverage`: a call of it broke off. */
        readonly usage: Usage | null;
        readonly coverage?: 'partial';
        /** Files that the phase rewrote, for a resumed session. */
        readonly seen?: readonly SeenFile[];
      }
    >
  | Of<'HookFailed', { readonly hookId: string; readonly message: string }>;

export type OtherEvent =
  | Of<'TimerFired', { readonly timerId: string }>
  | Of<
      'CompactionCompleted',
      {
        readonly compactionId: string;
        readonly summary: string;
        readonly usage: Usage;
        readonly hooks?: HookVerdicts;
      }
    >
  | Of<
      'CompactionFailed',
      {
        readonly compactionId: string;
        readonly message: string;
        readonly usage: Usage | null;
        /** `whole` without usage: it cost nothing. Absent: more may have been used. */
        readonly coverage?: 'whole';
        readonly hooks?: HookVerdicts;
      }
    >
  /**
   * Late usage of a request, compaction or hook, by its id. `coverage`: all that was sent under the
   * id had ended. `fault`: a message for the user about a
   * report that can't be counted; `usage` is then empty, at an unknown price.
   */
  | Of<
      'UsageReported',
      {
        readonly usageId: string;
        readonly usage: Usage;
        readonly coverage?: 'whole';
        readonly fault?: string;
      }
    >
  /** Hooks of the user ran. `requestId`: the request that waits for them, or null. */
  | Of<
      'UserHooksRan',
      {
        readonly moment: ReportedMoment;
        readonly requestId: string | null;
        readonly verdicts: HookVerdicts;
      }
    >
  /**
   * The session was resumed; `epoch` counts the openings. `stoppedAt`: the time of the event before
   * it. The time since then does not count for the turn: the session was stopped, and the clock may
   * have been set. Absent: no turn runs. `upgrade`: an earlier version of the machine wrote the
   * entries before. `judged`: the calls that have not run, as their tools judge them now.
   */
  | Of<
      'Resumed',
      {
        readonly epoch: Count;
        readonly stoppedAt?: Count;
        readonly upgrade?: MachineUpgrade;
        readonly judged?: readonly JudgedCall[];
      }
    >;

/** A file that changed between two checkpoints. `added`, `removed`: lines, of texts. */
export type ChangedPath = {
  /** Relative to the workspace. */
  readonly path: string;
  readonly change: 'created' | 'changed' | 'deleted';
  /** It changed while a command ran, so the change may not be the agent's. */
  readonly duringCommands?: 'yes';
  readonly added?: Count;
  readonly removed?: Count;
};

/**
 * How many files changed; `files`: the first of them, by path. `duringCommands`: how many of them
 * changed while a command ran, so the changes may not be the agent's; absent: none.
 */
export type ChangeSummary = {
  readonly created: Count;
  readonly changed: Count;
  readonly deleted: Count;
  readonly duringCommands?: Count;
  readonly files: readonly ChangedPath[];
};

/** A file that a rewind did not take back. */
export type FileLeft = { readonly path: string; readonly why: string };

/** The conversation of a rewind: the first `kept` messages of the present one, then `messages`. */
export type RewoundConversation = {
  readonly kept: Count;
  readonly messages: readonly Message[];
  /** An estimate of its size. */
  readonly contextTokens: Count;
  /** Notes that wait for the next message there; absent: none. */
  readonly notes?: readonly string[];
};

export type RewindEvent =
  /**
   * A checkpoint holds the files as they are now. `checkpoint`: sha256 of its manifest in the store
   * of the workspace. `batchId`: the batch that changed them; null: a command of the user.
   */
  | Of<
      'CheckpointTaken',
      {
        readonly checkpoint: string;
        readonly by: 'agent' | 'user';
        readonly batchId: string | null;
        readonly changes: ChangeSummary;
        /** Sentences about files that can't be taken back. */
        readonly leftOut: readonly string[];
      }
    >
  /**
   * The session goes back to the entry `to`, or forward to it again. The runtime looks up the
   * conversation there (absent: it stays) and stores the plan of the changes of files, by its
   * sha256 (absent: files stay). `note`: for the model, with the next request.
   */
  | Of<
      'RewindRequested',
      {
        readonly rewindId: string;
        readonly to: Count;
        readonly direction: 'back' | 'forward';
        readonly conversation?: RewoundConversation;
        readonly files?: { readonly plan: string };
        readonly note?: string;
      }
    >
  /**
   * The files of a rewind are as planned, but for `left`. `checkpoint`: of its own changes; null:
   * nothing changed. `note`: for the model about its files; if none could be taken back, why.
   * `refs`: where HEAD and branches went, in words; absent: they stay.
   */
  | Of<
      'Rewound',
      {
        readonly rewindId: string;
        readonly checkpoint: string | null;
        readonly changes: ChangeSummary;
        readonly left: readonly FileLeft[];
        readonly note: string | null;
        readonly refs?: readonly string[];
      }
    >;

export type Event = UserEvent | LlmEvent | ToolEvent | HookEvent | OtherEvent | RewindEvent;
export type EventType = Event['type'];
/** The event of this type. */
export type On<T extends EventType> = Extract<Event, { readonly type: T }>;

/** Why a turn ended in Failed. */
export type FailureKind = ModelErrorKind | 'input' | 'tools' | 'compaction';

/** The source of a failure: the model, a tool, or input and output. */
export type FailureOrigin = 'llm' | 'tool' | 'io';

export const failureOrigin = (error: FailureKind): FailureOrigin => {
  switch (error) {
    case 'tools':
      return 'tool';
    case 'input':
      return 'io';
    case 'compaction':
    case 'rateLimited':
    case 'overloaded':
    case 'unreachable':
    case 'timeout':
    case 'contextOverflow':
    case 'auth':
    case 'badRequest':
    case 'quotaExhausted':
    case 'refused':
    case 'malformed':
      return 'llm';
    default:
      return error satisfies never;
  }
};

// ---- Makers of events, for those who drive the machine themselves ----

/** A call as a driver of the machine describes it; the rest has defaults. */
export type CallDraft = {
  readonly callId: string;
  readonly tool: string;
  readonly input?: JsonObject;
  readonly traits?: Partial<CallTraits>;
  readonly facts?: Partial<CallFacts>;
  readonly title?: string;
};

/** In doubt a call changes something, runs alone, and does not run again after an interruption. */
const TRAITS: CallTraits = {
  effect: 'opaque',
  parallelSafe: false,
  mutating: true,
  deadlineMs: 60_000,
};

/**
 * A call as an LlmCompleted carries it. Defaults: no input; a valid call; `traits` of a call that
 * changes something, runs alone, never runs again after an interruption and has 60 s; no paths,
 * hosts or words; `shape`, the key of a grant for this exact call, is the tool with its input.
 */
export const toolCall = ({
  callId,
  tool,
  input = {},
  traits,
  facts,
  title,
}: CallDraft): JudgedCall => ({
  callId,
  tool,
  input,
  verdict: { kind: 'ok' },
  traits: { ...TRAITS, ...traits },
  facts: { argv: [], paths: [], hosts: [], shape: `${tool} ${JSON.stringify(input)}`, ...facts },
  ...(title === undefined ? {} : { title }),
});

/** A model's reply to a request; the rest has defaults. */
export type ReplyDraft = {
  readonly requestId: string;
  readonly at: number;
  /** `provider/name`. */
  readonly model: string;
  readonly text?: string;
  readonly calls?: readonly JudgedCall[];
  readonly usage?: Usage;
};

/**
 * A complete reply of a model: its text, then its calls. It stops for tools if there are calls.
 * Default usage: no tokens, at an unknown price.
 */
export const modelReply = ({
  requestId,
  at,
  model,
  text = '',
  calls = [],
  usage = { ...noUsage, costUsd: null },
}: ReplyDraft): On<'LlmCompleted'> => {
  const parts: readonly AssistantPart[] = [
    ...(text === '' ? [] : [{ type: 'text', text } as const]),
    ...calls.map(({ callId, tool, input }) => ({ type: 'call', callId, tool, input }) as const),
  ];
  const message =
    parts.length === 0 ? null : ({ role: 'assistant', model, cut: false, parts } as const);
  const stopReason = calls.length > 0 ? 'toolUse' : 'end';
  return { type: 'LlmCompleted', requestId, at, message, calls, stopReason, usage };
};

/**
 * A text of the user. `steer` reaches the model at once, between its tools; `followUp` begins the
 * next turn.
 */
export const userInput = (
  text: string,
  at: number,
  mode: InputMode = 'steer',
): On<'UserInput'> => ({
  type: 'UserInput',
  at,
  text,
  mode,
});
