/**
 * Events of one run, a conversation in code mode: past tense, plain JSON, each with its time `at`
 * in milliseconds since 1970. A cell is a program that the model wrote. It may call models itself:
 * a sub-call, with one prompt for each slot of its answer.
 *
 * 1. Each request action is answered by exactly one event, named at the action (action.ts), with
 *    the id of the request. An event with an outdated id changes only the usage totals.
 * 2. Every event is durable before it is stepped. Its actions may be repeated after a crash (see
 *    Resumed).
 * 3. `SubcallAnswered` and `CallRefused` never come from outside: the tree makes them
 *    (step-tree.ts).
 */

import type { ModelError, StopReason } from '@pawl/agent/machine/event';
import type { AssistantMessage } from '@pawl/agent/machine/message';
import type { Usage } from '@pawl/agent/machine/settings';
import {
  assistantMessageShape,
  modelErrorShape,
  requestedLimitShape,
  stopReasonShape,
  usageShape,
} from '@pawl/agent/machine/shapes';
import {
  amount,
  count,
  type Fields,
  finite,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Shape,
  share,
  text,
  variant,
} from '@pawl/machine/kernel/shape';
import type { CellReport, CellVariable, SubcallKind } from './cell-types.js';
import type { RunLimits } from './settings.js';
import type { PolicyReason, Short, StopVerdict } from './stop-policies.js';

type Of<T extends string, Body = unknown> = { readonly type: T; readonly at: number } & Body;

export type CodeEvent =
  /** The run begins. Only the root's comes from outside; the tree starts the children. */
  | Of<'Started'>
  /**
   * A reply is complete (LLMResponseReceived in seed 004, a published text about such runs).
   * `message` is null if the reply has nothing to store.
   */
  | Of<
      'ModelReplied',
      {
        readonly requestId: string;
        readonly message: AssistantMessage | null;
        readonly stopReason: StopReason;
        readonly usage: Usage;
      }
    >
  /**
   * A model call failed or was aborted. `usage` is the cost it had all the same; null if unknown.
   */
  | Of<
      'ModelFailed',
      {
        readonly requestId: string;
        readonly error: ModelError;
        readonly usage: Usage | null;
        /** The time of its first piece; absent: none came, or the journal is older. */
        readonly firstPieceAt?: number;
        /** The most that its whole reply could cost, in dollars; absent without a cap. */
        readonly outputUsd?: number;
        /** Random share of extra delay, 0 to 1, drawn by the runtime: the machine draws nothing. */
        readonly jitter: number;
      }
    >
  /** A waiting call was refused, since the remaining budget can't pay for it. Made by the tree. */
  | Of<
      'CallRefused',
      {
        readonly requestId: string;
        readonly short: Short;
        /** Why, if there is more to say. */
        readonly why?: string;
      }
    >
  /**
   * The environment is ready. `variables` compares a rerun of StartEnvironment's `past` with the
   * record: `kept` if all is the same (or `past` is empty); `changed` if a cell printed something
   * else; `lost` if a cell had another status or sent other sub-calls, in which case the
   * environment is a new, empty one.
   */
  | Of<'EnvironmentStarted', { readonly variables: 'kept' | 'changed' | 'lost' }>
  /**
   * The environment could not start, or broke. A failure of the model's code is a CellFinished
   * instead.
   */
  | Of<'EnvironmentFailed', { readonly message: string }>
  | Of<'CellFinished', { readonly cellId: string; readonly report: CellReport }>
  /** The running cell calls models: one prompt per slot. `ordinal` counts from 1 in each cell. */
  | Of<
      'SubcallAsked',
      {
        readonly cellId: string;
        readonly ordinal: number;
        readonly kind: 'llm' | 'rlm';
        readonly prompts: readonly string[];
        /** The model that the code names; missing for the default sub-model. */
        readonly model?: string;
      }
    >
  /** All slots of a sub-call have their text, in prompt order. */
  | Of<
      'SubcallAnswered',
      { readonly cellId: string; readonly ordinal: number; readonly texts: readonly string[] }
    >
  /** `value` is null if there is no such variable. */
  | Of<'VariableRead', { readonly readId: string; readonly value: string | null }>
  | Of<'PolicyAnswered', { readonly policyId: string; readonly verdict: StopVerdict }>
  | Of<'TimerFired', { readonly timerId: string }>
  /**
   * Ends the run and its children, deepest first. `parent`: the parent's cell no longer needs it
   * (tree only).
   */
  | Of<'CancelRequested', { readonly cause: 'user' | 'parent' }>
  /** Stops the whole tree so that it can be resumed, whichever run the event names. */
  | Of<'ShutdownRequested'>
  /**
   * The tree was opened again, after a crash or a shutdown. `epoch` counts the openings, from 1. To
   * the root.
   *
   * `stoppedAt`: the time of the event before it. The time since then does not count for any
   * deadline: nobody ran, and the clock may have been set.
   */
  | Of<'Resumed', { readonly epoch: number; readonly stoppedAt?: number }>;

