import { setFlagsFromString } from 'node:v8';
import {
  allowHosts,
  defaultSettings,
  type Limits,
  type Preset,
  presetRules,
  type Settings,
} from '../agent/settings.js';
import { openSession, type Session } from '../agent-api.js';
import { fileJournals } from '../journal/file.js';
import { journalPath } from '../journal/layout.js';
import type { Model, Tool, Watcher } from '../needs.js';
import { isBare, oneLine } from '../terminal/print.js';
import { type Configured, withConfig } from './configured.js';
import {
  connectModel,
  connectOthers,
  patience,
  realWorkspace,
  type Warn,
  warnOfUnknown,
} from './connect-model.js';
import { exitCodes, Stop } from './exit-codes.js';
import {
  afterToolsOf,
  allowedHostsOf,
  limitsOf,
  onAskOf,
  picturesOf,
  presetOf,
  profileOf,
  type RunFlags,
  usageStop,
} from './flags.js';
import { openStateFolder } from './state-folder.js';
import { findSession, recordedSettings, sessionsOf } from './stored.js';

/** From flags and environment to an open session. */

export type Opened = {
  readonly session: Session;
  readonly settings: Settings;
  /** Path of the journal. */
  readonly journal: string;
  readonly resumed: boolean;
};

/** `terminal`: somebody can be asked. */
export type Place = 'terminal' | 'headless';

const refuseUnpriced = (model: Model, limits: Limits, flags: RunFlags): void => {
  if (limits.usd === 0 || model.facts.prices !== null || flags.allowUnknownPrice) return;
  const message = [
    `The price of ${model.id} is unknown, so --max-usd can't be kept.`,
    'Limit the session by --max-tokens, --max-rounds or --max-minutes,',
    'or start it with --allow-unknown-price: then calls of unknown price count as nothing.',
  ].join('\n');
  throw new Stop(exitCodes.configuration, 'configuration', message);
};

const readProfile = async (flags: RunFlags): Promise<Partial<Settings>> => {
  const name = profileOf(flags);
  return name === null ? {} : (await import('../agent/views/profiles.js')).profiles[name];
};

/** A dollar limit that comes with a profile is no wish of the user's: where it can't be kept it is left out, and said. */
const limitsOfProfile = (
  profile: Partial<Settings>,
  model: Model,
  flags: RunFlags,
  warn: Warn,
): Partial<Limits> => {
  const { limits } = profile;
  if (limits === undefined || limits.usd === 0 || flags.maxUsd !== undefined) return limits ?? {};
  if (model.facts.prices !== null || flags.allowUnknownPrice) return limits;
  warn(
    `the profile ${flags.profile} stops at $${limits.usd}, but the price of ${model.id} is unknown: no limit in dollars is kept. Limit the session by --max-tokens, --max-rounds or --max-minutes.`,
  );
  return { ...limits, usd: 0 };
};

/** The session that the flags ask to go on with, or null for a new one. */
const chosenSession = async (flags: RunFlags, workspace: string): Promise<string | null> => {
  if (typeof flags.resume === 'string') return findSession(flags.resume);
  if (flags.resume === true)
    throw usageStop('--resume needs the id of a session here. pawl sessions lists them.');
  if (!flags.continue) return null;
  const last = (await sessionsOf('agent')).find((info) => info.workspace === workspace);
  if (last !== undefined) return last.sessionId;
  throw new Stop(exitCodes.badInput, 'notFound', `There is no session of ${workspace} to go on with.`);
};

type Wanted = {
  readonly resume: string | null;
  readonly place: Place;
  readonly watcher?: Watcher;
  readonly warn: Warn;
  /** Whether files and variables have a say. */
  readonly configured: boolean;
};

/**
 * A session waits nearly all of its time and makes little that lives long: V8's young generation need not grow beyond
 * what the start has made of it. Grown further it costs 16 MB after some hundred rounds, for nothing (bench: rounds).
 */
const stopGrowing = (): void => setFlagsFromString('--semi-space-growth-factor=1');

const toolsWithExplore = async (model: Model, stateFolder: string): Promise<readonly Tool[]> => {
  const [{ builtinTools }, { exploreTool }] = await Promise.all([
    import('../tools/builtin.js'),
    import('./explore.js'),
  ]);
  return [...builtinTools(), exploreTool(model, stateFolder)];
};

