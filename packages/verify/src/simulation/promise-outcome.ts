/** How a promise of a simulated process ended; `open`: the process ended before. */
export type PromiseOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'open' };

/** Waits for the promise; `next` lets a moment pass, and returns false when nobody can wait any longer. */
export const whileTimePasses = async (
  promise: Promise<unknown>,
  next: () => Promise<true> | false,
): Promise<PromiseOutcome> => {
  let outcome: PromiseOutcome = { kind: 'open' };
  promise.then(
    () => {
      outcome = { kind: 'done' };
    },
    (error: unknown) => {
      outcome = { kind: 'failed', error };
    },
  );
  const isOpen = (): boolean => outcome.kind === 'open';
  await Promise.resolve();
  while (isOpen()) {
    const moment = next();
    if (moment === false) break;
    await moment;
  }
  return outcome;
};
