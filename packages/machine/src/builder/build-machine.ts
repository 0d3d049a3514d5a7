import { typeIn } from '../kernel/shape.js';
import { stepper } from '../kernel/step-function.js';
import type { Step } from '../kernel/step-types.js';
import type { HasType } from '../kernel/table.js';
import {
  BadRegistration,
  CallbackFailed,
  type CallbackKind,
  EndlessTransitions,
  MachineFrozen,
} from './builder-errors.js';
import type {
  BuilderStep,
  BuiltMachine,
  MachineBuilder,
  MutableStateMachine,
  StateMachine,
} from './builder-types.js';
import {
  compilePlan,
  describePlan,
  eventsOf,
  hold,
  isRegistered,
  listOf,
  type MachinePlan,
  namesOf,
  type PlannedBranch,
  type PlannedState,
  type Registration,
  START,
} from './compile-registrations.js';

/**
 * Builds a machine by calls, for programs whose states are plain names and whose memory is one context object.
 *
 * 1. It compiles to the same edges as a table and runs on the same stepper.
 * 2. Exact sources are tried before `'*'`, both in the order of registration. The first whose guard holds is taken.
 * 3. A transition runs onExit, its action and onEnter, in this order; an internal one runs only its action. Then
 *    transitions without an event follow until none applies, at most 100.
 * 4. A callback that throws leaves the state unchanged, and the context too unless a callback has mutated it.
 */

const START_EVENT: HasType = { type: START };
const typeOf = ({ type }: HasType): string | null => (type === START ? null : type);

const rename = <F extends (...input: never[]) => unknown>(name: string, work: F): F =>
  Object.defineProperty(work, 'name', { value: name });

/** The name of a callback; empty if it only has the name of its field. */
const nameOf = (callback: { readonly name: string } | undefined): string =>
  callback === undefined || /^(guard|action)$/.test(callback.name) ? '' : callback.name;

type Taken = { readonly event: string | null; readonly label: string };
type Place = Taken & { readonly state: string };
const AT_START: Taken = { event: null, label: '' };

/** Calls a user's callback and wraps its error. */
const call = <T>(callback: CallbackKind, place: Place, work: () => T): T => {
  try {
    return work();
  } catch (thrown) {
    throw new CallbackFailed(callback, place, thrown);
  }
};

/** Refuses a Promise: a step ends before it settles. */
const settled = <T>(returned: T): T => {
  if (typeof returned !== 'object' || returned === null || !('then' in returned)) return returned;
  if (typeof returned.then !== 'function') return returned;
  Promise.resolve(returned).catch(() => undefined); // nothing is lost: the step has failed already
  throw new TypeError('it returned a Promise; callbacks are synchronous: wait before you send the event');
};

/** The context after onExit or onEnter of a state. `by`: the event and the label of the transition. */
const cross = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  callback: 'onExit' | 'onEnter',
  state: S,
  context: C,
  by: Taken = AT_START,
): C => {
  const work = plan.states.get(state)?.[callback];
  if (work === undefined) return context;
  const place = { ...by, state };
  return call(callback, place, () => plan.next(context, settled(work(context))));
};

/** Event and label of a transition, for errors. The label defaults to the name of the callback. */
const takenBy = <S, C, R>(
  { events, label }: Registration<S, C, R>,
  event: HasType,
  given: string,
): Taken => ({
  event: events && event.type,
  label: label || given,
});

const guardOf = <S extends string, C, R>(state: S, row: Registration<S, C, R>) => {
  const { guard } = row;
  if (guard === undefined) return {};
  const given = nameOf(guard);
  const holds = ({ context }: PlannedState<S, C>, event: HasType): boolean =>
    call('guard', { state, ...takenBy(row, event, given) }, () => settled(guard(event, context)));
  return { when: rename(given || 'guard', holds) };
};

const arrowOf = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  from: S,
  row: Registration<S, C, R>,
): PlannedBranch<S, C> => {
  const { action, label } = row;
  const given = nameOf(action);
  const act = (event: HasType, context: C, by: Taken): C => {
    if (action === undefined) return context;
    return call('action', { state: from, ...by }, () => plan.next(context, settled(action(event, context))));
  };
  if (row.internal === 'yes') {
    const stay = ({ context }: PlannedState<S, C>, event: HasType) =>
      hold(from, act(event, context, takenBy(row, event, given)));
    return { ...guardOf(from, row), as: label, stay: rename(given, stay) };
  }
  const to = row.to === '*' ? from : row.to;
  const go = ({ context }: PlannedState<S, C>, event: HasType) => {
    const by = takenBy(row, event, given);
    const acted = act(event, cross(plan, 'onExit', from, context, by), by);
    return hold(to, cross(plan, 'onEnter', to, acted, by));
  };
  return { ...guardOf(from, row), as: label, to, then: rename(given, go) };
};

