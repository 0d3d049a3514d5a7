import * as restate from '@restatedev/restate-sdk';
import type { Action, State, StoppedCall } from 'pawl/engine';
import { json } from '../session/json.js';
import type { Head } from '../session/session-records.js';
import { toolsService } from './start-work.js';

/** What becomes of running calls when a session ends, and when it goes on. */

const runningIn = (state: State) =>
  state.name === 'ExecutingTools' ? state.calls.filter(({ status }) => status === 'running') : [];

/** How long the end of a session waits for the node with its workspace. */
const STOPPING_MS = 3_000;

/** Calls are stopped first, so that the model is told what became of them. Empty: there are none, or their node is gone. */
export const stoppedBy = async (
  ctx: restate.ObjectContext,
  { node }: Head,
  state: State,
): Promise<readonly StoppedCall[]> => {
  if (runningIn(state).length === 0) return [];
  const asked = ctx.genericCall<unknown, readonly StoppedCall[]>({
    service: toolsService(node),
    method: 'stop',
    parameter: { sessionId: ctx.key },
    inputSerde: json(),
    outputSerde: json(),
  });
  try {
    return await asked.orTimeout(STOPPING_MS);
  } catch (error) {
    if (error instanceof restate.TimeoutError) return []; // then the machine says that their outcome is unknown
    throw error;
  }
};

/** The calls that ran before the session went on, and still do: each gets its outcome from its tool. */
export const runningCallsOf = (before: State, after: State): readonly Action[] => {
  if (before.name !== 'ExecutingTools' || after.name !== 'ExecutingTools') return [];
  const { batchId } = after;
  const known = new Set(runningIn(before).map(({ judged }) => judged.callId));
  const calls = runningIn(after)
    .map(({ judged }) => judged)
    .filter(({ callId }) => known.has(callId));
  return before.batchId !== batchId || calls.length === 0 ? [] : [{ type: 'ExecuteTools', batchId, calls }];
};
