import { findLines } from '@pawl/agent/extensions/find-toml-keys';
import { type McpServer, readMcpTable } from '@pawl/agent/extensions/mcp-servers';
import { type ReadRule, readRules } from '@pawl/agent/extensions/permission-rules';
import { type HookDeclaration, readHookTable } from '@pawl/agent/extensions/user-hooks';
import { defaultProvider } from '@pawl/agent/models/provider-table';
import { isTable, type ParsedTable } from '@pawl/agent/platform/base/is-parsed-table';
import { closestTo } from '@pawl/agent/platform/base/nearest-word';
import { plural } from '@pawl/agent/platform/base/plural';
import { checkValue } from './check-setting-value.js';
import type { Setting, Value } from './setting.js';
import { settings } from './setting-table.js';

/** Parses one config.toml into settings with their line numbers. Lists all its faults. */

export type Fault = { readonly line: number; readonly text: string };

export type ParsedConfig = {
  readonly values: readonly { readonly setting: Setting; readonly value: Value; readonly line: number }[];
  readonly rules: readonly ReadRule[];
  readonly mcpServers: readonly McpServer[];
  readonly hooks: readonly HookDeclaration[];
  readonly faults: readonly Fault[];
};

type Parse = (text: string) => ParsedTable;

/** Tables of settings: `ask`, `providers`, `providers.anthropic`, … */
const tables = new Set(
  settings.flatMap(({ key }) => {
    const parts = key.split('.');
    return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('.'));
  }),
);

const looksLikeSecret = (name: string): boolean => /key|token|secret|password|credential/i.test(name);

/** Longer than any setting's name, so longer keys get no suggestion. */
const NAME_MAX = 60;
/** Faults to show. Further ones are counted. */
const FAULTS_MAX = 10;

const shorten = (key: string): string => (key.length > NAME_MAX ? `${key.slice(0, NAME_MAX)}…` : key);

const unknownKey = (key: string): string => {
  const name = key.split('.').at(-1) ?? key;
  const names = [...settings.map((setting) => setting.key), ...tables, 'rules', 'mcp', 'hook'];
  const close = key.length > NAME_MAX ? undefined : closestTo(key, names);
  if (close !== undefined) return `there is no setting ${key}. Did you mean ${close}?`;
  if (looksLikeSecret(name)) {
    return `${shorten(key)} is no setting: keys do not belong into a file that is copied and shown. Set the variable of the provider, for example ${defaultProvider.keyVariables[0]}, or name a file in your own config.toml: providers.${defaultProvider.name}.api_key_file.`;
  }
  return `there is no setting ${shorten(key)}. pawl config lists them.`;
};

const tableAdvice = (key: string): string =>
  key === 'hooks' ? ' A hook of your own is a table [hook.NAME].' : '';

type Found = { readonly key: string; readonly keys: readonly string[]; readonly raw: unknown };

const flatten = (table: ParsedTable, above: readonly string[] = []): readonly Found[] =>
  Object.entries(table).flatMap(([name, raw]) => {
    const keys = [...above, name];
    const key = keys.join('.');
    return isTable(raw) && tables.has(key) ? flatten(raw, keys) : [{ key, keys, raw }];
  });

/** Only the first line of the parser's message. The lines below quote the file, which may contain a secret. */
const syntaxFault = (error: unknown): Fault => {
  const line = error instanceof Error && 'line' in error && typeof error.line === 'number' ? error.line : 1;
  const why = (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
  const text = why.replace(/^Invalid TOML document: /, '');
  return { line, text: `this is no TOML: ${text}. A line reads: name = "text", name = 1 or name = true.` };
};

type Wrong = { readonly line: number; readonly tell: () => string };

/** The first faults in order of their lines, and the number of the others. */
const firstFaults = (wrong: readonly Wrong[]): readonly Fault[] => {
  const sorted = wrong.toSorted((one, other) => one.line - other.line);
  const told = sorted.slice(0, FAULTS_MAX).map(({ line, tell }) => ({ line, text: tell() }));
  const next = sorted[FAULTS_MAX];
  if (next === undefined) return told;
  const left = plural(sorted.length - FAULTS_MAX, 'more fault');
  return [...told, { line: next.line, text: `${left} from here on.` }];
};

/** Reads the whole file, so that all faults are found. */
export const parseConfig = (text: string, parse: Parse): ParsedConfig => {
  let table: ParsedTable;
  try {
    table = parse(text);
  } catch (error) {
    return { values: [], rules: [], mcpServers: [], hooks: [], faults: [syntaxFault(error)] };
  }
  const values: ParsedConfig['values'][number][] = [];
  const wrong: Wrong[] = [];
  const lineOf = findLines(text, parse);
  const { rules: written, mcp, hook, ...others } = table;
  const ruled = written === undefined ? { rules: [], faults: [] } : readRules(written, lineOf);
  for (const { line, text: why } of ruled.faults) wrong.push({ line, tell: () => why });
  const connected = mcp === undefined ? { servers: [], faults: [] } : readMcpTable(mcp);
  for (const { keys, text: why } of connected.faults) wrong.push({ line: lineOf(keys), tell: () => why });
  const hooked = hook === undefined ? { hooks: [], faults: [] } : readHookTable(hook);
  for (const { keys, text: why } of hooked.faults) wrong.push({ line: lineOf(keys), tell: () => why });
  for (const { key, keys, raw } of flatten(others)) {
    const line = lineOf(keys);
    const setting = settings.find((known) => known.key === key);
    if (setting === undefined) {
      wrong.push({ line, tell: () => (tables.has(key) ? `${key} is a table: [${key}]` : unknownKey(key)) });
      continue;
    }
    const checked = checkValue(setting.kind, raw);
    if (checked.kind === 'ok') values.push({ setting, value: checked.value, line });
    else wrong.push({ line, tell: () => `${key} ${checked.why}.${isTable(raw) ? tableAdvice(key) : ''}` });
  }
  return {
    values,
    rules: ruled.rules,
    mcpServers: connected.servers,
    hooks: hooked.hooks,
    faults: firstFaults(wrong),
  };
};
