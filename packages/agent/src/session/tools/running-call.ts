import type { CallOutcome, JudgedCall } from '../../machine/call.js';
import type { StoppedCall } from '../../machine/event.js';
import type { SessionData } from '../../machine/state.js';
import type { Clock } from '../../ports/clock.js';
import type { ToolOutcome } from '../../ports/tool.js';
import { waitAtMost } from '../clock.js';
import type { Equipment } from '../dependency-types.js';
import { createJoiner } from '../model/join-deltas.js';
import type { Post } from '../posted-event-types.js';
import type { UserHookRuns } from '../user-hooks/user-hook-runs.js';
import type { CallInContext } from './call-context.js';
import { redactJoined } from './redaction.js';
import { type DeadlineWatch, NO_DEADLINE } from './watch-deadline.js';

/** A call from its preparation to its outcome. */

export type ToolRunParts = {
  /** Called on each use, because the session changes. */
  session(): SessionData;
  readonly post: Post;
  /** null: the user has no hooks. */
  readonly hooks: UserHookRuns | null;
};

export type ToolRun = Omit<CallInContext, 'forgotten' | 'deadline'> & {
  deadline: DeadlineWatch;
  readonly gaveUp: Promise<ToolOutcome>;
  giveUp(outcome: ToolOutcome): void;
  /** The hooks' look at the workspace before the call; null if they need none. */
  looked: Promise<void> | null;
  /** True if the machine no longer needs the outcome. */
  forgotten: boolean;
  /** Whether the end of the session has stopped it: then its outcome is not posted. */
  isStopped: boolean;
  /** Resolves when the call has ended, or never began. */
  readonly returned: Promise<void>;
  hasReturned(): void;
};

/** Outcomes of the calls that the end of a session has stopped. */
export type StoppedCalls = {
  /** Of all that have ended so far. Their usage is reported by itself. */
  outcomes(): readonly StoppedCall[];
  add(run: Pick<ToolRun, 'batchId' | 'call'>, outcome: CallOutcome, reportUsage?: () => void): void;
  /** Posts what the calls have spent, once the end is posted. */
  reportUsage(): void;
};

export const createStoppedCalls = (): StoppedCalls => {
  const ended: StoppedCall[] = [];
  const reports: (() => void)[] = [];
  return {
    outcomes: () => [...ended],
    add({ batchId, call }, { usage: _, ...outcome }, reportUsage) {
      ended.push({ batchId, callId: call.callId, outcome });
      if (reportUsage !== undefined) reports.push(reportUsage);
    },
    reportUsage() {
      for (const report of reports.splice(0)) report();
    },
  };
};

/** How long the end of the session waits for the outcomes of the calls that it has stopped, in ms. */
const STOPPING_MS = 1_000;

export const whenReturned = async (runs: readonly ToolRun[], clock: Clock): Promise<void> => {
  const all = Promise.all(runs.map(({ returned }) => returned));
  await waitAtMost(clock, STOPPING_MS, all);
};

export const createRun = (
  batchId: string,
  call: JudgedCall,
  { clock, redactor }: Equipment,
  post: Post,
): ToolRun => {
  const { callId } = call;
  let giveUp: (outcome: ToolOutcome) => void = () => undefined;
  const gaveUp = new Promise<ToolOutcome>((resolve) => {
    giveUp = resolve;
  });
  let hasReturned = (): void => undefined;
  const returned = new Promise<void>((resolve) => {
    hasReturned = resolve;
  });
  const show = (_key: string, text: string): void => {
    if (!run.isStopped) post({ type: 'ToolProgress', batchId, callId, text });
  };
  const joiner = redactJoined(redactor, createJoiner(clock, show), 'progress');
  const run: ToolRun = {
    batchId,
    call,
    joiner,
    gaveUp,
    giveUp,
    returned,
    hasReturned,
    seen: new Map(),
    signal: new AbortController(),
    force: new AbortController(),
    deadline: NO_DEADLINE,
    looked: null,
    forgotten: false,
    isStopped: false,
  };
  return run;
};
