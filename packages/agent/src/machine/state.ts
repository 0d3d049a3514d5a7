/**
 * The states of the machine, the results of moves, and copies of states with some parts changed.
 *
 * A resting state waits for an event. A transient state is passed within one step.
 *
 * From top to bottom: the data of every state; the states; the causes that stop a turn; the results
 * of moves; copies with some parts changed, among them additions to the conversation; reservations;
 * and timers.
 */

import type { Diagnostic, Edge, MoveResult } from '@pawl/machine/kernel/table';
import type { HookVerdicts, JudgedCall } from '../policy/judged-call.js';
import type { Grant } from '../policy/rules.js';
import type { Action, HookPhase, RequestPurpose } from './action.js';
import type { Call } from './call.js';
import {
  addParts,
  addReply,
  addResults,
  addTexts,
  type Conversation,
  imageTokens,
} from './conversation.js';
import type {
  Event,
  FailureKind,
  FailureOrigin,
  HookEffect,
  ModelError,
  QueuedInput,
  RewoundConversation,
  StopReason,
} from './event.js';
import type { AssistantMessage, ResultPart, TextOrigin, UserText } from './message.js';
import type { Dimension, Limit, Settings, UsageTotals } from './settings.js';

/**
 * Fires `delayMs` after it was scheduled, independent of the clock. `dueAt`: that time by the
 * current clock.
 */
export type Timer = { readonly timerId: string; readonly dueAt: number; readonly delayMs: number };

/** Counters and limits of the current turn. */
type TurnProgress = {
  readonly turnId: string;
  readonly rounds: number;
  /** Consecutive replies that were cut off in the middle of their calls. */
  readonly truncations: number;
  readonly streaks: {
    /** Fingerprints of the last batch's calls and results. */
    readonly calls: string;
    readonly results: string;
    readonly repeats: number;
    readonly errors: number;
    readonly sameResults: number;
  };
  /** The limit at which the model was asked for its answer; tools no longer run (`atLimit`). */
  readonly finishing: 'no' | Dimension;
  readonly startedAt: number;
  readonly timeLimit: Timer | null;
  /** Limits that the user was already warned about. */
  readonly warned: readonly Dimension[];
  /** Turns in a row that began because a hook objected to the end of the one before. */
  readonly objections: number;
};

/** Dollars set aside for work whose usage has not come (rules.md#reserve-before-request). */
export type Reservation = {
  /** The id under which the usage comes. */
  readonly id: string;
  /** The worst case. */
  readonly usd: number;
  /** The part of it for output. */
  readonly outputUsd: number;
  /** The most output tokens of its last request; 0: a call that spends. */
  readonly outputTokens: number;
  /** Size of a request that sends the conversation, and its model; null: another one. */
  readonly sent: { readonly model: string; readonly bytes: number } | null;
};

/** The size of an answered request in bytes, and the tokens that its model counted. */
type CountedRequest = {
  readonly model: string;
  readonly bytes: number;
  readonly tokens: number;
};

/** The data that every state carries. */
export type SessionData = {
  readonly conversation: Conversation;
  readonly queue: readonly QueuedInput[];
  readonly settings: Settings;
  readonly grants: readonly Grant[];
  readonly usage: UsageTotals;
  /**
   * Ids of requests, compactions and hooks without usage so far (rules.md#usage-counts-once).
   */
  readonly unaccounted: readonly string[];
  /** Tokens of the conversation: the model's last count plus an estimate of later messages. */
  readonly contextTokens: number;
  /** The amounts that `autoRearm` adds to a limit: the limits as they were first set. */
  readonly slices: { readonly usd: Limit; readonly tokens: Limit };
  /** Consecutive empty replies (rules.md#empty-reply). */
  readonly emptyReplies: number;
  /**
   * `no` from the start of an automatic compaction to the next reply or input
   * (rules.md#one-compaction-between-replies).
   */
  readonly mayCompact: 'yes' | 'no';
  /** Notes for the model, sent with the next user message. */
  readonly notes: readonly string[];
  readonly turn: TurnProgress;
  readonly counters: {
    readonly request: number;
    readonly batch: number;
    readonly timer: number;
    readonly hook: number;
    readonly compaction: number;
    readonly input: number;
    readonly turn: number;
  };
  readonly epoch: number;
  /** Of $0 without a limit in dollars. */
  readonly reserved: readonly Reservation[];
  /**
   * The last request of this conversation whose tokens the model counted, or NOTHING_COUNTED.
   * RequestMeasured tells of the next request.
   */
  readonly measured: CountedRequest;
  /** Pictures that a provider has refused, by hash: no request shows them. */
  readonly refusedPictures: readonly string[];
};

