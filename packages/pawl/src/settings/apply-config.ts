import { homedir } from 'node:os';
import path from 'node:path';
import type { McpServer } from '@pawl/agent/extensions/mcp-servers';
import type { HookDeclaration } from '@pawl/agent/extensions/user-hooks';
import { DEFAULT_MODEL, keyVariables, providers } from '@pawl/agent/models/provider-table';
import type { ProcessEnvironment } from '@pawl/agent/platform/base/process-environment-type';
import { readRegularSync } from '@pawl/agent/platform/files/regular-file';
import type { WrittenRule } from '@pawl/agent/policy/preset-rules';
import { describeRule } from '@pawl/agent/policy/user-rules';
import { exitCodes, Stop } from '../exit-codes.js';
import { showValue } from './check-setting-value.js';
import { attributeOf, flagName } from './flag-names.js';
import { type Loaded, loadConfig, type PlacedFault, type ProjectHook } from './load.js';
import { type Given, type Layers, type Resolved, refusedOf, resolve } from './resolve.js';
import type { Setting, Value } from './setting.js';
import { settings } from './setting-table.js';

/** Applies configuration files and environment variables: their values are added to the flags. */

/** Settings without a flag, and values of provider variables from the user's file. */
export type Configured = {
  readonly maxRetries?: string;
  readonly retryMs?: string;
  readonly reasoningSummaries?: string;
  readonly firstByteMs?: string;
  readonly silenceMs?: string;
  readonly cellMs?: string;
  readonly claudeFiles?: string;
  /** Names of variables, separated by commas. */
  readonly passEnv?: string;
  readonly telemetry?: string;
  readonly telemetryEndpoint?: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** Rules from the user's file, and those of the project's file that ask or deny. */
  readonly writtenRules?: readonly WrittenRule[];
  /** MCP servers from the user's file. */
  readonly mcpServers?: readonly McpServer[];
  /** Hooks from the user's file, and from the project's files. */
  readonly userHooks?: readonly HookDeclaration[];
  readonly projectHooks?: readonly ProjectHook[];
};

const faultLines = (faults: readonly PlacedFault[]): string =>
  faults.map(({ where, text }) => `${where}: ${text}`).join('\n');

type Flags = Readonly<Record<string, unknown>>;

const givenByFlags = (flags: Flags): readonly Given[] =>
  settings.flatMap((setting): Given[] => {
    const flag = flagName(setting);
    const value = flags[attributeOf(setting)];
    if (flag === null || value === undefined) return [];
    return [{ setting, value: value as Value, origin: { layer: 'flag', flag } }]; // the parser returns text or a boolean
  });

/** Keys that a profile sets. A profile flag overrides the user's file and variables, but not the project's file. */
const profiled = /^(max_|retry_|hooks$|formatter$|auto_commit$)/;

const withProfile = (layers: Layers, flags: Flags): Layers => {
  if (flags.profile === undefined) return layers;
  const without = (list: readonly Given[]): readonly Given[] =>
    list.filter(({ setting }) => !profiled.test(setting.key));
  return { ...layers, user: without(layers.user), environment: without(layers.environment) };
};

export type Consulted = Omit<Loaded, 'layers'> & { readonly resolved: readonly Resolved[] };

/** Loads all settings for a workspace: values, their sources, and faults in the files. */
export const consult = async (
  workspace: string,
  environment: ProcessEnvironment,
  flags: Flags,
): Promise<Consulted> => {
  const { layers, ...others } = await loadConfig(workspace, environment);
  const all = withProfile({ ...layers, flags: givenByFlags(flags) }, flags);
  return { resolved: resolve(all, DEFAULT_MODEL), ...others };
};

const KEY_BYTES_MAX = 64 * 1024;

const wholePath = (file: string): string =>
  file.startsWith('~/') ? path.join(process.env.HOME || homedir(), file.slice(2)) : file;

