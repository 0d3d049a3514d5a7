import type { BuiltMachine, MachineBuilder, MutableStateMachine, StateMachine, Stepped } from './builder.js';
import {
  BadRegistration,
  CallbackFailed,
  type CallbackKind,
  EndlessTransitions,
  MachineFrozen,
} from './faults.js';
import {
  type Arrow,
  compilePlan,
  describePlan,
  eventsOf,
  type Held,
  hold,
  isRegistered,
  listOf,
  namesOf,
  type Plan,
  type Row,
  START,
} from './plan.js';
import type { Step } from './step.js';
import { stepper } from './stepper.js';
import type { Typed } from './table.js';

/**
 * The kernel's other face: a machine that is put together call by call, for programs whose states are plain names and
 * whose memory is one context.
 *
 * 1. It compiles to the same arrows and is stepped by the same stepper as a table.
 * 2. Exact sources are tried before `'*'`, each in the order of registration; the first whose guard holds is taken.
 * 3. Taken means: onExit of the state left, action, onEnter of the state entered; an internal transition does only
 *    the action. Then transitions without an event until none applies, at most 100.
 * 4. What throws in a callback leaves the state where it was, and the context too unless a callback has mutated it.
 */

const START_EVENT: Typed = { type: START };
const typeOf = ({ type }: Typed): string | null => (type === START ? null : type);

const rename = <F extends (...input: never[]) => unknown>(name: string, work: F): F =>
  Object.defineProperty(work, 'name', { value: name });

/** The name that somebody gave to a function; that of the field it stands in says nothing. */
const nameOf = (callback: { readonly name: string } | undefined): string =>
  callback === undefined || /^(guard|action)$/.test(callback.name) ? '' : callback.name;

type Taken = { readonly event: string | null; readonly label: string };
type Place = Taken & { readonly state: string };
const AT_START: Taken = { event: null, label: '' };

/** Calls what is not ours. */
const call = <T>(callback: CallbackKind, place: Place, work: () => T): T => {
  try {
    return work();
  } catch (thrown) {
    throw new CallbackFailed(callback, place, thrown);
  }
};

/** The context after onExit or onEnter of a state. `by`: the event and the label of the transition. */
const cross = <S extends string, C, R>(
  plan: Plan<S, C, R>,
  callback: 'onExit' | 'onEnter',
  state: S,
  context: C,
  by: Taken = AT_START,
): C => {
  const work = plan.states.get(state)?.[callback];
  if (work === undefined) return context;
  const place = { ...by, state };
  return call(callback, place, () => plan.next(context, work(context)));
};

/** What a failure says of a transition: the label, or else the name of the callback. */
const takenBy = <S, C, R>({ events, label }: Row<S, C, R>, event: Typed, given: string): Taken => ({
  event: events && event.type,
  label: label || given,
});

const guardOf = <S extends string, C, R>(state: S, row: Row<S, C, R>) => {
  const { guard } = row;
  if (guard === undefined) return {};
  const given = nameOf(guard);
  const holds = ({ context }: Held<S, C>, event: Typed): boolean =>
    call('guard', { state, ...takenBy(row, event, given) }, () => guard(event, context));
  return { when: rename(given || 'guard', holds) };
};

const arrowOf = <S extends string, C, R>(plan: Plan<S, C, R>, from: S, row: Row<S, C, R>): Arrow<S, C> => {
  const { action, label } = row;
  const given = nameOf(action);
  const act = (event: Typed, context: C, by: Taken): C => {
    if (action === undefined) return context;
    return call('action', { state: from, ...by }, () => plan.next(context, action(event, context)));
  };
  if (row.internal === 'yes') {
    const stay = ({ context }: Held<S, C>, event: Typed) =>
      hold(from, act(event, context, takenBy(row, event, given)));
    return { ...guardOf(from, row), as: label, stay: rename(given, stay) };
  }
  const to = row.to === '*' ? from : row.to;
  const go = ({ context }: Held<S, C>, event: Typed) => {
    const by = takenBy(row, event, given);
    const acted = act(event, cross(plan, 'onExit', from, context, by), by);
    return hold(to, cross(plan, 'onEnter', to, acted, by));
  };
  return { ...guardOf(from, row), as: label, to, then: rename(given, go) };
};

