import { realpathSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { defaultSettings, type Limits, type Settings } from '../agent/settings.js';
import { openSession, type Session } from '../agent-api.js';
import { fileJournals } from '../journal/file.js';
import { journalPath } from '../journal/layout.js';
import { chooseModel, type ModelProblem } from '../models/choose.js';
import type { Model, Watcher } from '../needs.js';
import { type ExitCode, exitCodes, Stop } from './exit-codes.js';
import { limitsOf, onAskOf, presetOf, type RunFlags, usageStop } from './flags.js';
import { isBare, oneLine } from './print.js';
import { openStateFolder } from './state-folder.js';
import { allSessions, findSession, recordedSettings } from './stored.js';

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

const exitOfProblem: Readonly<Record<ModelProblem['kind'], ExitCode>> = {
  noKey: exitCodes.configuration,
  unknownProvider: exitCodes.usage,
  noName: exitCodes.usage,
  badUrl: exitCodes.configuration,
  badScript: exitCodes.badInput,
};

const connectModel = async (wanted: string | undefined, flags: RunFlags, folder: string): Promise<Model> => {
  const options = flags.baseUrl === undefined ? { folder } : { folder, baseUrl: flags.baseUrl };
  const chosen = await chooseModel(wanted, process.env, options);
  if (chosen.kind !== 'ok') throw new Stop(exitOfProblem[chosen.kind], 'configuration', chosen.message);
  return chosen.model;
};

const realWorkspace = (folder: string): string => {
  try {
    return realpathSync(folder);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Stop(exitCodes.badInput, 'badInput', `The workspace ${folder} can't be opened: ${why}.`);
  }
};

/** Milliseconds from a variable of the environment, or nothing. */
const readDuration = (name: string): number | undefined => {
  const text = process.env[name] ?? '';
  if (text === '') return undefined;
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new Stop(
    exitCodes.configuration,
    'configuration',
    `${name} is a number of milliseconds, not '${text}'.`,
  );
};

/** How long a model may keep silent: for slow local models, and for tests. */
const patience = (): Partial<Settings> => {
  const firstByteMs = readDuration('PAWL_FIRST_BYTE_MS');
  const silenceMs = readDuration('PAWL_SILENCE_MS');
  return {
    ...(firstByteMs === undefined ? {} : { firstByteMs }),
    ...(silenceMs === undefined ? {} : { silenceMs }),
  };
};

const refuseUnpriced = (model: Model, limits: Limits, flags: RunFlags): void => {
  if (limits.usd === 0 || model.facts.prices !== null || flags.allowUnknownPrice) return;
  const message = [
    `The price of ${model.id} is unknown, so --max-usd can't be kept.`,
    'Limit the session by --max-tokens, --max-rounds or --max-minutes,',
    'or start it with --allow-unknown-price: then calls of unknown price count as nothing.',
  ].join('\n');
  throw new Stop(exitCodes.configuration, 'configuration', message);
};

/** The session that the flags ask to go on with, or null for a new one. */
const chosenSession = async (flags: RunFlags, workspace: string): Promise<string | null> => {
  if (typeof flags.resume === 'string') return findSession(flags.resume);
  if (flags.resume === true)
    throw usageStop('--resume needs the id of a session here. pawl sessions lists them.');
  if (!flags.continue) return null;
  const last = (await allSessions()).find((info) => info.workspace === workspace);
  if (last !== undefined) return last.sessionId;
  throw new Stop(exitCodes.badInput, 'notFound', `There is no session of ${workspace} to go on with.`);
};

/** Told of what stops nothing, in one line each: a model that is not known, a file that is not used. */
export type Warn = (text: string) => void;

const warnOfUnknown = ({ id, facts }: Model, warn: Warn): void => {
  if (facts.source !== null) return;
  const [window, output] = [facts.windowTokens, facts.outputTokensMax].map((count) =>
    count.toLocaleString('en'),
  );
  const price = facts.prices === null ? ', and its price is unknown' : '';
  warn(
    `${id} is not in the catalogue: a window of ${window} tokens and replies of up to ${output} are assumed${price}.`,
  );
};

type Wanted = {
  readonly resume: string | null;
  readonly place: Place;
  readonly watcher?: Watcher;
  readonly warn: Warn;
};

/**
 * A session waits nearly all of its time and makes little that lives long: V8's young generation need not grow beyond
 * what the start has made of it. Grown further it costs 16 MB after some hundred rounds, for nothing (bench: rounds).
 */
const stopGrowing = (): void => setFlagsFromString('--semi-space-growth-factor=1');

const open = async (
  flags: RunFlags,
  folder: string,
  { resume, place, watcher, warn }: Wanted,
): Promise<Opened> => {
  // What is wrong on the command line is said before what is wrong around it.
  const [newLimits, newOnAsk, newPreset] = [limitsOf(flags), onAskOf(flags), presetOf(flags)];
  const before = resume === null ? null : await recordedSettings(resume);
  const workspace =
    flags.workspace === undefined && before !== null ? realWorkspace(before.workspace) : folder;
  const wanted = flags.model ?? before?.model ?? process.env.PAWL_MODEL;
  const model = await connectModel(wanted === '' ? undefined : wanted, flags, process.cwd());
  warnOfUnknown(model, warn);
  const limits = { ...(before ?? defaultSettings).limits, ...newLimits };
  refuseUnpriced(model, limits, flags);
  const onAsk = place === 'terminal' ? 'ask' : (newOnAsk ?? 'stop');
  const preset = newPreset ?? (before === null ? (place === 'terminal' ? 'careful' : 'auto') : null);
  const settings: Partial<Settings> = {
    ...patience(),
    limits,
    onAsk: preset === 'ci' ? 'deny' : onAsk,
    // A line that can't be seen is no place to give what waited back to.
    queueOnCancel: place === 'terminal' && !isBare(process.env) ? 'restore' : 'hold',
  };
  const unpriced = model.facts.prices === null && limits.usd > 0;
  const stateFolder = openStateFolder(process.env);
  const session = await openSession({
    model,
    journals: fileJournals({ folder: stateFolder }),
    workspace,
    report: (fault) => warn(oneLine(fault.message, Number.POSITIVE_INFINITY)),
    settings: unpriced ? { ...settings, limits: { ...limits, usd: 0 } } : settings,
    ...(preset === null ? {} : { preset }),
    ...(watcher === undefined ? {} : { watcher }),
    ...(resume === null ? {} : { resume }),
  });
  // The user accepted that calls of unknown price count as nothing: only then is the limit set all the same.
  if (unpriced) await session.send({ type: 'SettingsChanged', patch: { limits } });
  const state = await session.state();
  stopGrowing();
  const journal = journalPath(stateFolder, session.id);
  return { session, settings: state.session.settings, journal, resumed: resume !== null };
};

/** Opens what the flags ask for. `resume` names a session whatever they say. */
export const openFromFlags = async (
  flags: RunFlags,
  place: Place,
  more: { readonly resume?: string; readonly watcher?: Watcher; readonly warn: Warn },
): Promise<Opened> => {
  const folder = realWorkspace(flags.workspace ?? process.cwd());
  const resume = more.resume ?? (await chosenSession(flags, folder));
  const { watcher, warn } = more;
  return open(flags, folder, { resume, place, warn, ...(watcher === undefined ? {} : { watcher }) });
};
