/** Cuts text to a number of UTF-8 bytes and keeps its head and tail. */

const bytesOf = (character: string): number => {
  const point = character.codePointAt(0) ?? 0;
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  return point < 0x10000 ? 3 : 4;
};

/** Size in bytes of UTF-8. */
export const utf8Bytes = (text: string): number => {
  let bytes = 0;
  for (const character of text) bytes += bytesOf(character);
  return bytes;
};

const takeBytes = (characters: readonly string[], limit: number): number => {
  let bytes = 0;
  let count = 0;
  for (const character of characters) {
    bytes += bytesOf(character);
    if (bytes > limit) break;
    count += 1;
  }
  return count;
};

/** Head and tail of a text with a note between them: at most `limit` bytes, whole characters only. */
export const cutMiddle = (text: string, limit: number, note: string): string => {
  if (utf8Bytes(text) <= limit) return text;
  const half = Math.max(0, Math.floor((limit - utf8Bytes(note)) / 2));
  const characters = [...text];
  const head = characters.slice(0, takeBytes(characters, half));
  const tail = characters.slice(characters.length - takeBytes(characters.toReversed(), half));
  return head.join('') + note + tail.join('');
};
