/**
 * The model and the settings of a session, from flags, configuration, the place of its user, and
 * its earlier settings (`before`).
 */

import {
  defaultSettings,
  eachLimit,
  isLimited,
  type Limits,
  type Settings,
} from '@pawl/agent/machine/settings';
import { nearestModel } from '@pawl/agent/models/catalogue';
import type { SandboxLevel } from '@pawl/agent/policy/decide';
import { allowHosts, type Preset, presetRules } from '@pawl/agent/policy/presets';
import type { Model } from '@pawl/agent/ports/model';
import { narrowerLimits, narrowerPreset } from '@pawl/agent/session/session-settings';
import { isPlain } from '@pawl/terminal/paint';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { type Configured, withConfig } from '../settings/configuration.js';
import {
  chooseUsual,
  connectFallback,
  connectModel,
  modelCallSettings,
  sessionWorkspace,
  type Warn,
  warnOfEffort,
  warnOfUnknown,
} from '../settings/connect-model.js';
import {
  type RunFlags,
  readAfterTools,
  readAllowedHosts,
  readEffort,
  readFallback,
  readLimits,
  readOnAsk,
  readPictures,
  readPreset,
  readProfileName,
  readSandbox,
  usageStop,
} from '../settings/flags.js';
import type { RecordedSettings } from './stored-sessions.js';

/**
 * Where the user of a session is: at a terminal, in an editor, at a program that a node serves
 * (`pawl serve`), at a session of its own process (`--detach`), or nowhere.
 */
export type Place = 'terminal' | 'editor' | 'node' | 'detached' | 'headless';

const isWatched = (place: Place): boolean => place === 'terminal' || place === 'editor';

/**
 * A new session that nobody watches has no limit in rounds (0): money, tokens and time limit it,
 * and loop detection ends it. The thresholds are high because a model that waits for something
 * repeats a call several times and gets the same result.
 */
const UNWATCHED_LIMITS: Partial<Limits> = { rounds: 0, repeats: 20, errors: 20, sameResults: 20 };

const readProfile = async (flags: RunFlags): Promise<Partial<Settings>> => {
  const name = readProfileName(flags);
  return name === null
    ? {}
    : (await import('@pawl/verify/projections/all-projections')).profiles[name];
};

/**
 * Checks all flags before configuration and model, so that errors of the command line come first.
 */
export const refuseBadFlags = (flags: RunFlags): void => {
  for (const read of [
    readLimits,
    readOnAsk,
    readEffort,
    readFallback,
    readPictures,
    readPreset,
    readSandbox,
    readAllowedHosts,
    readAfterTools,
    readProfileName,
  ])
    read(flags);
};

/** Everything that is settled before a session is opened. */
type PreparedSession = {
  readonly flags: RunFlags & Configured;
  readonly workspace: string;
  /** Settings of the session that is resumed; null for a new one, and for one from elsewhere. */
  readonly before: Settings | null;
  readonly model: Model;
  /** Models that may take over. */
  readonly fallback: readonly Model[];
  readonly limits: Limits;
  readonly profile: Partial<Settings>;
};

type PrepareOptions = {
  /** The session to resume; null for a new one. */
  readonly resume: string | null;
  readonly place: Place;
  readonly warn: Warn;
  /** Whether configuration files and variables apply. */
  readonly configured: boolean;
};

/**
 * The flags for one session. `typedFlags` are as the user typed them; `flags` are completed by the
 * configuration. The flags of an editor or a node were typed for all of its sessions, so they count
 * as configuration.
 */
const sessionFlags = (typedFlags: RunFlags, place: Place): RunFlags =>
  place === 'editor' || place === 'node' ? {} : typedFlags;

