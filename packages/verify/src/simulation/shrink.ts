/**
 * Makes a list of draws shorter and smaller, as long as the session that comes of it still fails.
 *
 * Pieces are taken out or set to zero, large ones first; see random-choices.ts for why that makes a session simpler.
 */
type Draws = readonly number[];

const RUNS_MAX = 400;

const withoutPiece = (draws: Draws, start: number, length: number): Draws => [
  ...draws.slice(0, start),
  ...draws.slice(start + length),
];

const zeroPiece = (draws: Draws, start: number, length: number): Draws =>
  draws.map((draw, index) => (index >= start && index < start + length ? 0 : draw));

const withoutLastZeros = (draws: Draws): Draws =>
  draws.slice(0, draws.findLastIndex((draw) => draw !== 0) + 1);

export const shrink = async (draws: Draws, fails: (draws: Draws) => Promise<boolean>): Promise<Draws> => {
  let best = withoutLastZeros(draws);
  let runs = 0;
  const isBetter = async (candidate: Draws): Promise<boolean> => {
    const shorter = withoutLastZeros(candidate);
    const isSame = shorter.length === best.length && shorter.every((draw, index) => draw === best[index]);
    if (isSame || runs >= RUNS_MAX) return false;
    runs += 1;
    if (!(await fails(shorter))) return false;
    best = shorter;
    return true;
  };
  for (let length = Math.max(1, best.length >> 1); length >= 1; length >>= 1) {
    for (let start = 0; start < best.length && runs < RUNS_MAX; ) {
      const removed = await isBetter(withoutPiece(best, start, length));
      if (!removed) {
        await isBetter(zeroPiece(best, start, length));
        start += length;
      }
    }
  }
  return best;
};
