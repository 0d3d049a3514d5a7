import type { Limits, Settings } from '@pawl/agent/machine/settings';
import { isLimited } from '@pawl/agent/machine/values/limit-value';
import type { Model } from '@pawl/agent/ports/model';
import { exitCodes, Stop } from '../exit-codes.js';
import type { RunFlags } from '../flags.js';
import type { Warn } from './connect-model.js';

/** The limits of a session: those of a profile, and whether a limit in dollars can be kept. */

export const refuseUnpriced = (model: Model, limits: Limits, flags: RunFlags): void => {
  if (!isLimited(limits.usd) || model.facts.prices !== null || flags.allowUnknownPrice) return;
  const message = [
    `The price of ${model.id} is unknown, so --max-usd has no effect.`,
    'Limit the session with --max-tokens, --max-rounds or --max-minutes,',
    'or start it with --allow-unknown-price: calls of unknown price then count as free.',
  ].join('\n');
  throw new Stop(exitCodes.configuration, 'configuration', message);
};

/** Limits of a profile. If the model's price is unknown, the dollar limit is dropped with a warning: the user did not set it. */
export const limitsOfProfile = (
  profile: Partial<Settings>,
  model: Model,
  flags: RunFlags,
  warn: Warn,
): Partial<Limits> => {
  const { limits } = profile;
  if (limits === undefined || !isLimited(limits.usd) || flags.maxUsd !== undefined) return limits ?? {};
  if (model.facts.prices !== null || flags.allowUnknownPrice) return limits;
  warn(
    `the profile ${flags.profile} stops at $${limits.usd}, but the price of ${model.id} is unknown: the limit has no effect. Limit the session with --max-tokens, --max-rounds or --max-minutes.`,
  );
  return { ...limits, usd: 'unlimited' };
};
