/**
 * What the moves of a run return, and how they change it. A run is one conversation in code mode.
 */

import type { MoveResult } from '@pawl/machine/kernel/table';
import type { CodeAction } from './action.js';
import type { CodeState, Run, RunIn, RunStateName } from './state.js';

/** The result of a move to the state of this name. */
export type Next<N extends RunStateName> = MoveResult<RunIn<N>, CodeAction>;

/** The result of a move to a state of this type, mostly the one that it begins in. */
export type Same<S extends CodeState> = MoveResult<S, CodeAction>;

/** The next state and the actions that go with it, in order. */
export const go = <S extends CodeState>(state: S, ...actions: readonly CodeAction[]): Same<S> => ({
  state,
  actions,
});

/** The unchanged state, and why the event was ignored. */
export const ignore = <S extends CodeState>(state: S, why: string): Same<S> => ({
  state,
  actions: [],
  late: why,
});

/** The same state with another `run`. */
export const withRun = <S extends CodeState>(state: S, run: Run): S =>
  // A spread keeps all fields of S and replaces `run` by a value of its type.
  ({ ...state, run }) as S;

/** The letter of each kind of id. */
const letters: Readonly<Record<keyof Run['counters'], string>> = {
  request: 'r',
  cell: 'c',
  timer: 't',
  read: 'v',
  policy: 'p',
};

/**
 * The next id of a kind, e.g. `n0.r3`, and the run with its counter raised. Ids come from counters,
 * so that a replay gives the same ones.
 */
export const nextId = (run: Run, kind: keyof Run['counters']): readonly [string, Run] => {
  const count = run.counters[kind] + 1;
  return [
    `${run.nodeId}.${letters[kind]}${count}`,
    { ...run, counters: { ...run.counters, [kind]: count } },
  ];
};
