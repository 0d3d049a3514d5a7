/**
 * What one exploration does: bounds, settings and possible events, as the type `Configuration`;
 * below it, the replies of the explored model. The configurations themselves are in
 * configurations.ts.
 */

import type { On, StopReason } from '@pawl/agent/machine/event';
import type { AssistantMessage, AssistantPart } from '@pawl/agent/machine/message';
import type { Limits, Settings, Usage } from '@pawl/agent/machine/settings';
import type { CallVerdict, JudgedCall } from '@pawl/agent/policy/judged-call';
import type { Preset } from '@pawl/agent/policy/presets';

/**
 * Bounds of an exploration. `Any number`: a value from 1 allows the events everywhere, without a
 * limit.
 */
export type Bounds = {
  /** Calls of the largest batch: reads, then edits. */
  readonly reads: number;
  readonly edits: number;
  /** Retries of a model call. */
  readonly retries: number;
  /** Messages queued at once: for the next round, and for the next turn. */
  readonly steers: number;
  readonly followUps: number;
  /** Replies that come near to the session's limit, or cost more. */
  readonly budgetStops: number;
  /** Any number: calls that need approval, and answers. */
  readonly approvals: number;
  /** Any number: requests to compact, full windows, overflows. */
  readonly compactions: number;
  /** Any number: files and the conversation are taken back. */
  readonly rewinds: number;
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
  rewinds: 1,
  cancels: 1,
  shutdowns: 1,
  crashes: 1,
  late: 1,
  duplicates: 1,
};

/**
 * The size and cost that a reply reports. `filling` exceeds the threshold of a compaction,
 * `overfull` the window; `costly` crosses the session's limit, `dear` comes near to it.
 */
type Spending = 'small' | 'filling' | 'overfull' | 'dear' | 'costly';

/**
 * A reply of the model. Calls are letters, see `letters`. A null `message` is an unreadable reply.
 */
export type ReplyKind = {
  readonly text?: string;
  readonly calls?: string;
  readonly stop?: StopReason;
  readonly spending?: Spending;
  readonly message?: null;
};

/**
 * `passing`: a retry may help; `final`: none does. `waitTooLong`: the provider asks for a longer
 * wait than the settings allow. `heldBack`: the user's stopping policy refused the call. `picture`:
 * the provider refuses a picture.
 */
export type FailureChoice =
  | 'passing'
  | 'final'
  | 'tooLong'
  | 'waitTooLong'
  | 'heldBack'
  | 'picture';
/** `dirty`: it leaves changes without a commit. `veto`: it stops the turn. */
export type HookChoice = 'clean' | 'dirty' | 'changed' | 'committed' | 'veto' | 'failed';
/** `spent`: a spending call that reports usage beyond the session's limit. `picture`: with one. */
export type OutcomeChoice =
  | 'ok'
  | 'long'
  | 'picture'
  | 'failed'
  | 'timedOut'
  | 'cancelled'
  | 'lost'
  | 'spent';

/** Settings of a trace: the differences from the defaults. */
export type ExplorationSettings = Partial<Omit<Settings, 'limits'>> & {
  readonly limits?: Partial<Limits>;
};

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
  /** What an approval covers: the call, all calls of the same shape, or the whole session. */
  readonly scopes: readonly ('once' | 'shape' | 'session')[];
  /** Whether text is streamed before a reply. */
  readonly streams: boolean;
  /** Settings that the user may change during the session. */
  readonly changes: readonly Partial<Settings>[];
  /** Whether the computer's clock may jump while the session is closed. */
  readonly clockJumps: boolean;
  /** Whether requests are measured before they leave, and charged. */
  readonly charges: boolean;
  /** Whether events come for which the state has no edge. */
  readonly misplaced: boolean;
};

// ---- Replies of the explored model, built once and shared by all steps ----

/** Tokens of the window: so many that texts alone never reach a threshold. */
export const windowTokens = 1_000_000;
/** A dollar limit that a costly reply crosses and a dear reply comes near to. */
export const usdLimit = 5;
/** The value of a raised limit: more than an exploration can spend. */
export const raisedLimit = 1_000;

/**
 * Letters for calls: R read, T read with the first id, E edit, P edit with preview, S spend, Q
 * question, A plan, N unknown, I invalid.
 */
