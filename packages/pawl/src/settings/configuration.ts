/**
 * From configuration files, variables and flags to the values of the settings.
 *
 * From top to bottom: `consult`, which only looks, and `withConfig`, which completes the flags; how
 * one value wins over others; reading the files and variables; and parsing one config.toml.
 *
 * A layer is a source of values: the user's file, the project's files, variables, flags. A profile
 * is a named set of settings (`--profile`). Most settings a project's file may only make stricter,
 * or not set at all, since whoever wrote the project is not the user.
 */

import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { type HookDeclaration, readHookTable } from '@pawl/agent/extensions/hooks/hook-config';
import { type McpServer, readMcpTable } from '@pawl/agent/extensions/mcp/server-config';
import type { Settings } from '@pawl/agent/machine/settings';
import {
  defaultProvider,
  keyIn,
  keyVariables,
  providers,
  type UsualModel,
  usualModel,
} from '@pawl/agent/models/provider-table';
import { configFolder, type ProcessEnvironment } from '@pawl/agent/platform/environment';
import { isWithin, readRegularSync } from '@pawl/agent/platform/files';
import { cut, nearestWord, plural } from '@pawl/agent/platform/text';
import { isOfOtherUser, repositoryFolders } from '@pawl/agent/platform/trusted-folders';
import { isTable, type ParsedTable } from '@pawl/agent/platform/untrusted-input';
import type { WrittenRule } from '@pawl/agent/policy/presets';
import { describeRule } from '@pawl/agent/policy/rules';
import type { ProfileName } from '@pawl/verify/projections/all-projections';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { readOwnProviders, type UserProvider } from './own-providers.js';
import { type ReadRule, readRules } from './permission-rules.js';
import {
  checkValue,
  checkVariable,
  flagAttribute,
  flagName,
  type Setting,
  settings,
  showValue,
  type Value,
} from './setting-table.js';
import { findLines } from './toml-keys.js';
import type { LoadedExtensions } from './user-extensions.js';

/**
 * What configuration adds to the flags: settings without a flag, as texts under the names that
 * flags would have (setting-table.ts explains each); values of provider variables from the user's
 * file; rules; MCP servers; and hooks.
 */
export type Configured = {
  readonly maxRetries?: string;
  readonly retryMs?: string;
  readonly reasoningSummaries?: string;
  readonly cacheTtl?: string;
  /** Set for the session of a terminal, whose user pauses between requests. */
  readonly makesPauses?: boolean;
  readonly firstByteMs?: string;
  readonly silenceMs?: string;
  readonly cellMs?: string;
  readonly claudeFiles?: string;
  /** Names of variables, separated by commas. */
  readonly passEnv?: string;
  readonly telemetry?: string;
  readonly checkpoints?: string;
  readonly notifications?: string;
  readonly answerMinutes?: string;
  readonly telemetryEndpoint?: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** The model where none is named. */
  readonly usual?: UsualModel;
  /** Providers that the user's file names. */
  readonly ownProviders?: readonly UserProvider[];
  /** Files with API keys that the user's file names. */
  readonly keyFiles?: readonly string[];
  /** Rules from the user's file, and those of the project's file that ask or deny. */
  readonly writtenRules?: readonly WrittenRule[];
  /** MCP servers from the user's file. */
  readonly mcpServers?: readonly McpServer[];
  /** Hooks from the user's file, and from the project's files. */
  readonly userHooks?: readonly HookDeclaration[];
  readonly projectHooks?: readonly ProjectHook[];
};

type Flags = Readonly<Record<string, unknown>>;

const flagValues = (flags: Flags): readonly SourceValue[] =>
  settings.flatMap((setting): SourceValue[] => {
    const flag = flagName(setting);
    const value = flags[flagAttribute(setting)];
    if (flag === null || value === undefined) return [];
    // the parser returns text or a boolean
    return [{ setting, value: value as Value, origin: { layer: 'flag', flag } }];
  });

/**
 * The keys that a profile sets, each with the value that a project's file may not loosen; null for
 * none. The values themselves are set where a session's settings are chosen.
 */
const profileBounds = async (name: string): Promise<ReadonlyMap<string, Value | null>> => {
  const { profiles } = await import('@pawl/verify/projections/all-projections');
  // an unknown name, which is refused elsewhere, has no settings
  const { limits, maxRetries, hooks }: Partial<Settings> = profiles[name as ProfileName] ?? {};
  const bounds = new Map<string, Value | null>([
    ['hooks', hooks ?? null],
    ['formatter', null],
    ['auto_commit', null],
  ]);
  if (maxRetries !== undefined) bounds.set('max_retries', maxRetries).set('retry_ms', null);
  if (limits === undefined) return bounds;
  for (const [key, limit] of [
    ['max_usd', limits.usd],
    ['max_tokens', limits.tokens],
    ['max_rounds', limits.rounds],
    ['max_minutes', limits.timeMs === 'unlimited' ? limits.timeMs : limits.timeMs / 60_000],
  ] as const)
    bounds.set(key, limit === 'unlimited' ? null : limit);
  return bounds;
};

