import type { Action } from '../../action.js';
import type { Call, CallOutcome } from '../../call.js';
import { changeBatch } from '../../change-state.js';
import type { In } from '../../state.js';
import type { CancelCause } from '../../values/stop-cause.js';
import { callWithId, withCalls } from './calls-by-id.js';
import type { EndedCall } from './result-texts.js';

/** The batch of calls of one reply, and the actions about its calls. */

export type ToolBatch = In<'ExecutingTools'>;

export const isEnded = (call: Call): call is EndedCall => 'completedAt' in call;
/** Whether the call has started and not ended, so that a cancel must stop it. */
export const isRunning = (call: Call): call is Extract<Call, { readonly status: 'starting' | 'running' }> =>
  call.status === 'starting' || call.status === 'running';
export const isWaiting = (
  call: Call,
): call is Extract<Call, { readonly status: 'queued' | 'previewing' | 'awaitingApproval' }> =>
  call.status === 'queued' || isAsked(call);
/** Whether the call waits for the user's answer, or for the preview that comes before the question. */
export const isAsked = (
  call: Call,
): call is Extract<Call, { readonly status: 'previewing' | 'awaitingApproval' }> =>
  call.status === 'previewing' || call.status === 'awaitingApproval';

/** The ids of one call, as events carry them. */
export type CallReference = { readonly batchId: string; readonly callId: string };

export const findCall = (state: ToolBatch, event: CallReference): Call | undefined =>
  event.batchId === state.batchId ? callWithId(state.calls, event.callId) : undefined;

/** The batch with these calls changed. */
export const replaceCalls = (state: ToolBatch, ...changed: readonly Call[]): ToolBatch =>
  changeBatch(state, { calls: withCalls(state.calls, changed) });

export const cancelTimer = (timerId: string | null): readonly Action[] =>
  timerId === null ? [] : [{ type: 'CancelTimer', timerId }];

export const cancelCauseOf = (state: ToolBatch): CancelCause =>
  state.phase.mode === 'cancelling' ? state.phase.cause : 'user';

/** The action that shows the end of a call to the user, with the diff and the summary, which only people read. */
export const displayResult = (
  batchId: string,
  call: EndedCall,
  { diff, summary }: Pick<CallOutcome, 'diff' | 'summary'> = {},
): Action => ({
  type: 'DisplayToolResult',
  batchId,
  callId: call.judged.callId,
  tool: call.judged.tool,
  ...(call.judged.title === undefined ? {} : { title: call.judged.title }),
  status: call.status,
  text: call.outcome.text,
  ...(summary === undefined ? {} : { summary }),
  diff: diff ?? null,
});

/** Withdraws the questions about those calls that wait for an answer. */
export const withdrawApprovals = (state: ToolBatch, calls: readonly Call[]): readonly Action[] =>
  calls
    .filter(isAsked)
    .map(({ judged }) => ({ type: 'WithdrawApproval', batchId: state.batchId, callId: judged.callId }));

export const cancelCalls = (state: ToolBatch, calls: readonly Call[], force: boolean): readonly Action[] =>
  calls.length === 0
    ? []
    : [
        {
          type: 'CancelTools',
          batchId: state.batchId,
          callIds: calls.map(({ judged }) => judged.callId),
          force,
        },
      ];
