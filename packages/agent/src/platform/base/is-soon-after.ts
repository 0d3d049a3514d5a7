/**
 * Whether a second key press belongs to an earlier one. False if the clock was set back in between, so that one press
 * does not count as two.
 */
export const isSoonAfter = (earlierAt: number, now: number, withinMs: number): boolean =>
  now >= earlierAt && now - earlierAt < withinMs;
