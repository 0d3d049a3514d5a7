import type { Image, JsonObject } from './message.js';
import type { Usage } from './usage.js';

/** How a call behaves when it is interrupted: `pure` may run again, `probeable` can be looked at, `opaque` never runs again by itself. */
export type Effect = 'pure' | 'probeable' | 'opaque';

export type CallTraits = {
  readonly effect: Effect;
  readonly parallelSafe: boolean;
  readonly mutating: boolean;
  readonly deadlineMs: number;
  /** The call makes model calls of its own: its outcome brings their usage. */
  readonly spends?: 'yes';
  /** `list`: the result is a list of what is to be done, which stays in sight until the next one. */
  readonly shown?: 'list';
};

/** What the runtime found out about a call before it reached the journal; policy decides from these alone. */
export type CallFacts = {
  /** The words of a command, or none. */
  readonly argv: readonly string[];
  /** Real absolute paths the call touches. */
  readonly paths: readonly string[];
  readonly hosts: readonly string[];
  /** What "always for this shape of call" covers, e.g. the exact command or the file. */
  readonly shape: string;
};

export type Verdict =
  | { readonly kind: 'ok' }
  | { readonly kind: 'noSuchTool'; readonly known: readonly string[] }
  | { readonly kind: 'invalid'; readonly field: string; readonly why: string };

/** A tool call with everything the machine needs to decide about it (R0d). */
export type JudgedCall = {
  readonly callId: string;
  readonly tool: string;
  readonly input: JsonObject;
  readonly rawInput?: string;
  readonly verdict: Verdict;
  readonly traits: CallTraits;
  readonly facts: CallFacts;
};

/** How a call that had started ended. */
export type RanStatus = 'ok' | 'failed' | 'timedOut' | 'cancelled' | 'interrupted' | 'lost';
/** How a call that never started ended. */
export type NeverRanStatus = 'noSuchTool' | 'invalid' | 'denied' | 'truncated' | 'skipped' | 'cancelled';
export type EndedStatus = RanStatus | NeverRanStatus;

/** A file as a tool last read or wrote it: its real path and the sha256 of its bytes. */
export type SeenFile = { readonly path: string; readonly sha256: string };

/** What the runtime reports of a call that ran. `text` is already cut to the output limit. */
export type CallOutcome = {
  readonly status: Extract<RanStatus, 'ok' | 'failed' | 'timedOut' | 'cancelled' | 'lost'>;
  readonly text: string;
  /** sha256 of the full output where `text` was cut. */
  readonly blob?: string;
  /** Of a call that ended ok: what the model is shown besides the text. */
  readonly images?: readonly Image[];
  /** A unified diff of what an editing tool changed, for people. */
  readonly diff?: string;
  /** `no` of a call that was stopped before it did anything, although its start is in the journal. */
  readonly ran?: 'no';
  /** Files that the call read or wrote: a session that is opened again remembers them. */
  readonly seen?: readonly SeenFile[];
  /** What a call that spends has spent, however it ended. */
  readonly usage?: Usage;
};

/** One call of the running batch. */
export type Call = { readonly judged: JudgedCall; readonly requestedAt: number } & (
  | { readonly status: 'queued'; readonly allowed: 'byPolicy' | 'byUser' }
  | { readonly status: 'awaitingApproval' }
  | {
      readonly status: 'starting';
      readonly allowed: 'byPolicy' | 'byUser';
      readonly graceTimerId: string | null;
    }
  | {
      readonly status: 'running';
      readonly allowed: 'byPolicy' | 'byUser';
      readonly startedAt: number;
      readonly graceTimerId: string | null;
    }
  | {
      readonly status: EndedStatus;
      readonly startedAt: number | null;
      readonly completedAt: number;
      readonly outcome: {
        readonly failed: boolean;
        readonly text: string;
        readonly images?: readonly Image[];
      };
    }
);

export type CallStatus = Call['status'];
