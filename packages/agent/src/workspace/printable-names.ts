import { plural } from '../platform/base/plural.js';

/** Makes names chosen by others safe to show to models and people. */

const SHOWN_MAX = 200;

/** A name or subject as one line of limited length, without control characters. */
export const oneLine = (text: string): string => {
  const line = text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/\p{Cf}/gu, '')
    .trim();
  const characters = [...line];
  return characters.length <= SHOWN_MAX ? line : `${characters.slice(0, SHOWN_MAX).join('')}…`;
};

/** `3 files, +10 -2`. */
export const statistics = (files: number, insertions: number, deletions: number): string =>
  `${plural(files, 'file')}, +${insertions} -${deletions}`;
