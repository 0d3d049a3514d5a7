/**
 * All random decisions of one simulated session.
 *
 * 1. The same seed gives the same decisions. A list of recorded draws gives them, too, and zeros
 *    after its end.
 * 2. A draw of zero is always the simplest decision: no fault, the first of a list, the least
 *    number. So a shorter list of smaller draws gives a simpler session (see `shrink` in
 *    simulate.ts).
 */

const RANGE = 2 ** 32;

/** A small generator of 32 random bits (mulberry32). */
const generator = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
};

/** Spreads neighbouring seeds. */
const mixSeed = (seed: number): number => {
  const low = Math.imul((seed >>> 0) ^ 0x9e3779b9, 0x85ebca6b);
  return (low ^ (low >>> 13) ^ Math.imul(Math.floor(seed / RANGE) + 1, 0xc2b2ae35)) >>> 0;
};

export class Choices {
  /** Every draw so far. */
  readonly drawn: number[] = [];
  readonly #next: () => number;

  constructor(source: number | readonly number[]) {
    if (typeof source === 'number') this.#next = generator(mixSeed(source));
    else this.#next = () => source[this.drawn.length] ?? 0;
  }

  /** From 0 to 1, without 1. */
  share(): number {
    const draw = this.#next();
    this.drawn.push(draw);
    return draw / RANGE;
  }

  chance(probability: number): boolean {
    return this.share() >= 1 - probability;
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.share() * count);
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** The simplest one comes first. */
  pick<T>(first: T, ...others: readonly T[]): T {
    const index = this.below(others.length + 1);
    return index === 0 ? first : (others[index - 1] ?? first);
  }
}
