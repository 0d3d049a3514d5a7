import { decide } from '../agent/policy.js';
import type { Stepped } from '../needs.js';
import { createCalls } from '../terminal/calls.js';
import { oneLine } from '../terminal/print.js';

/** Follows a session where nobody can be asked: which calls of the last reply were denied for that, and the ways out. */
export type Unapproved = {
  see(stepped: Stepped): void;
  /** What to tell whoever started the program. */
  advice(sessionId: string): string;
};

export const createUnapproved = (workspace: string): Unapproved => {
  const calls = createCalls(workspace);
  let denied: readonly string[] = [];
  return {
    see(stepped) {
      const { event, state, actions } = stepped;
      calls.see(stepped);
      if (event.type === 'LlmCompleted') denied = [];
      for (const action of actions) {
        if (action.type !== 'DisplayToolResult' || action.status !== 'denied') continue;
        const call = calls.get(action.callId);
        if (call === undefined) continue;
        const { settings, grants } = state.session;
        if (decide(settings, grants, call).decision !== 'ask') continue;
        denied = [...denied, oneLine(`${call.tool} ${calls.title(call.callId, state)}`, 80)];
      }
    },
    advice: (sessionId) =>
      [
        `Nobody was there to approve ${denied.length === 0 ? 'a call' : denied.join('; ')}.`,
        'Ways out: --preset auto allows such calls, --on-ask deny lets the model go on without them,',
        `and in a terminal you are asked: pawl --resume ${sessionId}`,
      ].join('\n'),
  };
};
