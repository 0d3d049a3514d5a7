/** The one wall: everything that may throw or reject is called through here, and becomes a value. */

export type Attempt<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'fault'; readonly fault: Error };

/** What was thrown, as an Error whatever it was. */
const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/** Runs the work, waits for it, and never rejects. */
export const attempt = async <T>(work: () => T | PromiseLike<T>): Promise<Attempt<T>> => {
  try {
    return { kind: 'done', value: await work() };
  } catch (thrown) {
    return { kind: 'fault', fault: asError(thrown) };
  }
};

/** As `attempt`, of work that waits for nothing. */
export const attemptNow = <T>(work: () => T): Attempt<T> => {
  try {
    return { kind: 'done', value: work() };
  } catch (thrown) {
    return { kind: 'fault', fault: asError(thrown) };
  }
};
