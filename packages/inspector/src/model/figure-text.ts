/** Numbers, times and parts of sentences as people read them. */

import { moneyText, shareText } from '@pawl/agent/machine/settings';
import { durationText } from '@pawl/agent/platform/clock';
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
  return 'share' in part ? shareText(part.share) : groupDigits(part.count);
};

/** The local time of day. */
export const clockText = (at: number): string => new Date(at).toTimeString().slice(0, 8);

/** What calls have cost, as far as their prices are known. */
export const costText = (usd: number, unpriced: number): string =>
  `${moneyText(usd)}${unpriced > 0 ? ' + unknown' : ''}`;

/** The beginning of a text in one line. */
export const oneLine = (text: string, charactersMax: number): string => {
  const beginning = text.slice(0, 4 * charactersMax);
  return cut(beginning.replace(/\s+/g, ' ').trim(), charactersMax);
};

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${groupDigits(count)} ${count === 1 ? one : many}`;
