/**
 * The settings of a session, and the usage and limits that they speak of.
 *
 * Where people and old journals write a limit, 0 means `unlimited`: `readLimit` translates it, so
 * settings hold no 0. What is left of a limit may be 0.
 *
 * From top to bottom: limits; the settings and their defaults; usage; and figures as people read
 * them.
 */

import type { Count, CountFromOne, NonNegative, Share } from '@pawl/machine/kernel/shape';
import type { SandboxLevel } from '../policy/decide.js';
import {
  allowedHosts,
  allowHosts,
  type PolicyRule,
  type Preset,
  presetAfterPlan,
  presetRules,
  type WrittenRule,
} from '../policy/presets.js';

// ---- Limits ----

/**
 * A limit on spending. `unlimited` is a word of its own, so that 0 (nothing left) can't be read as
 * no limit, and a sum with a missing limit does not compile.
 */
export type Limit = NonNegative | 'unlimited';
/** A limit that the user asks for. The table refuses a number below 0, so that the user is told. */
export type RequestedLimit = number | 'unlimited';

/**
 * The rest of a limit. It is a type of its own, so that a caller must handle "nothing left" before
 * it sets a limit.
 */
export type Remaining =
  | { readonly type: 'unlimited' }
  | { readonly type: 'left'; readonly amount: number };

/** What a limit counts; `time` in `timeMs`. */
export type Dimension =
  | 'usd'
  | 'tokens'
  | 'time'
  | 'rounds'
  | 'truncation'
  | 'repeats'
  | 'errors'
  | 'sameResults';

/**
 * A limit is reached when that much is spent. `usd` and `tokens` count per session, the others per
 * turn.
 */
export type Limits = {
  readonly usd: Limit;
  readonly tokens: Limit;
  readonly timeMs: Limit;
  /** Model calls, each with the tool calls that it asks for. */
  readonly rounds: Limit;
  /** Replies in a row that were cut off in the middle of their calls. */
  readonly truncation: Limit;
  /** Batches in a row with the same calls. */
  readonly repeats: Limit;
  /** Batches in a row in which every call failed. */
  readonly errors: Limit;
  /** Batches in a row with the same results. */
  readonly sameResults: Limit;
};

/** Limits, each as `choose` has it. */
export const eachLimit = (choose: (name: keyof Limits) => Limit): Limits => ({
  usd: choose('usd'),
  tokens: choose('tokens'),
  timeMs: choose('timeMs'),
  rounds: choose('rounds'),
  truncation: choose('truncation'),
  repeats: choose('repeats'),
  errors: choose('errors'),
  sameResults: choose('sameResults'),
});

export const noLimits: Limits = eachLimit(() => 'unlimited');

/** Reads a limit as people and older journals write it: only here 0 means `unlimited`. */
export const readLimit = (limit: Limit): Limit => (limit === 0 ? 'unlimited' : limit);

/** Reads limits as people and older journals write them: 0 and a missing limit mean `unlimited`. */
export const readLimits = (partial: Partial<Limits>): Limits =>
  eachLimit((name) => readLimit(partial[name] ?? 'unlimited'));

/** Whether a limit as people and older journals write it limits anything. */
export const isLimited = (limit: Limit | undefined): limit is number =>
  limit !== undefined && readLimit(limit) !== 'unlimited';

export const isReached = (limit: Limit, spent: number): boolean =>
  // Stryker disable next-line ConditionalExpression: asked for the compiler
  limit !== 'unlimited' && spent >= limit;

/** The rest of a limit, at least 0. */
export const remainingLimit = (limit: Limit, spent: number): Remaining =>
  limit === 'unlimited'
    ? { type: 'unlimited' }
    : { type: 'left', amount: Math.max(0, limit - spent) };

// ---- Settings ----

/**
 * The delay before retry n (from 1), in milliseconds, is a pure function of n and the failure's
 * jitter.
 */
export type RetrySchedule =
  | { readonly kind: 'linear'; readonly stepMs: NonNegative }
  | {
      readonly kind: 'exponential';
      readonly baseMs: NonNegative;
      readonly factor: NonNegative;
      readonly capMs: NonNegative;
      /**
       * At most this share of the delay is added to it, times the failure's jitter; absent: none.
       */
      readonly jitter?: NonNegative;
    }
  | { readonly kind: 'list'; readonly delaysMs: readonly NonNegative[] };

export type EffortLevel = 'low' | 'medium' | 'high' | 'xhigh' | 'max';
/** The lowest first. */
export const effortLevels: readonly EffortLevel[] = ['low', 'medium', 'high', 'xhigh', 'max'];

