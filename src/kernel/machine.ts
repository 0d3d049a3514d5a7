import { compile } from './compile.js';
import type { Described, Step } from './step.js';
import { stepper } from './stepper.js';
import type { Named, Spec, Table, Typed } from './table.js';

export type Machine<S extends Named, E extends Typed, A> = Described & {
  /** Pure and total: same state and event, same answer; never throws. */
  step(state: S, event: E): Step<S, A>;
};

/**
 * Makes a machine of a table. Curried, so that the names are fixed before the table is checked:
 * `machine<State, Event, Action>()(spec)(table)`.
 */
export const machine =
  <S extends Named, E extends Typed, A>() =>
  <const Transient extends S['name'], const Default extends E['type']>(
    spec: Spec<S, E, Transient, Default>,
  ) =>
  (table: Table<S, E, A, Transient, Default>): Machine<S, E, A> => {
    // The one place where the table loses its types: `Table` has just proved that every cell fits its state and event.
    const loose = table as never;
    const compiled = compile<S, E, A>(
      Object.keys(spec.states),
      Object.keys(spec.events),
      new Set<string>(spec.transient),
      loose,
    );
    const { states, events, initial, transient, ends } = spec;
    const { edges, ignored } = compiled;
    return { step: stepper(compiled), edges, ignored, states, events, initial, transient, ends };
  };
