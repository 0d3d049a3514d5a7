import { presetRules } from '@pawl/agent/policy/preset-rules';
import type { Bounds, Configuration } from './configuration.js';
import { answer, quietBounds, smallConfiguration } from './configuration-parts.js';
import { usdLimit } from './model-replies.js';

/** Configurations about tools, their approvals and the hooks after them. */

const queueGoesOn = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    { name: 'queue goes on', about: 'after a cancel the queue is sent', hooks: ['clean', 'veto'] },
    quietBounds,
    { queueOnCancel: 'send' },
  );

const queueGoesBack = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    { name: 'queue goes back', about: 'after a cancel the queue goes back into the editor' },
    quietBounds,
    { queueOnCancel: 'restore' },
  );

const deny = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    { name: 'nobody to ask: deny', about: 'calls that need approval are denied', preset: 'careful' },
    { ...quietBounds, followUps: 0, crashes: bounds.crashes },
    { onAsk: 'deny' },
  );

const stop = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    { name: 'nobody to ask: stop', about: 'a call that needs approval ends the turn', preset: 'careful' },
    { ...quietBounds, followUps: 0, crashes: bounds.crashes },
    { onAsk: 'stop' },
  );

const rulesChange = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'rules change',
      about: 'grants that reach further than one call, and settings that change under way',
      preset: 'careful',
      replies: [answer, { calls: 'EER' }],
      scopes: ['once', 'shape', 'session'],
      changes: [{ rules: presetRules.auto }, { rules: presetRules.plan }, { onAsk: 'stop' }],
    },
    { ...quietBounds, steers: 0, followUps: 0, cancels: 0, crashes: bounds.crashes },
  );

const hooks = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'hooks',
      about: 'every outcome of every phase, after any batch',
      replies: [answer, { calls: 'E' }, { calls: 'R' }],
      hooks: ['clean', 'dirty', 'changed', 'committed', 'veto', 'failed'],
    },
    { ...quietBounds, followUps: 0, crashes: bounds.crashes, late: bounds.late },
    { hooks: 'always', formatter: 'onOneCommit' },
  );

const noHooks = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    { name: 'no hooks', about: 'nothing runs after the tools', replies: [answer, { calls: 'E' }] },
    quietBounds,
    { hooks: 'never' },
  );

const previews = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'previews',
      about: 'calls that are previewed before they are asked for, one behind the other',
      preset: 'careful',
      replies: [answer, { calls: 'PPR' }, { calls: 'EP' }],
      scopes: ['once', 'session'],
      changes: [{ rules: presetRules.auto }, { onAsk: 'stop' }],
    },
    { ...quietBounds, steers: 0, followUps: 0, crashes: bounds.crashes, duplicates: bounds.duplicates },
  );

const outcomes = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'outcomes',
      about: 'every way in which a call can end, and what comes after it',
      replies: [answer, { calls: 'RE' }],
      outcomes: ['ok', 'failed', 'timedOut', 'cancelled', 'lost'],
    },
    { ...quietBounds, steers: 0, followUps: 0, crashes: bounds.crashes },
  );

const spending = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'tools that spend',
      about: 'calls that make model calls of their own, under a limit, some of them given up',
      replies: [answer, { calls: 'SSR' }, { calls: 'S' }],
      outcomes: ['ok', 'spent'],
    },
    { ...quietBounds, steers: 0, followUps: 0, budgetStops: bounds.budgetStops, crashes: bounds.crashes },
    { limits: { usd: usdLimit }, hooks: 'never' },
  );

export const smallToolConfigurations = (bounds: Bounds): readonly Configuration[] =>
  [queueGoesOn, queueGoesBack, deny, stop, rulesChange, previews, hooks, noHooks, outcomes, spending].map(
    (one) => one(bounds),
  );