/**
 * The layers under a profile, which no project's value may loosen. One that a flag chooses also
 * replaces the values of the user's file and variables.
 */
const withProfile = async (layers: Layers): Promise<Layers> => {
  let name: string | null = null;
  for (const layer of [layers.user, layers.environment, layers.flags])
    for (const { setting, value } of layer) if (setting.key === 'profile') name = String(value);
  if (name === null) return layers;
  const bounds = await profileBounds(name);
  if (!layers.flags.some(({ setting }) => setting.key === 'profile')) return { ...layers, bounds };
  const without = (list: readonly SourceValue[]): readonly SourceValue[] =>
    list.filter(({ setting }) => !bounds.has(setting.key));
  const { user, environment } = layers;
  return { ...layers, bounds, user: without(user), environment: without(environment) };
};

export type Consulted = Omit<Loaded, 'layers'> & {
  readonly resolved: readonly Resolved[];
  /** The model where none is named. */
  readonly usual: UsualModel;
};

/** Loads all settings for a workspace: values, their sources, and faults in the files. */
export const consult = async (
  workspace: string,
  environment: ProcessEnvironment,
  flags: Flags,
): Promise<Consulted> => {
  const { layers, ...others } = await loadConfig(workspace, environment);
  const all = await withProfile({ ...layers, flags: flagValues(flags) });
  const usual = usualModel({ ...environment, ...withKeyFile(layers.user, environment) });
  return { resolved: resolve(all, usual.id), usual, ...others };
};

/**
 * The variables of the keys for which the user's file names a file, each with that file. A key in
 * the environment wins.
 */
const withKeyFile = (
  user: readonly SourceValue[],
  environment: ProcessEnvironment,
): Readonly<Record<string, string>> => {
  const named = new Map(user.map(({ setting, value }) => [setting.key, value]));
  return Object.fromEntries(
    providers.flatMap(({ name, keyVariables: names }) => {
      const file = named.get(`providers.${name}.api_key_file`);
      return file === undefined || keyIn(environment, names) !== null
        ? []
        : [[names[0], String(file)]];
    }),
  );
};

const KEY_BYTES_MAX = 64 * 1024;

const expandHome = (file: string): string =>
  file.startsWith('~/') ? path.join(process.env.HOME || homedir(), file.slice(2)) : file;

/** Reads an API key from a file. Error messages never contain the file's content. */
const readKey = (file: string): string => {
  const whole = expandHome(file);
  const stop = (why: string): Stop =>
    new Stop(exitCodes.configuration, 'configuration', `The key in ${file} can't be used: ${why}`);
  const loaded = readRegularSync(whole, KEY_BYTES_MAX);
  if (loaded.kind === 'absent') throw stop(`there is no file ${whole}.`);
  if (loaded.kind === 'folder') throw stop(`${whole} is a folder.`);
  if (loaded.kind === 'unusable') throw stop(`${loaded.why}.`);
  if ((loaded.status.mode & 0o077) !== 0)
    throw stop(`others may read it. Make it yours alone: chmod 600 ${whole}`);
  const key = loaded.bytes.toString('utf8').trim();
  if (/^\S+$/.test(key)) return key;
  throw stop('it is empty or contains more than one word. It must contain only the key.');
};

/**
 * Values from the user's file for provider variables that the environment does not set, and keys of
 * the user's providers.
 */
export const providerVariables = (
  { resolved, ownProviders }: Pick<Consulted, 'resolved' | 'ownProviders'>,
  environment: ProcessEnvironment,
): Readonly<Record<string, string>> => {
  const variables: Record<string, string> = { ...ownKeys(ownProviders, environment) };
  for (const provider of providers) {
    const { name, keyVariables: names, urlVariable } = provider;
    const written = (key: string): Value | null =>
      resolved.find(({ setting }) => setting.key === `providers.${name}.${key}`)?.value ?? null;
    const [url, file] = [written('base_url'), written('api_key_file')];
    if (url !== null && !environment[urlVariable]) variables[urlVariable] = String(url);
    if (file !== null && keyIn(environment, names) === null)
      variables[names[0]] = readKey(String(file));
  }
  return variables;
};

/** The keys of the user's providers that stand in variables or files, by `PAWL_KEY_NAME`. */
const ownKeys = (
  ownProviders: readonly UserProvider[],
  environment: ProcessEnvironment,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    ownProviders.flatMap(({ keySource, keyVariables: names }) => {
      const key =
        keySource.kind === 'file' ? readKey(keySource.file) : (environment[names[0]]?.trim() ?? '');
      return key === '' ? [] : [[names.at(-1) ?? '', key] as const];
    }),
  );

