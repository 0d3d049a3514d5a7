/** The middle of the figures; NaN of none. */
export const median = (figures: readonly number[]): number => quantile(figures, 0.5);

/** The figure below which a share of them lies, between neighbours interpolated. */
export const quantile = (figures: readonly number[], share: number): number => {
  const sorted = figures.toSorted((one, other) => one - other);
  const place = (sorted.length - 1) * share;
  const low = sorted[Math.floor(place)] ?? Number.NaN;
  const high = sorted[Math.ceil(place)] ?? Number.NaN;
  return low + (high - low) * (place - Math.floor(place));
};