const finish = <S extends string, E extends Typed, C, R>(
  plan: Plan<S, C, R>,
  initial: S,
): BuiltMachine<S, E, C> => {
  const names = namesOf(plan, initial);
  const known = new Set(eventsOf(plan));
  const compiled = compilePlan(plan, names, (from, row) => arrowOf(plan, from, row));
  const described = describePlan(plan, initial, names, compiled.edges);
  const advance = stepper(compiled);
  const show = (step: Step<Held<S, C>, never>, event: Typed): Stepped<S, C> => {
    // Every pair has a cell that always applies, so no other fault is left.
    const fault = step.diagnostics.find(({ kind }) => kind === 'fault');
    if (fault !== undefined) throw new EndlessTransitions(fault.state, typeOf(event), fault.why);
    const { name, context } = step.state;
    return { state: name, context, path: step.path.filter(isRegistered), diagnostics: step.diagnostics };
  };
  const settleIn = (name: S, context: C): Stepped<S, C> =>
    show(advance({ name, context }, START_EVENT), START_EVENT);
  return Object.freeze({
    ...described,
    step(state: S, context: C, event: E): Stepped<S, C> {
      if (known.has(event.type)) return show(advance({ name: state, context }, event), event);
      const why = 'no transition of this machine has such an event';
      return { state, context, path: [], diagnostics: [{ kind: 'late', state, event: event.type, why }] };
    },
    enter: (state: S, context: C) => settleIn(state, cross(plan, 'onEnter', state, context)),
    move(state: S, context: C, to: S) {
      const left = cross(plan, 'onExit', state, context);
      return settleIn(to, cross(plan, 'onEnter', to, left));
    },
    legalFrom: (state: S) =>
      names.filter((to) => described.edges.some((edge) => edge.from === state && edge.to === to)),
    isTerminal: (state: S) => plan.ends.has(state),
    isError: (state: S) => plan.errors.has(state),
  });
};

const checkRow = <S extends string, C, R>(what: string, { from, to, internal }: Row<S, C, R>): void => {
  if (internal === 'no' || to === '*' || (from !== '*' && from.every((name) => name === to))) return;
  throw new BadRegistration(`${what} is internal, so it can't lead elsewhere: give '*' as its target`);
};

const builder = <S extends string, E extends Typed, C, R>(
  next: Plan<S, C, R>['next'],
): MachineBuilder<S, E, C, R> => {
  const plan: Plan<S, C, R> = { rows: [], states: new Map(), ends: new Set(), errors: new Set(), next };
  let phase: 'open' | 'frozen' = 'open';
  const register = (what: string, work: () => void): MachineBuilder<S, E, C, R> => {
    if (phase === 'frozen') throw new MachineFrozen(what);
    work();
    return self;
  };
  const add = (row: Row<S, C, R>): MachineBuilder<S, E, C, R> => {
    const what = `transition ${row.from} --${row.events ?? ''}--> ${row.to}`;
    return register(what, () => {
      checkRow(what, row);
      plan.rows.push(row);
    });
  };
  const self: MachineBuilder<S, E, C, R> = {
    state: (name, options = {}) => register(`state ${name}`, () => plan.states.set(name, options)),
    transition(from, event, to, { guard, action, internal, label = '' } = {}) {
      return add({
        ...{ from: listOf(from), events: [event].flat(), to, label },
        internal: internal === true ? 'yes' : 'no',
        // An arrow is only tried for the events that it names, and these are what its callbacks take.
        guard: guard as Row<S, C, R>['guard'],
        action: action as Row<S, C, R>['action'], // as above
      });
    },
    always(from, to, { guard, action, label = '' } = {}) {
      return add({
        ...{ from: listOf(from), events: null, to, label, internal: 'no' },
        guard: guard && rename(nameOf(guard), (_event: Typed, context: C) => guard(context)),
        action: action && rename(nameOf(action), (_event: Typed, context: C) => action(context)),
      });
    },
    terminal: (...names) =>
      register(`terminal ${names}`, () => {
        for (const name of names) plan.ends.add(name);
      }),
    error: (...names) =>
      register(`error ${names}`, () => {
        for (const name of names) plan.errors.add(name);
      }),
    build(initial) {
      register('build()', () => {
        phase = 'frozen';
      });
      return finish<S, E, C, R>(plan, initial);
    },
  };
  return self;
};

/**
 * Begins a machine whose callbacks return the next context and change nothing:
 * `stateMachine<State, Event, Context>().transition('Idle', 'Start', 'Working').build('Idle')`.
 */
export const stateMachine = <S extends string, E extends Typed, C>(): StateMachine<S, E, C> =>
  builder<S, E, C, C>((_context, returned) => returned);

/** Begins a machine whose callbacks change the one context that it is given; what they return does not count. */
export const mutableStateMachine = <S extends string, E extends Typed, C>(): MutableStateMachine<S, E, C> =>
  builder<S, E, C, void>((context) => context);