const ownKeyFiles = (ownProviders: readonly UserProvider[]): readonly string[] =>
  ownProviders.flatMap(({ keySource }) =>
    keySource.kind === 'file' ? [path.resolve(expandHome(keySource.file))] : [],
  );

/** Files with API keys that the user's file names, read or not. */
const keyFilesIn = (resolved: readonly Resolved[]): readonly string[] => {
  const files: string[] = [];
  for (const { setting, value } of resolved)
    if (setting.key.endsWith('.api_key_file') && value !== null)
      files.push(path.resolve(expandHome(String(value))));
  return files;
};

/** The variables that hold API keys. */
export const keysIn = (
  variables: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(variables).filter(
      ([name]) => keyVariables.includes(name) || name.startsWith('PAWL_KEY_'),
    ),
  );

/**
 * A setting in the form of a flag. `false` is left out like a missing flag, except for
 * `auto_commit`, which has `--no-`.
 */
const asFlag = ({ setting, value }: Resolved): readonly (readonly [string, unknown])[] => {
  if (value === null) return [];
  const name = flagAttribute(setting);
  if (typeof value !== 'boolean') return [[name, String(value)]];
  return value || setting.key === 'auto_commit' ? [[name, value]] : [];
};

type ConfigOptions = {
  /** `ask` also takes the settings whose key begins with `ask.`. */
  readonly command: 'run' | 'ask';
  /** A resumed session keeps its frozen settings: only a flag can change them. */
  readonly resumed: boolean;
  /** Called for each setting and table of the project's files that is ignored. */
  readonly warn: (text: string) => void;
};

const appliesTo = ({ command, resumed }: ConfigOptions, { setting }: Resolved): boolean => {
  if (setting.key.startsWith('providers.')) return false; // these become variables
  const fits = command === 'ask' || !setting.key.startsWith('ask.');
  return fits && !(resumed && setting.frozen);
};

/** The flags, completed from files and variables. Throws a `Stop` if any of those is faulty. */
export const withConfig = async <F extends Flags>(
  flags: F,
  workspace: string,
  options: ConfigOptions,
): Promise<F & Configured> => {
  const typedFlags = { ...flags };
  const consulted = await consult(workspace, process.env, typedFlags);
  const { resolved, faults, rules, refused, mcpServers, userHooks, projectHooks } = consulted;
  if (faults.length > 0)
    throw new Stop(
      exitCodes.configuration,
      'configuration',
      [
        'The configuration is faulty.',
        ...faults.map(({ where, text }) => `${where}: ${text}`),
      ].join('\n'),
    );
  // what a project's files must not set is left out, and told
  for (const { key, value, origin, why } of refusedByProject(resolved)) {
    const where = origin.layer === 'project' ? `${origin.file}:${origin.line}` : '';
    options.warn(`${where}: ${key} = ${showValue(value)} is ignored: ${why}.`);
  }
  for (const rule of refused)
    options.warn(`${describeRule(rule)} is ignored: a project may only ask and deny.`);
  for (const text of consulted.refusedTables) options.warn(text);
  // settings that no flag has set
  const missing = resolved.filter(
    (one) => appliesTo(options, one) && typedFlags[flagAttribute(one.setting)] === undefined,
  );
  const filled = Object.fromEntries(missing.flatMap(asFlag));
  const { ownProviders } = consulted;
  const variables = providerVariables(consulted, process.env);
  const keyFiles = [...keyFilesIn(resolved), ...ownKeyFiles(ownProviders)];
  const { usual } = consulted;
  const chosen = { variables, usual, ownProviders, keyFiles };
  const ownTables = { writtenRules: rules, mcpServers, userHooks, projectHooks };
  // each added attribute has the name and form of a flag
  return { ...filled, ...typedFlags, ...chosen, ...ownTables } as F & Configured;
};

// How a setting is resolved: its value, the source that won, the sources that were overruled.

export type Origin =
  | { readonly layer: 'user' | 'project'; readonly file: string; readonly line: number }
  | { readonly layer: 'environment'; readonly variable: string }
  | { readonly layer: 'flag'; readonly flag: string };

export type SourceValue = {
  readonly setting: Setting;
  readonly value: Value;
  readonly origin: Origin;
};

export type Overruled = { readonly value: Value; readonly origin: Origin; readonly why: string };

export type Resolved = {
  readonly setting: Setting;
  /** null for the built-in value. */
  readonly value: Value | null;
  readonly origin: Origin | null;
  readonly overruled: readonly Overruled[];
};

/** From the weakest to the strongest layer. In the project's layer the nearest file comes last. */
export type Layers = {
  readonly user: readonly SourceValue[];
  readonly project: readonly SourceValue[];
  readonly environment: readonly SourceValue[];
  readonly flags: readonly SourceValue[];
  /** What a project may not loosen where no source sets a value: of a profile. */
  readonly bounds?: ReadonlyMap<string, Value | null>;
};

