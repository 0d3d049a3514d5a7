import type { JudgedCall } from '../../agent/call.js';
import type { Clock } from '../../ports/clock.js';
import type { ToolOutcome } from '../../ports/tool.js';

/** Why a call is stopped. The reason of its abort signals. */
export type DeadlineReason = 'cancelled' | 'timedOut';

type Watched = {
  readonly call: JudgedCall;
  readonly signal: AbortController;
  readonly force: AbortController;
  giveUp(outcome: ToolOutcome): void;
};

/** Aborts the run at its deadline, forces it a grace period later, and gives it up after another one. */
export const watchDeadline = (
  run: Watched,
  deadlineMs: number,
  clock: Clock,
  graceMs: number,
): (() => void) => {
  if (deadlineMs <= 0) return () => undefined;
  const seconds = `${run.call.traits.deadlineMs / 1000} s`;
  const abandon = (): void =>
    run.giveUp({ status: 'timedOut', text: `time limit of ${seconds} reached; the tool did not stop` });
  const force = (): void => {
    run.force.abort('timedOut');
    cancel = clock.after(graceMs, abandon);
  };
  const stop = (): void => {
    if (!run.signal.signal.aborted) run.signal.abort('timedOut');
    cancel = clock.after(graceMs, force);
  };
  let cancel = clock.after(deadlineMs, stop);
  return () => cancel();
};