/** Why the machine waits for the user. */
export type WaitReason =
  | { readonly kind: 'start' }
  | { readonly kind: 'endOfTurn'; readonly cause: 'answer' | 'empty' | 'refused' | 'truncated' }
  | { readonly kind: 'cancelled'; readonly cause: CancelledCause }
  | { readonly kind: 'budget'; readonly dimension: Dimension }
  | {
      readonly kind: 'error';
      readonly error: FailureKind;
      readonly origin: FailureOrigin;
      readonly message: string;
    }
  | { readonly kind: 'compacted' }
  | { readonly kind: 'rewound' }
  | { readonly kind: 'resumed' };

/**
 * What follows when nothing else happens. `rest`: wait for the user. `sendQueue`: send the queue.
 * `sendAgain`: send the same conversation again (rules.md#nothing-to-wait-for,
 * rules.md#begin-turn).
 */
type NextTurn = 'rest' | 'sendQueue' | 'sendAgain';

/** A state with its name, the session, and other fields. */
type StateWith<N extends string, Fields = unknown> = {
  readonly name: N;
  readonly session: SessionData;
} & Fields;

export type RestingState =
  | StateWith<'Ready'>
  | StateWith<'WaitingForUserInput', { readonly reason: WaitReason; readonly next: NextTurn }>
  | StateWith<
      'CallingLlm',
      {
        readonly purpose: RequestPurpose;
        readonly requestId: string;
        /** From 1. */
        readonly attempt: number;
        /** Text of the reply so far. */
        readonly partial: string;
        /** `draining`: the turn was cancelled, and its reply is still awaited (`cancelMode`). */
        readonly call:
          | { readonly mode: 'open' }
          | { readonly mode: 'draining'; readonly cause: CancelCause };
      }
    >
  | StateWith<
      'Error',
      {
        readonly purpose: RequestPurpose;
        readonly attempt: number;
        readonly error: { readonly kind: ModelError['kind'] | 'empty'; readonly message: string };
        readonly timerId: string;
        readonly dueAt: number;
        readonly delayMs: number;
      }
    >
  | StateWith<
      'ExecutingTools',
      {
        readonly batchId: string;
        readonly calls: readonly Call[];
        readonly phase:
          | { readonly mode: 'running' }
          /**
           * A call was denied because no user can be asked (`onAsk: stop`): the turn ends after the
           * batch.
           */
          | { readonly mode: 'stopping' }
          | {
              readonly mode: 'cancelling';
              readonly graceTimerId: string | null;
              readonly cause: CancelCause;
            };
      }
    >
  | StateWith<
      'PostToolsHook',
      {
        readonly phase: HookPhase;
        readonly hookId: string;
        /**
         * Mutating calls of the batch that ran; with `hooks: mutatingOk` only those that ended ok.
         */
        readonly mutated: readonly string[];
        /** The working tree as the last completed phase saw it. */
        readonly tree: 'unknown' | 'clean' | 'dirty';
        /** Effects that the phase was about to have, for a resumed session; absent: none. */
        readonly prepared?: readonly HookEffect[];
      }
    >
  | StateWith<
      'Compacting',
      {
        readonly compactionId: string;
        /** Messages that the summary replaces. */
        readonly length: number;
        /** What the summary must keep, in the user's words. */
        readonly instructions?: string;
        readonly mode:
          | { readonly kind: 'idle'; readonly resume: NextTurn }
          | { readonly kind: 'mid' }
          | {
              readonly kind: 'overflow';
              readonly purpose: RequestPurpose;
              readonly attempt: number;
            };
      }
    >
  | StateWith<
      'Rewinding',
      {
        readonly rewindId: string;
        /** The entry to which the session goes. */
        readonly to: number;
        /** sha256 of the stored plan. */
        readonly plan: string;
        /** The conversation when the files are done; absent: it stays. */
        readonly conversation?: RewoundConversation;
      }
    >
  | StateWith<'ShuttingDown'>;

/** A reply in the transient states between its arrival and the tools. */
export type PendingReply = {
  readonly message: AssistantMessage | null;
  readonly calls: readonly JudgedCall[];
  readonly stopReason: StopReason;
  /** Text that was already streamed to the user. */
  readonly shown: string;
  /** Why the turn was cancelled while the reply was awaited; null if it was not. */
  readonly draining: CancelCause | null;
  readonly requestId: string;
  readonly hooks: HookVerdicts;
};

