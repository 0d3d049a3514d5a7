import type { StopReason } from '../event.js';
import type { Limits, Preset, Settings } from '../settings.js';

/** What a model of the agent holds: how much of everything, under which settings, and what may happen. */

/** How much of everything. Of what says `any number`, 1 or more offers it wherever it can happen, as often as one likes. */
export type Bounds = {
  /** Calls of the largest batch: reads, then edits. */
  readonly reads: number;
  readonly edits: number;
  /** Retries of a model call. */
  readonly retries: number;
  /** Messages queued at once, by mode. */
  readonly steers: number;
  readonly followUps: number;
  /** Replies that cost more than the session may. */
  readonly budgetStops: number;
  /** Any number: calls that need approval, and answers. */
  readonly approvals: number;
  /** Any number: requests to compact, windows that fill up, overflows. */
  readonly compactions: number;
  /** Any number: of the turn, of one call. */
  readonly cancels: number;
  /** Any number: the session is closed, and opened again. */
  readonly shutdowns: number;
  /** Any number: the program dies and the session is opened again. */
  readonly crashes: number;
  /** Any number: answers to what is over, and late bills. */
  readonly late: number;
  /** Any number: events that came before, or that nobody asked for. */
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

/** How full a reply says that the window is; `costly` crosses the limit of the session, `dear` comes near to it. */
export type Spending = 'small' | 'filling' | 'overfull' | 'dear' | 'costly';

/** A reply of the model. Calls are letters, see replies.ts; `message` null is one that could not be read. */
export type ReplyKind = {
  readonly text?: string;
  readonly calls?: string;
  readonly stop?: StopReason;
  readonly spending?: Spending;
  readonly message?: null;
};

/** `heldBack`: the user's stopping policy did not let the call be sent. */
export type FailureWord = 'passing' | 'final' | 'tooLong' | 'waitTooLong' | 'heldBack';
export type HookWord = 'clean' | 'dirty' | 'changed' | 'committed' | 'veto' | 'failed';
export type OutcomeWord = 'ok' | 'long' | 'failed';

/** Settings as a trace has them: a preset, and what differs from the defaults. */
export type SettingsPatch = Partial<Omit<Settings, 'limits'>> & { readonly limits?: Partial<Limits> };

/** One exploration: a machine with these settings, and a world that does these things. */
export type Configuration = {
  readonly name: string;
  /** What it is for, as a sentence. */
  readonly about: string;
  readonly preset: Preset;
  readonly patch: SettingsPatch;
  readonly bounds: Bounds;
  readonly replies: readonly ReplyKind[];
  readonly failures: readonly FailureWord[];
  readonly outcomes: readonly OutcomeWord[];
  readonly hooks: readonly HookWord[];
  /** How far an answer to a question reaches. */
  readonly scopes: readonly ('once' | 'shape' | 'session')[];
  /** Whether text is streamed before a reply. */
  readonly streams: boolean;
  /** Settings that the user may change under way. */
  readonly changes: readonly Partial<Settings>[];
  /** Whether events come that the state has no arrow for. */
  readonly misplaced: boolean;
};
