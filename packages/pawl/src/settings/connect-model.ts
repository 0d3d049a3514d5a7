/**
 * For all commands that call a model, from top to bottom: connects the model that flags and
 * environment name; checks the workspace; settings of model calls; and warnings about a model.
 */

import { realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { type Effort, retrySettings, type Settings } from '@pawl/agent/machine/settings';
import { type CacheTtl, nearestEffort, nearestModel } from '@pawl/agent/models/catalogue';
import { chooseModel, type ModelProblem } from '@pawl/agent/models/choose-model';
import type { LocalModel } from '@pawl/agent/models/local-servers';
import {
  DEFAULT_MODEL,
  exampleId,
  keyIn,
  providerOfModel,
} from '@pawl/agent/models/provider-table';
import { attempt } from '@pawl/agent/platform/attempt';
import { configFolder } from '@pawl/agent/platform/environment';
import { groupDigits, pathErrorText } from '@pawl/agent/platform/text';
import type { Model } from '@pawl/agent/ports/model';
import { workspaceFault } from '@pawl/agent/session/create-agent';
import { type ExitCode, exitCodes, Stop } from '../process/exit-codes.js';
import { packageFolder } from '../process/package-folder.js';
import { type Configured, userExtensions } from './configuration.js';
import {
  chooseWord,
  type PicturesChoice,
  type RunFlags,
  readFallback,
  readPictures,
} from './flags.js';
import { runKeyCommand } from './own-providers.js';

const problemExits: Readonly<Record<ModelProblem['kind'], ExitCode>> = {
  noKey: exitCodes.configuration,
  unknownProvider: exitCodes.usage,
  noName: exitCodes.usage,
  badUrl: exitCodes.configuration,
  noUrl: exitCodes.configuration,
  noModel: exitCodes.configuration,
  noPackage: exitCodes.configuration,
  noServer: exitCodes.unavailable,
  badScript: exitCodes.badInput,
};

type ModelFlags = Pick<RunFlags, 'baseUrl' | 'pictures' | 'forKey'> &
  Pick<
    Configured,
    'variables' | 'usual' | 'ownProviders' | 'reasoningSummaries' | 'cacheTtl' | 'makesPauses'
  >;

/**
 * How long the provider is asked to cache a request. `auto` asks for an hour only for a user who
 * makes pauses: that costs more to write.
 */
const readCacheTtl = ({ cacheTtl = 'auto', makesPauses }: ModelFlags): CacheTtl | 'auto' => {
  const ttl = chooseWord<CacheTtl | 'auto'>('cache_ttl', cacheTtl, ['auto', '5m', '1h']);
  return ttl === 'auto' && makesPauses !== true ? '5m' : ttl;
};

/**
 * The id of a model that nobody named: that of a key, or without a key of a server on this machine.
 * Says what chose it, if that is not the key of the usual provider.
 */
export const chooseUsual = async (
  { usual, variables }: Pick<ModelFlags, 'usual' | 'variables'>,
  warn: Warn,
): Promise<string | undefined> => {
  if (usual === undefined || usual.id !== DEFAULT_MODEL) {
    if (usual !== undefined) {
      const isSet = keyIn(process.env, [usual.variable ?? '']) !== null;
      const why = isSet ? `${usual.variable} is set` : 'your config.toml names its key';
      warn(`The model is ${usual.id}, since ${why}. -m chooses another one.`);
    }
    return usual?.id;
  }
  if (usual.variable !== null) return usual.id;
  const { findLocalModel } = await import('@pawl/agent/models/local-servers');
  const local = await findLocalModel({ ...process.env, ...variables });
  if (local === null) return usual.id;
  warn(localModelText(local));
  return local.id;
};

/** Why a model of this machine is used. */
export const localModelText = ({ id, title, url }: LocalModel): string =>
  `The model is ${id}, since no key is set and ${title} answers at ${url}. -m chooses another one.`;

/** The model with the user's answer to whether it accepts pictures. */
const withPictures = (model: Model, pictures: PicturesChoice): Model =>
  pictures === 'auto' ? model : { ...model, facts: { ...model.facts, images: pictures } };

/**
 * Where the user may have installed packages for models: in the folder of the configuration, and
 * beside Pawl itself, for example both with `npm install -g`. Never in a project.
 */
export const packageFolders = (): readonly string[] => {
  const modules = path.dirname(packageFolder());
  const beside = path.basename(modules) === 'node_modules' ? [path.dirname(modules)] : [];
  return [configFolder(process.env), ...beside];
};

/**
 * Connects the named model, or the default one. The path of a scripted model is relative to
 * `folder`.
 */
export const connectModel = async (
  modelId: string | undefined,
  flags: ModelFlags,
  folder: string,
): Promise<Model> => {
  const model = await connectPlain(modelId, flags, folder);
  return flags.forKey?.meter(model) ?? model;
};

const connectPlain = async (
  modelId: string | undefined,
  flags: ModelFlags,
  folder: string,
): Promise<Model> => {
  const options = {
    folder,
    ...(flags.baseUrl === undefined ? {} : { baseUrl: flags.baseUrl }),
    ...(flags.reasoningSummaries === 'off' ? { summaries: 'off' as const } : {}),
    cacheTtl: readCacheTtl(flags),
    packageFolders,
    ...(flags.ownProviders === undefined ? {} : { ownProviders: flags.ownProviders }),
  };
  const environment = { ...process.env, ...flags.variables };
  const custom = flags.ownProviders?.find(({ name }) => modelId?.startsWith(`${name}/`) === true);
  const key = custom === undefined ? {} : await runKeyCommand(custom, process.env);
  const { providers } = await userExtensions(process.env);
  const extension = providers.find(({ name }) => modelId?.startsWith(`${name}/`) === true);
  if (modelId !== undefined && custom === undefined && extension !== undefined) {
    const model = await attempt(() => extension.connect(modelId.slice(extension.name.length + 1)));
    if (model.kind === 'done')
      return withPictures({ ...model.value, id: modelId }, readPictures(flags));
    const words = `The model ${modelId} can't be used: ${model.fault.message}.`;
    throw new Stop(exitCodes.configuration, 'configuration', words);
  }
  const chosen = await chooseModel(modelId, { ...environment, ...key }, options);
  if (chosen.kind !== 'ok')
    throw new Stop(problemExits[chosen.kind], 'configuration', chosen.message);
  return withPictures(chosen.model, readPictures(flags));
};

const providerIn = (modelId: string): string => modelId.slice(0, modelId.indexOf('/'));

/**
 * Connects later models of a session. `--base-url` applies only to models of the first one's
 * provider.
 */
export const connectOthers =
  (first: Model, flags: Parameters<typeof connectModel>[1], folder: string, warn: Warn) =>
  async (modelId: string): Promise<Model> => {
    const { baseUrl: _, ...elsewhere } = flags;
    const isThere = providerIn(modelId) === providerIn(first.id);
    const model = await connectModel(modelId, isThere ? flags : elsewhere, folder);
    warnOfUnknown(model, warn);
    return model;
  };

/**
 * Connects the models that may take over. One whose key or server is missing is skipped with a
 * warning: it may be there tomorrow. Throws a `Stop` for a name that can't be right.
 */
export const connectFallback = async (
  first: Model,
  flags: ModelFlags & Pick<RunFlags, 'fallback'>,
  warn: Warn,
): Promise<readonly Model[]> => {
  const connect = connectOthers(first, flags, process.cwd(), warn);
  const connected: Model[] = [];
  const mayUse = (id: string): boolean => flags.forKey?.models?.includes(id) ?? true;
  for (const id of readFallback(flags).filter((one) => one !== first.id && mayUse(one)))
    try {
      connected.push(await connect(id));
    } catch (error) {
      if (!(error instanceof Stop) || WRONG_NAMES.includes(error.exit)) throw error;
      warn(`The fallback ${id} is left out: ${error.message.split('\n')[0]}`);
    }
  return connected;
};

/** The exits of names that no key and no server make right. */
const WRONG_NAMES: readonly ExitCode[] = [exitCodes.usage, exitCodes.badInput];

const GIVE_FOLDER = 'Give the folder of your project: --workspace FOLDER.';

/**
 * The real path of the workspace. Throws a `Stop` if it is missing or not a folder. `advice`: what
 * the user can do then.
 */
export const realWorkspace = (folder: string, advice = GIVE_FOLDER): string => {
  try {
    const real = realpathSync(folder);
    if (statSync(real).isDirectory()) return real;
    throw new Stop(exitCodes.usage, 'usage', `The workspace ${folder} is not a folder. ${advice}`);
  } catch (error) {
    if (error instanceof Stop) throw error;
    const why = pathErrorText(error) ?? (error instanceof Error ? error.message : String(error));
    throw new Stop(
      exitCodes.badInput,
      'badInput',
      `The workspace ${folder} can't be opened: ${why}. ${advice}`,
    );
  }
};

/**
 * As `realWorkspace`, for a session: also throws a `Stop` where other programs would obey what the
 * agent writes.
 */
export const sessionWorkspace = (folder: string, advice = GIVE_FOLDER): string => {
  const real = realWorkspace(folder, advice);
  refuseWorkspace(real, advice);
  return real;
};

/** Throws a `Stop` for a folder, a real path, that can be no workspace. It may be missing. */
export const refuseWorkspace = (folder: string, advice: string): void => {
  const why = workspaceFault(folder, process.env);
  if (why === null) return;
  const words = `${folder} can't be the workspace, since ${why}. ${advice}`;
  throw new Stop(exitCodes.usage, 'usage', words);
};

/** As `sessionWorkspace`, for the folder that a stored session names. */
export const storedWorkspace = (sessionId: string, folder: string): string =>
  sessionWorkspace(
    folder,
    `Put the folder back, or go on elsewhere: pawl --resume ${sessionId} --workspace FOLDER.`,
  );

type ModelCallSettings = Pick<
  Settings,
  'firstByteMs' | 'silenceMs' | 'maxRetries' | 'retrySchedule'
>;

/** Timeouts and retries of model calls, as configured: for slow local models, and for tests. */
export const modelCallSettings = (configured: Configured): Partial<ModelCallSettings> => {
  const { firstByteMs, silenceMs, retryMs } = configured;
  const count = configured.maxRetries;
  return {
    ...retrySettings(
      count === undefined ? null : Number(count),
      retryMs === undefined ? null : Number(retryMs),
    ),
    ...(firstByteMs === undefined ? {} : { firstByteMs: Number(firstByteMs) }),
    ...(silenceMs === undefined ? {} : { silenceMs: Number(silenceMs) }),
  };
};

/** Receives warnings, one line each, such as an unknown model or a file that is ignored. */
export type Warn = (text: string) => void;

/** What the user must know of an effort with this model; null if it gets what was asked for. */
export const effortNote = (
  { id, facts }: Pick<Model, 'id' | 'facts'>,
  effort: Effort,
): string | null => {
  if (effort === 'auto') return null;
  if (facts.effort === 'none')
    return `${id} has no setting for how much to think: effort ${effort} is ignored.`;
  const nearest = nearestEffort(facts, effort);
  return nearest === effort
    ? null
    : `${id} has no effort ${effort}, so it gets ${nearest}. It has ${facts.effortLevels?.join(', ')}.`;
};

/** Warns that a model gets another effort than `--effort` says, or none. */
export const warnOfEffort = (model: Model, effort: Effort | null, warn: Warn): void => {
  const note = effortNote(model, effort ?? 'auto');
  if (note !== null) warn(note);
};

/** Warns of what is not known of a model, or missing in it. */
export const warnOfUnknown = ({ id, facts }: Pick<Model, 'id' | 'facts'>, warn: Warn): void => {
  if (facts.tools === 'no')
    warn(`The server says that ${id} can't call tools: it can only answer.`);
  if (facts.source !== null) return;
  const [window, output] = [facts.windowTokens, facts.outputTokensMax].map((count) =>
    groupDigits(count),
  );
  const price = facts.prices === null ? ', and its price is unknown' : '';
  const assumed = `a window of ${window} tokens and replies of up to ${output} are assumed${price}.`;
  const provider = providerOfModel(id);
  const advice = provider?.ownServer?.contextAdvice ?? null;
  if (advice !== null)
    warn(`${provider?.title} does not say how much context it gives ${id}: ${assumed} ${advice}`);
  else {
    const meant = nearestModel(id);
    const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
    // models of packages and extensions stand in no list
    const isListed = provider !== undefined && id !== exampleId(provider);
    const list = isListed ? ` pawl models ${provider.name} lists the models of your key.` : '';
    warn(`${id} is not in the catalogue: ${assumed}${hint}${list}`);
  }
};