/** The rules with the hosts that the flags allow; none where the flags say nothing of hosts. */
const rulesFrom = (
  flags: RunFlags,
  preset: Preset | null,
  before: Settings['rules'] = presetRules.auto,
): Partial<Pick<Settings, 'rules'>> => {
  const hosts = allowedHostsOf(flags);
  return hosts === null ? {} : { rules: allowHosts(preset === null ? before : presetRules[preset], hosts) };
};

/** What is wrong on the command line is said before what is wrong around it. */
const refuseBadFlags = (flags: RunFlags): void => {
  for (const read of [limitsOf, onAskOf, picturesOf, presetOf, allowedHostsOf, afterToolsOf, profileOf])
    read(flags);
};

const open = async (given: RunFlags, folder: string, wanted: Wanted): Promise<Opened> => {
  refuseBadFlags(given);
  const { resume, place, watcher, warn } = wanted;
  const before = resume === null ? null : await recordedSettings(resume);
  const workspace =
    given.workspace === undefined && before !== null ? realWorkspace(before.workspace) : folder;
  const flags: RunFlags & Configured = wanted.configured
    ? await withConfig(given, workspace, { command: 'run', resumed: resume !== null, warn })
    : given;
  const [newLimits, newOnAsk, newPreset] = [limitsOf(flags), onAskOf(flags), presetOf(flags)];
  const afterTools = afterToolsOf(flags);
  const profile = await readProfile(flags);
  const model = await connectModel(flags.model ?? before?.model, flags, process.cwd());
  warnOfUnknown(model, warn);
  const limits = {
    ...(before ?? defaultSettings).limits,
    ...limitsOfProfile(profile, model, flags, warn),
    ...newLimits,
  };
  refuseUnpriced(model, limits, flags);
  const onAsk = place === 'terminal' ? 'ask' : (newOnAsk ?? 'stop');
  const preset = newPreset ?? (before === null ? (place === 'terminal' ? 'careful' : 'auto') : null);
  const settings: Partial<Settings> = {
    ...patience(flags),
    // A line that can't be seen is no place to give what waited back to.
    queueOnCancel: place === 'terminal' && !isBare(process.env) && flags.plain !== true ? 'restore' : 'hold',
    ...profile,
    ...afterTools,
    ...rulesFrom(flags, preset, before?.rules),
    limits,
    onAsk: preset === 'ci' ? 'deny' : onAsk,
  };
  const stateFolder = openStateFolder(process.env);
  // What a session may call was frozen when it began: one that is resumed may have had the tool.
  const explores = flags.explore === true || resume !== null;
  const tools = explores ? await toolsWithExplore(model, stateFolder) : null;
  const session = await openSession({
    model,
    connect: connectOthers(model, flags, process.cwd(), warn),
    ...(tools === null ? {} : { tools }),
    journals: fileJournals({ folder: stateFolder }),
    workspace,
    report: (fault) => warn(oneLine(fault.message, Number.POSITIVE_INFINITY)),
    settings,
    // The user accepted that calls of unknown price count as nothing.
    unpriced: flags.allowUnknownPrice === true ? 'countAsNothing' : 'refuse',
    ...(preset === null ? {} : { preset }),
    ...(watcher === undefined ? {} : { watcher }),
    ...(resume === null ? {} : { resume }),
  });
  const state = await session.state();
  stopGrowing();
  const journal = journalPath(stateFolder, session.id);
  return { session, settings: state.session.settings, journal, resumed: resume !== null };
};

/** Opens what the flags ask for. `resume` names a session whatever they say. */
export const openFromFlags = async (
  flags: RunFlags,
  place: Place,
  more: {
    readonly resume?: string;
    readonly watcher?: Watcher;
    readonly warn: Warn;
    /** `false` where nothing but the flags counts. */
    readonly configured?: false;
  },
): Promise<Opened> => {
  const folder = realWorkspace(flags.workspace ?? process.cwd());
  const resume = more.resume ?? (await chosenSession(flags, folder));
  const { watcher, warn, configured = true } = more;
  const wanted = { resume, place, warn, configured, ...(watcher === undefined ? {} : { watcher }) };
  return open(flags, folder, wanted);
};
