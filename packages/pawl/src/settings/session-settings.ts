import type { Limits, Settings } from '@pawl/agent/machine/settings';
import { allowHosts, type Preset, presetRules } from '@pawl/agent/policy/preset-rules';
import { afterToolsOf, allowedHostsOf, effortOf, type RunFlags } from '../flags.js';
import { type Place, queueOnCancelAt } from '../sessions/defaults-by-frontend.js';
import type { Configured } from './apply-config.js';
import { patience } from './connect-model.js';

/** The settings of a session, from its flags and the configuration. */

/** Rules that also allow the hosts of `--allow-hosts`; nothing without that flag. */
const rulesFrom = (flags: RunFlags, preset: Preset): Partial<Pick<Settings, 'rules'>> => {
  const hosts = allowedHostsOf(flags);
  return hosts === null ? {} : { rules: allowHosts(presetRules[preset], hosts) };
};

/** Rules from the configuration files, as they are now. */
const writtenFrom = ({ writtenRules = [] }: Configured): Partial<Pick<Settings, 'writtenRules'>> =>
  writtenRules.length === 0 ? {} : { writtenRules };

type SettledSession = {
  readonly flags: RunFlags & Configured;
  readonly limits: Limits;
  readonly profile: Partial<Settings>;
};

/** All settings but who is asked. */
export const settingsFrom = (
  { flags, limits, profile }: SettledSession,
  place: Place,
  preset: Preset,
): Partial<Settings> => {
  const effort = effortOf(flags);
  return {
    ...patience(flags),
    ...(effort === null ? {} : { effort }),
    queueOnCancel: queueOnCancelAt(place, flags),
    ...profile,
    ...afterToolsOf(flags),
    ...rulesFrom(flags, preset),
    ...writtenFrom(flags),
    limits,
  };
};
