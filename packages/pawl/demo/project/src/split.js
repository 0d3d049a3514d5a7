/** Splits `cents` into `people` shares that differ by at most one cent and add up to the whole. */
export const splitBill = (cents, people) => {
  if (people < 1) throw new Error('a bill needs at least one person');
  const share = Math.floor(cents / people);
  return Array.from({ length: people }, () => share);
};