/** Checks flags, configuration, model and limits before a session exists. Throws a `Stop`. */
export const prepareFromFlags = async (
  typedFlags: RunFlags,
  folder: string,
  { resume, place, warn, configured }: PrepareOptions,
  recorded: RecordedSettings | null,
): Promise<PreparedSession> => {
  const before = recorded?.origin === 'own' ? recorded.settings : null;
  const workspace = sessionWorkspace(
    typedFlags.workspace === undefined && before !== null ? before.workspace : folder,
  );
  const completed: RunFlags & Configured = configured
    ? await withConfig(typedFlags, workspace, {
        command: 'run',
        resumed: resume !== null && before !== null,
        warn,
      })
    : typedFlags;
  const flags = { ...completed, makesPauses: place === 'terminal' };
  const profile = await readProfile(flags);
  // The user's model, also where another one has taken over.
  const modelBefore = (before?.primary ?? before)?.model;
  const modelId = flags.model ?? modelBefore ?? (await chooseUsual(flags, warn));
  // a scripted model is a file, named from where the user types
  const model = await connectModel(modelId, flags, process.cwd());
  warnOfUnknown(model, warn);
  const fallback = flags.fallback === undefined ? [] : await connectFallback(model, flags, warn);
  warnOfEffort(model, readEffort(flags) ?? before?.effort ?? null, warn);
  const profileLimits = readProfileLimits(profile, model, flags, warn);
  const fresh = {
    ...defaultSettings.limits,
    ...(isWatched(place) ? {} : UNWATCHED_LIMITS),
    ...profileLimits,
    ...readLimits(flags),
  };
  // From weak to strong: the defaults, the profile, the configuration, and flags. Limits of a
  // resumed session count where they are lower, but not against a profile or flags typed for it.
  const typed = sessionFlags(typedFlags, place);
  const chosen = { ...(typed.profile === undefined ? {} : profileLimits), ...readLimits(typed) };
  const narrower = before === null ? fresh : narrowerLimits(fresh, before.limits);
  const limits =
    before === null ? fresh : eachLimit((name) => (name in chosen ? fresh : narrower)[name]);
  refuseUnpriced(model, limits, flags);
  return { flags, workspace, before, model, fallback, limits, profile };
};

type ChosenSettings = {
  readonly preset: Preset;
  /** null: that of the preset. */
  readonly sandbox: SandboxLevel | null;
  readonly settings: Partial<Settings>;
};

/** The preset, the sandbox level and all other settings of a session. */
export const chooseSettings = (
  typedFlags: RunFlags,
  { flags, before, limits, profile }: PreparedSession,
  place: Place,
): ChosenSettings => {
  const preset =
    readPreset(sessionFlags(typedFlags, place)) ??
    narrowerPreset(readPreset(flags) ?? (isWatched(place) ? 'careful' : 'auto'), before?.preset);
  const effort = readEffort(flags);
  const hosts = readAllowedHosts(flags);
  const { writtenRules = [] } = flags;
  // from weak to strong
  const settings = {
    ...(effort === null ? {} : { effort }),
    queueOnCancel: chooseQueueOnCancel(place, flags),
    ...profile,
    ...modelCallSettings(flags),
    ...readAfterTools(flags),
    ...(hosts === null ? {} : { rules: allowHosts(presetRules[preset], hosts) }),
    // those of the configuration files now; absent is none, also for a resumed session
    ...(writtenRules.length === 0 ? {} : { writtenRules }),
    limits,
    onAsk: chooseOnAsk(place, preset, readOnAsk(flags)),
  };
  return { preset, sandbox: chooseSandboxLevel(typedFlags, flags, preset, place), settings };
};

/**
 * The sandbox level that the user chose. The preset `full` has none. Only a flag typed for the
 * session can widen the read-only level of the preset `plan`.
 */
