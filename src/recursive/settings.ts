import { defaultSettings, type RetrySchedule } from '../agent/settings.js';

/** What a tree of runs is set to: frozen when it is made. A limit of 0 is none. */

/** One input as the model is told of it: never its text. */
export type InputFacts = {
  readonly name: string;
  /** In the model's words: `text`, `JSON`, … */
  readonly type: string;
  /** Size in characters. */
  readonly characters: number;
};

/** Where seed 004 and we differ, rule by rule. */
export type Parity = {
  /** `on`: content of the answer record, once it is ready, is the answer. */
  readonly answerRecord: 'on' | 'off';
  /** `on`: FINAL(text) and FINAL_VAR(name) at the start of a line answer, too. */
  readonly finalForms: 'off' | 'on';
  /** Whether FINAL is looked for in text between fences. */
  readonly fences: 'ignored' | 'searched';
  /** What an empty FINAL() means: an empty answer, or the whole reply. */
  readonly emptyAnswer: 'counts' | 'wholeReply';
  /** Whether the reply at the limit is evaluated with the environment: its code run, its FINAL_VAR read. */
  readonly limitAnswer: 'environment' | 'text';
  /** What becomes of the blocks after the one that made the answer ready. */
  readonly afterReady: 'skipped' | 'run';
};

/** The rules of the seed's program. */
export const seedParity: Parity = {
  answerRecord: 'off',
  finalForms: 'on',
  fences: 'searched',
  emptyAnswer: 'wholeReply',
  limitAnswer: 'text',
  afterReady: 'run',
};

const ourParity: Parity = {
  answerRecord: 'on',
  finalForms: 'off',
  fences: 'ignored',
  emptyAnswer: 'counts',
  limitAnswer: 'environment',
  afterReady: 'skipped',
};

export type RunLimits = { readonly usd: number; readonly tokens: number; readonly timeMs: number };

/**
 * What a call is expected to cost, set aside before it starts so that calls at the same time can not overspend
 * together: a fixed part, and a part for each character that is sent.
 */
export type Reserve = {
  readonly callUsd: number;
  readonly callTokens: number;
  readonly characterUsd: number;
  readonly characterTokens: number;
};

export type CodeSettings = {
  /** `provider/name` of the root, and of runs below it. */
  readonly model: string;
  readonly subModel: string;
  readonly question: string;
  readonly inputs: readonly InputFacts[];
  /** A run at this depth has no environment: it is one plain call. The root is at depth 0. */
  readonly depthMax: number;
  readonly iterationsMax: number;
  /** Characters of output that the model is shown of a cell. */
  readonly outputMax: number;
  readonly cellDeadlineMs: number;
  /** As the agent retries (agent/moves/retry.ts). */
  readonly maxRetries: number;
  readonly retrySchedule: RetrySchedule;
  readonly retryJitterMs: number;
  readonly retryAfterCapMs: number;
  readonly limits: RunLimits;
  /** What a child may spend of what its parent has left. */
  readonly childLimits: RunLimits;
  readonly childIterationsMax: number;
  readonly reserve: Reserve;
  /** Model calls that are open at the same time in the whole tree. */
  readonly openCallsMax: number;
  /** Children with an environment that one sub-call has at the same time. */
  readonly parallelRunsMax: number;
  /** Prompts in one sub-call. */
  readonly batchMax: number;
  /** Prompts in the whole tree. */
  readonly subcallsMax: number;
  readonly errorsMax: number;
  readonly repeatedMax: number;
  readonly sameOutputMax: number;
  /** `yes`: the user's own predicate is asked before every model call, too. */
  readonly userPolicy: 'no' | 'yes';
  readonly parity: Parity;
};

/** The defaults. The models and the question have none: a run always names them. */
export const defaultCodeSettings: Omit<CodeSettings, 'model' | 'subModel' | 'question'> = {
  inputs: [],
  depthMax: 1,
  iterationsMax: 30,
  outputMax: 20_000,
  cellDeadlineMs: 60_000,
  maxRetries: defaultSettings.maxRetries,
  retrySchedule: defaultSettings.retrySchedule,
  retryJitterMs: defaultSettings.retryJitterMs,
  retryAfterCapMs: defaultSettings.retryAfterCapMs,
  limits: { usd: 0, tokens: 0, timeMs: 0 },
  childLimits: { usd: 0, tokens: 0, timeMs: 0 },
  childIterationsMax: 15,
  reserve: { callUsd: 0, callTokens: 0, characterUsd: 0, characterTokens: 0.25 },
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
