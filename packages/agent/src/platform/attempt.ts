/** The error boundary: calls code that may throw or reject, and turns its outcome into a value. */

export type Attempt<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'fault'; readonly fault: Error };

/** Converts any thrown value into an Error with a message; foreign code may throw anything. */
const asError = (thrown: unknown): Error => {
  try {
    if (thrown instanceof Error && typeof thrown.message === 'string') return thrown;
    return new Error(thrown === undefined ? 'it threw without saying why' : String(thrown));
  } catch {
    // nothing is lost: the error could not be read
    return new Error('what it threw can not be read');
  }
};

/** Runs the work, waits for it, and never rejects. */
export const attempt = async <T>(work: () => T | PromiseLike<T>): Promise<Attempt<T>> => {
  try {
    return { kind: 'done', value: await work() };
  } catch (thrown) {
    return { kind: 'fault', fault: asError(thrown) };
  }
};

/** The same for synchronous work. */
export const attemptNow = <T>(work: () => T): Attempt<T> => {
  try {
    return { kind: 'done', value: work() };
  } catch (thrown) {
    return { kind: 'fault', fault: asError(thrown) };
  }
};

/** Wraps the caller's `report` function: an error inside it becomes a process warning. */
export const reportThrough =
  (report: (fault: Error) => unknown): ((fault: Error) => void) =>
  (fault) =>
    void attempt(() => report(fault)).then((told) => {
      if (told.kind === 'fault') process.emitWarning(told.fault);
    });