/** Whether each host of `some` is in `all`. */
const isAmong = (some: string, all: string): boolean =>
  some.split(',').every((host) => all.split(',').includes(host));

/** Negative if `one` is stricter than `other`. null means no limit. */
const compareStrictness = (setting: Setting, one: Value, other: Value | null): number => {
  const { kind, projectBound } = setting;
  if (other === null) return -1;
  if (kind.type === 'hosts') return isAmong(String(one), String(other)) ? 0 : 1;
  if (kind.type === 'words') {
    const place = (word: Value): number =>
      kind.words.indexOf(String(word === kind.undecided ? projectBound : word));
    return place(one) - place(other);
  }
  return Number(one) - Number(other);
};

/** Why a project's value is refused that is looser than the present one. */
const LOOSER_TEXTS: Readonly<Record<Setting['kind']['type'], string>> = {
  number: 'a project may only lower it',
  switch: 'a project may only switch it off',
  words: 'a project may only choose what is stricter',
  model: 'a project may only choose a model of the provider that is used anyway',
  hosts: 'a project may only name hosts that you have named',
  url: 'a project may not set it',
  file: 'a project may not set it',
  names: 'a project may not set it',
  models: 'a project may not set it',
};

/** The same for a number that a project may only raise. */
const LOWER_TEXT = 'a project may only raise it';

const providerName = (model: Value): string => String(model).split('/')[0] ?? '';

const outOfRange = ({ projectRange }: Setting, value: Value): string | null => {
  const [least, most] = projectRange ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  if (Number(value) < least) return `a project may not go below ${least}`;
  return Number(value) > most ? `a project may not go above ${most}` : null;
};

/** Why a project's value is refused; null if it is accepted. */
const refusalReason = (
  setting: Setting,
  value: Value,
  current: Value | null,
  builtInModel: string,
): string | null => {
  const away = outOfRange(setting, value);
  if (away !== null) return away;
  // words that only the user may choose, such as a preset that asks for nothing
  if ([...setting.ownWords, ...setting.userWords].includes(String(value)))
    return 'a project may not choose it';
  switch (setting.project) {
    case 'no':
      return 'a project may not set it';
    case 'tighten':
      return compareStrictness(setting, value, current ?? setting.projectBound) <= 0
        ? null
        : LOOSER_TEXTS[setting.kind.type];
    case 'raise':
      return compareStrictness(setting, value, current ?? setting.projectBound) >= 0
        ? null
        : LOWER_TEXT;
    case 'sameProvider': {
      const provider = providerName(current ?? builtInModel);
      // a scripted model is a file, so another one could be the project's
      const isSame = providerName(value) === provider && provider !== 'scripted';
      return isSame ? null : LOOSER_TEXTS.model;
    }
    default:
      return setting.project satisfies never;
  }
};

type Winner = Pick<SourceValue, 'value' | 'origin'>;

const resolveOne = (setting: Setting, layers: Layers, builtInModel: string): Resolved => {
  let now: Winner | null = null;
  const overruled: Overruled[] = [];
  const take = (sourceValue: SourceValue, by: string): void => {
    if (now !== null) overruled.push({ ...now, why: by });
    now = { value: sourceValue.value, origin: sourceValue.origin };
  };
  const { user, project, environment, flags } = layers;
  const valuesIn = (list: readonly SourceValue[]): readonly SourceValue[] =>
    list.filter((sourceValue) => sourceValue.setting.key === setting.key);
  for (const sourceValue of valuesIn(user)) take(sourceValue, 'another file comes later');
  for (const sourceValue of valuesIn(project)) {
    // `take` assigns it, which the compiler does not see
    const current = (now as Winner | null)?.value ?? layers.bounds?.get(setting.key) ?? null;
    const why = refusalReason(setting, sourceValue.value, current, builtInModel);
    if (why === null)
      take(
        sourceValue,
        setting.project === 'raise' ? 'the project raises it' : 'the project is stricter',
      );
    else overruled.push({ value: sourceValue.value, origin: sourceValue.origin, why });
  }
  for (const sourceValue of valuesIn(environment))
    take(sourceValue, 'the environment wins over files');
  for (const sourceValue of valuesIn(flags)) take(sourceValue, 'flags win');
  const winner = now as Winner | null; // the same
  return { setting, value: winner?.value ?? null, origin: winner?.origin ?? null, overruled };
};

/** Every setting, in the order of the table. */
export const resolve = (layers: Layers, builtInModel: string): readonly Resolved[] =>
  settings.map((setting) => resolveOne(setting, layers, builtInModel));

/**
 * Values of a project that are ignored, for the user to be told. A number that is only looser than
 * the user's is left out: a project's own limit may well be wider.
 */