export type TransientState =
  | StateWith<'ProcessingLlmResponse', { readonly reply: PendingReply }>
  /** `objected`: a hook wants the model to continue. */
  | StateWith<
      'EndOfTurn',
      { readonly cause: 'answer' | 'empty' | 'refused' | 'truncated'; readonly objected?: 'yes' }
    >
  | StateWith<'ToolUseRequested', { readonly reply: PendingReply }>
  | StateWith<'CheckingForCancellation', { readonly reply: PendingReply }>
  | StateWith<'CheckingBudget'>
  | StateWith<'GatheringAdditionalMessages'>
  /** `text`: the notice for the user. */
  | StateWith<'Cancelled', { readonly cause: CancelledCause; readonly text: string }>
  /** `unpaid`: why the next request does not fit; absent: the limit is reached. */
  | StateWith<'BudgetExceeded', { readonly dimension: Dimension; readonly unpaid?: string }>
  | StateWith<'Failed', { readonly error: FailureKind; readonly message: string }>;

export type State = RestingState | TransientState;
export type StateName = State['name'];
/** The state of this name. */
export type In<N extends StateName> = Extract<State, { readonly name: N }>;

/** Why a turn ended in Cancelled: the user, a hook, a missing approval, a stopping policy. */
export type CancelledCause = 'user' | 'veto' | 'approval' | 'policy';

/** The consequences of a cause that stops a turn. */
type CancelFacts = {
  /** The state in which the turn ends, with its reason. */
  readonly ends:
    | { readonly state: 'Cancelled'; readonly cause: CancelledCause }
    | { readonly state: 'BudgetExceeded'; readonly dimension: Dimension };
  /** Part of the note for the model, after `interrupted`. */
  readonly note: string;
  /** Part of the result of a running call. */
  readonly by: string;
  /** Part of the result of a call that had not started. */
  readonly notRun: string;
};

/** Causes that stop a turn from outside. A new cause needs one entry here and its event. */
const cancelCauses = {
  user: {
    ends: { state: 'Cancelled', cause: 'user' },
    note: ' by the user',
    by: 'by the user',
    notRun: 'cancelled by user',
  },
  time: {
    ends: { state: 'BudgetExceeded', dimension: 'time' },
    note: ': the time limit of the turn was reached',
    by: 'by the time limit',
    notRun: 'the time limit of the turn was reached',
  },
} as const satisfies Readonly<Record<string, CancelFacts>>;

export type CancelCause = keyof typeof cancelCauses;

export const cancelFacts = (cause: CancelCause): CancelFacts => cancelCauses[cause];

/**
 * Whether a turn is running: it has begun and has not returned to the user. A compaction before a
 * turn does not count. A new state does not compile until it has a case here.
 */
export const turnRuns = (state: State): boolean => {
  switch (state.name) {
    case 'Ready':
    case 'WaitingForUserInput':
    case 'Rewinding':
    case 'ShuttingDown':
      return false;
    case 'Compacting':
      return state.mode.kind !== 'idle';
    case 'CallingLlm':
    case 'Error':
    case 'ExecutingTools':
    case 'PostToolsHook':
    case 'ProcessingLlmResponse':
    case 'EndOfTurn':
    case 'ToolUseRequested':
    case 'CheckingForCancellation':
    case 'CheckingBudget':
    case 'GatheringAdditionalMessages':
    case 'Cancelled':
    case 'BudgetExceeded':
    case 'Failed':
      return true;
    default:
      return state satisfies never;
  }
};

/** A step of the machine as observers see it. */
type ObservedStep = {
  readonly event: Event;
  readonly actions: readonly Action[];
  readonly path: readonly Edge[];
  readonly diagnostics: readonly Diagnostic[];
};

/**
 * Whether the machine ignored the event (rules.md#stale-events): it answers work that has ended and
 * leads to no action, so it is not shown. A text of the user is never ignored: after the last turn
 * it waits in the queue.
 */
export const isIgnored = ({ event, actions, path, diagnostics }: ObservedStep): boolean =>
  event.type !== 'UserInput' &&
  diagnostics.length > 0 &&
  actions.length === 0 &&
  path.every(({ kind }) => kind === 'stay');

/** Whether the program is working: a turn runs, a compaction before one, or a rewind. */
export const isBusy = (state: State): boolean =>
  turnRuns(state) || state.name === 'Compacting' || state.name === 'Rewinding';

/** Dollars spent, at least; null if the price of a call is unknown. */
export const knownCostUsd = ({ unpriced, costUsd }: UsageTotals): number | null =>
  unpriced > 0 ? null : costUsd;

// ---- Results of moves ----

/** The result of a move that leads to state N. */
export type MoveTo<N extends StateName> = MoveResult<In<N>, Action>;

