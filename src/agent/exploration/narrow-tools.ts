import { presetRules } from '../settings.js';
import type { Bounds, Configuration } from './configuration.js';
import { answer, narrow, quiet } from './narrow.js';

/** Configurations about tools, what they need leave for, and what comes after them. */

const queueGoesOn = (bounds: Bounds): Configuration =>
  narrow(
    bounds,
    { name: 'queue goes on', about: 'after a cancel the queue is sent', hooks: ['clean', 'veto'] },
    quiet,
    { queueOnCancel: 'send' },
  );

const queueGoesBack = (bounds: Bounds): Configuration =>
  narrow(
    bounds,
    { name: 'queue goes back', about: 'after a cancel the queue goes back into the editor' },
    quiet,
    { queueOnCancel: 'restore' },
  );

const deny = (bounds: Bounds): Configuration =>
  narrow(
    bounds,
    { name: 'nobody to ask: deny', about: 'calls that need approval are denied', preset: 'careful' },
    { ...quiet, followUps: 0, crashes: bounds.crashes },
    { onAsk: 'deny' },
  );

const stop = (bounds: Bounds): Configuration =>
  narrow(
    bounds,
    { name: 'nobody to ask: stop', about: 'a call that needs approval ends the turn', preset: 'careful' },
    { ...quiet, followUps: 0, crashes: bounds.crashes },
    { onAsk: 'stop' },
  );

const rulesChange = (bounds: Bounds): Configuration =>
  narrow(
    bounds,
    {
      name: 'rules change',
      about: 'grants that reach further than one call, and settings that change under way',
      preset: 'careful',
      replies: [answer, { calls: 'EER' }],
      scopes: ['once', 'shape', 'session'],
      changes: [{ rules: presetRules.auto }, { rules: presetRules.plan }, { onAsk: 'stop' }],
    },
    { ...quiet, steers: 0, followUps: 0, cancels: 0, crashes: bounds.crashes },
  );

const hooks = (bounds: Bounds): Configuration =>
  narrow(
    bounds,
    {
      name: 'hooks',
      about: 'every outcome of every phase, after any batch',
      replies: [answer, { calls: 'E' }, { calls: 'R' }],
      hooks: ['clean', 'dirty', 'changed', 'committed', 'veto', 'failed'],
    },
    { ...quiet, followUps: 0, crashes: bounds.crashes, late: bounds.late },
    { hooks: 'always', formatter: 'onOneCommit' },
  );

const noHooks = (bounds: Bounds): Configuration =>
  narrow(
    bounds,
    { name: 'no hooks', about: 'nothing runs after the tools', replies: [answer, { calls: 'E' }] },
    quiet,
    { hooks: 'never' },
  );

export const aboutTools = (bounds: Bounds): readonly Configuration[] =>
  [queueGoesOn, queueGoesBack, deny, stop, rulesChange, hooks, noHooks].map((one) => one(bounds));
