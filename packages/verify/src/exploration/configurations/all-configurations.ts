import type { Bounds, Configuration, ReplyKind } from './configuration.js';
import {
  answer,
  explorationSettings,
  fullAnswer,
  largestBatch,
  quietBounds,
  smallConfiguration,
  withinBounds,
} from './configuration-parts.js';
import { smallCallConfigurations } from './model-call-configurations.js';
import { tokensLimit, usdLimit } from './model-replies.js';
import { smallToolConfigurations } from './tool-configurations.js';

/**
 * The configurations of a check. Their combined coverage is its result: one configuration with everything would be far
 * too large and show no more, since settings act independently.
 */

/** All kinds of events at once, with default settings. */
const everything = (bounds: Bounds): Configuration =>
  withinBounds({
    name: 'everything',
    about:
      'all bounds at once: tools that ask, retries, queue, cancel, hooks, compaction, budget, crash, late answers',
    preset: 'careful',
    patch: explorationSettings({ limits: { usd: usdLimit } }),
    bounds,
    replies: [
      answer,
      fullAnswer,
      ...largestBatch(bounds),
      { text: 'yes', calls: 'E', spending: 'filling' },
      { calls: 'R', spending: 'costly' },
    ],
    failures: ['passing', 'final', 'tooLong'],
    outcomes: ['ok', 'failed'],
    hooks: ['clean', 'changed', 'veto', 'failed'],
    scopes: ['once'],
    streams: false,
    changes: [],
    clockJumps: false,
    misplaced: false,
  });

const spending: readonly ReplyKind[] = [
  answer,
  { calls: 'R', spending: 'dear' },
  { text: 'yes', spending: 'costly' },
  { calls: 'R', spending: 'costly' },
];

const budget = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    { name: 'budget', about: 'dollars, with a warning before the limit', replies: spending },
    { ...quietBounds, followUps: 0, late: bounds.late, budgetStops: bounds.budgetStops + 1 },
    { limits: { usd: usdLimit } },
  );

const rearming = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'budget that raises itself',
      about: 'tokens, and a limit that grows by itself',
      replies: spending,
    },
    { ...quietBounds, budgetStops: bounds.budgetStops + 1 },
    { autoRearm: 'on', limits: { tokens: tokensLimit } },
  );

const misplaced = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'misplaced',
      about: 'every event in every state, whether it belongs there or not; text that streams',
      preset: 'careful',
      replies: [answer, fullAnswer, ...largestBatch(bounds)],
      failures: ['passing', 'final', 'tooLong'],
      streams: true,
      changes: [{ maxRetries: 0 }],
      misplaced: true,
    },
    { ...bounds, followUps: 0, budgetStops: 0 },
  );

/** The largest first, so that it does not run alone at the end. */
export const configurationsOf = (bounds: Bounds): readonly Configuration[] => [
  everything(bounds),
  ...smallCallConfigurations(bounds),
  ...smallToolConfigurations(bounds),
  budget(bounds),
  rearming(bounds),
  misplaced(bounds),
];