/** Reasoning effort, for models that have such a setting. `auto`: the model's default. */
export type Effort = 'auto' | EffortLevel;
export const efforts: readonly Effort[] = ['auto', ...effortLevels];

/**
 * Set at the start of a session, and changed by SettingsChanged and ApproveBudget
 * (rules.md#settings-change); by the machine itself where another model takes over, a plan is
 * accepted, or `autoRearm` raises a limit.
 */
export type Settings = {
  /** `provider/name`. */
  readonly model: string;
  /** Real absolute path of the workspace folder. */
  readonly workspace: string;
  readonly maxRetries: Count;
  readonly retrySchedule: RetrySchedule;
  /** At most this is added to a delay, times the failure's jitter, beside the schedule's own. */
  readonly retryJitterMs: NonNegative;
  /**
   * Longest wait that a provider may ask for. Beyond it the call fails and names the time of the
   * reset.
   */
  readonly retryAfterCapMs: NonNegative;
  /** Retries of a reply without text and calls. */
  readonly emptyRetries: Count;
  /** How long a provider may be silent before its first byte. */
  readonly firstByteMs: NonNegative;
  /** The same between two bytes. */
  readonly silenceMs: NonNegative;
  readonly windowTokens: CountFromOne;
  /** Share of the window above which a turn begins with a compaction. */
  readonly compactAtRatio: NonNegative;
  /** Share of the window above which a running turn is compacted. */
  readonly compactMidRatio: NonNegative;
  /** What stays of a result when the conversation is too long for the model. */
  readonly resultCutBytes: Count;
  /** At most so much of a tool's output is for the model. */
  readonly outputCutBytes: Count;
  /** Calls that run at once. */
  readonly maxParallel: CountFromOne;
  /** How long a cancelled call has to end by itself. */
  readonly graceMs: NonNegative;
  readonly limits: Limits;
  /** The user is warned when this share of a limit is spent. */
  readonly budgetWarnRatio: Share;
  /**
   * `finish`: before rounds, repeats, errors or sameResults stop a turn, the model is asked for its
   * answer.
   */
  readonly atLimit: 'stop' | 'finish';
  /** `ask`: the runtime asks the user's stopping policy before every model call. */
  readonly userPolicy: 'none' | 'ask';
  /** `on`: a reached limit in dollars or tokens is raised by itself, for the next turn. */
  readonly autoRearm: 'on' | 'off';
  /** What is queued when a turn is cancelled stays queued, goes back to the editor, or is sent. */
  readonly queueOnCancel: 'hold' | 'restore' | 'send';
  /** `drain`: the provider can't abort, so a cancelled turn waits for the reply. */
  readonly cancelMode: 'abort' | 'drain';
  /** A call that needs an answer: the user is asked, it is denied, or that also ends the turn. */
  readonly onAsk: 'ask' | 'deny' | 'stop';
  /**
   * The batches after which commits are looked for, formatters run and changes are committed.
   * `mutating`: those in which a mutating call ran, however it ended; `mutatingOk`: those in which
   * one ended ok.
   */
  readonly hooks: 'mutating' | 'mutatingOk' | 'always' | 'never';
  /** `onChanges`: after a batch that changed files; `onOneCommit`: only after one new commit. */
  readonly formatter: 'off' | 'onChanges' | 'onOneCommit';
  readonly autoCommit: 'on' | 'off';
  /** The rules of the preset. The first that matches decides if no written rule does. */
  readonly rules: readonly PolicyRule[];
  readonly writtenRules?: readonly WrittenRule[];
  /** Absent: `auto`. */
  readonly effort?: Effort;
  /** The preset of `rules`; absent in old sessions. */
  readonly preset?: Preset;
  /** The preset before `plan`, to which an accepted plan returns. Absent: `careful`. */
  readonly presetBefore?: Preset;
  /** The sandbox before `plan`: one that was read-only stays so after an accepted plan. */
  readonly sandboxBefore?: SandboxLevel | 'missing';
  /** `missing`: a sandbox is wanted, but does not work here. Absent: `off`. */
  readonly sandbox?: SandboxLevel | 'missing';
  /**
   * The tool declarations from the next request on: sha256 of their blob. Absent: those of the
   * header. Only the runtime sets it.
   */
  readonly tools?: string;
  /** Models that take over a turn in which the model fails, the first one first. Absent: none. */
  readonly fallback?: readonly FallbackModel[];
  /** The user's model while another one answers in its place. Only the machine sets it. */
  readonly primary?: ModelSettings;
};