export const refusedByProject = (
  resolved: readonly Resolved[],
): readonly (Overruled & { readonly key: string })[] =>
  resolved.flatMap(({ setting, overruled }) =>
    overruled
      .filter(({ origin, why }) => origin.layer === 'project' && why.startsWith('a project may'))
      .filter(({ why }) => why !== LOOSER_TEXTS.number && why !== LOWER_TEXT)
      .map((one) => ({ ...one, key: setting.key })),
  );

// Finding and reading the files and variables with settings. The TOML parser is loaded only if
// there is a file.

/** `where`: a file and its line, or a variable. */
type PlacedFault = { readonly where: string; readonly text: string };

/** A hook in a project's file. `folder`: the folder that has `.pawl`. */
export type ProjectHook = { readonly declaration: HookDeclaration; readonly folder: string };

type Loaded = {
  readonly layers: Omit<Layers, 'flags' | 'bounds'>;
  /** Existing files, the user's first. */
  readonly files: readonly string[];
  readonly faults: readonly PlacedFault[];
  readonly rules: readonly WrittenRule[];
  /** Rules of a project that allow something. A project may not do that. */
  readonly refused: readonly WrittenRule[];
  /** MCP servers of the user's file. */
  readonly mcpServers: readonly McpServer[];
  /** A sentence for each table of a project's file that only the user's file may have. */
  readonly refusedTables: readonly string[];
  /** Providers of the user's file. */
  readonly ownProviders: readonly UserProvider[];
  /** Hooks of the user's file. */
  readonly userHooks: readonly HookDeclaration[];
  /** Hooks of the project's files. Of equal names the nearest file has the one that counts. */
  readonly projectHooks: readonly ProjectHook[];
};

export const CONFIG_BYTES_MAX = 16 * 1024;

export const userFile = (environment: ProcessEnvironment): string =>
  path.join(configFolder(environment), 'config.toml');

const NO_EXTENSIONS: LoadedExtensions = {
  files: [],
  tools: [],
  commands: [],
  providers: [],
  faults: [],
};

/** The user's extensions. Most users have none: then nothing is loaded for them. */
export const userExtensions = async (
  environment: ProcessEnvironment,
): Promise<LoadedExtensions> => {
  const folder = path.join(configFolder(environment), 'extensions');
  if (!existsSync(folder)) return NO_EXTENSIONS;
  const { loadExtensions } = await import('./user-extensions.js');
  return loadExtensions(folder);
};

/**
 * Configuration files from the repository's root down to the workspace, without files of other
 * users.
 */
const projectFiles = (workspace: string): readonly string[] =>
  repositoryFolders(workspace)
    .folders.map((folder) => path.join(folder, '.pawl'))
    .filter((folder) => !isOfOtherUser(folder, workspace))
    .map((folder) => path.join(folder, 'config.toml'))
    // a file in the workspace itself counts, whoever owns it
    .filter(
      (file) => path.dirname(path.dirname(file)) === workspace || !isOfOtherUser(file, workspace),
    )
    .reverse();

/** Whether the project has a file of its own, which may hold hooks. */
export const hasProjectFile = (workspace: string): boolean =>
  projectFiles(workspace).some((file) => existsSync(file));

/**
 * The `.mcp.json` files of a project, nearest first. Those of another user above the workspace are
 * skipped.
 */
export const mcpJsonFiles = (workspace: string): readonly string[] =>
  repositoryFolders(workspace)
    .folders.map((folder) => path.join(folder, '.mcp.json'))
    .filter((file) => existsSync(file) && !isOfOtherUser(file, workspace));

type FileContent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly why: string };

/** The text of a file. An unreadable file is a fault, because it may contain stricter settings. */
const readContent = (file: string): FileContent => {
  const loaded = readRegularSync(file, CONFIG_BYTES_MAX);
  if (loaded.kind === 'folder') return { kind: 'unusable', why: 'it is a folder' };
  if (loaded.kind !== 'file') return loaded;
  try {
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(loaded.bytes) };
  } catch {
    return { kind: 'unusable', why: 'it is not text in UTF-8' };
  }
};

type ConfigFile = Omit<ConfigTables, 'rules' | 'folders'> & {
  readonly values: readonly SourceValue[];
  /** If it is the user's file, also those of `[folder."PATH"]` for the workspace. */
  readonly rules: readonly WrittenRule[];
  readonly refusedTables: readonly string[];
  readonly faults: readonly PlacedFault[];
  /** Whether the file exists. */
  readonly there: boolean;
};

/**
 * A project's file must be in the project, as `.mcp.json` must: what a link leads to elsewhere is
 * not the project's.
 */
const isOutsideProject = async (file: string, workspace: string): Promise<boolean> => {
  // it is not there, or can't be read: that is said elsewhere
  const real = await realpath(file).catch(() => null);
  return real !== null && !isWithin(real, repositoryFolders(workspace).folders.at(-1) ?? workspace);
};

