import type { Next as KernelNext } from '../kernel/table.js';
import type { Action } from './action.js';
import type { In, Session, State, StateName } from './state.js';

/** What a move of this machine returns. */
export type Next<N extends StateName> = KernelNext<In<N>, Action>;

/** What a move returns that stays in its state. */
export type Same<S extends State> = KernelNext<S, Action>;

/** The next state and the actions that go with it, in order. */
export const go = <S extends State>(state: S, ...actions: readonly Action[]): Same<S> => ({ state, actions });

/** The state as it is, and why the event changed nothing. */
export const ignore = <S extends State>(state: S, late: string): Same<S> => ({ state, actions: [], late });

/** The same state with another session. */
export const withSession = <S extends State>(state: S, session: Session): S =>
  // A spread keeps all fields of S and replaces `session` by a value of its own type.
  ({ ...state, session }) as S;
