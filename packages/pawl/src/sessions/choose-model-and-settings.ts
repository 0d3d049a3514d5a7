import { narrower, narrowerLimits } from '@pawl/agent/api/session-settings';
import type { Limits, SandboxLevel, Settings } from '@pawl/agent/machine/settings';
import type { Preset } from '@pawl/agent/policy/preset-rules';
import type { Model } from '@pawl/agent/ports/model';
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
  sessionWorkspace,
  type Warn,
  warnOfEffort,
  warnOfUnknown,
} from '../settings/connect-model.js';
import { settingsFrom } from '../settings/session-settings.js';
import { limitsOfProfile, refuseUnpriced } from '../settings/unpriced-limits.js';
import { defaultLimits, defaultPreset, onAskAt, type Place } from './defaults-by-frontend.js';
import type { RecordedSettings } from './stored-sessions.js';

/** The model and the settings of a session, from flags, configuration and its earlier settings. */

const readProfile = async (flags: RunFlags): Promise<Partial<Settings>> => {
  const name = profileOf(flags);
  return name === null ? {} : (await import('@pawl/verify/projections/profile-flag-settings')).profiles[name];
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
const chosenSandbox = (given: RunFlags, all: RunFlags, preset: Preset): SandboxLevel | null => {
  const chosen = sandboxOf(all);
  const widens = chosen === 'workspace' || chosen === 'workspace+net';
  return preset === 'plan' && widens ? sandboxOf(given) : chosen;
};

/** Everything that is settled before a session is opened. */
export type PreparedSession = {
  readonly flags: RunFlags & Configured;
  readonly workspace: string;
  /** Settings of the session that is resumed; null for a new one, and for one from elsewhere. */
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

/**
 * The flags that a user gives for one session. Those of a program that opens sessions for others hold like a configuration.
 */
const wishesOf = (given: RunFlags, place: Place): RunFlags =>
  place === 'terminal' || place === 'headless' ? given : {};

/** The limits of flags and configuration. What a resumed session had counts where it is tighter and no flag is given. */
const limitsFrom = (fresh: Limits, before: Settings | null, wishes: Partial<Limits>): Limits =>
  before === null ? fresh : { ...narrowerLimits(fresh, before.limits), ...wishes };

/** Checks flags, configuration, model and limits before a session exists. Throws a `Stop`. */
export const prepareFromFlags = async (
  given: RunFlags,
  folder: string,
  { resume, place, warn, configured }: PreparingWishes,
  recorded: RecordedSettings | null,
): Promise<PreparedSession> => {
  const before = recorded?.origin === 'own' ? recorded.settings : null;
  const workspace = sessionWorkspace(
    given.workspace === undefined && before !== null ? before.workspace : folder,
  );
  const flags: RunFlags & Configured = configured
    ? await withConfig(given, workspace, {
        command: 'run',
        resumed: resume !== null && before !== null,
        warn,
      })
    : given;
  const profile = await readProfile(flags);
  const model = await connectModel(flags.model ?? before?.model, flags, process.cwd());
  warnOfUnknown(model, warn);
  warnOfEffort(model, effortOf(flags) ?? before?.effort ?? null, warn);
  const ofProfile = limitsOfProfile(profile, model, flags, warn);
  const fresh = { ...defaultLimits(place), ...ofProfile, ...limitsOf(flags) };
  const limits = limitsFrom(fresh, before, { ...ofProfile, ...limitsOf(wishesOf(given, place)) });
  refuseUnpriced(model, limits, flags);
  return { flags, workspace, before, model, limits, profile };
};

type ChosenSettings = {
  readonly preset: Preset;
  /** null: that of the preset. */
  readonly sandbox: SandboxLevel | null;
  readonly settings: Partial<Settings>;
};

export const chooseSettings = (given: RunFlags, prepared: PreparedSession, place: Place): ChosenSettings => {
  const { flags, before } = prepared;
  const preset =
    presetOf(wishesOf(given, place)) ??
    narrower('preset', presetOf(flags) ?? defaultPreset(place), before?.preset);
  const sandbox = chosenSandbox(given, flags, preset);
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
