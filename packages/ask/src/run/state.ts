/**
 * The state of one run, a conversation in code mode. The tree holds its children, its account and
 * the other runs (tree-state.ts).
 */

import type { Conversation } from '@pawl/agent/machine/conversation';
import type { ModelErrorKind } from '@pawl/agent/machine/event';
import type { AssistantMessage } from '@pawl/agent/machine/message';
import type { AppendList } from '@pawl/machine/kernel/append-list';
import type { AnsweredSubcall, CellReport, OpenSubcall, PastCell } from './cell-types.js';
import type { FinalForm } from './parse-reply.js';
import type { CodeSettings, InputFacts } from './settings.js';
import type { PolicyReason, Repeat } from './stop-policies.js';

/** The task of a run: the user's question about inputs, or the prompt of a sub-call. */
export type Task =
  | { readonly kind: 'question'; readonly question: string; readonly inputs: readonly InputFacts[] }
  | { readonly kind: 'prompt'; readonly prompt: string };

/**
 * The remaining budget of the run (null: no limit), and the number of calls whose price is unknown.
 * The tree sets it before every step.
 */
export type Purse = {
  readonly left: { readonly usd: number | null; readonly tokens: number | null };
  readonly unpriced: number;
};

type RunTimer = { readonly timerId: string; readonly dueAt: number };

/** Fields that all states share. */
export type Run = {
  readonly nodeId: string;
  readonly depth: number;
  readonly depthMax: number;
  readonly settings: CodeSettings;
  /** `provider/name`. */
  readonly model: string;
  readonly task: Task;
  readonly iterationsMax: number;
  readonly conversation: Conversation;
  /** Characters of the conversation, from which the cost of a call is estimated. */
  readonly characters: number;
  readonly environment: 'none' | 'starting' | 'ready';
  readonly iterations: number;
  readonly counters: {
    readonly request: number;
    readonly cell: number;
    readonly timer: number;
    readonly read: number;
    readonly policy: number;
  };
  /** The cells since variables were last lost, from which an environment is rebuilt. */
  readonly past: AppendList<PastCell>;
  /** Iterations in a row with a failed cell. */
  readonly errors: number;
  /** How often in a row the model wrote the same programs, and got the same output. */
  readonly code: Repeat;
  readonly output: Repeat;
  /** Text of the last stored reply: the partial answer if the run ends without one. */
  readonly lastText: string;
  /** Notes for the model, sent with the next user message. */
  readonly notes: readonly string[];
  /** The reason why the current or next call asks for the answer; null while the run iterates. */
  readonly closing: { readonly reason: PolicyReason; readonly why: string } | null;
  /** `timerId` is null if the parent's timer ends the run. */
  readonly deadline: { readonly dueAt: number; readonly timerId: string | null } | null;
  readonly purse: Purse;
};

/** The phases of one model call, from the decision to the reply. `attempt` counts from 1. */
export type CallTurn =
  | {
      readonly kind: 'deciding';
      readonly attempt: number;
      readonly userPolicy: 'unasked' | 'asked';
    }
  | { readonly kind: 'asking'; readonly attempt: number; readonly policyId: string }
  | { readonly kind: 'calling'; readonly attempt: number; readonly requestId: string }
  | ({ readonly kind: 'retrying'; readonly attempt: number } & RunTimer);

/** A parsed reply. */
export type Reply = {
  /** The message to store; null if there is nothing to store. */
  readonly message: AssistantMessage | null;
  readonly text: string;
  readonly blocks: readonly string[];
  /** `value`: the value of the variable that the reply named. */
  readonly final: FinalForm | { readonly kind: 'value'; readonly text: string } | null;
};

type VariableReading = {
  readonly kind: 'reading';
  readonly readId: string;
  readonly variable: string;
};

/** The cell that runs, with its sub-calls. */
export type RunningCell = {
  readonly kind: 'running';
  readonly cellId: string;
  readonly code: string;
  /** The highest ordinal so far. */
  readonly asked: number;
  /** How many calls differed from the recorded call of the same ordinal. */
  readonly differed: number;
  readonly open: readonly OpenSubcall[];
  readonly answered: AppendList<AnsweredSubcall>;
};

/** `next`: idle. The next move needs no event, unless the environment is still starting. */
type Next = { readonly kind: 'next' };

export type FinishedCell = { readonly cellId: string; readonly report: CellReport };

export type Outcome =
  /**
   * `record`: the answer record, a variable of the programs. `final`: FINAL(text) in a reply.
   * `variable`: FINAL_VAR(name). `limit`: the reply at the limit, as it stands. `reply`: the reply
   * of a plain call.
   */
  | {
      readonly status: 'answered';
      readonly answer: string;
      readonly by: 'record' | 'final' | 'variable' | 'limit' | 'reply';
      /** The reason why the run asked for the answer; null if the model answered unasked. */
      readonly closing: PolicyReason | null;
    }
  | {
      readonly status: 'stopped';
      readonly reason: PolicyReason;
      readonly message: string;
      readonly partial: string;
    }
  | {
      readonly status: 'failed';
      readonly kind: ModelErrorKind | 'environment';
      readonly message: string;
      readonly partial: string;
    }
  | { readonly status: 'cancelled'; readonly cause: 'user' | 'parent'; readonly partial: string };

type Named<N extends string, Own = unknown> = { readonly name: N; readonly run: Run } & Own;

/** A run before its end. */
export type Living =
  | Named<'INIT', { readonly work: { readonly kind: 'new' } | CallTurn }>
  | Named<'SHALLOW_CALL', { readonly work: CallTurn }>
  | Named<'PROMPTING', { readonly reply: Reply; readonly work: Next | VariableReading }>
  | Named<
      'EXECUTING',
      {
        readonly reply: Reply;
        /** Number of the reply's blocks that have been started. */
        readonly started: number;
        readonly cells: readonly FinishedCell[];
        /** Content of the answer record, since it became ready. */
        readonly answer: string | null;
        readonly work: Next | RunningCell | VariableReading | CallTurn;
      }
    >;

export type CodeState =
  | Living
  | Named<
      'DONE',
      {
        readonly outcome: Outcome;
        /**
         * The state in which a limit stopped the run, to continue from if it is raised. Null for
         * every other end.
         */
        readonly stoppedIn: Living | null;
      }
    >;

export type RunStateName = CodeState['name'];
export type RunIn<N extends RunStateName> = Extract<CodeState, { readonly name: N }>;
