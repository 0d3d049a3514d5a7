import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { attributeOf, flagName } from '../config/flag-names.js';
import { type Environment, loadConfig, type PlacedFault } from '../config/load.js';
import { providers } from '../config/providers.js';
import { type Given, type Layers, type Resolved, refusedOf, resolve } from '../config/resolve.js';
import { type Setting, settings, type Value } from '../config/table.js';
import { showValue } from '../config/value.js';
import { DEFAULT_MODEL } from '../models/catalogue.js';
import { exitCodes, Stop } from './exit-codes.js';

/** What files and variables say, as if it had been given by flags. */

/** Settings that have no flag, and the variables of providers that the user's file stands in for. */
export type Configured = {
  readonly firstByteMs?: string;
  readonly silenceMs?: string;
  readonly cellMs?: string;
  readonly variables?: Readonly<Record<string, string>>;
};

const faultLines = (faults: readonly PlacedFault[]): string =>
  faults.map(({ where, text }) => `${where}: ${text}`).join('\n');

type Flags = Readonly<Record<string, unknown>>;

const givenByFlags = (flags: Flags): readonly Given[] =>
  settings.flatMap((setting): Given[] => {
    const flag = flagName(setting);
    const value = flags[attributeOf(setting)];
    if (flag === null || value === undefined) return [];
    return [{ setting, value: value as Value, origin: { layer: 'flag', flag } }]; // the parser gives text, true or false
  });

/** What a profile sets; chosen by a flag it wins over what the user has written down, though not over a project. */
const profiled = /^(max_|hooks$|formatter$|auto_commit$)/;

const withProfile = (layers: Layers, flags: Flags): Layers => {
  if (flags.profile === undefined) return layers;
  const without = (list: readonly Given[]): readonly Given[] =>
    list.filter(({ setting }) => !profiled.test(setting.key));
  return { ...layers, user: without(layers.user), environment: without(layers.environment) };
};

export type Consulted = {
  readonly resolved: readonly Resolved[];
  readonly files: readonly string[];
  readonly faults: readonly PlacedFault[];
};

/** Everything that is set for a workspace, by whom, and what is wrong with it. */
export const consult = async (
  workspace: string,
  environment: Environment,
  flags: Flags,
): Promise<Consulted> => {
  const { layers, files, faults } = await loadConfig(workspace, environment);
  const all = withProfile({ ...layers, flags: givenByFlags(flags) }, flags);
  return { resolved: resolve(all, DEFAULT_MODEL), files, faults };
};

const wholePath = (file: string): string =>
  file.startsWith('~/') ? path.join(process.env.HOME || homedir(), file.slice(2)) : file;

/** The key in a file. What is wrong with the file is said without what is in it. */
const readKey = (file: string): string => {
  const whole = wholePath(file);
  const stop = (why: string): Stop =>
    new Stop(exitCodes.configuration, 'configuration', `The key in ${file} can't be used: ${why}`);
  let key: string;
  try {
    const { mode } = statSync(whole);
    if ((mode & 0o077) !== 0) throw stop(`others may read it. Make it yours alone: chmod 600 ${whole}`);
    key = readFileSync(whole, 'utf8').trim();
  } catch (error) {
    if (error instanceof Stop) throw error;
    throw stop(`${error instanceof Error ? error.message : String(error)}.`);
  }
  if (/^\S+$/.test(key)) return key;
  throw stop('it holds nothing, or more than one word. It is to hold the key alone.');
};

const asText = (value: Value): string => String(value);

/** The variables of providers that are not set, from the user's file. */
export const variablesOf = (
  resolved: readonly Resolved[],
  environment: Environment,
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

const isOfFlags = (setting: Setting, flags: Flags): boolean => flags[attributeOf(setting)] !== undefined;

/** As a flag would have given it: a switch that is off is not there, except where its opposite can be given. */
const asFlag = ({ setting, value }: Resolved): readonly (readonly [string, unknown])[] => {
  if (value === null) return [];
  const name = attributeOf(setting);
  if (typeof value !== 'boolean') return [[name, asText(value)]];
  return value || setting.key === 'auto_commit' ? [[name, value]] : [];
};

export type Asked = {
  /** Which commands' settings are meant: those with this before the dot. */
  readonly command: 'run' | 'ask';
  /** A session that goes on keeps what it began with. */
  readonly resumed: boolean;
  /** Told of what a project's file wanted and may not have. */
  readonly warn: (text: string) => void;
};

const commandOf = ({ key }: Setting): string => (key.startsWith('ask.') ? 'ask' : 'run');

const wantedIn = ({ command, resumed }: Asked, { setting }: Resolved): boolean => {
  if (setting.key.startsWith('providers.')) return false;
  const fits = commandOf(setting) === 'run' || command === 'ask';
  return fits && !(resumed && setting.frozen);
};

/** Flags with everything that they leave open as files and variables have it. Stops where one of those is faulty. */
export const withConfig = async <F extends Flags>(
  flags: F,
  workspace: string,
  asked: Asked,
): Promise<F & Configured> => {
  const given = { ...flags };
  const { resolved, faults } = await consult(workspace, process.env, given);
  if (faults.length > 0)
    throw new Stop(
      exitCodes.configuration,
      'configuration',
      `The configuration is faulty.\n${faultLines(faults)}`,
    );
  for (const { key, value, origin, why } of refusedOf(resolved)) {
    const where = origin.layer === 'project' ? `${origin.file}:${origin.line}` : '';
    asked.warn(`${where}: ${key} = ${showValue(value)} is not heeded: ${why}.`);
  }
  const open = resolved.filter((one) => wantedIn(asked, one) && !isOfFlags(one.setting, given));
  const filled = Object.fromEntries(open.flatMap(asFlag));
  const variables = variablesOf(resolved, process.env);
  return { ...filled, ...given, variables } as F & Configured; // each attribute is one of the flags, as text
};
