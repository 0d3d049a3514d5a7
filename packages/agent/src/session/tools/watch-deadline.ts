import type { JudgedCall } from '../../machine/call.js';
import type { Clock } from '../../ports/clock.js';
import type { ToolOutcome } from '../../ports/tool.js';

/** Why a call is stopped. The reason of its abort signals. */
export type DeadlineReason = 'cancelled' | 'timedOut';

/** Of a call without a time limit, and of one that has not begun. */
export const NO_DEADLINE: DeadlineWatch = { stop: () => undefined, pause: () => () => undefined };

type Watched = {
  readonly call: JudgedCall;
  readonly signal: AbortController;
  readonly force: AbortController;
  giveUp(outcome: ToolOutcome): void;
};

export type DeadlineWatch = {
  stop(): void;
  /** The deadline stands still until the returned function is called. One that has passed stays so. */
  pause(): () => void;
};

/** Aborts the run at its deadline, forces it a grace period later, and gives it up after another one. */
export const watchDeadline = (
  run: Watched,
  deadlineMs: number,
  clock: Clock,
  graceMs: number,
): DeadlineWatch => {
  if (deadlineMs <= 0) return NO_DEADLINE;
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
  let leftMs = deadlineMs;
  let since = clock.now();
  let pauses = 0;
  let isOver = false;
  let cancel = clock.after(deadlineMs, stop);
  return {
    stop() {
      isOver = true;
      cancel();
    },
    pause() {
      if (run.signal.signal.aborted) return () => undefined;
      if (pauses === 0) {
        cancel();
        leftMs -= clock.now() - since;
      }
      pauses += 1;
      return () => {
        pauses -= 1;
        if (pauses > 0 || isOver || run.signal.signal.aborted) return;
        since = clock.now();
        cancel = clock.after(Math.max(0, leftMs), stop);
      };
    },
  };
};