const letters: Readonly<
  Record<
    string,
    {
      readonly name: string;
      readonly mutating: boolean;
      readonly verdict: CallVerdict;
      readonly previews?: 'yes';
      readonly spends?: 'yes';
      readonly asks?: 'question' | 'plan';
    }
  >
> = {
  R: { name: 'grep', mutating: false, verdict: { kind: 'ok' } },
  T: { name: 'grep', mutating: false, verdict: { kind: 'ok' } },
  E: { name: 'edit', mutating: true, verdict: { kind: 'ok' } },
  P: { name: 'patch', mutating: true, verdict: { kind: 'ok' }, previews: 'yes' },
  S: { name: 'explore', mutating: false, verdict: { kind: 'ok' }, spends: 'yes' },
  Q: { name: 'ask', mutating: false, verdict: { kind: 'ok' }, asks: 'question' },
  A: { name: 'plan', mutating: false, verdict: { kind: 'ok' }, asks: 'plan' },
  N: {
    name: 'teleport',
    mutating: false,
    verdict: { kind: 'noSuchTool', known: ['grep', 'edit'] },
  },
  I: {
    name: 'edit',
    mutating: true,
    verdict: { kind: 'invalid', field: 'path', why: 'must be a string' },
  },
};

const path = 'a.ts';

/** The calls for a word of letters: `RE` is a read and an edit. */
const createCalls = (word: string): readonly JudgedCall[] =>
  [...word].flatMap((letter, index) => {
    const known = letters[letter];
    if (known === undefined) return [];
    const { name, mutating, verdict, previews, spends, asks } = known;
    return [
      {
        callId: letter === 'T' ? 'c1' : `c${index + 1}`,
        tool: name,
        input: { path },
        verdict,
        traits: {
          // After a crash an edit can be looked up in its file, a read just runs again.
          effect: mutating ? ('probeable' as const) : ('pure' as const),
          parallelSafe: !mutating,
          mutating,
          deadlineMs: 120_000,
          ...(previews === undefined ? {} : { previews }),
          ...(spends === undefined ? {} : { spends }),
          ...(asks === undefined ? {} : { asks }),
        },
        facts: { argv: [], paths: [`/project/${path}`], hosts: [], shape: `${name} ${path}` },
      },
    ];
  });

const createUsage = (inputTokens: number, costUsd: number): Usage => ({
  inputTokens,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd,
});

const smallTokens = 10;
const manyTokens = 100_000;

/** Usage of a reply. With a token limit small replies are free, so that the sums stay finite. */
export const usageFor = (spending: Spending, limits: Limits): Usage => {
  const small = limits.tokens !== 'unlimited' ? 0 : smallTokens;
  switch (spending) {
    case 'small':
      return createUsage(small, 0);
    case 'filling':
      return createUsage(windowTokens * 0.95, 0);
    case 'overfull':
      return createUsage(windowTokens * 1.1, 0);
    case 'dear':
      return createUsage(limits.tokens !== 'unlimited' ? manyTokens * 0.8 : small, usdLimit * 0.8);
    case 'costly':
      return createUsage(limits.tokens !== 'unlimited' ? manyTokens : small, usdLimit + 1);
    default:
      return spending satisfies never;
  }
};

export const tokensLimit = manyTokens;

/** A reply without id and time. `costly`: `dear` and `costly` ones count against `budgetStops`. */
export type ModelReply = Pick<On<'LlmCompleted'>, 'message' | 'calls' | 'stopReason' | 'usage'> & {
  readonly costly: boolean;
};

export const createReply = (kind: ReplyKind, limits: Limits): ModelReply => {
  const calls = createCalls(kind.calls ?? '');
  const stopReason = kind.stop ?? (calls.length > 0 ? 'toolUse' : 'end');
  const spending = kind.spending ?? 'small';
  const texts: readonly AssistantPart[] =
    kind.text === undefined ? [] : [{ type: 'text', text: kind.text }];
  const asked = calls.map(
    ({ callId, tool, input }) => ({ type: 'call', callId, tool, input }) as const,
  );
  const message: AssistantMessage | null =
    kind.message === null
      ? null
      : {
          role: 'assistant',
          model: 'test/model',
          cut: stopReason === 'maxTokens',
          parts: [...texts, ...asked],
        };
  return {
    message,
    calls,
    stopReason,
    usage: usageFor(spending, limits),
    costly: spending === 'dear' || spending === 'costly',
  };
};
