/** Numbers, times and parts of sentences as people read them. */

import { cut, groupDigits } from '@pawl/agent/platform/text';

/**
 * A part of a sentence: text, or something that the page makes stand out: words (`key`), a
 * duration, money, a share of one, a number, or a time of day (`clock`).
 */
export type SentencePart =
  | string
  | { readonly key: string }
  | { readonly ms: number }
  | { readonly usd: number | null }
  | { readonly share: number | null }
  | { readonly count: number }
  | { readonly clock: number };

export const partText = (part: SentencePart): string => {
  if (typeof part === 'string') return part;
  if ('key' in part) return part.key;
  if ('ms' in part) return durationText(part.ms);
  if ('usd' in part) return moneyText(part.usd);
  if ('clock' in part) return clockText(part.clock);
  return 'share' in part ? percentText(part.share) : groupDigits(part.count);
};

export const durationText = (ms: number): string => {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.round(hours / 24)} days`;
};

export const moneyText = (usd: number | null): string => {
  if (usd === null) return 'price unknown';
  if (usd === 0) return '$0';
  return usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(usd < 1 ? 3 : 2)}`;
};

export const shortCount = (count: number): string => {
  if (count < 1_000) return String(count);
  if (count < 1_000_000) return `${(count / 1_000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
};

export const percentText = (share: number | null): string =>
  share === null ? '–' : `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

const two = (value: number): string => String(value).padStart(2, '0');

/** The local time of day. */
export const clockText = (at: number): string => {
  const time = new Date(at);
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
};

/** The beginning of a text in one line. */
export const oneLine = (text: string, charactersMax: number): string => {
  const beginning = text.slice(0, 4 * charactersMax);
  return cut(beginning.replace(/\s+/g, ' ').trim(), charactersMax);
};

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${groupDigits(count)} ${count === 1 ? one : many}`;
