/**
 * Limits the output of a cell: longer output keeps head and tail, with the number of missing
 * characters between.
 */

import { groupDigits } from '@pawl/agent/platform/text';
import { cutMiddle } from '../run/texts-for-model.js';

const gap = (characters: number, where: string): string =>
  `… ${groupDigits(characters)} characters left out${where} …`;

/** Cuts the text to about `max` characters; `where` says where the rest is. */
export const cutOutput = (text: string, max: number, where: string): string =>
  cutMiddle(text, max, (missing) => gap(missing, where));

/** Replaces lone surrogates, which providers and UTF-8 files reject. */
export const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, '\ufffd');

export type Output = {
  add(text: string): void;
  /** The whole output, or head and tail with a line for the missing part. Well-formed. */
  whole(): string;
};

/**
 * Collects output, up to about `keptMax` characters. The cost of `add` does not grow with the
 * output so far.
 */
export const collectOutput = (keptMax: number): Output => {
  const half = Math.floor(keptMax / 2);
  let head = '';
  let tail = '';
  let dropped = 0;
  return {
    add(text) {
      const room = half - head.length;
      if (room > 0) head += text.slice(0, room);
      if (text.length <= room) return;
      tail += text.slice(Math.max(0, room));
      if (tail.length <= 2 * half) return;
      dropped += tail.length - half;
      tail = tail.slice(-half);
    },
    whole() {
      return wellFormed(dropped === 0 ? head + tail : `${head}\n${gap(dropped, '')}\n${tail}`);
    },
  };
};
