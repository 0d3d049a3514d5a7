import { attempt } from '../session/attempt.js';

/** Wraps the caller's `report` function: an error inside it becomes a process warning. */
export const reportThrough =
  (report: (fault: Error) => unknown): ((fault: Error) => void) =>
  (fault) =>
    void attempt(() => report(fault)).then((told) => {
      if (told.kind === 'fault') process.emitWarning(told.fault);
    });
