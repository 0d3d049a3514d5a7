import type { Action } from '../../agent/action.js';
import type { JudgedCall } from '../../agent/call.js';
import { titleOf } from '../../agent/values/call-title.js';
import type { Stepped } from '../../ports/session-input-output.js';

export type ToolResult = Extract<Action, { readonly type: 'DisplayToolResult' }>;

/** Remembers the calls of a session, so that later lines can name them. */
export type JudgedCalls = {
  see(stepped: Stepped): void;
  get(callId: string): JudgedCall | undefined;
  /** Title of an ended call; empty in older journals for calls that ended in the step that resumed the session. */
  title(result: ToolResult): string;
};

export const createJudgedCalls = (workspace: string): JudgedCalls => {
  const calls = new Map<string, JudgedCall>();
  return {
    see({ event, state }) {
      if (event.type === 'LlmCompleted') for (const call of event.calls) calls.set(call.callId, call);
      if (event.type === 'Resumed' && state.name === 'ExecutingTools') {
        for (const { judged } of state.calls) calls.set(judged.callId, judged);
      }
    },
    get: (callId) => calls.get(callId),
    title({ title, callId }) {
      const call = calls.get(callId);
      return title ?? (call === undefined ? '' : titleOf(call, workspace));
    },
  };
};
