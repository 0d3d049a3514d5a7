/**
 * Providers that a user names: the tables `providers.NAME` of the user's config.toml whose names
 * Pawl does not know. A project names none.
 *
 * From top to bottom: the type; reading a table and its models; and the key, which comes from a
 * variable, a file or a command, and is never written in a table.
 */

import { UNKNOWN } from '@pawl/agent/models/catalogue';
import {
  findProvider,
  type OwnProvider,
  providers,
  type WireName,
} from '@pawl/agent/models/provider-table';
import type { ProcessEnvironment } from '@pawl/agent/platform/environment';
import { findProgram } from '@pawl/agent/platform/find-program';
import { ProgramFailure, runProgram } from '@pawl/agent/platform/run-program';
import {
  type Field,
  faultSentence,
  fieldFault,
  isTextTable,
  SWITCH,
  type TableFields,
} from '@pawl/agent/platform/table-fields';
import { cut, nearestWord } from '@pawl/agent/platform/text';
import { isTable, type ParsedTable } from '@pawl/agent/platform/untrusted-input';
import type { ModelFacts } from '@pawl/agent/ports/model';
import { secretVariables } from '@pawl/agent/secrets/redactor';
import { exitCodes, Stop } from '../process/exit-codes.js';

/** Where the key of a provider comes from. */
type KeySource =
  | { readonly kind: 'none' | 'variable' }
  | { readonly kind: 'file'; readonly file: string }
  /** A line for `sh`, which prints the key. */
  | { readonly kind: 'command'; readonly command: string };

export type UserProvider = OwnProvider & { readonly keySource: KeySource };

type Fault = { readonly keys: readonly string[]; readonly text: string };

export type ReadProviders = {
  readonly ownProviders: readonly UserProvider[];
  readonly faults: readonly Fault[];
};

const APIS: Readonly<Record<string, WireName>> = {
  'chat-completions': 'Chat Completions',
  responses: 'OpenAI Responses',
  messages: 'Anthropic Messages',
  gemini: 'Google Gemini API',
};

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isPrice = (value: unknown): boolean =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;
const isTokens = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;

const TOKENS: Field = { fits: isTokens, form: 'is a whole number of tokens, without quotes' };
const PRICE: Field = {
  fits: isPrice,
  form: 'is a price in dollars per million tokens, without quotes: 1.25',
};

const providerFields: TableFields = {
  api: {
    fits: (value) => isText(value) && Object.hasOwn(APIS, value),
    form: `is one of ${Object.keys(APIS).join(', ')}`,
  },
  base_url: {
    fits: (value) =>
      isText(value) && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol),
    form: 'is an http or https URL: "https://example.com/v1"',
  },
  key_env: {
    // commands get no variable whose name says that it holds a secret
    fits: (value) =>
      isText(value) &&
      /^[A-Za-z_]\w*$/.test(value) &&
      secretVariables({ [value]: 'x' }).includes(value),
    form: 'is the name of the variable that holds the key, with KEY or TOKEN at its end: "MY_KEY"',
  },
  key_command: { fits: isText, form: 'is a command that prints the key: "pass show my/key"' },
  api_key_file: { fits: isText, form: 'is the path of a file with the key' },
  headers: { fits: isTextTable, form: 'is a table of texts: { X-Team = "tools" }' },
  models: { fits: isTable, form: 'has a table for each model: [providers.NAME.models."MODEL"]' },
};

const modelFields: TableFields = {
  window: TOKENS,
  output: TOKENS,
  input_price: PRICE,
  output_price: PRICE,
  cache_read_price: PRICE,
  cache_write_price: PRICE,
  images: SWITCH,
};

const NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;
const SHOWN_MAX = 60;

/** Keys that a person would write for the key itself. */
const IS_KEY = /^(api_?)?key$|token|secret/i;
const NO_KEYS_HERE =
  'is not read: a key does not belong into a file that is copied and shown. Name its variable ' +
  '(key_env), a file (api_key_file) or a command (key_command)';

/** The fault of a provider's table; null if it is right. `keys`: where it is, from the table on. */
const providerFault = (
  name: string,
  raw: ParsedTable,
): readonly [keys: readonly string[], text: string] | null => {
  if (!NAME.test(name)) return [[], 'needs a name of at most 32 small letters, digits and dashes'];
  if (name === 'scripted')
    return [[], 'needs another name: models of that name answer from a script'];
  const key = Object.keys(raw).find((one) => IS_KEY.test(one));
  if (key !== undefined) return [[key], NO_KEYS_HERE];
  const fault = fieldFault(raw, providerFields, 'a provider');
  if (fault !== null) return [[fault[0]], fault[1]];
  const names = providers.map((provider) => provider.name);
  const close = raw.api === undefined ? nearestWord(name, names) : undefined;
  if (close !== undefined)
    return [
      [],
      `is no provider that Pawl knows. Did you mean providers.${close}? A provider of your own ` +
        'with such a name says its api: api = "chat-completions"',
    ];
  if (raw.base_url === undefined)
    return [[], 'is no provider that Pawl knows, so it needs base_url'];
  const sources = ['key_env', 'key_command', 'api_key_file'].filter(
    (key) => raw[key] !== undefined,
  );
  if (sources.length > 1) return [[sources[1] ?? ''], `can't stand beside ${sources[0]}`];
  const models = isTable(raw.models) ? raw.models : {};
  for (const [model, table] of Object.entries(models)) {
    const wrong = isTable(table)
      ? fieldFault(table, modelFields, 'a model')
      : (['', 'is a table'] as const);
    if (wrong !== null) return [['models', model, wrong[0]].filter((key) => key !== ''), wrong[1]];
    const { input_price: input, output_price: output } = table as ParsedTable; // checked above
    if ((input === undefined) !== (output === undefined))
      return [['models', model], 'needs both input_price and output_price, or none'];
  }
  return null;
};

