import type { MoveResult } from '@pawl/machine/kernel/table';
import type { Action } from './action.js';
import type { In, SessionData, State, StateName } from './state.js';

/** The result of a move that leads to state N. */
export type MoveTo<N extends StateName> = MoveResult<In<N>, Action>;

/** The result of a move that stays in its state. */
export type Stay<S extends State> = MoveResult<S, Action>;

/** A changed session and the actions that go with the change, whatever state follows. */
export type SessionUpdate = { readonly session: SessionData; readonly actions: readonly Action[] };

/** The next state and the actions that go with it, in order. */
export const go = <S extends State>(state: S, ...actions: readonly Action[]): Stay<S> => ({ state, actions });

/** The unchanged state, and why the event changed nothing. */
export const ignore = <S extends State>(state: S, late: string): Stay<S> => ({ state, actions: [], late });

/** The same state with another session. */
export const withSession = <S extends State>(state: S, session: SessionData): S =>
  // A spread keeps all fields of S and replaces `session` by a value of its own type.
  ({ ...state, session }) as S;