const chooseSandboxLevel = (
  typedFlags: RunFlags,
  all: RunFlags,
  preset: Preset,
  place: Place,
): SandboxLevel | null => {
  if (preset === 'full') {
    const typed = readSandbox(typedFlags) ?? 'off';
    if (typed !== 'off')
      throw usageStop(
        `The preset full has no sandbox: leave out --sandbox ${typed}, or choose another preset.`,
      );
    return typed;
  }
  const chosen = readSandbox(all);
  if (all.forKey?.isConfined === 'yes') refuseUnfenced(all);
  const widens = chosen === 'workspace' || chosen === 'workspace+net';
  return preset === 'plan' && widens ? readSandbox(sessionFlags(typedFlags, place)) : chosen;
};

/**
 * Throws a `Stop` if the sandbox is off. A key of `pawl serve` may have folders that other keys
 * must not see.
 */
export const refuseUnfenced = (flags: RunFlags): void => {
  if (readSandbox(flags) !== 'off') return;
  throw new Stop(
    exitCodes.configuration,
    'configuration',
    'Keys have places that others must not see, and without a sandbox commands see all of them: ' +
      'start the node without --sandbox off.',
  );
};

/** Whether a user can be asked; `chosen` counts where nobody watches. */
const chooseOnAsk = (
  place: Place,
  preset: Preset,
  chosen: 'stop' | 'deny' | null,
): Settings['onAsk'] => {
  if (preset === 'ci') return 'deny';
  if (isWatched(place)) return 'ask';
  return chosen ?? (place === 'headless' ? 'stop' : 'ask');
};

/**
 * What becomes of queued input when a turn is cancelled. It goes back into the input line of a
 * terminal, and to an editor, whose prompts are answered as cancelled. Elsewhere, and in a terminal
 * with plain lines (`isPlain`), it is held, and who shows the session says so (`heldNote`).
 */
const chooseQueueOnCancel = (place: Place, { plain }: RunFlags): Settings['queueOnCancel'] => {
  if (place === 'editor') return 'restore';
  return place === 'terminal' && !isPlain(process.env) && plain !== true ? 'restore' : 'hold';
};

/** For a caller that opens the new session itself: flags, model and settings. Throws a `Stop`. */
export const chooseNewSession = async (
  typedFlags: RunFlags,
  folder: string,
  place: Place,
  warn: Warn,
): Promise<Pick<PreparedSession, 'flags' | 'model' | 'fallback'> & ChosenSettings> => {
  refuseBadFlags(typedFlags);
  const prepared = await prepareFromFlags(
    typedFlags,
    folder,
    { resume: null, place, warn, configured: true },
    null,
  );
  return { ...prepared, ...chooseSettings(typedFlags, prepared, place) };
};

const refuseUnpriced = (model: Model, limits: Limits, flags: RunFlags): void => {
  if (!isLimited(limits.usd) || model.facts.prices !== null || flags.allowUnknownPrice) return;
  const meant = nearestModel(model.id);
  const message = [
    `The price of ${model.id} is unknown, so --max-usd can't hold.`,
    ...(meant === undefined ? [] : [`Did you mean ${meant}?`]),
    'Limit the session with --max-tokens, --max-rounds or --max-minutes,',
    'or start it with --allow-unknown-price: calls of unknown price then count as free.',
  ].join('\n');
  throw new Stop(exitCodes.configuration, 'configuration', message);
};

/**
 * Limits of a profile. If the model's price is unknown, the dollar limit is dropped with a warning:
 * the user did not set it.
 */
const readProfileLimits = (
  profile: Partial<Settings>,
  model: Model,
  flags: RunFlags,
  warn: Warn,
): Partial<Limits> => {
  const { limits } = profile;
  if (limits === undefined) return {};
  const { usd, ...others } = limits;
  if (!isLimited(usd) || flags.maxUsd !== undefined) return limits;
  if (model.facts.prices !== null || flags.allowUnknownPrice) return limits;
  warn(
    `the profile ${flags.profile} stops at $${usd}, but the price of ${model.id} is ` +
      'unknown: that limit is left out. Limit the session with --max-tokens, --max-rounds or ' +
      '--max-minutes.',
  );
  return others;
};
