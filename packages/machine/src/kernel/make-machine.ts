import { compileTable } from './compile-table.js';
import { faultIn, typeIn } from './shape.js';
import { refuseEvent, stepper } from './step-function.js';
import type { MachineDescription, Step } from './step-types.js';
import type { HasName, HasType, MachineSpec, Table } from './table.js';

export type Machine<S extends HasName, E extends HasType, A> = MachineDescription & {
  /**
   * Pure and total: same state and event, same result; never throws. A value that is not an event of the machine
   * changes nothing and leaves a diagnostic of the kind `malformed`.
   */
  step(state: S, event: E): Step<S, A>;
  /** As `step`, for events that were checked before, such as those of a journal. */
  stepUnchecked(state: S, event: E): Step<S, A>;
};

/**
 * Makes a machine from a table. It is curried, so that the names are fixed before the table is checked:
 * `machine<State, Event, Action>()(spec)(table)`.
 */
export const machine =
  <S extends HasName, E extends HasType, A>() =>
  <const Transient extends S['name'], const Default extends E['type']>(
    spec: MachineSpec<S, E, Transient, Default>,
  ) =>
  (table: Table<S, E, A, Transient, Default>): Machine<S, E, A> => {
    // The only place where the table loses its types: `Table` has just proved that every cell fits its state and event.
    const loose = table as never;
    const compiled = compileTable<S, E, A>(
      Object.keys(spec.states),
      Object.keys(spec.events),
      new Set<string>(spec.transient),
      loose,
    );
    const { states, events, initial, transient, ends, shape } = spec;
    const { edges, ignored } = compiled;
    const stepUnchecked = stepper(compiled);
    const findFault = (event: E): string | null => {
      if (shape !== undefined) return faultIn(shape, event, 'the event');
      return typeIn(event) === null ? 'it has no type that is a text' : null;
    };
    const step = (state: S, event: E): Step<S, A> => {
      const why = findFault(event);
      return why === null ? stepUnchecked(state, event) : refuseEvent(state, event, why);
    };
    return { step, stepUnchecked, edges, ignored, states, events, initial, transient, ends };
  };
