/** What a cell prints, kept within bounds: all of it, or head and tail of what is longer, with a count between them. */

/** Not into the middle of a pair of surrogates. */
const beforePair = (text: string, at: number): number => {
  const unit = text.charCodeAt(at - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? at - 1 : at;
};
const afterPair = (text: string, at: number): number => {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at + 1 : at;
};

const gap = (characters: number, where: string): string =>
  `\n… ${characters.toLocaleString('en-US')} characters left out${where} …\n`;

/** The text cut to about `max` characters: head, a line that counts what is missing and says `where` it is, tail. */
export const cutOutput = (text: string, max: number, where: string): string => {
  if (text.length <= max) return text;
  const headEnd = beforePair(text, Math.ceil(max / 2));
  const tailStart = afterPair(text, text.length - Math.floor(max / 2));
  return text.slice(0, headEnd) + gap(tailStart - headEnd, where) + text.slice(tailStart);
};

/** Halves of surrogate pairs replaced: no text of ours makes a provider or a UTF-8 file refuse it. */
export const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, '\ufffd');

export type Output = {
  add(text: string): void;
  /** All of it, or what was kept with a line where something is missing. Well-formed. */
  whole(): string;
};

/** Collects output, up to about `keptMax` characters. Adding is cheap however much comes. */
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
