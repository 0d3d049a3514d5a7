import type { PastCell, SubcallKind } from './cell.js';
import type { StopFacts } from './policies.js';
import type { Outcome } from './state.js';

/** Wishes for the runtime: plain JSON, performed in order; what comes of them returns as events. */

/** What `context` holds: the files that were given, or a text (the prompt of a child). */
export type Material = { readonly kind: 'inputs' } | { readonly kind: 'text'; readonly text: string };

/** `iteration`: the next program. `answer`: the last call, for the answer. `plain`: the only call of a run without environment. */
export type CallPurpose = 'iteration' | 'answer' | 'plain';

export type OutsideAction =
  /**
   * Send the first `length` messages of the run's conversation. -> exactly one ModelReplied or ModelFailed, also after
   * AbortModel. The same `requestId` may be asked for again after Resumed only.
   */
  | {
      readonly type: 'CallModel';
      readonly requestId: string;
      readonly purpose: CallPurpose;
      readonly length: number;
      readonly depth: number;
    }
  | { readonly type: 'AbortModel'; readonly requestId: string }
  /**
   * A fresh environment with `context`, in which the cells of `past` are run again in order, their sub-calls answered from
   * what is recorded with them and not by events. -> EnvironmentStarted or EnvironmentFailed.
   */
  | {
      readonly type: 'StartEnvironment';
      readonly material: Material;
      readonly past: readonly PastCell[];
    }
  /** -> CellFinished, and SubcallAsked in between. `deadlineMs` is time of its own work, without its sub-calls. */
  | {
      readonly type: 'RunCell';
      readonly cellId: string;
      readonly code: string;
      readonly deadlineMs: number;
    }
  /** The answer to SubcallAsked, one text per prompt; a failed slot begins `Error: `. */
  | {
      readonly type: 'AnswerSubcall';
      readonly cellId: string;
      readonly ordinal: number;
      readonly texts: readonly string[];
    }
  /** -> VariableRead. */
  | { readonly type: 'ReadVariable'; readonly readId: string; readonly variable: string }
  /** Interrupts a cell that runs, kills after a grace, leaves no process. Nothing comes back. */
  | { readonly type: 'CloseEnvironment' }
  /** Ask the user's predicate (settings.userPolicy). -> PolicyAnswered. */
  | { readonly type: 'AskPolicy'; readonly policyId: string; readonly facts: StopFacts }
  /** -> TimerFired at `dueAt`; at once if that is over. */
  | { readonly type: 'ScheduleTimer'; readonly timerId: string; readonly dueAt: number }
  | { readonly type: 'CancelTimer'; readonly timerId: string }
  /** For the user's eyes. */
  | { readonly type: 'DisplayWarning'; readonly kind: 'retry' | 'environment'; readonly text: string }
  /** The run is over: of the root it is the result, of a child it is for display. */
  | { readonly type: 'ReportOutcome'; readonly outcome: Outcome };

/** What the tree does itself (tree.ts): nobody outside sees these. */
export type TreeWish =
  | {
      readonly type: 'StartSubcall';
      readonly cellId: string;
      readonly ordinal: number;
      /** Its word in the names of its children: the ordinal, or another one if the cell has asked otherwise before. */
      readonly word: string;
      readonly kind: SubcallKind;
      readonly prompts: readonly string[];
    }
  /** What a sub-call of the cell, or all of them, have started ends, without an answer. */
  | { readonly type: 'StopSubcalls'; readonly cellId: string; readonly ordinal: number | null };

export type CodeAction = OutsideAction | TreeWish;

/** An action and the run that it is of. */
export type TreeAction = OutsideAction & { readonly node: string };
