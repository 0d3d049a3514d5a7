/**
 * Limits the output of a cell: longer output keeps head and tail, with the number of missing
 * characters between.
 */

import { groupDigits } from '@pawl/agent/platform/text';

/** Moves a cut position out of a surrogate pair. */
const beforePair = (text: string, at: number): number => {
  const unit = text.charCodeAt(at - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? at - 1 : at;
};
const afterPair = (text: string, at: number): number => {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at + 1 : at;
};

const gap = (characters: number, where: string): string =>
  `\n… ${groupDigits(characters)} characters left out${where} …\n`;

/**
 * Cuts the text to about `max` characters: head, a line with the number of missing characters and
 * `where`, tail.
 */
export const cutOutput = (text: string, max: number, where: string): string => {
  if (text.length <= max) return text;
  const headEnd = beforePair(text, Math.ceil(max / 2));
  const tailStart = afterPair(text, text.length - Math.floor(max / 2));
  return text.slice(0, headEnd) + gap(tailStart - headEnd, where) + text.slice(tailStart);
};

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
      return wellFormed(dropped === 0 ? head + tail : head + gap(dropped, '') + tail);
    },
  };
};
