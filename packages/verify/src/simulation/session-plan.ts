/**
 * What will happen in one simulated session: its settings, and when its disk fails. All of it is
 * drawn from the seed.
 */

import {
  defaultSettings,
  type FallbackModel,
  noLimits,
  type Prices,
  retrySettings,
  type Settings,
} from '@pawl/agent/machine/settings';
import { presetRules } from '@pawl/agent/policy/presets';
import { DEAR_PRICES, PRICES } from './prices.js';
import type { Choices } from './random-choices.js';

/** The disk fails: once at its n-th operation, or it is full from then on for a while. */
type DiskFault = {
  /** No room on the disk, a broken disk, or too many open files. */
  readonly code: 'ENOSPC' | 'EIO' | 'EMFILE';
  readonly at: number;
  /** The number of operations that fail. */
  readonly length: number;
  /** An EIO waits for a sync. */
  readonly isAtSync: boolean;
};

/** The settings and faults of a session. */
export type SessionPlan = {
  readonly settings: Settings;
  /** The maximum number of crashes. */
  readonly crashes: number;
  /** Acts of the user, at most. */
  readonly acts: number;
  readonly diskFault: DiskFault | null;
  /** Shares of requests and tool calls that go wrong. */
  readonly modelFaults: number;
  readonly toolFaults: number;
  /** Calls per reply, at most. */
  readonly callsMax: number;
  /** Whether a power cut may leave holes in unsynced data. */
  readonly holes: boolean;
  /** Whether a watcher fails because its output is closed. */
  readonly closesOutput: boolean;
  /** Whether the wall clock jumps. */
  readonly clockJumps: boolean;
  /** Whether syncs are so slow that the journal syncs in another thread. */
  readonly slowDisk: boolean;
  /** Whether another program changes the journal while the session is open. */
  readonly journalChange: boolean;
  /** Whether inputs, crashes and clock jumps occur while the session waits to retry. */
  readonly isAboutRetries: boolean;
  /** Share of the first model's requests that meet an outage; of the other models' half of them. */
  readonly outages: number;
};

/** A model that may take over. It is one of `simulatedModels`, but for its window. */
const fallbackModel = (name: string, prices: Prices | null, more: Partial<FallbackModel> = {}) => ({
  model: `simulated/${name}`,
  windowTokens: 128_000,
  prices,
  ...more,
});

const chooseFallback = (choices: Choices): readonly FallbackModel[] => [
  ...choices.pick(
    [],
    [fallbackModel('unpriced', null)],
    [fallbackModel('small', PRICES, { windowTokens: choices.pick(300, 3_000) })],
    [fallbackModel('mute', PRICES, { tools: 'no' as const })],
  ),
  fallbackModel('dear', DEAR_PRICES),
  ...choices.pick([], [fallbackModel('unpriced', null, { unpriced: 'countAsNothing' as const })]),
];

const chooseSettings = (choices: Choices): Settings => {
  const usd = choices.chance(0.2) ? 0.002 + choices.share() * 0.01 : ('unlimited' as const);
  const tokens = choices.chance(0.1) ? choices.between(500, 4_000) : ('unlimited' as const);
  const hooks = choices.chance(0.4);
  return {
    ...defaultSettings,
    model: 'simulated/model',
    workspace: '/workspace',
    // The number of retries; null: the usual first delay.
    ...retrySettings(choices.pick(2, 1, 4), null),
    windowTokens: choices.pick(128_000, 4_000),
    compactAtRatio: choices.pick(0.8, 0.3),
    outputCutBytes: choices.pick(30_720, 600),
    limits: {
      ...noLimits,
      rounds: 12,
      truncation: 2,
      usd,
      tokens,
      timeMs: choices.chance(0.1) ? 90_000 : 'unlimited',
    },
    queueOnCancel: choices.pick('hold', 'restore', 'send'),
    atLimit: choices.pick('stop', 'finish'),
    hooks: hooks ? 'mutating' : 'never',
    formatter: hooks && choices.chance(0.5) ? 'onChanges' : 'off',
    autoCommit: hooks && choices.chance(0.7) ? 'on' : 'off',
    rules: choices.pick(presetRules.auto, presetRules.careful),
  };
};

const chooseDiskFault = (choices: Choices): DiskFault => ({
  code: choices.pick('ENOSPC', 'EIO', 'EMFILE'),
  at: choices.between(1, 140),
  length: choices.pick(1, 3, 40),
  isAtSync: choices.chance(0.5),
});

const choosePlan = (choices: Choices): SessionPlan => ({
  settings: chooseSettings(choices),
  crashes: choices.pick(0, 1, 1, 2, 3),
  acts: choices.between(1, 5),
  diskFault: choices.chance(0.25) ? chooseDiskFault(choices) : null,
  modelFaults: choices.pick(0, 0.15, 0.4),
  toolFaults: choices.pick(0, 0.15, 0.4),
  callsMax: choices.pick(1, 2, 3),
  holes: choices.chance(0.1),
  closesOutput: choices.chance(0.1),
  clockJumps: choices.chance(0.3),
  slowDisk: choices.chance(0.15),
  journalChange: choices.chance(0.1),
  isAboutRetries: false,
  outages: 0,
});

const aboutRetries: Partial<SessionPlan> = {
  isAboutRetries: true,
  crashes: 3,
  acts: 6,
  diskFault: null,
  clockJumps: true,
  journalChange: false,
};

/** Few retries, and a limit in dollars that is often reached. */
const aboutFallback = (plan: SessionPlan, choices: Choices): SessionPlan => {
  const usd = choices.chance(0.6) ? 0.02 + choices.share() * 0.3 : ('unlimited' as const);
  const { settings } = plan;
  return {
    ...plan,
    acts: 6,
    crashes: choices.between(0, 4),
    outages: choices.pick(0.4, 0.8),
    settings: {
      ...settings,
      ...retrySettings(choices.between(0, 2), null),
      limits: { ...settings.limits, usd },
      fallback: chooseFallback(choices),
    },
  };
};

export const planFor = (choices: Choices, about?: 'fallback'): SessionPlan => {
  const plan = choosePlan(choices);
  if (about === 'fallback' || choices.chance(0.05)) return aboutFallback(plan, choices);
  return choices.chance(0.02) ? { ...plan, ...aboutRetries } : plan;
};
