/**
 * Actions of a run, a conversation in code mode: what its machine wants done. Plain JSON,
 * performed by the runtime in order. Results return as events; `->` names the event that answers
 * an action. A cell is a program that the model wrote; `ordinal` is the number of one of its calls
 * to models (sub-calls).
 */

import type { PastCell, SubcallKind } from './cell-types.js';
import type { Outcome } from './state.js';
import type { StopFacts } from './stop-policies.js';

/** Content of `context`: the run's inputs, or a text (the prompt of a child run). */
export type Material =
  | { readonly kind: 'inputs' }
  | { readonly kind: 'text'; readonly text: string };

/**
 * `iteration`: asks for the next program. `answer`: asks for the answer. `plain`: the one call
 * without environment.
 */
export type CallPurpose = 'iteration' | 'answer' | 'plain';

export type OutsideAction =
  /**
   * Send the first `length` messages of the run's conversation. -> exactly one ModelReplied or
   * ModelFailed, also after AbortModel. The same `requestId` is sent again only after Resumed.
   */
  | {
      readonly type: 'CallModel';
      readonly requestId: string;
      readonly purpose: CallPurpose;
      readonly length: number;
      readonly depth: number;
      /** The most that it may cost; absent without a limit in dollars. Set by the tree. */
      readonly capUsd?: number;
    }
  | { readonly type: 'AbortModel'; readonly requestId: string }
  /**
   * Start a new environment with `context`, and run the cells of `past` again in order. Their
   * sub-calls are answered from the record in `past`, without events. -> EnvironmentStarted or
   * EnvironmentFailed.
   */
  | {
      readonly type: 'StartEnvironment';
      readonly material: Material;
      readonly past: readonly PastCell[];
    }
  /**
   * -> any number of SubcallAsked, then CellFinished. `deadlineMs` limits the cell's time without
   * its sub-calls.
   */
  | {
      readonly type: 'RunCell';
      readonly cellId: string;
      readonly code: string;
      readonly deadlineMs: number;
    }
  /**
   * The answer to SubcallAsked, one text per prompt; the text of a failed slot begins with `Error:
   * `.
   */
  | {
      readonly type: 'AnswerSubcall';
      readonly cellId: string;
      readonly ordinal: number;
      readonly texts: readonly string[];
    }
  /** -> VariableRead. */
  | { readonly type: 'ReadVariable'; readonly readId: string; readonly variable: string }
  /** Interrupts a running cell, kills the process after a grace period. No event returns. */
  | { readonly type: 'CloseEnvironment' }
  /** Ask the user's predicate (settings.userPolicy). -> PolicyAnswered. */
  | { readonly type: 'AskPolicy'; readonly policyId: string; readonly facts: StopFacts }
  /**
   * -> TimerFired after `delayMs`, wherever the clock is set meanwhile. `dueAt`: when that will
   * probably be.
   */
  | {
      readonly type: 'ScheduleTimer';
      readonly timerId: string;
      readonly dueAt: number;
      readonly delayMs: number;
    }
  | { readonly type: 'CancelTimer'; readonly timerId: string }
  /** A message for the user. */
  | {
      readonly type: 'DisplayWarning';
      readonly kind: 'retry' | 'environment' | 'usage';
      readonly text: string;
    }
  /** The run is over. The root's outcome is the result; a child's is for display only. */
  | { readonly type: 'ReportOutcome'; readonly outcome: Outcome };

/** Actions that the tree performs itself (step-tree.ts); they never reach the runtime. */
export type TreeWish =
  | {
      readonly type: 'StartSubcall';
      readonly cellId: string;
      readonly ordinal: number;
      /**
       * Part of the children's ids: the ordinal, or a new word if a rerun of the cell asked
       * something else.
       */
      readonly word: string;
      readonly kind: SubcallKind;
      readonly prompts: readonly string[];
      readonly model?: string;
    }
  /** Ends the children of one sub-call of the cell, or of all (null), without an answer. */
  | { readonly type: 'StopSubcalls'; readonly cellId: string; readonly ordinal: number | null };

export type CodeAction = OutsideAction | TreeWish;

/** An action and the id of its run. */
export type TreeAction = OutsideAction & { readonly node: string };
