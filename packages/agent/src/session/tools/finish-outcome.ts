import type { CallOutcome, JudgedCall } from '../../machine/call.js';
import type { Settings } from '../../machine/settings.js';
import type { Redactor } from '../../platform/secrets/redactor.js';
import type { Blobs } from '../../ports/journal.js';
import type { ToolOutcome } from '../../ports/tool.js';
import type { UserHookRuns } from '../user-hooks/user-hook-runs.js';
import { redactOutcome } from './redaction.js';
import { cutOutcome } from './truncate-output.js';

type EndedRun = {
  readonly call: JudgedCall;
  readonly signal: AbortController;
  readonly force: AbortController;
  /** The machine no longer needs the outcome. */
  readonly forgotten: boolean;
};

type Finishing = {
  readonly redactor: Redactor;
  readonly blobs: Blobs;
  /** null: the call has not just run, or there are no hooks. */
  readonly hooks: UserHookRuns | null;
};

/** The outcome as the model sees it: without secrets, cut, and with what hooks say about it. */
export const finishOutcome = async (
  run: EndedRun,
  outcome: ToolOutcome,
  { redactor, blobs, hooks }: Finishing,
  { outputCutBytes }: Settings,
): Promise<CallOutcome> => {
  const cut = await cutOutcome(redactOutcome(redactor, outcome), outputCutBytes, blobs);
  if (hooks === null || run.forgotten) return cut;
  const { signal, force } = run;
  // After its deadline the call's own signal is aborted already.
  const signals = signal.signal.aborted ? [force.signal] : [signal.signal, force.signal];
  return hooks.afterTool(run.call, cut, signals);
};
