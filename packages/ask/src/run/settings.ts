/**
 * Settings of a tree of runs. A resume may change `limits` alone. A maximum of 0 means no limit.
 * From top to bottom: inputs; parity, the differences between seed 004 (a published text about
 * such runs) and us; limits and costs; `CodeSettings`; models; and the defaults.
 */

import {
  defaultSettings,
  type Limit,
  type RetrySchedule,
  readLimit,
} from '@pawl/agent/machine/settings';
import type { Amount } from './stop-policies.js';

/** The description of an input for the model, without its text. */
export type InputFacts = {
  readonly name: string;
  /** In the model's words: `text`, `JSON`, … */
  readonly type: string;
  /** Size in characters. */
  readonly characters: number;
};

/** The language of an environment's programs. */
export type Language = 'javascript' | 'python';

/** The differences between seed 004 and us, rule by rule. */
export type Parity = {
  /** `on`: content of the answer record, once it is ready, is the answer. */
  readonly answerRecord: 'on' | 'off';
  /** `on`: FINAL(text) and FINAL_VAR(name) at the start of a line answer, too. */
  readonly finalForms: 'off' | 'on';
  /** Whether FINAL counts inside fenced blocks. */
  readonly fences: 'ignored' | 'searched';
  /** The meaning of an empty FINAL(): an empty answer, or the whole reply. */
  readonly emptyAnswer: 'counts' | 'wholeReply';
  /**
   * Whether the reply at the limit is evaluated with the environment: its code run, its FINAL_VAR
   * read.
   */
  readonly limitAnswer: 'environment' | 'text';
  /** Whether blocks still run after the answer is ready. */
  readonly afterReady: 'skipped' | 'run';
  /** Which programs of a reply run. Absent in older journals: all. */
  readonly programs?: 'first' | 'all';
  /**
   * Tags of fences that hold programs: `repl` alone, or also the names of the environment's
   * language where a reply has no `repl`. Absent in older journals: `repl`.
   */
  readonly tags?: 'language' | 'repl';
};

const ourParity: Parity = {
  answerRecord: 'on',
  finalForms: 'off',
  fences: 'ignored',
  emptyAnswer: 'counts',
  limitAnswer: 'environment',
  afterReady: 'skipped',
  programs: 'first',
  tags: 'language',
};

export type RunLimits = { readonly usd: Limit; readonly tokens: Limit; readonly timeMs: Limit };
const noRunLimits: RunLimits = { usd: 'unlimited', tokens: 'unlimited', timeMs: 'unlimited' };

/** Reads limits from users and older journals: 0 or a missing limit means unlimited. */
export const readRunLimits = (limits: Partial<RunLimits>): RunLimits => {
  const { usd, tokens, timeMs } = { ...noRunLimits, ...limits };
  return { usd: readLimit(usd), tokens: readLimit(tokens), timeMs: readLimit(timeMs) };
};

/** The cost of a call: a fixed part, and a part for each character that is sent. */
export type Rate = {
  readonly callUsd: number;
  readonly callTokens: number;
  readonly characterUsd: number;
  readonly characterTokens: number;
};

/**
 * The estimated cost of a call. A call is refused if less than `expected` remains. `worst` is
 * reserved while the call is open, so that parallel calls can't overspend together.
 */
export type Reserve = {
  readonly expected: Rate;
  readonly worst: Rate;
  /**
   * `stated`: the rates are the costs. `estimated`: actual costs of earlier calls count, too, and
   * sub-calls leave their run enough for its answer.
   */
  readonly basis: 'stated' | 'estimated';
  /** For caps under a limit in dollars. Absent in older journals: calls have none. */
  readonly bounds?: CallBounds;
};

/** Dollars that a call costs at most: a byte is at most a token, and the cache is written. */
export type CallBounds = {
  readonly byteUsd: number;
  /** The part of the input beside its messages, of a run and of a plain call. */
  readonly runUsd: number;
  readonly plainUsd: number;
  readonly shortestReplyUsd: number;
  readonly longestReplyUsd: number;
};

export type CodeSettings = {
  /** `provider/name` of the root, and of runs below it. */
  readonly model: string;
  readonly subModel: string;
  /** Models that programs may name beside these two. */
  readonly models: readonly string[];
  readonly question: string;
  readonly inputs: readonly InputFacts[];
  /** The language of the programs; absent in older journals. */
  readonly language?: Language;
  /** A run at this depth has no environment: it is one plain call. The root is at depth 0. */
  readonly depthMax: number;
  readonly iterationsMax: number;
  /** Maximum characters of a cell's output that the model sees. */
  readonly outputMax: number;
  readonly cellDeadlineMs: number;
  /** Retry settings, with the same meaning as the agent's (machine/moves/retry.ts there). */
  readonly maxRetries: number;
  readonly retrySchedule: RetrySchedule;
  readonly retryJitterMs: number;
  readonly retryAfterCapMs: number;
  readonly limits: RunLimits;
  /** Limits of each child run, within its parent's remaining budget. */
  readonly childLimits: RunLimits;
  readonly childIterationsMax: number;
  readonly reserve: Reserve;
  /** Maximum open model calls in the whole tree. */
  readonly openCallsMax: number;
  /** Maximum children with an environment that run in parallel for one sub-call. */
  readonly parallelRunsMax: number;
  /** Maximum prompts in one sub-call. */
  readonly batchMax: number;
  /** Maximum prompts in the whole tree. */
  readonly subcallsMax: number;
  /**
   * Maximum iterations in a row that fail, write the same programs, or get the same output: then
   * the run asks for its answer.
   */
  readonly errorsMax: number;
  readonly repeatedMax: number;
  readonly sameOutputMax: number;
  /** `yes`: the user's policy is called before every model call, too. */
  readonly userPolicy: 'no' | 'yes';
  readonly parity: Parity;
};

/** The cost of a call that sends so many characters, at this rate. */
export const amountAt = (rate: Rate, characters: number): Amount => ({
  usd: rate.callUsd + characters * rate.characterUsd,
  tokens: rate.callTokens + Math.ceil(characters * rate.characterTokens),
});

const defaultRate: Rate = { callUsd: 0, callTokens: 0, characterUsd: 0, characterTokens: 0.25 };

/** All models that programs may name. */
export const allowedModels = ({ model, subModel, models }: CodeSettings): readonly string[] => [
  ...new Set([model, subModel, ...models]),
];

/** The model that a program named, in full or without its provider; null if it may not be used. */
export const findModel = (settings: CodeSettings, named: string): string | null =>
  allowedModels(settings).find((id) => id === named || id.endsWith(`/${named}`)) ?? null;

/** The defaults. The models and the question have none: a run always names them. */
export const defaultCodeSettings: Omit<CodeSettings, 'model' | 'subModel' | 'question'> = {
  models: [],
  inputs: [],
  depthMax: 1,
  iterationsMax: 30,
  outputMax: 20_000,
  cellDeadlineMs: 60_000,
  maxRetries: defaultSettings.maxRetries,
  retrySchedule: defaultSettings.retrySchedule,
  retryJitterMs: defaultSettings.retryJitterMs,
  retryAfterCapMs: defaultSettings.retryAfterCapMs,
  limits: noRunLimits,
  childLimits: noRunLimits,
  childIterationsMax: 15,
  reserve: { expected: defaultRate, worst: defaultRate, basis: 'stated' },
  openCallsMax: 16,
  parallelRunsMax: 4,
  batchMax: 1_000,
  subcallsMax: 10_000,
  errorsMax: 5,
  repeatedMax: 3,
  sameOutputMax: 5,
  userPolicy: 'no',
  parity: ourParity,
};