/** The result of a move that stays in its state. */
export type Stay<S extends State> = MoveResult<S, Action>;

/** A changed session and the actions that go with the change, whatever state follows. */
export type SessionUpdate = { readonly session: SessionData; readonly actions: readonly Action[] };

/** The next state and the actions that go with it, in order. */
export const go = <S extends State>(state: S, ...actions: readonly Action[]): Stay<S> => ({
  state,
  actions,
});

/** The unchanged state, and why the event changed nothing. */
export const ignore = <S extends State>(state: S, late: string): Stay<S> => ({
  state,
  actions: [],
  late,
});

/** The same state with another session. */
export const withSession = <S extends State>(state: S, session: SessionData): S =>
  // A spread keeps all fields of S and replaces `session` by a value of its own type.
  ({ ...state, session }) as S;

/*
 * ---- Copies with some fields changed ----
 *
 * 1. Every copy has all fields in one order, which keeps engines fast. Nested spreads (`{
 *    ...session, … }`) made steps take twice as long.
 * 2. A field that is left out keeps its value. No field is ever undefined.
 */

/** The new value, or the old one if there is none. */
const newOr = <T>(value: T | undefined, before: T): T => (value === undefined ? before : value);

/** The model has counted no request of this conversation: it is new, or was replaced. */
export const NOTHING_COUNTED: CountedRequest = { model: '', bytes: 0, tokens: 0 };

/** The session with parts changed. */
export const changeSession = (session: SessionData, parts: Partial<SessionData>): SessionData => ({
  conversation: newOr(parts.conversation, session.conversation),
  queue: newOr(parts.queue, session.queue),
  settings: newOr(parts.settings, session.settings),
  grants: newOr(parts.grants, session.grants),
  usage: newOr(parts.usage, session.usage),
  unaccounted: newOr(parts.unaccounted, session.unaccounted),
  contextTokens: newOr(parts.contextTokens, session.contextTokens),
  slices: newOr(parts.slices, session.slices),
  emptyReplies: newOr(parts.emptyReplies, session.emptyReplies),
  mayCompact: newOr(parts.mayCompact, session.mayCompact),
  notes: newOr(parts.notes, session.notes),
  turn: newOr(parts.turn, session.turn),
  counters: newOr(parts.counters, session.counters),
  epoch: newOr(parts.epoch, session.epoch),
  reserved: newOr(parts.reserved, session.reserved),
  measured: newOr(parts.measured, session.measured),
  refusedPictures: newOr(parts.refusedPictures, session.refusedPictures),
});

/** The session with parts of its turn changed. */
export const changeTurn = (session: SessionData, parts: Partial<TurnProgress>): SessionData => {
  const { turn } = session;
  return changeSession(session, {
    turn: {
      turnId: newOr(parts.turnId, turn.turnId),
      rounds: newOr(parts.rounds, turn.rounds),
      truncations: newOr(parts.truncations, turn.truncations),
      streaks: newOr(parts.streaks, turn.streaks),
      finishing: newOr(parts.finishing, turn.finishing),
      startedAt: newOr(parts.startedAt, turn.startedAt),
      timeLimit: newOr(parts.timeLimit, turn.timeLimit),
      warned: newOr(parts.warned, turn.warned),
      objections: newOr(parts.objections, turn.objections),
    },
  });
};

type Counters = SessionData['counters'];

/** The session with one of its counters at another count. */
export const changeCounter = (
  session: SessionData,
  kind: keyof Counters,
  count: number,
): SessionData => changeSession(session, { counters: { ...session.counters, [kind]: count } });

type Calling = In<'CallingLlm'>;
export const changeCalling = (state: Calling, parts: Partial<Calling>): Calling => ({
  name: 'CallingLlm',
  session: newOr(parts.session, state.session),
  purpose: newOr(parts.purpose, state.purpose),
  requestId: newOr(parts.requestId, state.requestId),
  attempt: newOr(parts.attempt, state.attempt),
  partial: newOr(parts.partial, state.partial),
  call: newOr(parts.call, state.call),
});

type Batch = In<'ExecutingTools'>;
export const changeBatch = (batch: Batch, parts: Partial<Batch>): Batch => ({
  name: 'ExecutingTools',
  session: newOr(parts.session, batch.session),
  batchId: newOr(parts.batchId, batch.batchId),
  calls: newOr(parts.calls, batch.calls),
  phase: newOr(parts.phase, batch.phase),
});

/**
 * The next id of a kind, e.g. `req-3`, and the session with the counter raised. Replay gives the
 * same ids.
 */
