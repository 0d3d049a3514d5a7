/** Numbers from 0 to 1 that a seed decides (mulberry32). */
export const seeded = (seed: number): (() => number) => {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};

export type Random = () => number;

export const pick = <T>(all: readonly T[], random: Random): T => {
  const found = all[Math.floor(random() * all.length)];
  if (found === undefined) throw new Error('nothing to pick from');
  return found;
};
