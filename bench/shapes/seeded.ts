/** Random numbers from 0 to below 1, the same for the same seed (mulberry32). */
export const seeded = (seed: number): (() => number) => {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

/** A whole number from 0 to below `end`. */
export const uniform = (random: () => number, end: number): number => Math.floor(random() * end);

export const shuffle = <T>(list: readonly T[], random: () => number): readonly T[] =>
  list
    .map((one) => ({ one, place: random() }))
    .toSorted((left, right) => left.place - right.place)
    .map(({ one }) => one);
