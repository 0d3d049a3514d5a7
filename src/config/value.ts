import type { Kind, Value } from './table.js';

/** Whether something is a value of a setting, and what is to be written in its place if it is not. */

export type Checked =
  | { readonly kind: 'ok'; readonly value: Value }
  | { readonly kind: 'bad'; readonly why: string };

const ok = (value: Value): Checked => ({ kind: 'ok', value });
const bad = (why: string): Checked => ({ kind: 'bad', why });

/** What is wrong is named by its type where it is no word: it may be anything, a key that was pasted too. */
const shown = (raw: unknown): string => {
  if (typeof raw === 'number' || typeof raw === 'boolean') return String(raw);
  if (typeof raw === 'string') return raw.length <= 20 ? `"${raw}"` : 'a text';
  if (raw instanceof Date) return 'a date';
  return Array.isArray(raw) ? 'a list' : 'a table';
};

const list = (words: readonly string[]): string => words.map((word) => `"${word}"`).join(', ');

const HOST = /^(\*|(\*\.)?[a-z\d_-]+(\.[a-z\d_-]+)*|\[[\da-f:.]+\])(:\d{1,5})?$/i;

/** Hosts as rules name them, with commas between them. */
const checkHosts = (raw: unknown): Checked => {
  const hosts = typeof raw === 'string' ? raw.split(',').map((host) => host.trim()) : raw;
  const isList = Array.isArray(hosts) && hosts.length > 0;
  return isList && hosts.every((host) => typeof host === 'string' && HOST.test(host))
    ? ok(hosts.join(',').toLowerCase())
    : bad('is a list of hosts without scheme and path: ["example.com", "*.example.org"]');
};

const checkText = (kind: Kind, text: string): Checked => {
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

/** A value as it comes from TOML. */
export const checkValue = (kind: Kind, raw: unknown): Checked => {
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

/** A value as it comes from a variable of the environment. */
export const checkVariable = (kind: Kind, text: string): Checked => {
  if (kind.type === 'switch') {
    const value = Object.hasOwn(switches, text) ? switches[text] : undefined;
    return value === undefined ? bad(`is 1 or 0, not ${shown(text)}`) : ok(value);
  }
  if (kind.type !== 'number') return checkValue(kind, text);
  const checked = checkValue(kind, /^\d+(\.\d+)?$/.test(text) ? Number(text) : text);
  return checked.kind === 'ok' ? checked : bad(checked.why.replace(', without quotes', ''));
};

/** As it may be shown: an address without the name and the password that it may hold. */
export const showValue = (value: Value): string => {
  const text = String(value);
  if (!/^[a-z]+:\/\/[^/]*@/i.test(text)) return text;
  return text.replace(/^([a-z]+:\/\/)[^/]*@/i, '$1…@');
};
