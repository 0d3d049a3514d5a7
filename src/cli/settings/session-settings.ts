import { allowHosts, type Preset, presetRules } from '../../agent/policy/preset-rules.js';
import type { Limits, Settings } from '../../agent/settings.js';
import { afterToolsOf, allowedHostsOf, effortOf, type RunFlags } from '../flags.js';
import { type Place, queueOnCancelAt } from '../sessions/defaults-by-frontend.js';
import type { Configured } from './apply-config.js';
import { patience } from './connect-model.js';

/** The settings of a session, from its flags and the configuration. */

/** Rules that also allow the hosts of `--allow-hosts`; nothing without that flag. */
const rulesFrom = (
  flags: RunFlags,
  preset: Preset | null,
  before: Settings['rules'] = presetRules.auto,
): Partial<Pick<Settings, 'rules'>> => {
  const hosts = allowedHostsOf(flags);
  return hosts === null ? {} : { rules: allowHosts(preset === null ? before : presetRules[preset], hosts) };
};

/** Rules from the configuration files. A resumed session takes them as the files are now. */
const writtenFrom = (
  { writtenRules = [] }: Configured,
  before: Settings['writtenRules'] = [],
): Partial<Pick<Settings, 'writtenRules'>> =>
  writtenRules.length === 0 && before.length === 0 ? {} : { writtenRules };

type SettledSession = {
  readonly flags: RunFlags & Configured;
  /** Settings of the session that is resumed; null for a new one. */
  readonly before: Settings | null;
  readonly limits: Limits;
  readonly profile: Partial<Settings>;
};

/** All settings but who is asked. */
export const settingsFrom = (
  { flags, before, limits, profile }: SettledSession,
  place: Place,
  preset: Preset | null,
): Partial<Settings> => {
  const effort = effortOf(flags);
  return {
    ...patience(flags),
    ...(effort === null ? {} : { effort }),
    queueOnCancel: queueOnCancelAt(place, flags),
    ...profile,
    ...afterToolsOf(flags),
    ...rulesFrom(flags, preset, before?.rules),
    ...writtenFrom(flags, before?.writtenRules),
    limits,
  };
};
