import type { Preset } from '../../agent/policy/preset-rules.js';
import type { Limits, SandboxLevel, Settings } from '../../agent/settings.js';
import type { Model } from '../../ports/model.js';
import {
  afterToolsOf,
  allowedHostsOf,
  effortOf,
  limitsOf,
  onAskOf,
  picturesOf,
  presetOf,
  profileOf,
  type RunFlags,
  sandboxOf,
} from '../flags.js';
import { type Configured, withConfig } from '../settings/apply-config.js';
import {
  connectModel,
  realWorkspace,
  type Warn,
  warnOfEffort,
  warnOfUnknown,
} from '../settings/connect-model.js';
import { settingsFrom } from '../settings/session-settings.js';
import { limitsOfProfile, refuseUnpriced } from '../settings/unpriced-limits.js';
import { defaultLimits, defaultPreset, onAskAt, type Place } from './defaults-by-frontend.js';

/** The model and the settings of a session, from flags, configuration and its earlier settings. */

const readProfile = async (flags: RunFlags): Promise<Partial<Settings>> => {
  const name = profileOf(flags);
  return name === null
    ? {}
    : (await import('../../agent/projections/profile-flag-settings.js')).profiles[name];
};

/** Checks all flags before configuration and model, so that errors of the command line come first. */
export const refuseBadFlags = (flags: RunFlags): void => {
  for (const read of [
    limitsOf,
    onAskOf,
    effortOf,
    picturesOf,
    presetOf,
    sandboxOf,
    allowedHostsOf,
    afterToolsOf,
    profileOf,
  ])
    read(flags);
};

/**
 * The sandbox level that the user chose. Only a flag can widen the read-only level of the preset `plan`; a level in a
 * configuration file can't.
 */
const chosenSandbox = (given: RunFlags, all: RunFlags, preset: Preset | null): SandboxLevel | null => {
  const chosen = sandboxOf(all);
  const widens = chosen === 'workspace' || chosen === 'workspace+net';
  return preset === 'plan' && widens ? sandboxOf(given) : chosen;
};

/** Everything that is settled before a session is opened. */
export type PreparedSession = {
  readonly flags: RunFlags & Configured;
  readonly workspace: string;
  readonly before: Settings | null;
  readonly model: Model;
  readonly limits: Limits;
  readonly profile: Partial<Settings>;
};

type PreparingWishes = {
  /** The session to resume; null for a new one. */
  readonly resume: string | null;
  readonly place: Place;
  readonly warn: Warn;
  /** Whether configuration files and variables apply. */
  readonly configured: boolean;
};

/** Checks flags, configuration, model and limits before a session exists. Throws a `Stop`. */
export const prepareFromFlags = async (
  given: RunFlags,
  folder: string,
  { resume, place, warn, configured }: PreparingWishes,
  before: Settings | null,
): Promise<PreparedSession> => {
  const workspace =
    given.workspace === undefined && before !== null ? realWorkspace(before.workspace) : folder;
  const flags: RunFlags & Configured = configured
    ? await withConfig(given, workspace, { command: 'run', resumed: resume !== null, warn })
    : given;
  const profile = await readProfile(flags);
  const model = await connectModel(flags.model ?? before?.model, flags, process.cwd());
  warnOfUnknown(model, warn);
  warnOfEffort(model, effortOf(flags) ?? before?.effort ?? null, warn);
  const limits = {
    ...(before?.limits ?? defaultLimits(place)),
    ...limitsOfProfile(profile, model, flags, warn),
    ...limitsOf(flags),
  };
  refuseUnpriced(model, limits, flags);
  return { flags, workspace, before, model, limits, profile };
};

type ChosenSettings = {
  /** null: that of the resumed session. */
  readonly preset: Preset | null;
  readonly sandbox: SandboxLevel | null;
  readonly settings: Partial<Settings>;
};

export const chooseSettings = (given: RunFlags, prepared: PreparedSession, place: Place): ChosenSettings => {
  const { flags, before } = prepared;
  const preset = presetOf(flags) ?? (before === null ? defaultPreset(place) : null);
  const sandbox = chosenSandbox(given, flags, preset ?? before?.preset ?? null);
  const onAsk = preset === 'ci' ? 'deny' : onAskAt(place, onAskOf(flags));
  return { preset, sandbox, settings: { ...settingsFrom(prepared, place, preset), onAsk } };
};

/** Everything of a new session that another part opens. Throws a `Stop`. */
export const chooseNewSession = async (
  given: RunFlags,
  folder: string,
  place: Place,
  warn: Warn,
): Promise<Pick<PreparedSession, 'flags' | 'model'> & ChosenSettings> => {
  refuseBadFlags(given);
  const prepared = await prepareFromFlags(
    given,
    folder,
    { resume: null, place, warn, configured: true },
    null,
  );
  return { ...prepared, ...chooseSettings(given, prepared, place) };
};
