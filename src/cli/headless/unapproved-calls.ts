import { decide } from '../../agent/policy/policy.js';
import { presetRules } from '../../agent/policy/preset-rules.js';
import type { Stepped } from '../../ports/session-input-output.js';
import { oneLine } from '../../terminal/paint-text.js';
import { createJudgedCalls } from '../../terminal/transcript/known-calls.js';

/** Collects the calls of the last reply that were denied because nobody could approve them, for the exit message. */
export type Unapproved = {
  see(stepped: Stepped): void;
  /** Message for the user: the denied calls, and how to allow them. */
  advice(sessionId: string): string;
};

export const createUnapproved = (workspace: string): Unapproved => {
  const calls = createJudgedCalls(workspace);
  let denied: readonly string[] = [];
  let autoAllows: 'yes' | 'no' = 'yes';
  return {
    see(stepped) {
      const { event, state, actions } = stepped;
      calls.see(stepped);
      if (event.type === 'LlmCompleted') {
        denied = [];
        autoAllows = 'yes';
      }
      for (const action of actions) {
        if (action.type !== 'DisplayToolResult' || action.status !== 'denied') continue;
        const call = calls.get(action.callId);
        if (call === undefined) continue;
        const { settings, grants } = state.session;
        if (decide(settings, grants, call).decision !== 'ask') continue;
        const inAuto = { ...settings, preset: 'auto', rules: presetRules.auto, onAsk: 'deny' } as const;
        if (decide(inAuto, grants, call).decision !== 'allow') autoAllows = 'no';
        denied = [...denied, oneLine(`${call.tool} ${calls.title(action)}`, 80)];
      }
    },
    advice: (sessionId) =>
      [
        `There was no user to approve ${denied.length === 0 ? 'a call' : denied.join('; ')}.`,
        `What you can do: ${autoAllows === 'yes' ? '--preset auto allows such calls, ' : ''}--on-ask deny lets the model continue without them,`,
        `or answer in a terminal: pawl --resume ${sessionId}`,
      ].join('\n'),
  };
};