/** Reads an API key from a file. Error messages never contain the file's content. */
const readKey = (file: string): string => {
  const whole = wholePath(file);
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

const asText = (value: Value): string => String(value);

/** Values from the user's file for provider variables that the environment does not set. */
export const variablesOf = (
  resolved: readonly Resolved[],
  environment: ProcessEnvironment,
): Record<string, string> => {
  const found: Record<string, string> = {};
  for (const { name, keyVariables, urlVariable } of providers) {
    const written = (key: string): Value | null =>
      resolved.find(({ setting }) => setting.key === `providers.${name}.${key}`)?.value ?? null;
    const [url, file] = [written('base_url'), written('api_key_file')];
    if (url !== null && !environment[urlVariable]) found[urlVariable] = asText(url);
    const isSet = keyVariables.some((variable) => environment[variable]);
    if (file !== null && !isSet) found[keyVariables[0]] = readKey(asText(file));
  }
  return found;
};

/** The variables that hold API keys. */
export const keysIn = (variables: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => keyVariables.includes(name)));

const isGivenByFlag = (setting: Setting, flags: Flags): boolean => flags[attributeOf(setting)] !== undefined;

/** A setting in the form of a flag. `false` is left out like a missing flag, except for `auto_commit`, which has `--no-`. */
const asFlag = ({ setting, value }: Resolved): readonly (readonly [string, unknown])[] => {
  if (value === null) return [];
  const name = attributeOf(setting);
  if (typeof value !== 'boolean') return [[name, asText(value)]];
  return value || setting.key === 'auto_commit' ? [[name, value]] : [];
};

export type GivenOptions = {
  /** `ask` also takes the settings whose key begins with `ask.`. */
  readonly command: 'run' | 'ask';
  /** A resumed session keeps its frozen settings. */
  readonly resumed: boolean;
  /** Called for each setting of the project's file that is ignored. */
  readonly warn: (text: string) => void;
};

const commandOf = ({ key }: Setting): string => (key.startsWith('ask.') ? 'ask' : 'run');

const wantedIn = ({ command, resumed }: GivenOptions, { setting }: Resolved): boolean => {
  if (setting.key.startsWith('providers.')) return false;
  const fits = commandOf(setting) === 'run' || command === 'ask';
  return fits && !(resumed && setting.frozen);
};

/** The flags, completed from files and variables. Throws a `Stop` if any of those is faulty. */
export const withConfig = async <F extends Flags>(
  flags: F,
  workspace: string,
  asked: GivenOptions,
): Promise<F & Configured> => {
  const given = { ...flags };
  const consulted = await consult(workspace, process.env, given);
  const { resolved, faults, rules, refused, mcpServers, mcpRefused } = consulted;
  const { userHooks, projectHooks } = consulted;
  if (faults.length > 0)
    throw new Stop(
      exitCodes.configuration,
      'configuration',
      `The configuration is faulty.\n${faultLines(faults)}`,
    );
  for (const { key, value, origin, why } of refusedOf(resolved)) {
    const where = origin.layer === 'project' ? `${origin.file}:${origin.line}` : '';
    asked.warn(`${where}: ${key} = ${showValue(value)} is ignored: ${why}.`);
  }
  for (const rule of refused)
    asked.warn(`${describeRule(rule)} is ignored: a project may only ask and deny.`);
  for (const file of mcpRefused)
    asked.warn(`${file}: [mcp.servers] is ignored: a project names its servers in .mcp.json.`);
  const open = resolved.filter((one) => wantedIn(asked, one) && !isGivenByFlag(one.setting, given));
  const filled = Object.fromEntries(open.flatMap(asFlag));
  const variables = variablesOf(resolved, process.env);
  const tables = { writtenRules: rules, mcpServers, userHooks, projectHooks };
  return { ...filled, ...given, variables, ...tables } as F & Configured; // each added attribute has the name and form of a flag
};
