import type { Conversation } from '../agent/conversation.js';
import type { ModelErrorKind } from '../agent/event.js';
import type { AssistantMessage } from '../agent/message.js';
import type { Log } from '../kernel/log.js';
import type { AnsweredSubcall, CellReport, OpenSubcall, PastCell } from './cell.js';
import type { FinalForm } from './final.js';
import type { Repeat, StopReason } from './policies.js';
import type { CodeSettings, InputFacts } from './settings.js';

/** What one run knows. Its children, its money and the runs beside it are the tree's (tree-state.ts). */

/** What a run is for: the user's question about inputs, or the prompt of a sub-call. */
export type Task =
  | { readonly kind: 'question'; readonly question: string; readonly inputs: readonly InputFacts[] }
  | { readonly kind: 'prompt'; readonly prompt: string };

/** What the run may still spend, as the tree sees it at the event: put in before every step. */
export type Purse = {
  readonly left: { readonly usd: number | null; readonly tokens: number | null };
  readonly unpriced: number;
};

export type Timer = { readonly timerId: string; readonly dueAt: number };

/** What every state carries. */
export type Run = {
  readonly nodeId: string;
  readonly depth: number;
  readonly depthMax: number;
  readonly settings: CodeSettings;
  readonly task: Task;
  readonly iterationsMax: number;
  readonly conversation: Conversation;
  /** Characters that a request sends: what a call is expected to cost is counted from it. */
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
  /** The cells since variables were last lost: what an environment is built again from. */
  readonly past: Log<PastCell>;
  readonly errors: number;
  readonly code: Repeat;
  readonly output: Repeat;
  /** What the last reply said that said anything: part of an answer, if the run ends without one. */
  readonly lastText: string;
  /** Told to the model with the next user message. */
  readonly notes: readonly string[];
  /** Why the call that is made, or comes next, asks for the answer; null while the run iterates. */
  readonly closing: { readonly reason: StopReason; readonly why: string } | null;
  /** `timer` is null where the parent's ends the run in time. */
  readonly deadline: { readonly dueAt: number; readonly timerId: string | null } | null;
  readonly purse: Purse;
};

/** One model call, from the thought of it to its reply. `attempt` counts from 1. */
export type Turn =
  | { readonly kind: 'deciding'; readonly attempt: number; readonly userPolicy: 'unasked' | 'asked' }
  | { readonly kind: 'asking'; readonly attempt: number; readonly policyId: string }
  | { readonly kind: 'calling'; readonly attempt: number; readonly requestId: string }
  | ({ readonly kind: 'retrying'; readonly attempt: number } & Timer);

/** A reply as it was read. */
export type Reply = {
  /** What is stored; null where there is nothing. */
  readonly message: AssistantMessage | null;
  readonly text: string;
  readonly blocks: readonly string[];
  /** `value`: of the variable that the reply named. */
  readonly final: FinalForm | { readonly kind: 'value'; readonly text: string } | null;
};

export type Reading = { readonly kind: 'reading'; readonly readId: string; readonly variable: string };

/** The cell that runs, with its sub-calls. */
export type RunningCell = {
  readonly kind: 'running';
  readonly cellId: string;
  readonly code: string;
  /** The highest ordinal so far. */
  readonly asked: number;
  /** How often an ordinal was asked otherwise than before. */
  readonly differed: number;
  readonly open: readonly OpenSubcall[];
  readonly answered: Log<AnsweredSubcall>;
};

/** `next`: nothing is under way; what comes next is decided without an event, unless the environment is still starting. */
type Next = { readonly kind: 'next' };

export type FinishedCell = { readonly cellId: string; readonly report: CellReport };

export type Outcome =
  /** `limit`: the reply at the limit, as it stands. `reply`: the reply of a plain call. */
  | {
      readonly status: 'answered';
      readonly answer: string;
      readonly by: 'record' | 'final' | 'variable' | 'limit' | 'reply';
      /** Why the answer was asked for; null where it was given freely. */
      readonly closing: StopReason | null;
    }
  | {
      readonly status: 'stopped';
      readonly reason: StopReason;
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

export type CodeState =
  | Named<'INIT', { readonly work: { readonly kind: 'new' } | Turn }>
  | Named<'SHALLOW_CALL', { readonly work: Turn }>
  | Named<'PROMPTING', { readonly reply: Reply; readonly work: Next | Reading }>
  | Named<
      'EXECUTING',
      {
        readonly reply: Reply;
        /** Blocks of the reply that have been started. */
        readonly started: number;
        readonly cells: readonly FinishedCell[];
        /** Content of the answer record, since it became ready. */
        readonly answer: string | null;
        readonly work: Next | RunningCell | Reading | Turn;
      }
    >
  | Named<'DONE', { readonly outcome: Outcome }>;

export type StateName = CodeState['name'];
export type In<N extends StateName> = Extract<CodeState, { readonly name: N }>;
