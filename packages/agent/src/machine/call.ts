/**
 * One tool call on its way through a batch (the calls of one reply): as the machine keeps it, and
 * how it ended. A judged call is a call with what its tool says of it: whether it is valid, how it
 * behaves, what it touches.
 */

import type { Count } from '@pawl/machine/kernel/shape';
import type { HookVerdicts, JudgedCall } from '../policy/judged-call.js';
import type { Image } from './message.js';
import type { Usage } from './settings.js';

/** How a started call ended. `lost`: unknown, since a crash came. */
export type RanStatus = 'ok' | 'failed' | 'timedOut' | 'cancelled' | 'interrupted' | 'lost';
/** How a call ended that never started. */
export type NeverRanStatus =
  | 'noSuchTool'
  | 'invalid'
  | 'denied'
  | 'truncated'
  | 'skipped'
  | 'cancelled'
  | 'failed';
export type EndedStatus = RanStatus | NeverRanStatus;

/**
 * Lines of a file that the result of the call `by` shows, or that this session wrote beside them.
 * Lines count from 1; without `last` they go up to the end.
 */
export type ShownLines = { readonly by: string; readonly first: Count; readonly last?: Count };

/**
 * A file as a tool last read or wrote it: its real path and the sha256 of its bytes. Without
 * `lines` the call has shown, or written, all of it.
 */
export type SeenFile = {
  readonly path: string;
  readonly sha256: string;
  readonly lines?: readonly ShownLines[];
};

/** The runtime's report on a call that ran. `text` is already cut to the output limit. */
export type CallOutcome = {
  readonly status: 'ok' | 'failed' | 'timedOut' | 'cancelled' | 'lost';
  readonly text: string;
  /**
   * The result in a few words for people (`12 files`), if the call ended ok. Absent: the lines of
   * `text` are counted.
   */
  readonly summary?: string;
  /** Images for the model beside the text, if the call ended ok. */
  readonly images?: readonly Image[];
  /** A unified diff of what an editing tool changed, for people. */
  readonly diff?: string;
  /** `no`: the call did nothing, although its start is in the journal. */
  readonly ran?: 'no';
  /** Usage of a spending call (one that asks models itself), however it ended. */
  readonly usage?: Usage;
  /** sha256 of the full output where `text` was cut. */
  readonly blob?: string;
  /** Files that the call read or wrote, for a resumed session. */
  readonly seen?: readonly SeenFile[];
  /** What hooks said after the call; absent if none ran. */
  readonly hooks?: HookVerdicts;
};

/** A tool's preview of a call: its change, a refusal, or nothing. */
export type CallPreview =
  /** A unified diff of the whole change. */
  | { readonly kind: 'change'; readonly diff: string }
  /** The text for the model. */
  | { readonly kind: 'refused'; readonly text: string }
  | { readonly kind: 'none' };

/** One call of the running batch. */
export type Call = {
  readonly judged: JudgedCall;
  readonly requestedAt: number;
} & (
  | {
      readonly status: 'queued';
      /** `notYet`: it must be asked for, and what it would change depends on calls before it. */
      readonly allowed: 'byPolicy' | 'byUser' | 'notYet';
    }
  /** The tool makes the preview for the question to the user. */
  | { readonly status: 'previewing' }
  | { readonly status: 'awaitingApproval' }
  | {
      readonly status: 'starting';
      readonly allowed: 'byPolicy' | 'byUser';
      /** The timer after which a cancelled call is ended by force; null: it was not cancelled. */
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
      /** Whether it may have had an effect: it started, and did not report that it had not run. */
      readonly ran: boolean;
      readonly startedAt: number | null;
      readonly completedAt: number;
      readonly outcome: {
        readonly failed: boolean;
        readonly text: string;
        readonly images?: readonly Image[];
      };
    }
);

export type EndedCall = Extract<Call, { readonly completedAt: number }>;

export type CallStatus = Call['status'];
