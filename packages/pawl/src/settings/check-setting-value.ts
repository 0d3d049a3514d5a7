import { isHostPattern } from '@pawl/agent/policy/host-patterns';
import type { Value, ValueKind } from './setting.js';

/** Checks a setting's value. The message for a wrong value says what to write instead. */

export type CheckedValue =
  | { readonly kind: 'ok'; readonly value: Value }
  | { readonly kind: 'bad'; readonly why: string };

const ok = (value: Value): CheckedValue => ({ kind: 'ok', value });
const bad = (why: string): CheckedValue => ({ kind: 'bad', why });

/** A wrong value for a message. Of a long text only the type is shown, because it may be a pasted key. */
const shown = (raw: unknown): string => {
  if (typeof raw === 'number' || typeof raw === 'boolean') return String(raw);
  if (typeof raw === 'string') return raw.length <= 20 ? `"${raw}"` : 'a text';
  if (raw instanceof Date) return 'a date';
  return Array.isArray(raw) ? 'a list' : 'a table';
};

const list = (words: readonly string[]): string => words.map((word) => `"${word}"`).join(', ');

/** Checks a list of hosts, or hosts separated by commas. */
const checkHosts = (raw: unknown): CheckedValue => {
  const hosts = typeof raw === 'string' ? raw.split(',').map((host) => host.trim()) : raw;
  const isList = Array.isArray(hosts) && hosts.length > 0;
  return isList && hosts.every((host) => typeof host === 'string' && isHostPattern(host))
    ? ok(hosts.join(',').toLowerCase())
    : bad('is a list of hosts without scheme and path: ["example.com", "*.example.org"]');
};

const NAME = /^[a-z_]\w*$/i;

const checkNames = (raw: unknown): CheckedValue => {
  const names = typeof raw === 'string' ? raw.split(',').map((name) => name.trim()) : raw;
  const isList = Array.isArray(names) && names.length > 0;
  return isList && names.every((name) => typeof name === 'string' && NAME.test(name))
    ? ok(names.join(','))
    : bad('is a list of names of variables: ["DATABASE_URL", "JAVA_HOME"]');
};

const checkText = (kind: ValueKind, text: string): CheckedValue => {
  if (kind.type === 'model') {
    return /^[^/\s]+\/\S/.test(text) ? ok(text) : bad('is written "provider/name"');
  }
  if (kind.type === 'url') {
    return /^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : '')
      ? ok(text)
      : bad('is an http or https URL: "http://127.0.0.1:8080/v1"');
  }
  return text.startsWith('/') || text.startsWith('~/')
    ? ok(text)
    : bad('is the whole path of a file: "/…" or "~/…"');
};

/** Checks a value from TOML. */
export const checkValue = (kind: ValueKind, raw: unknown): CheckedValue => {
  switch (kind.type) {
    case 'words':
      return typeof raw === 'string' && kind.words.includes(raw)
        ? ok(raw)
        : bad(`is one of ${list(kind.words)}, not ${shown(raw)}`);
    case 'number': {
      const fits =
        typeof raw === 'number' && raw > 0 && (kind.whole ? Number.isSafeInteger(raw) : raw < 1e12);
      return fits
        ? ok(raw)
        : bad(`is a ${kind.whole ? 'whole ' : ''}number above zero, without quotes, not ${shown(raw)}`);
    }
    case 'switch':
      return typeof raw === 'boolean' ? ok(raw) : bad(`is true or false, without quotes, not ${shown(raw)}`);
    case 'hosts':
      return checkHosts(raw);
    case 'names':
      return checkNames(raw);
    case 'model':
    case 'url':
    case 'file':
      return typeof raw === 'string' ? checkText(kind, raw) : bad(`is a text in quotes, not ${shown(raw)}`);
    default:
      return kind satisfies never;
  }
};

const switches: Readonly<Record<string, boolean>> = {
  1: true,
  true: true,
  on: true,
  yes: true,
  0: false,
  false: false,
  off: false,
  no: false,
};

/** Checks a value from an environment variable. */
export const checkVariable = (kind: ValueKind, text: string): CheckedValue => {
  if (kind.type === 'switch') {
    const value = Object.hasOwn(switches, text) ? switches[text] : undefined;
    return value === undefined ? bad(`is 1 or 0, not ${shown(text)}`) : ok(value);
  }
  if (kind.type !== 'number') return checkValue(kind, text);
  const checked = checkValue(kind, /^\d+(\.\d+)?$/.test(text) ? Number(text) : text);
  return checked.kind === 'ok' ? checked : bad(checked.why.replace(', without quotes', ''));
};

/** A value for display: an address without its user name and password. */
export const showValue = (value: Value): string => {
  const text = String(value);
  if (!/^[a-z]+:\/\/[^/]*@/i.test(text)) return text;
  return text.replace(/^([a-z]+:\/\/)[^/]*@/i, '$1…@');
};
