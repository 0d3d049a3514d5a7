/** Durations, dollars, tokens and shares as people read them, the same wherever one is shown. */

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;

const twoDigits = (part: number): string => String(part).padStart(2, '0');

/** With tenths below ten seconds, whole seconds above. */
export const secondsText = (durationMs: number): string => {
  if (durationMs < 9_950) return `${(Math.max(0, durationMs) / 1_000).toFixed(1)}s`;
  const seconds = Math.round(durationMs / 1_000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${twoDigits(seconds % 60)}s`;
};

/** `40ms`, `1.4s`, `12s`, `3m05s`, `2h10m`, `3d04h`. */
export const durationText = (durationMs: number): string => {
  if (durationMs < 999.5) return `${Math.round(durationMs)}ms`;
  const seconds = Math.round(durationMs / 1_000);
  if (seconds < HOUR_S) return secondsText(durationMs);
  const [large, small, big, rest] =
    seconds < DAY_S ? (['h', 'm', HOUR_S, 60] as const) : (['d', 'h', DAY_S, HOUR_S] as const);
  const remainder = twoDigits(Math.floor((seconds % big) / rest));
  return `${Math.floor(seconds / big)}${large}${remainder}${small}`;
};

/** Dollars; null is a price that nobody knows. `exact`: also parts of a cent. */
export const moneyText = (usd: number | null, precision: 'cents' | 'exact' = 'exact'): string => {
  if (usd === null) return 'price unknown';
  if (precision === 'exact' && usd > 0) return `$${usd.toFixed(usd < 0.01 ? 4 : usd < 1 ? 3 : 2)}`;
  return usd > 0 && usd < 0.01 ? '<$0.01' : `$${usd.toFixed(2)}`;
};

/** `999`, `1.5k`, `2.5M`. */
export const tokensText = (count: number): string => {
  if (count < 1_000) return String(count);
  return count < 1_000_000
    ? `${(count / 1_000).toFixed(1)}k`
    : `${(count / 1_000_000).toFixed(1)}M`;
};

/** `61%`, `0.4%`; null is a share of nothing. */
export const shareText = (share: number | null): string =>
  share === null ? '–' : `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)}%`;
