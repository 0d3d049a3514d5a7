import type { ModelError, StopReason } from '@pawl/agent/machine/event';
import type { AssistantMessage } from '@pawl/agent/machine/message';
import type { Usage } from '@pawl/agent/machine/values/usage';
import type { CellReport } from './cell-types.js';
import type { RunLimits } from './settings.js';
import type { Short, StopVerdict } from './stop-policies.js';

/**
 * Events of one run: past tense, plain JSON, each with its time `at` in milliseconds since 1970.
 *
 * 1. Each request action is answered by exactly one event, named at the action (action.ts), with the id of the request.
 *    An event with an outdated id changes only the usage totals.
 * 2. Every event is durable before it is stepped. Its actions may be repeated after a crash (see Resumed).
 * 3. `SubcallAnswered` and `CallRefused` never come from outside: the tree makes them (step-tree.ts).
 */

type Of<T extends string, Body = unknown> = { readonly type: T; readonly at: number } & Body;

export type CodeEvent =
  /** The run begins. Only the root's comes from outside; the tree starts the children. */
  | Of<'Started'>
  /** A reply is complete (seed 004: LLMResponseReceived). `message` is null if the reply has nothing to store. */
  | Of<
      'ModelReplied',
      {
        readonly requestId: string;
        readonly message: AssistantMessage | null;
        readonly stopReason: StopReason;
        readonly usage: Usage;
      }
    >
  /** A model call failed or was aborted. `usage` is the cost it had all the same; null if unknown. */
  | Of<
      'ModelFailed',
      {
        readonly requestId: string;
        readonly error: ModelError;
        readonly usage: Usage | null;
        /** Random share of extra delay, 0 to 1, drawn by the runtime: the machine draws nothing. */
        readonly jitter: number;
      }
    >
  /** A waiting call was refused, since the remaining budget can't pay for it. Made by the tree. */
  | Of<'CallRefused', { readonly requestId: string; readonly short: Short }>
  /**
   * The environment is ready. `variables` compares a rerun of StartEnvironment's `past` with the record: `kept` if all
   * is the same (or `past` is empty); `changed` if a cell printed something else; `lost` if a cell had another status
   * or made other sub-calls, in which case the environment is a new, empty one.
   */
  | Of<'EnvironmentStarted', { readonly variables: 'kept' | 'changed' | 'lost' }>
  /** The environment could not start, or broke. A failure of the model's code is a CellFinished instead. */
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
  /** Ends the run and its children, deepest first. `parent`: the parent's cell no longer needs it (tree only). */
  | Of<'CancelRequested', { readonly cause: 'user' | 'parent' }>
  /** Stops the whole tree so that it can be resumed, whichever run the event names. */
  | Of<'ShutdownRequested'>
  /**
   * The tree was opened again, after a crash or a shutdown. `epoch` counts the openings, from 1. To the root.
   *
   * `stoppedAt`: the time of the event before it. The time since then does not count for any deadline: nobody ran, and
   * the clock may have been set.
   */
  | Of<'Resumed', { readonly epoch: number; readonly stoppedAt?: number }>;

export type CodeEventType = CodeEvent['type'];
export type RunEventOf<T extends CodeEventType> = Extract<CodeEvent, { readonly type: T }>;

/** An event of one run. */
export type RunEvent = CodeEvent & { readonly node: string };

/**
 * Changes limits of the whole tree. Addressed to the root, before Resumed. A tree that ended at a limit, or answered
 * although a limit had refused some sub-calls, can be resumed afterwards.
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
