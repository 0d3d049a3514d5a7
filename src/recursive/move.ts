import type { Next as KernelNext } from '../kernel/table.js';
import type { CodeAction } from './action.js';
import type { CodeState, In, Run, StateName } from './state.js';

/** What a move of this machine returns. */
export type Next<N extends StateName> = KernelNext<In<N>, CodeAction>;

/** What a move returns that stays in its state. */
export type Same<S extends CodeState> = KernelNext<S, CodeAction>;

/** The next state and the actions that go with it, in order. */
export const go = <S extends CodeState>(state: S, ...actions: readonly CodeAction[]): Same<S> => ({
  state,
  actions,
});

/** The state as it is, and why the event changed nothing. */
export const ignore = <S extends CodeState>(state: S, late: string): Same<S> => ({
  state,
  actions: [],
  late,
});

/** The same state of another run. */
export const withRun = <S extends CodeState>(state: S, run: Run): S =>
  // A spread keeps all fields of S and replaces `run` by a value of its own type.
  ({ ...state, run }) as S;

const letters: Readonly<Record<keyof Run['counters'], string>> = {
  request: 'r',
  cell: 'c',
  timer: 't',
  read: 'v',
  policy: 'p',
};

/** The next id of a kind, e.g. `n0.r3`, and the run that has used it: replay gives the same ids. */
export const nextId = (run: Run, kind: keyof Run['counters']): readonly [string, Run] => {
  const count = run.counters[kind] + 1;
  return [`${run.nodeId}.${letters[kind]}${count}`, { ...run, counters: { ...run.counters, [kind]: count } }];
};
