import { closestTo } from '../suggest.js';
import { type Setting, settings, type Value } from './table.js';
import { checkValue } from './value.js';

/** From the text of one config.toml to settings with their lines, and everything that is wrong with it. */

export type Fault = { readonly line: number; readonly text: string };

export type Parsed = {
  readonly values: readonly { readonly setting: Setting; readonly value: Value; readonly line: number }[];
  readonly faults: readonly Fault[];
};

type Table = Readonly<Record<string, unknown>>;
type Parse = (text: string) => Table;

const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

const holds = (table: Table, keys: readonly string[]): boolean => {
  let at: unknown = table;
  for (const key of keys) {
    if (!isTable(at) || !Object.hasOwn(at, key)) return false;
    at = at[key];
  }
  return true;
};

/**
 * The line on which a key stands, however it is written: the first line that the file can't end before without losing
 * it. A value of several lines can't be parsed before its end, so that the last line that could be is the one before it.
 */
const lineOf = (keys: readonly string[], text: string, parse: Parse): number => {
  const lines = text.split('\n');
  let whole = 0;
  for (let count = 1; count <= lines.length; count++) {
    let table: Table;
    try {
      table = parse(lines.slice(0, count).join('\n'));
    } catch {
      continue; // the file as a whole was parsed: this is only the middle of a value
    }
    if (holds(table, keys)) return whole + 1;
    whole = count;
  }
  return lines.length;
};

/** Tables that settings are in: `ask`, `providers`, `providers.anthropic`, … . */
const tables = new Set(
  settings.flatMap(({ key }) => {
    const parts = key.split('.');
    return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('.'));
  }),
);

const looksLikeSecret = (name: string): boolean => /key|token|secret|password|credential/i.test(name);

const unknownKey = (key: string): string => {
  const name = key.split('.').at(-1) ?? key;
  const close = closestTo(key, [...settings.map((setting) => setting.key), ...tables]);
  if (close !== undefined) return `there is no setting ${key}. Did you mean ${close}?`;
  if (looksLikeSecret(name)) {
    return `${key} is no setting: keys do not belong into a file that is copied and shown. Set the variable of the provider, for example ANTHROPIC_API_KEY, or name a file in your own config.toml: providers.anthropic.api_key_file.`;
  }
  return `there is no setting ${key}. pawl config lists them.`;
};

type Found = { readonly key: string; readonly keys: readonly string[]; readonly raw: unknown };

const flatten = (table: Table, above: readonly string[] = []): readonly Found[] =>
  Object.entries(table).flatMap(([name, raw]) => {
    const keys = [...above, name];
    const key = keys.join('.');
    return isTable(raw) && tables.has(key) ? flatten(raw, keys) : [{ key, keys, raw }];
  });

/** The parser's first line says what is wrong; those below it repeat the file's text, which is nobody's business. */
const syntaxFault = (error: unknown): Fault => {
  const line = error instanceof Error && 'line' in error && typeof error.line === 'number' ? error.line : 1;
  const why = (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
  const text = why.replace(/^Invalid TOML document: /, '');
  return { line, text: `this is no TOML: ${text}. A line reads: name = "text", name = 1 or name = true.` };
};

/** Reads all of it: what is wrong does not hide what else is. */
export const parseConfig = (text: string, parse: Parse): Parsed => {
  let table: Table;
  try {
    table = parse(text);
  } catch (error) {
    return { values: [], faults: [syntaxFault(error)] };
  }
  const values: Parsed['values'][number][] = [];
  const faults: Fault[] = [];
  for (const { key, keys, raw } of flatten(table)) {
    const line = lineOf(keys, text, parse);
    const setting = settings.find((known) => known.key === key);
    if (setting === undefined) {
      faults.push({ line, text: tables.has(key) ? `${key} is a table: [${key}]` : unknownKey(key) });
      continue;
    }
    const checked = checkValue(setting.kind, raw);
    if (checked.kind === 'ok') values.push({ setting, value: checked.value, line });
    else faults.push({ line, text: `${key} ${checked.why}.` });
  }
  return { values, faults: faults.toSorted((one, other) => one.line - other.line) };
};
