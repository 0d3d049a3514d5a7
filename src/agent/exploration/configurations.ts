import type { Bounds, Configuration, ReplyKind } from './configuration.js';
import { answer, fullAnswer, largest, narrow, patched, quiet, within } from './narrow.js';
import { aboutCalls } from './narrow-calls.js';
import { aboutTools } from './narrow-tools.js';
import { tokensLimit, usdLimit } from './replies.js';

/**
 * The configurations that a check runs through. What they reach together is the check's result: one that held all of
 * it would be far too large, and would say no more, since settings are read one at a time.
 */

/** Everything at once, with the defaults of the product where there is a choice. */
const everything = (bounds: Bounds): Configuration =>
  within({
    name: 'everything',
    about:
      'all bounds at once: tools that ask, retries, queue, cancel, hooks, compaction, budget, crash, late answers',
    preset: 'careful',
    patch: patched({ limits: { usd: usdLimit } }),
    bounds,
    replies: [
      answer,
      fullAnswer,
      ...largest(bounds),
      { text: 'yes', calls: 'E', spending: 'filling' },
      { calls: 'R', spending: 'costly' },
    ],
    failures: ['passing', 'final', 'tooLong'],
    outcomes: ['ok', 'failed'],
    hooks: ['clean', 'changed', 'veto', 'failed'],
    scopes: ['once'],
    streams: false,
    changes: [],
    misplaced: false,
  });

const spending: readonly ReplyKind[] = [
  answer,
  { calls: 'R', spending: 'dear' },
  { text: 'yes', spending: 'costly' },
  { calls: 'R', spending: 'costly' },
];

const budget = (bounds: Bounds): Configuration =>
  narrow(
    bounds,
    { name: 'budget', about: 'dollars, with a warning before the limit', replies: spending },
    { ...quiet, followUps: 0, late: bounds.late, budgetStops: bounds.budgetStops + 1 },
    { limits: { usd: usdLimit } },
  );

const rearming = (bounds: Bounds): Configuration =>
  narrow(
    bounds,
    {
      name: 'budget that raises itself',
      about: 'tokens, and a limit that grows by itself',
      replies: spending,
    },
    { ...quiet, budgetStops: bounds.budgetStops + 1 },
    { autoRearm: 'on', limits: { tokens: tokensLimit } },
  );

const misplaced = (bounds: Bounds): Configuration =>
  narrow(
    bounds,
    {
      name: 'misplaced',
      about: 'every event in every state, whether it belongs there or not; text that streams',
      preset: 'careful',
      replies: [answer, fullAnswer, ...largest(bounds)],
      failures: ['passing', 'final', 'tooLong'],
      streams: true,
      changes: [{ maxRetries: 0 }],
      misplaced: true,
    },
    { ...bounds, followUps: 0, budgetStops: 0 },
  );

/** The largest first, so that it is not waited for in the end. */
export const configurationsOf = (bounds: Bounds): readonly Configuration[] => [
  everything(bounds),
  ...aboutCalls(bounds),
  ...aboutTools(bounds),
  budget(bounds),
  rearming(bounds),
  misplaced(bounds),
];
