import type { JudgedCall, Needs, ShellFacts } from '../agent/call.js';
import { decide, type PolicyDecision, placeOf } from '../agent/policy/policy.js';
import type { CommandPlace } from '../agent/policy/preset-rules.js';
import type { Settings } from '../agent/settings.js';
import { type FindProgram, shellFacts } from './collect-command-facts.js';
import { commandFinder } from './find-command-file.js';

/** Explains the policy's decision about a shell text, without a session. */

export type Explained = PolicyDecision & {
  readonly facts: ShellFacts;
  /** Where the command would run. */
  readonly place: CommandPlace;
};

export type Explaining = Pick<Settings, 'rules' | 'workspace'> &
  Partial<Pick<Settings, 'writtenRules' | 'sandbox' | 'onAsk' | 'preset'>>;

/** The call that the shell tool would make for a text. */
const callOf = (
  text: string,
  shell: ShellFacts,
  workspace: string,
  needs: Needs | undefined,
): JudgedCall => ({
  callId: 'explained',
  tool: 'shell',
  input: { command: text },
  verdict: { kind: 'ok' },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 },
  facts: {
    argv: [text],
    paths: [workspace],
    hosts: [],
    shape: text,
    shell,
    ...(needs === undefined ? {} : { needs }),
  },
});

/** Searches programs in the PATH of this process unless `find` is given. */
export const explainCommand = async (
  text: string,
  settings: Explaining,
  { needs, find }: { readonly needs?: Needs; readonly find?: FindProgram } = {},
): Promise<Explained> => {
  const look = find ?? commandFinder(process.env.PATH ?? '', settings.workspace);
  const facts = await shellFacts(text, look);
  const call = callOf(text, facts, settings.workspace, needs);
  return { ...decide(settings, [], call), facts, place: placeOf(settings, call) ?? 'unfenced' };
};
