import type { Action } from '@pawl/agent/machine/action';
import type { JudgedCall } from '@pawl/agent/machine/call';
import { titleOf } from '@pawl/agent/machine/values/call-title';
import type { Stepped } from '@pawl/agent/ports/session-input-output';

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
