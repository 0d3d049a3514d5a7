/**
 * Set of 64-bit fingerprints of texts: 12 bytes a text, whatever its length.
 *
 * 1. A new text gets the next number, from 0. The same text always gives the same number.
 * 2. Two different texts share a number with a probability of n² / 2⁶⁵ over n texts: for ten million, 3 in a million.
 */
export class FingerprintSet {
  #low = new Uint32Array(1 << 10);
  #high = new Uint32Array(1 << 10);
  /** Number + 1; 0 is an empty slot. */
  #numbers = new Uint32Array(1 << 10);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Returns the number of a text. A new text gets the `size` from before the call. */
  add(text: string): number {
    let low = 0x811c9dc5;
    let high = 0x1b873593;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      low = Math.imul(low ^ code, 0x85ebca6b);
      low = (low << 13) | (low >>> 19);
      high = Math.imul(high ^ code, 0xc2b2ae35);
      high = (high << 17) | (high >>> 15);
    }
    return this.#place(mix(low ^ text.length), mix(high + low));
  }

  #place(low: number, high: number): number {
    const mask = this.#numbers.length - 1;
    let slot = (low ^ high) & mask;
    for (let found = this.#numbers[slot]; found !== 0; found = this.#numbers[slot]) {
      if (this.#low[slot] === low && this.#high[slot] === high) return (found ?? 0) - 1;
      slot = (slot + 1) & mask;
    }
    this.#low[slot] = low;
    this.#high[slot] = high;
    this.#numbers[slot] = ++this.#size;
    if (this.#size * 2 > mask) this.#grow();
    return this.#size - 1;
  }

  #grow(): void {
    const [low, high, numbers] = [this.#low, this.#high, this.#numbers];
    const length = numbers.length * 2;
    this.#low = new Uint32Array(length);
    this.#high = new Uint32Array(length);
    this.#numbers = new Uint32Array(length);
    for (let old = 0; old < numbers.length; old++) {
      const number = numbers[old] ?? 0;
      if (number === 0) continue;
      const [oldLow, oldHigh] = [low[old] ?? 0, high[old] ?? 0];
      let slot = (oldLow ^ oldHigh) & (length - 1);
      while (this.#numbers[slot] !== 0) slot = (slot + 1) & (length - 1);
      this.#low[slot] = oldLow;
      this.#high[slot] = oldHigh;
      this.#numbers[slot] = number;
    }
  }
}

/** Spreads a change of any bit over all of them (the last step of MurmurHash3); as an unsigned number. */
const mix = (bits: number): number => {
  let mixed = bits ^ (bits >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
};
