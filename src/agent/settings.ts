import type { CallFacts } from './call.js';

/** The delay before retry n (from 1), in milliseconds, is a pure function of n and the failure's jitter. */
export type RetrySchedule =
  | { readonly kind: 'linear'; readonly stepMs: number }
  | { readonly kind: 'exponential'; readonly baseMs: number; readonly factor: number; readonly capMs: number }
  | { readonly kind: 'list'; readonly delaysMs: readonly number[] };

export type Decision = 'allow' | 'ask' | 'deny';

/** One rule of the policy; the first that fits decides. */
export type Rule = {
  readonly decision: Decision;
  /** A tool's name, or `*`. */
  readonly tool: string;
  /** `inside`: every path lies in the workspace; `outside`: some path does not; `anywhere`. */
  readonly where: 'inside' | 'outside' | 'anywhere';
  readonly touches: 'reads' | 'mutates' | 'anything';
  /** Patterns (`hosts.ts`) of the hosts that the call reaches; absent: it reaches none, or the rule denies. */
  readonly hosts?: readonly string[];
  readonly why: string;
};

/** What the user allowed for the rest of the session. */
export type Grant =
  | { readonly scope: 'shape'; readonly tool: string; readonly shape: CallFacts['shape'] }
  | { readonly scope: 'session'; readonly tool: string };

export type Dimension =
  | 'usd'
  | 'tokens'
  | 'time'
  | 'rounds'
  | 'truncation'
  | 'repeats'
  | 'errors'
  | 'sameResults';

/** 0 means no limit. usd and tokens hold per session, the others per turn. */
export type Limits = {
  readonly usd: number;
  readonly tokens: number;
  readonly timeMs: number;
  readonly rounds: number;
  readonly truncation: number;
  /** Batches in a row with the same calls. */
  readonly repeats: number;
  /** Batches in a row in which every call failed. */
  readonly errors: number;
  /** Batches in a row with the same results. */
  readonly sameResults: number;
};

/** Frozen at session start; changed only by SettingsChanged and ApproveBudget (R0h). */
export type Settings = {
  /** `provider/name`. */
  readonly model: string;
  /** Real absolute path of the folder worked on. */
  readonly workspace: string;
  readonly maxRetries: number;
  readonly retrySchedule: RetrySchedule;
  /** At most this much is added to a delay, times the failure's jitter. */
  readonly retryJitterMs: number;
  /** A longer wait than this is not waited for: the call fails and says when to come back. */
  readonly retryAfterCapMs: number;
  readonly emptyRetries: number;
  readonly firstByteMs: number;
  readonly silenceMs: number;
  readonly windowTokens: number;
  /** Share of the window above which a turn begins with a compaction. */
  readonly compactAtRatio: number;
  /** Share of the window above which a running turn is compacted. */
  readonly compactMidRatio: number;
  readonly resultCutBytes: number;
  readonly outputCutBytes: number;
  readonly maxParallel: number;
  readonly graceMs: number;
  readonly limits: Limits;
  readonly budgetWarnRatio: number;
  /** `finish`: where rounds, repeats, errors or sameResults stop a turn, the model is asked for its answer first. */
  readonly atLimit: 'stop' | 'finish';
  /** `ask`: the runtime asks the user's stopping policy before every model call. */
  readonly userPolicy: 'none' | 'ask';
  readonly autoRearm: 'on' | 'off';
  readonly queueOnCancel: 'hold' | 'restore' | 'send';
  readonly cancelMode: 'abort' | 'drain';
  readonly onAsk: 'ask' | 'deny' | 'stop';
  readonly hooks: 'mutating' | 'always' | 'never';
  readonly formatter: 'off' | 'onChanges' | 'onOneCommit';
  readonly autoCommit: 'on' | 'off';
  readonly rules: readonly Rule[];
};

export type Preset = 'plan' | 'careful' | 'auto' | 'ci';

const EVERYTHING_OUTSIDE: Rule = {
  decision: 'deny',
  tool: '*',
  where: 'outside',
  touches: 'anything',
  why: 'the path lies outside the workspace',
};
const READS: Rule = {
  decision: 'allow',
  tool: '*',
  where: 'inside',
  touches: 'reads',
  why: 'reading is allowed',
};

const HOST_ALLOWED = 'the host is allowed';
const hostsNotAllowed = (preset: Preset): Rule => ({
  decision: 'deny',
  tool: '*',
  where: 'anywhere',
  touches: 'anything',
  hosts: ['*'],
  why: `the preset ${preset} reaches only hosts that were allowed by name`,
});

/** The rules with one in front that lets tools that change nothing reach these hosts; it replaces an earlier such. */
export const allowHosts = (rules: readonly Rule[], hosts: readonly string[]): readonly Rule[] => {
  const others = rules.filter((rule) => rule.why !== HOST_ALLOWED);
  if (hosts.length === 0) return others;
  return [
    { decision: 'allow', tool: '*', where: 'inside', touches: 'reads', hosts, why: HOST_ALLOWED },
    ...others,
  ];
};

/** The rules of each preset; what no rule fits is denied. */
export const presetRules: Readonly<Record<Preset, readonly Rule[]>> = {
  plan: [
    EVERYTHING_OUTSIDE,
    READS,
    { decision: 'deny', tool: '*', where: 'anywhere', touches: 'mutates', why: 'the preset plan only reads' },
    hostsNotAllowed('plan'),
  ],
  careful: [
    EVERYTHING_OUTSIDE,
    READS,
    {
      decision: 'ask',
      tool: '*',
      where: 'inside',
      touches: 'mutates',
      why: 'the preset careful asks before changes',
    },
    {
      decision: 'ask',
      tool: '*',
      where: 'inside',
      touches: 'anything',
      hosts: ['*'],
      why: 'the preset careful asks before it reaches a host',
    },
  ],
  auto: [
    EVERYTHING_OUTSIDE,
    {
      decision: 'allow',
      tool: '*',
      where: 'inside',
      touches: 'anything',
      why: 'the preset auto allows the workspace',
    },
    hostsNotAllowed('auto'),
  ],
  ci: [
    EVERYTHING_OUTSIDE,
    {
      decision: 'allow',
      tool: '*',
      where: 'inside',
      touches: 'anything',
      why: 'the preset ci allows the workspace',
    },
    hostsNotAllowed('ci'),
  ],
};

/** The defaults of the specification (R0h). `model` and `workspace` have none: a session always names them. */
export const defaultSettings: Omit<Settings, 'model' | 'workspace'> = {
  maxRetries: 3,
  retrySchedule: { kind: 'linear', stepMs: 1_000 },
  retryJitterMs: 0,
  retryAfterCapMs: 60_000,
  emptyRetries: 0,
  firstByteMs: 120_000,
  silenceMs: 90_000,
  windowTokens: 128_000,
  compactAtRatio: 0.8,
  compactMidRatio: 0.9,
  resultCutBytes: 4_096,
  outputCutBytes: 30_720,
  maxParallel: 4,
  graceMs: 5_000,
  limits: { usd: 0, tokens: 0, timeMs: 0, rounds: 100, truncation: 2, repeats: 0, errors: 0, sameResults: 0 },
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
