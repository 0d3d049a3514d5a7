import type { ModelError, StopReason } from '../agent/event.js';
import type { AssistantMessage } from '../agent/message.js';
import type { Usage } from '../agent/usage.js';
import type { CellReport } from './cell.js';
import type { Verdict } from './policies.js';

/**
 * Facts that reach one run: past tense, plain JSON, each with its time `at` in milliseconds since 1970.
 *
 * 1. Each action that asks for something is answered by exactly one event, named at the action (action.ts), and the
 *    answer carries the id of what it answers. An id that is not the current one changes nothing but spending.
 * 2. Every event is durable before it is stepped. What steps from it may be done again after a crash (see Resumed).
 * 3. `SubcallAnswered` never comes from outside: the tree makes it (tree.ts).
 */

type Of<T extends string, Body = unknown> = { readonly type: T; readonly at: number } & Body;

export type CodeEvent =
  /** The run begins. From outside for the root only; the tree starts the children. */
  | Of<'Started'>
  /** A reply is whole (the seed's LLMResponseReceived). `message` is null where nothing of it could be stored. */
  | Of<
      'ModelReplied',
      {
        readonly requestId: string;
        readonly message: AssistantMessage | null;
        readonly stopReason: StopReason;
        readonly usage: Usage;
      }
    >
  /** `usage`: what the call cost all the same; null if nothing is known of it. Also the last word of an aborted call. */
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
  /**
   * The environment is ready. `variables`, after the cells in StartEnvironment's `past` were run again: `kept`; `changed`
   * if a cell printed something else than before; `lost` if one came to another status or asked its sub-calls
   * otherwise, and the environment is therefore a fresh one. `kept` where there was no past.
   */
  | Of<'EnvironmentStarted', { readonly variables: 'kept' | 'changed' | 'lost' }>
  /** It could not be started, or broke. What the code did is never this, but a report. */
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
      }
    >
  /** All slots of a sub-call have their text, in prompt order. */
  | Of<
      'SubcallAnswered',
      { readonly cellId: string; readonly ordinal: number; readonly texts: readonly string[] }
    >
  /** `value` is null if there is no such variable. */
  | Of<'VariableRead', { readonly readId: string; readonly value: string | null }>
  | Of<'PolicyAnswered', { readonly policyId: string; readonly verdict: Verdict }>
  | Of<'TimerFired', { readonly timerId: string }>
  /** The run ends, and all that it started, deepest first. `parent`: its cell went on without it (from the tree only). */
  | Of<'CancelRequested', { readonly cause: 'user' | 'parent' }>
  /** The whole tree stands down as it is, and can be resumed. Whatever run it is addressed to. */
  | Of<'ShutdownRequested'>
  /** The tree was opened again, after a crash or a shutdown. `epoch` counts the openings, from 1. To the root. */
  | Of<'Resumed', { readonly epoch: number }>;

export type CodeEventType = CodeEvent['type'];
export type On<T extends CodeEventType> = Extract<CodeEvent, { readonly type: T }>;

/** An event and the run that it is for: what is journaled. */
export type TreeEvent = CodeEvent & { readonly node: string };