const readFile = async (
  file: string,
  layer: 'user' | 'project',
  workspace: string,
): Promise<ConfigFile> => {
  const read = readContent(file);
  const isOfProject = layer === 'project';
  const isOutside =
    read.kind === 'text' && isOfProject && (await isOutsideProject(file, workspace));
  const content: FileContent = isOutside
    ? { kind: 'unusable', why: 'it leads out of the project' }
    : read;
  const nothing = { ...NONE, values: [], rules: [], refusedTables: [], faults: [] };
  if (content.kind === 'absent') return { ...nothing, there: false };
  if (content.kind === 'unusable')
    return {
      ...nothing,
      faults: [{ where: file, text: `it can't be used: ${content.why}.` }],
      there: true,
    };
  const { parse } = await import('smol-toml');
  const { values, rules, folders, faults, written, ...others } = parseConfig(content.text, (text) =>
    parse(text),
  );
  const sourceValues = values.map(({ setting, value, line }) => ({
    setting,
    value,
    origin: { layer, file, line } satisfies Origin,
  }));
  const place = ({ line, text }: LineFault): PlacedFault => ({ where: `${file}:${line}`, text });
  const write = (rule: ReadRule, from?: WrittenRule['from']): WrittenRule => {
    const { line, ...subject } = rule;
    return { ...subject, origin: `${file}:${line}`, ...(from === undefined ? {} : { from }) };
  };
  const placed = rules.map((rule) => write(rule, isOfProject ? 'project' : undefined));
  const folderRules = folders.filter(({ folder }) => folder === workspace && !isOfProject);
  return {
    ...others,
    values: sourceValues,
    rules: [
      ...placed,
      ...folderRules.flatMap((one) => one.rules.map((rule) => write(rule, 'folder'))),
    ],
    refusedTables: isOfProject
      ? written.flatMap(({ refused }) => (refused === null ? [] : [`${file}: ${refused}.`]))
      : [],
    faults: faults.map(place),
    there: true,
  };
};

/** Reads Pawl's own variables. Those of providers are read together with the keys. */
const readVariables = (environment: ProcessEnvironment): Pick<ConfigFile, 'values' | 'faults'> => {
  const values: SourceValue[] = [];
  const faults: PlacedFault[] = [];
  for (const setting of settings.filter(({ variable }) => variable.startsWith('PAWL_'))) {
    const { variable, kind, key, ownWords } = setting;
    const text = environment[variable] ?? '';
    if (text === '') continue;
    if (ownWords.includes(text)) {
      const choices = `--${key} ${text} or ${key} = "${text}" in your own config.toml`;
      faults.push({ where: variable, text: `it can't be ${text}: only ${choices} can.` });
      continue;
    }
    const words = kind.type === 'words' ? kind.words.filter((one) => !ownWords.includes(one)) : [];
    const checked = checkVariable(kind.type === 'words' ? { ...kind, words } : kind, text);
    if (checked.kind === 'ok')
      values.push({ setting, value: checked.value, origin: { layer: 'environment', variable } });
    else faults.push({ where: variable, text: `it ${checked.why}.` });
  }
  return { values: values, faults };
};

/** The user's rules, and the project's rules that ask or deny. */
export const stricterRules = (
  user: readonly WrittenRule[],
  project: readonly WrittenRule[],
): readonly WrittenRule[] => [...user, ...project.filter(({ decision }) => decision !== 'allow')];

/** The rule with the user's home folder for `~/`. */
const inHome = (rule: WrittenRule, environment: ProcessEnvironment): WrittenRule => {
  if (rule.kind !== 'path' || !rule.pattern.startsWith('~/')) return rule;
  return { ...rule, pattern: path.join(environment.HOME || homedir(), rule.pattern.slice(2)) };
};

/** Of equal names the last one, whose file is nearest to the workspace. */
const nearestHooks = (hooks: readonly ProjectHook[]): readonly ProjectHook[] => [
  ...new Map(hooks.map((hook) => [hook.declaration.name, hook])).values(),
];

/**
 * Loads all layers except flags. Faulty content becomes a fault, never a rejection. `workspace`: a
 * real path.
 */
