/** The median; NaN for an empty list. */
export const median = (figures: readonly number[]): number => {
  const sorted = figures.toSorted((one, other) => one - other);
  const place = (sorted.length - 1) / 2;
  const low = sorted[Math.floor(place)] ?? Number.NaN;
  const high = sorted[Math.ceil(place)] ?? Number.NaN;
  return (low + high) / 2;
};
