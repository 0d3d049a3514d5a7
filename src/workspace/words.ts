/** Words for models and people about things that others have named. */

const SHOWN_MAX = 200;

/** A name or subject as one line without control characters, not too long. */
export const oneLine = (text: string): string => {
  const line = text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/\p{Cf}/gu, '')
    .trim();
  const characters = [...line];
  return characters.length <= SHOWN_MAX ? line : `${characters.slice(0, SHOWN_MAX).join('')}…`;
};

export const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;

/** `3 files, +10 -2`. */
export const statistics = (files: number, insertions: number, deletions: number): string =>
  `${plural(files, 'file')}, +${insertions} -${deletions}`;