export const loadConfig = async (
  workspace: string,
  environment: ProcessEnvironment,
): Promise<Loaded> => {
  const userConfig = userFile(environment);
  const projects = projectFiles(workspace).filter((file) => file !== userConfig);
  const [user, ...project] = await Promise.all([
    readFile(userConfig, 'user', workspace),
    ...projects.map((file) => readFile(file, 'project', workspace)),
  ]);
  const variables = readVariables(environment);
  const projectRules = project.flatMap(({ rules }) => rules);
  const present = [userConfig, ...projects].filter((_, index) => [user, ...project][index]?.there);
  return {
    layers: {
      user: user.values,
      project: project.flatMap(({ values }) => values),
      environment: variables.values,
    },
    files: present,
    rules: stricterRules(user.rules, projectRules).map((rule) => inHome(rule, environment)),
    mcpServers: user.mcpServers,
    ownProviders: user.ownProviders,
    refusedTables: project.flatMap(({ refusedTables }) => refusedTables),
    userHooks: user.hooks,
    projectHooks: nearestHooks(
      projects.flatMap((file, index) =>
        (project[index]?.hooks ?? []).map((declaration) => ({
          declaration,
          folder: path.dirname(path.dirname(file)),
        })),
      ),
    ),
    refused: projectRules.filter(({ decision }) => decision === 'allow'),
    faults: [...user.faults, ...project.flatMap(({ faults }) => faults), ...variables.faults],
  };
};

// Parsing one config.toml (`parseConfig`) into settings with their line numbers and all its faults.

type LineFault = { readonly line: number; readonly text: string };

/** What the tables of a file hold that are no settings. */
type ConfigTables = {
  readonly rules: readonly ReadRule[];
  /** The rules of the tables `folder."PATH".rules`. */
  readonly folders: readonly FolderRules[];
  readonly mcpServers: readonly McpServer[];
  readonly ownProviders: readonly UserProvider[];
  readonly hooks: readonly HookDeclaration[];
};

const NONE: ConfigTables = { rules: [], folders: [], mcpServers: [], ownProviders: [], hooks: [] };

type ParsedConfig = ConfigTables & {
  readonly values: readonly {
    readonly setting: Setting;
    readonly value: Value;
    readonly line: number;
  }[];
  /** The tables that hold something. */
  readonly written: readonly ConfigTable[];
  readonly faults: readonly LineFault[];
};

type LineOf = (keys: readonly string[]) => number;

type FolderRules = { readonly folder: string; readonly rules: readonly ReadRule[] };

/** Reads the table `folder`. */
const readFolders = (table: unknown, lineOf: LineOf): Pick<ParsedConfig, 'folders' | 'faults'> => {
  const folders: FolderRules[] = [];
  const faults: LineFault[] = [];
  const refuse = (keys: readonly string[], text: string): void =>
    void faults.push({ line: lineOf(keys), text });
  if (!isTable(table))
    refuse(['folder'], 'folder has a table for each folder: [folder."/PATH".rules]');
  else
    for (const [folder, inner] of Object.entries(table)) {
      const keys = ['folder', folder];
      const other = isTable(inner)
        ? Object.keys(inner).find((name) => name !== 'rules')
        : undefined;
      if (!isTable(inner))
        refuse(keys, 'folder has a table for each folder: [folder."/PATH".rules]');
      else if (!path.isAbsolute(folder))
        refuse(keys, 'a folder is an absolute path: [folder."/PATH".rules]');
      else if (folder !== path.resolve(folder))
        refuse(keys, `write this folder as it is named: [folder."${path.resolve(folder)}".rules]`);
      else if (other !== undefined)
        refuse([...keys, other], `a folder has only rules, not ${shorten(other)}.`);
      else if (inner.rules !== undefined) {
        const read = readRules(inner.rules, (below) => lineOf([...keys, ...below]));
        folders.push({ folder, rules: read.rules });
        faults.push(...read.faults);
      }
    }
  return { folders, faults };
};

type Parse = (text: string) => ParsedTable;

/** Tables of settings: `ask`, `providers`, `providers.anthropic`, … */
const tables = new Set(
  settings.flatMap(({ key }) => {
    const parts = key.split('.');
    return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('.'));
  }),
);

/** Longer than any setting's name, so longer keys get no suggestion. */
const NAME_MAX = 60;
/** Faults to show. Further ones are counted. */
const FAULTS_MAX = 10;

const shorten = (key: string): string => cut(key, NAME_MAX);

const unknownKey = (key: string): string => {
  const name = key.split('.').at(-1) ?? key;
  const names = [
    ...settings.map((setting) => setting.key),
    ...tables,
    'rules',
    'folder',
    'mcp',
    'hook',
  ];
  const close = key.length > NAME_MAX ? undefined : nearestWord(key, names);
  if (close !== undefined) return `there is no setting ${key}. Did you mean ${close}?`;
  if (/key|token|secret|password|credential/i.test(name)) {
    return (
      `${shorten(key)} is no setting: keys do not belong into a file that is copied and shown. ` +
      `Set the variable of the provider, for example ${defaultProvider.keyVariables[0]}, or ` +
      `name a file in your own config.toml: providers.${defaultProvider.name}.api_key_file.`
    );
  }
  return `there is no setting ${shorten(key)}. pawl config lists them.`;
};

const tableAdvice = (key: string): string =>
  key === 'hooks' ? ' A hook of your own is a table [hook.NAME].' : '';

type WrittenKey = { readonly key: string; readonly keys: readonly string[]; readonly raw: unknown };

