import type { JudgedCall } from '@pawl/agent/machine/call';
import type { SessionData } from '@pawl/agent/machine/state';
import { decide, placeOf } from '@pawl/agent/policy/policy';
import { presetRules } from '@pawl/agent/policy/preset-rules';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { oneLine } from '@pawl/terminal/paint-text';
import { createJudgedCalls } from '@pawl/terminal/transcript/known-calls';

/**
 * Collects the calls of a turn that were denied because nobody could approve them, or because no sandbox works here. The
 * turn then ends with exit code 77, also where the model went on and answered.
 *
 * 1. `--on-ask deny` and the preset `ci` accept the denial of what would be asked. They don't accept a missing sandbox.
 * 2. A denial by a rule, a hook or the preset's own limits does not count: the user decided it.
 */
export type Unapproved = {
  see(stepped: Stepped): void;
  /** Whether some call was denied. */
  any(): boolean;
  /** Message for the user: the denied calls, and how to allow them. `goesOn`: the model went on and answered. */
  advice(sessionId: string, goesOn: boolean): string;
};

type Lack = 'nobody' | 'sandbox';

const TITLES_MAX = 10;

/** What a denied call lacked; null if it was denied for another reason. */
const lackOf = ({ settings, grants }: SessionData, call: JudgedCall): Lack | null => {
  const decisionWith = (change: Partial<typeof settings>) =>
    decide({ ...settings, ...change }, grants, call).decision;
  if (placeOf(settings, call) === 'missing') {
    const fenced = settings.preset === 'plan' ? 'read-only' : 'workspace';
    return decisionWith({ sandbox: fenced, onAsk: 'ask' }) === 'deny' ? null : 'sandbox';
  }
  return settings.onAsk !== 'deny' && decisionWith({ onAsk: 'ask' }) === 'ask' ? 'nobody' : null;
};

const namesOf = (titles: readonly string[]): string => {
  const more = titles.length - TITLES_MAX;
  return `${titles.slice(0, TITLES_MAX).join('; ')}${more > 0 ? ` and ${more} more` : ''}`;
};

export const createUnapproved = (workspace: string): Unapproved => {
  const calls = createJudgedCalls(workspace);
  const denied: Record<Lack, string[]> = { nobody: [], sandbox: [] };
  let autoAllows: 'yes' | 'no' = 'yes';
  const nobodyText = (sessionId: string, goesOn: boolean): readonly string[] => {
    const what = denied.nobody.length === 0 ? 'a call' : namesOf(denied.nobody);
    const auto = autoAllows === 'yes' ? '--preset auto allows such calls, ' : '';
    return [
      `There was no user to approve ${what}.`,
      ...(goesOn ? ['The model went on without, and its answer may lack what that was for.'] : []),
      `What you can do: ${auto}--on-ask deny ${goesOn ? 'accepts that with exit code 0' : 'lets the model continue without them'},`,
      `or answer in a terminal: pawl --resume ${sessionId}`,
    ];
  };
  const sandboxText = (): readonly string[] => [
    `No sandbox works here, so commands were denied: ${namesOf(denied.sandbox)}.`,
    'What you can do: pawl doctor says what to install, --sandbox off runs commands without one.',
  ];
  return {
    see(stepped) {
      const { event, state, actions } = stepped;
      calls.see(stepped);
      if (event.type === 'UserInput') {
        for (const titles of Object.values(denied)) titles.length = 0;
        autoAllows = 'yes';
      }
      for (const action of actions) {
        if (action.type !== 'DisplayToolResult' || action.status !== 'denied') continue;
        const call = calls.get(action.callId);
        const lack = call === undefined ? null : lackOf(state.session, call);
        if (call === undefined || lack === null) continue;
        const { settings, grants } = state.session;
        const inAuto = { ...settings, preset: 'auto', rules: presetRules.auto, onAsk: 'deny' } as const;
        if (decide(inAuto, grants, call).decision !== 'allow') autoAllows = 'no';
        denied[lack].push(oneLine(`${call.tool} ${calls.title(action)}`, 80));
      }
    },
    any: () => denied.nobody.length > 0 || denied.sandbox.length > 0,
    advice: (sessionId, goesOn) =>
      [
        ...(denied.sandbox.length === 0 ? [] : sandboxText()),
        ...(denied.nobody.length === 0 && denied.sandbox.length > 0 ? [] : nobodyText(sessionId, goesOn)),
      ].join('\n'),
  };
};
