import type { Call } from '@pawl/agent/machine/call';
import type { UserMessage } from '@pawl/agent/machine/message';
import type { In, SessionData, State } from '@pawl/agent/machine/state';
import {
  asked,
  batch,
  llm,
  reply,
  session,
  user,
  waiting,
  withTalk,
} from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import { noCharges } from '../../src/exploration/charges.js';
import type { ExplorationNode } from '../../src/exploration/exploration-node.js';
import { stateKeyFor } from '../../src/exploration/state-key.js';
import { configurationNamed } from './small.js';

/** Nodes of the exploration made by hand, and the key by which they are told apart. */

export const keyOf = stateKeyFor({
  ...configurationNamed('everything'),
  changes: [{ maxRetries: 0 }],
});
export const node = (state: State, own: Partial<ExplorationNode> = {}): ExplorationNode => ({
  state,
  cursors: [{ state: 'A' }],
  costlyLeft: 0,
  charges: noCharges,
  now: 0,
  ...own,
});
export type Group = { readonly title: string; readonly nodes: readonly ExplorationNode[] };
export const of = (...states: readonly State[]): readonly ExplorationNode[] =>
  states.map((state) => node(state));

export const error = (own: Partial<In<'Error'>> = {}): State => ({
  name: 'Error',
  session: session(),
  purpose: 'user',
  attempt: 1,
  error: { kind: 'overloaded', message: 'busy' },
  timerId: 'timer-1',
  dueAt: 1,
  delayMs: 1_000,
  ...own,
});
export const hook = (own: Partial<In<'PostToolsHook'>> = {}): State => ({
  name: 'PostToolsHook',
  session: session(),
  phase: 'CheckingGitCommits',
  hookId: 'hook-1',
  mutated: [],
  tree: 'unknown',
  ...own,
});
export const compacting = (
  mode: In<'Compacting'>['mode'],
  own: SessionData = session(),
): State => ({
  name: 'Compacting',
  session: own,
  compactionId: 'compaction-1',
  length: 2,
  mode,
});
export const calls = (...own: readonly Call[]): State => batch(own);
export const ended = (
  status: 'ok' | 'failed',
  mutating: boolean,
  words = 'x',
  ran = true,
): Call => ({
  judged: mutating ? g.edit('1') : g.grep('1'),
  requestedAt: 1,
  status,
  ran,
  startedAt: 1,
  completedAt: 2,
  outcome: { failed: status !== 'ok', text: words },
});
export const started = (
  graceTimerId: string | null,
  status: 'starting' | 'running' = 'running',
): Call =>
  status === 'running'
    ? {
        judged: g.grep('1'),
        requestedAt: 1,
        status,
        allowed: 'byPolicy',
        startedAt: 1,
        graceTimerId,
      }
    : { judged: g.grep('1'), requestedAt: 1, status, allowed: 'byPolicy', graceTimerId };
export const held = (
  judged: Call['judged'],
  allowed: 'byPolicy' | 'byUser' = 'byPolicy',
): Call => ({
  judged,
  requestedAt: 1,
  status: 'queued',
  allowed,
});
export const cancelling = (
  graceTimerId: string | null,
  cause: 'user' | 'time' = 'user',
): State => ({
  ...batch([started(null)]),
  phase: { mode: 'cancelling', graceTimerId, cause },
});
export const turn = (own: Partial<SessionData['turn']>, from: SessionData): State =>
  llm({ ...from, turn: { ...from.turn, ...own } });
export const COUNTED = {
  limits: { rounds: 3, truncation: 3, repeats: 3, errors: 3, sameResults: 3 },
};
export const NONE = { limits: { rounds: 0, truncation: 0, repeats: 0, errors: 0, sameResults: 0 } };
export const streaks = (
  own: Partial<SessionData['turn']['streaks']>,
  from = session({}, COUNTED),
): State => turn({ streaks: { ...from.turn.streaks, ...own } }, from);
export const LONG = 'x'.repeat(5_000);
export const open = (...parts: UserMessage['parts']): State => llm(withTalk([], user(...parts)));
export const talked = (length: number): State =>
  waiting(withTalk(Array.from({ length }, (_, at) => (at % 2 === 0 ? asked() : reply()))));
export const filled = (contextTokens: number): State =>
  llm(session({ contextTokens }, { windowTokens: 100, compactAtRatio: 0.5, compactMidRatio: 0.7 }));
export const used = (
  usage: Partial<SessionData['usage']>,
  limits: { usd?: number; tokens?: number },
): State => {
  const own = session({}, { limits });
  return llm({ ...own, usage: { ...own.usage, ...usage } });
};
export const queued = (...modes: readonly ('steer' | 'followUp')[]): State =>
  waiting(
    session({ queue: modes.map((mode, at) => ({ inputId: `input-${at}`, text: 'x', mode })) }),
  );
export const granted = (...grants: SessionData['grants']): State => waiting(session({ grants }));
export const billed = (state: State, costlyLeft: number): ExplorationNode =>
  node(state, { costlyLeft });
export const owing = (...unaccounted: readonly string[]): State => llm(session({ unaccounted }));
