import type { StopReason } from '@pawl/agent/machine/event';
import type { Limits, Settings } from '@pawl/agent/machine/settings';
import type { Preset } from '@pawl/agent/policy/preset-rules';

/** Configurations of an exploration: bounds, settings and possible events. */

/** Bounds of an exploration. `Any number`: a value from 1 allows the events everywhere, without a limit. */
export type Bounds = {
  /** Calls of the largest batch: reads, then edits. */
  readonly reads: number;
  readonly edits: number;
  /** Retries of a model call. */
  readonly retries: number;
  /** Messages queued at once, by mode. */
  readonly steers: number;
  readonly followUps: number;
  /** Replies that cost more than the session's limit. */
  readonly budgetStops: number;
  /** Any number: calls that need approval, and answers. */
  readonly approvals: number;
  /** Any number: requests to compact, full windows, overflows. */
  readonly compactions: number;
  /** Any number: cancels of the turn or of one call. */
  readonly cancels: number;
  /** Any number: the session is closed and resumed. */
  readonly shutdowns: number;
  /** Any number: the program crashes and the session is resumed. */
  readonly crashes: number;
  /** Any number: late responses and late usage. */
  readonly late: number;
  /** Any number: duplicate and unsolicited events. */
  readonly duplicates: number;
};

export const defaultBounds: Bounds = {
  reads: 2,
  edits: 1,
  retries: 2,
  steers: 1,
  followUps: 1,
  budgetStops: 1,
  approvals: 1,
  compactions: 1,
  cancels: 1,
  shutdowns: 1,
  crashes: 1,
  late: 1,
  duplicates: 1,
};

/** The size and cost that a reply reports: `costly` crosses the session's limit, `dear` comes near to it. */
export type Spending = 'small' | 'filling' | 'overfull' | 'dear' | 'costly';

/** A reply of the model. Calls are letters, see model-replies.ts. A null `message` is an unreadable reply. */
export type ReplyKind = {
  readonly text?: string;
  readonly calls?: string;
  readonly stop?: StopReason;
  readonly spending?: Spending;
  readonly message?: null;
};

/** `heldBack`: the user's stopping policy refused the call. */
export type FailureChoice = 'passing' | 'final' | 'tooLong' | 'waitTooLong' | 'heldBack';
export type HookChoice = 'clean' | 'dirty' | 'changed' | 'committed' | 'veto' | 'failed';
/** `spent`: a spending call that reports usage beyond the session's limit. */
export type OutcomeChoice = 'ok' | 'long' | 'failed' | 'timedOut' | 'cancelled' | 'lost' | 'spent';

/** Settings of a trace: the differences from the defaults. */
export type ExplorationSettings = Partial<Omit<Settings, 'limits'>> & { readonly limits?: Partial<Limits> };

/** One exploration: settings of the machine and events of its environment. */
export type Configuration = {
  readonly name: string;
  /** Its purpose, as a sentence. */
  readonly about: string;
  readonly preset: Preset;
  readonly patch: ExplorationSettings;
  readonly bounds: Bounds;
  readonly replies: readonly ReplyKind[];
  readonly failures: readonly FailureChoice[];
  readonly outcomes: readonly OutcomeChoice[];
  readonly hooks: readonly HookChoice[];
  /** Scopes of answers to questions. */
  readonly scopes: readonly ('once' | 'shape' | 'session')[];
  /** Whether text is streamed before a reply. */
  readonly streams: boolean;
  /** Settings that the user may change during the session. */
  readonly changes: readonly Partial<Settings>[];
  /** Whether the computer's clock may jump while the session is closed. */
  readonly clockJumps: boolean;
  /** Whether events come for which the state has no edge. */
  readonly misplaced: boolean;
};
