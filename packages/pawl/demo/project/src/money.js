/** '12.30' -> 1230 */
export const parseCents = (text) => {
  const match = /^(\d+)(?:\.(\d{2}))?$/.exec(text);
  if (match === null) throw new Error(`not an amount: ${text}`);
  return Number(match[1]) * 100 + Number(match[2] ?? 0);
};

/** 1230 -> '12.30' */
export const formatCents = (cents) => `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