/** The keys of a table with their values; `sub_model` in `[ask]` is `ask.sub_model`. */
const flatten = (table: ParsedTable, above: readonly string[] = []): readonly WrittenKey[] =>
  Object.entries(table).flatMap(([name, raw]) => {
    const keys = [...above, name];
    const key = keys.join('.');
    return isTable(raw) && tables.has(key) ? flatten(raw, keys) : [{ key, keys, raw }];
  });

/**
 * Only the first line of the parser's message. The lines below quote the file, which may contain a
 * secret.
 */
const syntaxFault = (error: unknown): LineFault => {
  const line =
    error instanceof Error && 'line' in error && typeof error.line === 'number' ? error.line : 1;
  const why = (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
  const text = why.replace(/^Invalid TOML document: /, '');
  return {
    line,
    text: `this is no TOML: ${text}. A line reads: name = "text", name = 1 or name = true.`,
  };
};

/** A fault whose text is made only if it is shown: to find a close name takes time. */
type PendingFault = { readonly line: number; readonly tell: () => string };

/** The first faults in order of their lines, and the number of the others. */
const firstFaults = (wrong: readonly PendingFault[]): readonly LineFault[] => {
  const sorted = wrong.toSorted((one, other) => one.line - other.line);
  const first = sorted.slice(0, FAULTS_MAX).map(({ line, tell }) => ({ line, text: tell() }));
  const next = sorted[FAULTS_MAX];
  if (next === undefined) return first;
  const rest = plural(sorted.length - FAULTS_MAX, 'more fault');
  return [...first, { line: next.line, text: `${rest} from here on.` }];
};

/** Whether a key belongs to a provider that only the user knows: `providers.NAME`. */
const isOwnProvider = ([table, name, ...below]: readonly string[]): boolean =>
  table === 'providers' &&
  name !== undefined &&
  below.length === 0 &&
  !tables.has(`providers.${name}`);

type TableFault = LineFault | { readonly keys: readonly string[]; readonly text: string };

type ConfigTable = {
  readonly name: string;
  /** Why it is ignored in a project's file; null: it counts there. */
  readonly refused: string | null;
  read(
    table: unknown,
    lineOf: LineOf,
  ): Partial<ConfigTables> & { readonly faults: readonly TableFault[] };
};

/** The tables that are no settings. */
const configTables: readonly ConfigTable[] = [
  { name: 'rules', refused: null, read: readRules },
  {
    name: 'mcp',
    refused: '[mcp.servers] is ignored: a project names its servers in .mcp.json',
    read(table) {
      const { servers, faults } = readMcpTable(table);
      return { mcpServers: servers, faults };
    },
  },
  {
    name: 'providers',
    refused: '[providers] is ignored: a project names no provider',
    // anything but a table is told as a setting
    read: (table) => (isTable(table) ? readOwnProviders(table) : { faults: [] }),
  },
  {
    name: 'folder',
    refused: '[folder] is ignored: only your own config.toml has rules for a folder',
    read: readFolders,
  },
  { name: 'hook', refused: null, read: readHookTable },
];

/** Reads the whole file, so that all faults are found. */
export const parseConfig = (text: string, parse: Parse): ParsedConfig => {
  let table: ParsedTable;
  try {
    table = parse(text);
  } catch (error) {
    return { ...NONE, values: [], written: [], faults: [syntaxFault(error)] };
  }
  const values: ParsedConfig['values'][number][] = [];
  const wrong: PendingFault[] = [];
  const lineOf = findLines(text, parse);
  const { rules, folder, mcp, hook, ...others } = table;
  let items = NONE;
  const written: ConfigTable[] = [];
  for (const one of configTables) {
    if (table[one.name] === undefined) continue;
    const { faults, ...read } = one.read(table[one.name], lineOf);
    items = { ...items, ...read };
    if (Object.values(read).some(({ length }) => length > 0)) written.push(one);
    for (const fault of faults)
      wrong.push({
        line: 'line' in fault ? fault.line : lineOf(fault.keys),
        tell: () => fault.text,
      });
  }
  for (const { key, keys, raw } of flatten(others)) {
    if (isOwnProvider(keys)) continue; // read above
    const line = lineOf(keys);
    const setting = settings.find((known) => known.key === key);
    if (setting === undefined) {
      wrong.push({
        line,
        tell: () => (tables.has(key) ? `${key} is a table: [${key}]` : unknownKey(key)),
      });
      continue;
    }
    const checked = checkValue(setting.kind, raw);
    if (checked.kind === 'ok') values.push({ setting, value: checked.value, line });
    else
      wrong.push({
        line,
        tell: () => `${key} ${checked.why}.${isTable(raw) ? tableAdvice(key) : ''}`,
      });
  }
  return { ...items, values, written, faults: firstFaults(wrong) };
};