/** The facts that the user gives about a model; `table` has no fault. */
const readModel = (table: ParsedTable, wire: WireName): ModelFacts => {
  const number = (key: string): number | null =>
    typeof table[key] === 'number' ? Number(table[key]) : null;
  const windowTokens = number('window') ?? UNKNOWN.windowTokens;
  const halfWindow = Math.floor(windowTokens / 2);
  const [input, output] = [number('input_price'), number('output_price')];
  return {
    ...UNKNOWN,
    windowTokens,
    outputTokensMax: number('output') ?? Math.min(UNKNOWN.outputTokensMax, halfWindow),
    ...(table.images === undefined ? {} : { images: table.images === true ? 'yes' : 'no' }),
    prices:
      input === null || output === null
        ? null
        : {
            input,
            output,
            cacheRead: number('cache_read_price') ?? input,
            // a cache of an hour costs twice the input
            cacheWrite:
              number('cache_write_price') ?? input * (wire === 'Anthropic Messages' ? 2 : 1),
          },
    source: 'your config.toml',
  };
};

/** The variable that holds the key of a provider whose key no variable of the user holds. */
const ownVariable = (name: string): string => `PAWL_KEY_${name.toUpperCase().replaceAll('-', '_')}`;

const keySource = (raw: ParsedTable): KeySource => {
  if (raw.key_env !== undefined) return { kind: 'variable' };
  if (raw.api_key_file !== undefined) return { kind: 'file', file: String(raw.api_key_file) };
  return raw.key_command === undefined
    ? { kind: 'none' }
    : { kind: 'command', command: String(raw.key_command) };
};

/** A provider from a table without a fault. */
const readProvider = (name: string, raw: ParsedTable): UserProvider => {
  const source = keySource(raw);
  const variable = ownVariable(name);
  const models = Object.entries((raw.models ?? {}) as Readonly<Record<string, ParsedTable>>); // checked
  const wire = APIS[String(raw.api ?? 'chat-completions')] ?? 'Chat Completions';
  return {
    name,
    title: name,
    wire,
    documentation: '',
    defaultModel: models[0]?.[0] ?? 'NAME',
    modelNames: null,
    key: source.kind === 'none' ? 'unused' : 'required',
    keyVariables: raw.key_env === undefined ? [variable] : [String(raw.key_env), variable],
    keysFrom: null,
    urlVariable: `providers.${name}.base_url`,
    urlForm: 'url',
    address: String(raw.base_url),
    factsFrom: raw.api === undefined || raw.api === 'chat-completions' ? 'modelList' : 'catalogue',
    ownServer: null,
    keyFrom:
      raw.key_env === undefined
        ? `the key of providers.${name} in your config.toml`
        : String(raw.key_env),
    headers: (raw.headers ?? {}) as Readonly<Record<string, string>>, // checked
    models: Object.fromEntries(models.map(([model, table]) => [model, readModel(table, wire)])),
    keySource: source,
  };
};

/** Reads those tables of `providers` whose names Pawl does not know. */
export const readOwnProviders = (table: ParsedTable): ReadProviders => {
  const ownProviders: UserProvider[] = [];
  const faults: Fault[] = [];
  for (const [name, raw] of Object.entries(table)) {
    if (findProvider(name) !== undefined) continue;
    const keys = ['providers', name];
    const fault = isTable(raw) ? providerFault(name, raw) : ([[], 'is a table'] as const);
    if (fault === null)
      ownProviders.push(readProvider(name, raw as ParsedTable)); // a table, since it has no fault
    else {
      const at = [...keys, ...fault[0]];
      faults.push({ keys: at, text: faultSentence(cut(at.join('.'), SHOWN_MAX), fault[1]) });
    }
  }
  return { ownProviders, faults };
};

const KEY_CHARACTERS_MAX = 16 * 1024;
/** A password manager may ask its user before it gives the key. */
const KEY_MS = 120_000;

/**
 * The variable with the key that a provider's command prints. Throws a `Stop` that never contains
 * what it printed.
 */
export const runKeyCommand = async (
  { name, keyVariables, keySource: source }: UserProvider,
  variables: ProcessEnvironment,
): Promise<Readonly<Record<string, string>>> => {
  if (source.kind !== 'command') return {};
  const environment = Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const stop = (why: string): Stop =>
    new Stop(
      exitCodes.configuration,
      'configuration',
      `providers.${name}.key_command gave no key: ${why}`,
    );
  const shell = findProgram('sh', { environment, workspace: null });
  if (shell === null) throw stop('there is no sh.');
  try {
    const { code, output } = await runProgram({
      program: shell,
      words: ['-c', source.command],
      title: `providers.${name}.key_command`,
      folder: '/',
      environment,
      input: null,
      bytesMax: KEY_CHARACTERS_MAX,
      atMax: 'fail',
      deadlineMs: KEY_MS,
      signal: new AbortController().signal,
    });
    const key = output.toString('utf8').trim();
    if (code !== 0) throw stop(`it ended with exit code ${code}.`);
    if (/^\S+$/.test(key)) return { [keyVariables.at(-1) ?? '']: key };
  } catch (error) {
    if (error instanceof ProgramFailure) throw stop(`${error.message.split('\n')[0]}`);
    throw error;
  }
  throw stop('it printed nothing, or more than one word. It must print the key alone.');
};