/** The settings that belong to a model. Absent `cancelMode`: the session's. */
export type ModelSettings = {
  readonly model: string;
  readonly windowTokens: CountFromOne;
  readonly cancelMode?: 'abort' | 'drain';
};

/**
 * A model that may take over. `prices` are null if they are unknown; `unpriced`: it is used all the
 * same under a limit in dollars, as free. `tools`: absent if it can call them.
 */
export type FallbackModel = {
  readonly model: string;
  readonly windowTokens: CountFromOne;
  readonly cancelMode?: 'abort' | 'drain';
  readonly prices: Prices | null;
  readonly unpriced?: 'countAsNothing';
  readonly tools?: 'no';
};

/** Delays between retries: about three minutes over all eight. */
const defaultSchedule = {
  kind: 'exponential',
  baseMs: 1_000,
  factor: 2,
  capMs: 60_000,
  jitter: 0.25,
} as const satisfies RetrySchedule;

/** Settings for another number of retries or another first delay in ms; null keeps the default. */
export const retrySettings = (
  count: number | null,
  firstMs: number | null,
): Partial<Pick<Settings, 'maxRetries' | 'retrySchedule'>> => ({
  ...(count === null ? {} : { maxRetries: count }),
  ...(firstMs === null ? {} : { retrySchedule: { ...defaultSchedule, baseMs: firstMs } }),
});

/** The defaults. `model` and `workspace` have none: a session always names them. */
export const defaultSettings: Omit<Settings, 'model' | 'workspace'> = {
  maxRetries: 8,
  retrySchedule: defaultSchedule,
  retryJitterMs: 0,
  retryAfterCapMs: 60_000,
  emptyRetries: 1,
  firstByteMs: 120_000,
  silenceMs: 90_000,
  windowTokens: 128_000,
  compactAtRatio: 0.8,
  compactMidRatio: 0.9,
  resultCutBytes: 4_096,
  outputCutBytes: 30_720,
  maxParallel: 4,
  graceMs: 5_000,
  limits: { ...noLimits, rounds: 100, truncation: 2 },
  budgetWarnRatio: 0.8,
  atLimit: 'stop',
  userPolicy: 'none',
  autoRearm: 'off',
  queueOnCancel: 'hold',
  cancelMode: 'abort',
  onAsk: 'ask',
  hooks: 'mutating',
  formatter: 'off',
  autoCommit: 'off',
  rules: presetRules.auto,
};

/** What changes when the user accepts a plan: nothing is wider than before `plan`. */
export const settingsAfterPlan = (settings: Settings): Settings => {
  const { sandbox, sandboxBefore, rules, onAsk } = settings;
  const preset = presetAfterPlan(settings.presetBefore);
  // Formatter configurations are code of the project, so formatters run only in the sandbox.
  const isSandboxed = sandbox !== undefined && sandbox !== 'off' && sandbox !== 'missing';
  return {
    ...settings,
    preset,
    rules: allowHosts(presetRules[preset], allowedHosts(rules)),
    onAsk: preset === 'ci' ? 'deny' : onAsk,
    formatter: isSandboxed && preset !== 'careful' ? 'onChanges' : 'off',
    ...(sandbox === 'read-only' && sandboxBefore !== 'read-only' ? { sandbox: 'workspace' } : {}),
  };
};

// ---- Usage ----

/** Dollars per million tokens. */
export type Prices = {
  readonly input: NonNegative;
  readonly output: NonNegative;
  readonly cacheRead: NonNegative;
  readonly cacheWrite: NonNegative;
};

/**
 * Tokens of one model call: at most a thousand million, since a larger count is a counting error.
 */
export type TokenCount = number;

/**
 * Tokens and cost of a model call, priced by the runtime. `costUsd` is null if the price is
 * unknown.
 */
export type Usage = {
  readonly inputTokens: TokenCount;
  readonly outputTokens: TokenCount;
  readonly cacheReadTokens: TokenCount;
  readonly cacheWriteTokens: TokenCount;
  readonly costUsd: NonNegative | null;
  /** Calls of a task whose price `costUsd` lacks. Absent: none. */
  readonly unpriced?: Count;
  readonly estimated?: Estimated;
  /** A call of a task may have cost more than it has reported. */
  readonly atLeast?: boolean;
};

/** How much of a call its usage covers: one that broke off may have used more than it reported. */
export type UsageCoverage = 'whole' | 'partial';