export const nextId = (
  session: SessionData,
  kind: keyof Counters,
): readonly [string, SessionData] => {
  const count = session.counters[kind] + 1;
  return [`${idWords[kind]}-${count}`, changeCounter(session, kind, count)];
};

const idWords: Readonly<Record<keyof Counters, string>> = {
  request: 'req',
  batch: 'batch',
  timer: 'timer',
  hook: 'hook',
  compaction: 'compaction',
  input: 'input',
  turn: 'turn',
};

// ---- Additions to the conversation, with the estimate of its size ----

const charactersPerToken = 4;

/** The size after an addition, estimated until a provider has counted. */
const grownTokens = (session: SessionData, characters: number, tokens = 0): number =>
  session.contextTokens + tokens + Math.ceil(characters / charactersPerToken);

const countImageTokens = (parts: readonly (ResultPart | UserText)[]): number =>
  parts.reduce((sum, part) => sum + imageTokens(part), 0);

const totalLength = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + text.length, 0);

/** Adds text to the trailing user message, or begins one. */
export const appendTexts = (
  session: SessionData,
  origin: TextOrigin,
  texts: readonly string[],
): SessionData =>
  changeSession(session, {
    conversation: addTexts(session.conversation, origin, texts),
    contextTokens: grownTokens(session, totalLength(texts)),
  });

/** Adds inputs of the user, with their images, to the trailing user message. */
export const appendInputs = (session: SessionData, inputs: readonly QueuedInput[]): SessionData => {
  const parts = inputs.map(({ text, images }): UserText => {
    const shown = images === undefined ? {} : { images };
    return { type: 'text', origin: 'user', text, ...shown };
  });
  return changeSession(session, {
    conversation: addParts(session.conversation, parts),
    contextTokens: grownTokens(
      session,
      totalLength(inputs.map(({ text }) => text)),
      countImageTokens(parts),
    ),
  });
};

/** Appends the results for the calls of the last reply, in call order. */
export const appendResults = (session: SessionData, results: readonly ResultPart[]): SessionData =>
  changeSession(session, {
    conversation: addResults(session.conversation, results),
    contextTokens: grownTokens(
      session,
      totalLength(results.map((result) => result.text)),
      countImageTokens(results),
    ),
  });

/**
 * Stores the received part of a stopped reply and estimates its size, since no provider counted it.
 */
export const appendPartialReply = (
  session: SessionData,
  reply: AssistantMessage,
  text: string,
): SessionData =>
  changeSession(appendReply(session, reply), {
    contextTokens: grownTokens(session, text.length),
  });

/** Stores a complete reply. The provider's count replaces the estimate (`readReply`). */
export const appendReply = (session: SessionData, reply: AssistantMessage): SessionData =>
  changeSession(session, {
    conversation: addReply(session.conversation, reply),
  });

// ---- Dollars that are set aside ----

/** The sum, except for these ids. */
export const reservedUsd = (session: SessionData, except: readonly string[] = []): number =>
  withoutReservations(session, except).reduce((sum, { usd }) => sum + usd, 0);

export const findReservation = ({ reserved }: SessionData, id: string): Reservation | undefined =>
  reserved.find((one) => one.id === id);

export const withoutReservations = (
  { reserved }: SessionData,
  ids: readonly string[],
): readonly Reservation[] => reserved.filter(({ id }) => !ids.includes(id));

/** The usage id of the state's work, if its requests are measured; else null. */
export const measuredId = (state: State): string | null => {
  switch (state.name) {
    case 'CallingLlm':
      return state.requestId;
    case 'Compacting':
      return state.compactionId;
    case 'PostToolsHook':
      return state.hookId;
    default:
      return null;
  }
};

/*
 * ---- Timers ----
 *
 * The computer's clock may jump, so a timer counts only its delay. Times of events estimate how
 * much of the delay is over, clamped to the delay.
 */

export const clamp = (value: number, most: number): number => Math.min(Math.max(value, 0), most);

/** The action that schedules a timer. */
export const schedule = ({ timerId, dueAt, delayMs }: Timer): Action => ({
  type: 'ScheduleTimer',
  timerId,
  dueAt,
  delayMs,
});

export const timerFrom = (timerId: string, at: number, delayMs: number): Timer => ({
  timerId,
  dueAt: at + delayMs,
  delayMs,
});

/** The rest of a timer. After a resume, the time since `stoppedAt` does not count. */
export const remainingTimer = (
  { timerId, dueAt, delayMs }: Timer,
  at: number,
  stoppedAt = at,
): Timer => timerFrom(timerId, at, clamp(dueAt - stoppedAt, delayMs));