const finish = <S extends string, E extends HasType, C, R>(
  plan: MachinePlan<S, C, R>,
  initial: S,
): BuiltMachine<S, E, C> => {
  const names = namesOf(plan, initial);
  const known = new Set(eventsOf(plan));
  const compiled = compilePlan(plan, names, (from, row) => arrowOf(plan, from, row));
  const described = describePlan(plan, initial, names, compiled.edges);
  const advance = stepper(compiled);
  const show = (step: Step<PlannedState<S, C>, never>, event: HasType): BuilderStep<S, C> => {
    // Every pair has a cell that always applies, so only an endless step is a fault.
    const fault = step.diagnostics.find(({ kind }) => kind === 'fault');
    if (fault !== undefined) throw new EndlessTransitions(fault.state, typeOf(event), fault.why);
    const { name, context } = step.state;
    return { state: name, context, path: step.path.filter(isRegistered), diagnostics: step.diagnostics };
  };
  const settleIn = (name: S, context: C): BuilderStep<S, C> =>
    show(advance({ name, context }, START_EVENT), START_EVENT);
  return Object.freeze({
    ...described,
    step(state: S, context: C, event: E): BuilderStep<S, C> {
      const type = typeIn(event);
      if (type !== null && known.has(type)) return show(advance({ name: state, context }, event), event);
      const unknown = { kind: 'late', why: 'no transition of this machine has such an event' } as const;
      const untyped = { kind: 'malformed', why: 'it is no event: it has no type that is a text' } as const;
      const found = type === null ? untyped : unknown;
      return { state, context, path: [], diagnostics: [{ ...found, state, event: type ?? '' }] };
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

const checkRow = <S extends string, C, R>(
  what: string,
  { from, to, internal }: Registration<S, C, R>,
): void => {
  if (internal === 'no' || to === '*' || (from !== '*' && from.every((name) => name === to))) return;
  throw new BadRegistration(`${what} is internal, so it can't lead elsewhere: give '*' as its target`);
};

const emptyPlan = <S extends string, C, R>(next: MachinePlan<S, C, R>['next']): MachinePlan<S, C, R> => ({
  rows: [],
  states: new Map(),
  ends: new Set(),
  errors: new Set(),
  next,
});

const builder = <S extends string, E extends HasType, C, R>(
  next: MachinePlan<S, C, R>['next'],
): MachineBuilder<S, E, C, R> => {
  const plan = emptyPlan<S, C, R>(next);
  let phase: 'open' | 'frozen' = 'open';
  const register = (what: string, work: () => void): MachineBuilder<S, E, C, R> => {
    if (phase === 'frozen') throw new MachineFrozen(what);
    work();
    return self;
  };
  const add = (row: Registration<S, C, R>): MachineBuilder<S, E, C, R> => {
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
        from: listOf(from),
        events: [event].flat(),
        to,
        label,
        internal: internal === true ? 'yes' : 'no',
        // A transition is tried only for the events that it names, and its callbacks take exactly these.
        guard: guard as Registration<S, C, R>['guard'],
        action: action as Registration<S, C, R>['action'], // as above
      });
    },
    always(from, to, { guard, action, label = '' } = {}) {
      return add({
        from: listOf(from),
        events: null,
        to,
        label,
        internal: 'no',
        guard: guard && rename(nameOf(guard), (_event: HasType, context: C) => guard(context)),
        action: action && rename(nameOf(action), (_event: HasType, context: C) => action(context)),
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
export const stateMachine = <S extends string, E extends HasType, C>(): StateMachine<S, E, C> =>
  builder<S, E, C, C>((_context, returned) => returned);

/** Begins a machine whose callbacks change the given context. Their return values are ignored. */
export const mutableStateMachine = <S extends string, E extends HasType, C>(): MutableStateMachine<S, E, C> =>
  builder<S, E, C, void>((context) => context);