/** Models whose servers reported no usage: their tokens are estimates. Absent: none. */
export type Estimated = readonly string[];

/**
 * Sums over the session. `unpriced` counts model calls with an unknown price. `atLeast`: a call
 * that is over may have cost more than it has reported, so `costUsd` is a lower bound.
 */
export type UsageTotals = {
  readonly inputTokens: NonNegative;
  readonly outputTokens: NonNegative;
  readonly cacheReadTokens: NonNegative;
  readonly cacheWriteTokens: NonNegative;
  readonly costUsd: NonNegative;
  readonly unpriced: Count;
  readonly estimated?: Estimated;
  readonly atLeast?: boolean;
};

/** No tokens, and nothing to pay. */
export const noUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0,
} as const satisfies Usage;

/** The same as a sum. */
export const nothingSpent: UsageTotals = { ...noUsage, unpriced: 0 };

type MayBeEstimated = { readonly estimated?: Estimated };

/** The estimated models of two usages together, as a field; none if there are none. */
export const joinEstimated = (one: MayBeEstimated, other: MayBeEstimated): MayBeEstimated => {
  const { estimated: known = [] } = one;
  const { estimated: added = [] } = other;
  const more = added.filter((model) => !known.includes(model));
  if (known.length + more.length === 0) return {};
  return { estimated: more.length === 0 ? known : [...known, ...more] };
};

/** All tokens, including cached ones, as token limits count them. */
export const totalTokens = (usage: Omit<Usage, 'costUsd' | 'estimated'>): number =>
  usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;

/** The sum of two usages. Its cost is unknown if one of them is. */
export const sumUsage = (one: Usage | null, other: Usage): Usage =>
  one === null
    ? other
    : {
        inputTokens: one.inputTokens + other.inputTokens,
        outputTokens: one.outputTokens + other.outputTokens,
        cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
        cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
        costUsd:
          one.costUsd === null || other.costUsd === null ? null : one.costUsd + other.costUsd,
        ...joinUnpriced(one, other),
        ...joinEstimated(one, other),
        ...(one.atLeast || other.atLeast ? { atLeast: true } : {}),
      };

const joinUnpriced = (one: Usage, other: Usage): Pick<Usage, 'unpriced'> => {
  const unpriced = (one.unpriced ?? 0) + (other.unpriced ?? 0);
  return unpriced === 0 ? {} : { unpriced };
};

/**
 * The sums of a task as the usage of the call that ran it, with its dollars so far. A sum that
 * lacks calls without a price still counts; one that has no price at all is unknown.
 */
export const asUsage = ({ unpriced, ...usage }: UsageTotals, costUsd: number): Usage => {
  if (unpriced === 0) return { ...usage, costUsd };
  return costUsd === 0 ? { ...usage, costUsd: null } : { ...usage, costUsd, unpriced };
};

/**
 * What was added to a sum since it was `before`. `estimated` is that of the whole sum; `atLeast`
 * only if the sum was exact before.
 */
export const usageSince = (before: UsageTotals, now: UsageTotals): UsageTotals => ({
  inputTokens: now.inputTokens - before.inputTokens,
  outputTokens: now.outputTokens - before.outputTokens,
  cacheReadTokens: now.cacheReadTokens - before.cacheReadTokens,
  cacheWriteTokens: now.cacheWriteTokens - before.cacheWriteTokens,
  costUsd: now.costUsd - before.costUsd,
  unpriced: now.unpriced - before.unpriced,
  ...joinEstimated({}, now),
  ...(now.atLeast && !before.atLeast ? { atLeast: true } : {}),
});

// ---- Figures as people read them ----

/** Dollars; null: unknown. `exact`: also parts of a cent. */
export const moneyText = (usd: number | null, precision: 'cents' | 'exact' = 'exact'): string => {
  if (usd === null) return 'price unknown';
  if (precision === 'exact' && usd > 0) return `$${usd.toFixed(usd < 0.01 ? 4 : usd < 1 ? 3 : 2)}`;
  return usd > 0 && usd < 0.01 ? '<$0.01' : `$${usd.toFixed(2)}`;
};

/** `999`, `1.5k`, `2.5M`. */
export const tokensText = (count: number): string => {
  if (count < 1_000) return String(count);
  return count < 999_950 ? `${(count / 1_000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
};

/** `61%`, `0.4%`; null is a share of nothing. */
export const shareText = (share: number | null): string =>
  share === null ? '–' : `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)}%`;
