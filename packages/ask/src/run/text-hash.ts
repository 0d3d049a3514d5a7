/**
 * A digest of texts, to detect a difference: 64 bits and the length, pure and linear.
 *
 * It is not cryptographic: an attacker can construct two texts with the same digest.
 */

const mix = (hash: number, code: number, factor: number): number => Math.imul(hash ^ code, factor);

const finishHash = (one: number, other: number): number =>
  Math.imul(one ^ (one >>> 16), 2_246_822_507) ^ Math.imul(other ^ (other >>> 13), 3_266_489_909);

const hex = (value: number): string => (value >>> 0).toString(16).padStart(8, '0');

/** A digest of a sub-call: its prompts, and the model that it names. */
export const digestCall = ({
  prompts,
  model,
}: {
  readonly prompts: readonly string[];
  readonly model?: string;
}): string => digestTexts(model === undefined ? prompts : [...prompts, model]);

/**
 * Two lists of texts have the same digest only if they are the same (but for a chance of about 1 in
 * 2^64).
 */
export const digestTexts = (texts: readonly string[]): string => {
  let first = 0xdeadbeef;
  let second = 0x41c6ce57;
  let length = 0;
  for (const text of texts) {
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      first = mix(first, code, 2_654_435_761);
      second = mix(second, code, 1_597_334_677);
    }
    // A number above all character codes ends each text, so that ["ab"] differs from ["a", "b"].
    first = mix(first, 0x10000 + text.length, 2_654_435_761);
    second = mix(second, 0x10000 + text.length, 1_597_334_677);
    length += text.length;
  }
  return `${hex(finishHash(second, first))}${hex(finishHash(first, second))}-${length}`;
};