type CodeEventType = CodeEvent['type'];
export type RunEventOf<T extends CodeEventType> = Extract<CodeEvent, { readonly type: T }>;

/** An event of one run. */
export type RunEvent = CodeEvent & { readonly node: string };

/**
 * Changes limits of the whole tree. Addressed to the root, before Resumed. A tree that ended at a
 * limit, or answered although a limit had refused some sub-calls, can be resumed afterwards.
 */
export type LimitsChanged = Of<
  'LimitsChanged',
  {
    readonly limits: ChangedLimits;
    /** As in Resumed, if this is the first event since the tree was opened. */
    readonly stoppedAt?: number;
  }
> & {
  readonly node: string;
};

/** New limits; a missing one stays as it was. `timeMs` counts from the change. */
export type ChangedLimits = Partial<RunLimits> & { readonly iterations?: number };

/** A journaled event, with the id of its run. */
export type TreeEvent = RunEvent | LimitsChanged;

// ---- Checks of events: the machine rejects an event with another shape ----

/** A lookup key. Names on Object.prototype are not allowed. */
const id: Shape<string> = {
  check: (value) =>
    typeof value === 'string' && value in Object.prototype
      ? { path: [], must: 'the name of a run, or of what it asked for', is: `"${value}"` }
      : text.check(value),
};

// the keys are the allowed values; the numbers mean nothing
const reason = oneOf<PolicyReason>({
  iterations: 1,
  usd: 1,
  tokens: 1,
  unpriced: 1,
  time: 1,
  repeated: 1,
  errors: 1,
  noProgress: 1,
  policy: 1,
});
export const verdictShape: Shape<StopVerdict> = variant<StopVerdict, 'kind'>('kind', {
  go: {},
  stop: { reason, why: text },
  finish: { reason, why: text },
});

const reportShape: Shape<CellReport> = object<CellReport>({
  status: oneOf({ ok: 1, raised: 1, stopped: 1, died: 1 }),
  stdout: text,
  stderr: text,
  variables: list(object<CellVariable>({ name: text, type: text, size: nullable(finite) })),
  answer: nullable(text),
  variablesLost: oneOf({ no: 1, yes: 1 }),
});

const subcall = { cellId: id, ordinal: count };

const fields: { readonly [T in CodeEventType]: Fields<Omit<RunEventOf<T>, 'type' | 'at'>> } = {
  Started: {},
  ModelReplied: {
    requestId: id,
    message: nullable(assistantMessageShape),
    stopReason: stopReasonShape,
    usage: usageShape,
  },
  ModelFailed: {
    requestId: id,
    error: modelErrorShape,
    usage: nullable(usageShape),
    firstPieceAt: optional(finite),
    outputUsd: optional(amount),
    jitter: share,
  },
  CallRefused: {
    requestId: id,
    short: oneOf<Short>({ usd: 1, tokens: 1, unpriced: 1 }),
    why: optional(text),
  },
  EnvironmentStarted: { variables: oneOf({ kept: 1, changed: 1, lost: 1 }) },
  EnvironmentFailed: { message: text },
  CellFinished: { cellId: id, report: reportShape },
  SubcallAsked: {
    ...subcall,
    kind: oneOf<SubcallKind>({ llm: 1, rlm: 1 }),
    prompts: list(text),
    model: optional(text),
  },
  SubcallAnswered: { ...subcall, texts: list(text) },
  VariableRead: { readId: id, value: nullable(text) },
  PolicyAnswered: { policyId: id, verdict: verdictShape },
  TimerFired: { timerId: id },
  CancelRequested: { cause: oneOf({ user: 1, parent: 1 }) },
  ShutdownRequested: {},
  Resumed: { epoch: count, stoppedAt: optional(finite) },
};

const changedLimits: Fields<Omit<LimitsChanged, 'type' | 'at' | 'node'>> = {
  limits: object<LimitsChanged['limits']>({
    usd: optional(requestedLimitShape),
    tokens: optional(requestedLimitShape),
    timeMs: optional(requestedLimitShape),
    iterations: optional(amount),
  }),
  stoppedAt: optional(finite),
};

// The result has the same types, each with the common fields.
const withFields = (all: object, common: object): never =>
  Object.fromEntries(
    Object.entries(all).map(([type, shape]) => [type, { ...common, ...shape }]),
  ) as never;

/** An event of one run, without the run's id. */
export const codeEventShape: Shape<CodeEvent> = variant<CodeEvent, 'type'>(
  'type',
  withFields(fields, { at: finite }),
);

/** An event of the tree, with the run's id. */
export const treeEventShape: Shape<TreeEvent> = variant<TreeEvent, 'type'>(
  'type',
  withFields({ ...fields, LimitsChanged: changedLimits }, { at: finite, node: id }),
);
