/**
 * Builds a machine by calls, for programs whose states are plain names and whose memory is one
 * context object.
 *
 * 1. It compiles to the same edges as a table and runs on the same stepper.
 * 2. Exact sources are tried before `'*'`, both in the order of registration. The first whose guard
 *    holds is taken.
 * 3. A transition runs onExit, its action and onEnter, in this order; an internal one runs only its
 *    action. Then transitions without an event follow until none applies, at most 100.
 * 4. A callback that throws leaves the state unchanged, and the context too unless a callback has
 *    mutated it.
 *
 * From top to bottom: the types of a builder (`S` names states, `E` is the type of events, `C` that
 * of the context); `stateMachine` and `mutableStateMachine`, which begin one; compiling its plan,
 * the registrations so far, into a table; the report on a built machine; and errors.
 */

import { type CompiledTable, compileTable, stepper } from '../kernel/machine.js';
import { typeIn } from '../kernel/shape.js';
import type {
  Diagnostic,
  Edge,
  EventOf,
  HasType,
  MachineDescription,
  MoveResult,
  Step,
} from '../kernel/table.js';

/** One state, several, or `*` for every state that is not terminal. */
export type From<S extends string> = S | readonly S[] | '*';

export type StateOptions<C, R> = {
  readonly onEnter?: (context: C) => R;
  readonly onExit?: (context: C) => R;
  /** A line for diagrams and documents. */
  readonly about?: string;
};
export type TransitionOptions<E, C, R> = {
  readonly guard?: (event: E, context: C) => boolean;
  readonly action?: (event: E, context: C) => R;
  /** Stays in the state: neither onExit nor onEnter runs. */
  readonly internal?: true;
  /** Names the transition in failures and diagrams. */
  readonly label?: string;
};
export type AlwaysOptions<C, R> = {
  readonly guard?: (context: C) => boolean;
  readonly action?: (context: C) => R;
  readonly label?: string;
};

export type BuilderStep<S extends string, C> = {
  readonly state: S;
  readonly context: C;
  /** Every transition taken, also those without an event; empty if there was none. */
  readonly path: readonly Edge[];
  /** Names an event that had no transition. */
  readonly diagnostics: readonly Diagnostic[];
};

/** Frozen and shared: each driver keeps its own state and context. */
export type BuiltMachine<S extends string, E extends HasType, C> = MachineDescription & {
  readonly initial: S;
  readonly report: BuildReport<S>;
  /** Throws CallbackFailed and EndlessTransitions. */
  step(state: S, context: C, event: E): BuilderStep<S, C>;
  /** Enters a state: runs its onEnter, then transitions without an event. */
  enter(state: S, context: C): BuilderStep<S, C>;
  /** Goes to a state even if no transition leads there: runs onExit and onEnter, but no action. */
  move(state: S, context: C, to: S): BuilderStep<S, C>;
  /** The states to which a transition leads from this one. */
  legalFrom(state: S): readonly S[];
  isTerminal(state: S): boolean;
  isError(state: S): boolean;
};

/** Every registration returns the builder. `R` is the return type of callbacks. */
type MachineBuilder<S extends string, E extends HasType, C, R> = {
  /** Optional for a state without callbacks. The last call for a name counts. */
  state(name: S, options?: StateOptions<C, R>): MachineBuilder<S, E, C, R>;
  /**
   * `event`: one type or several. Guard and action receive exactly these. `to: '*'` keeps the
   * current state.
   */
  transition<const T extends E['type']>(
    from: From<S>,
    event: T | readonly T[],
    to: S | '*',
    options?: TransitionOptions<EventOf<E, T>, C, R>,
  ): MachineBuilder<S, E, C, R>;
  /**
   * A transition without an event. Its guard is tried when the state is entered and after events
   * that stay.
   */
  always(from: From<S>, to: S, options?: AlwaysOptions<C, R>): MachineBuilder<S, E, C, R>;
  /** States where a run ends. Only transitions that name them leave them, not those from `'*'`. */
  terminal(...names: readonly S[]): MachineBuilder<S, E, C, R>;
  /** States that mean failure; see `isError`. */
  error(...names: readonly S[]): MachineBuilder<S, E, C, R>;
  /** Freezes. Later registrations throw MachineFrozen. */
  build(initial: S): BuiltMachine<S, E, C>;
};

/** Callbacks return the next context and change nothing. */
export type StateMachine<S extends string, E extends HasType, C> = MachineBuilder<S, E, C, C>;
/** Callbacks change the context, which stays the same object. */
export type MutableStateMachine<S extends string, E extends HasType, C> = MachineBuilder<
  S,
  E,
  C,
  void
>;

/** One call of `transition` or `always`. */
type Registration<S, C, R> = {
  readonly from: readonly S[] | '*';
  /** null for a transition without an event. */
  readonly events: readonly string[] | null;
  readonly to: S | '*';
  readonly guard: ((event: HasType, context: C) => boolean) | undefined;
  readonly action: ((event: HasType, context: C) => R) | undefined;
  readonly internal: 'no' | 'yes';
  readonly label: string;
};

/** Everything that was registered. */
type MachinePlan<S extends string, C, R> = {
  readonly rows: Registration<S, C, R>[];
  readonly states: Map<S, StateOptions<C, R>>;
  readonly ends: Set<string>;
  readonly errors: Set<string>;
  /** The context after a callback, from the context before it and its return value. */
  readonly next: (context: C, returned: R) => C;
};

/** State and context as one state of the stepper, which knows no contexts. */
type PlannedState<S, C> = { readonly name: S; readonly context: C };
type Move<S, C> = (
  state: PlannedState<S, C>,
  event: HasType,
) => MoveResult<PlannedState<S, C>, never>;
type PlannedBranch<S, C> = {
  readonly when?: (state: PlannedState<S, C>, event: HasType) => boolean;
  readonly to?: S;
  readonly as: string;
} & (
  | { readonly then: Move<S, C>; readonly stay?: undefined }
  | { readonly then?: undefined; readonly stay: Move<S, C> }
);

// ---- Building ----

/**
 * Begins a machine whose callbacks return the next context and change nothing:
 * `stateMachine<State, Event, Context>().transition('Idle', 'Start', 'Working').build('Idle')`.
 */
export const stateMachine = <S extends string, E extends HasType, C>(): StateMachine<S, E, C> =>
  builder<S, E, C, C>((_context, returned) => returned);

/** Begins a machine whose callbacks change the given context. Their return values are ignored. */
export const mutableStateMachine = <S extends string, E extends HasType, C>(): MutableStateMachine<
  S,
  E,
  C
> => builder<S, E, C, void>((context) => context);

/** `next`: the context after a callback, from the context before it and its return value. */
const builder = <S extends string, E extends HasType, C, R>(
  next: MachinePlan<S, C, R>['next'],
): MachineBuilder<S, E, C, R> => {
  const [ends, errors] = [new Set<S>(), new Set<S>()];
  const plan: MachinePlan<S, C, R> = { rows: [], states: new Map(), ends, errors, next };
  let phase: 'open' | 'frozen' = 'open';
  const register = (what: string, work: () => void): MachineBuilder<S, E, C, R> => {
    if (phase === 'frozen') throw new MachineFrozen(what);
    work();
    return self;
  };
  const add = (row: Registration<S, C, R>): MachineBuilder<S, E, C, R> => {
    const { from, to, internal } = row;
    const what = `transition ${from} --${row.events ?? ''}--> ${to}`;
    return register(what, () => {
      if (from.length === 0 || row.events?.length === 0)
        throw new BadRegistration(`${what} never applies: name a state and an event`);
      const keepsState = to === '*' || (from !== '*' && from.every((name) => name === to));
      if (internal === 'yes' && !keepsState)
        throw new BadRegistration(
          `${what} is internal, so it can't lead elsewhere: give '*' as its target`,
        );
      plan.rows.push(row);
    });
  };
  const self: MachineBuilder<S, E, C, R> = {
    state: (name, options = {}) => register(`state ${name}`, () => plan.states.set(name, options)),
    transition(from, event, to, { guard, action, internal, label = '' } = {}) {
      return add({
        from: listSources(from),
        events: [event].flat(),
        to,
        label,
        internal: internal === true ? 'yes' : 'no',
        // A transition is tried only for the events that its callbacks take.
        guard: guard as Registration<S, C, R>['guard'],
        action: action as Registration<S, C, R>['action'], // as above
      });
    },
    always(from, to, { guard, action, label = '' } = {}) {
      return add({
        from: listSources(from),
        events: null,
        to,
        label,
        internal: 'no',
        guard:
          guard && rename(callbackName(guard), (_event: HasType, context: C) => guard(context)),
        action:
          action && rename(callbackName(action), (_event: HasType, context: C) => action(context)),
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

/** The machine of a plan that is complete. */
const finish = <S extends string, E extends HasType, C, R>(
  plan: MachinePlan<S, C, R>,
  initial: S,
): BuiltMachine<S, E, C> => {
  const names = stateNames(plan, initial);
  const known = new Set(eventNames(plan));
  const compiled = compilePlan(plan, names, (from, row) => compileArrow(plan, from, row));
  const described = describePlan(plan, initial, names, compiled.edges);
  const advance = stepper(compiled);
  const show = (step: Step<PlannedState<S, C>, never>, event: HasType): BuilderStep<S, C> => {
    // Every pair has a cell that always applies, and `check` has refused unknown states. So only an
    // endless step is a fault.
    const fault = step.diagnostics.find(({ kind }) => kind === 'fault');
    const type = event === START_EVENT ? null : event.type;
    if (fault !== undefined) throw new EndlessTransitions(fault.state, type, fault.why);
    const { name, context } = step.state;
    return {
      state: name,
      context,
      path: step.path.filter(isRegistered),
      diagnostics: step.diagnostics,
    };
  };
  const check = (name: S): void => {
    if (!names.includes(name)) throw new TypeError(`this machine has no state ${name}`);
  };
  // Every state has a cell for this event, which stays. Transitions without an event follow it.
  const enter = (name: S, before: C): BuilderStep<S, C> => {
    const context = runBorderCallback(plan, 'onEnter', name, before);
    return show(advance({ name, context }, START_EVENT), START_EVENT);
  };
  return Object.freeze({
    ...described,
    step(state: S, context: C, event: E): BuilderStep<S, C> {
      check(state);
      const type = typeIn(event);
      if (type !== null && known.has(type))
        return show(advance({ name: state, context }, event), event);
      const unknown = {
        kind: 'late',
        why: 'no transition of this machine has such an event',
      } as const;
      const untyped = {
        kind: 'malformed',
        why: 'it is no event: it has no type that is a text',
      } as const;
      const diagnostic = { ...(type === null ? untyped : unknown), state, event: type ?? '' };
      return { state, context, path: [], diagnostics: [diagnostic] };
    },
    enter(state: S, context: C) {
      check(state);
      return enter(state, context);
    },
    move(state: S, context: C, to: S) {
      for (const name of [state, to]) check(name);
      return enter(to, runBorderCallback(plan, 'onExit', state, context));
    },
    legalFrom: (state: S) =>
      names.filter((to) => described.edges.some((edge) => edge.from === state && edge.to === to)),
    isTerminal: (state: S) => plan.ends.has(state),
    isError: (state: S) => plan.errors.has(state),
  });
};

// ---- Compiling a plan ----

/**
 * START: the event that enters a state. UNMATCHED: marks the branch taken when no transition
 * applies.
 */
const START = '\0start';
const UNMATCHED = '\0unmatched';
/** Whether the edge comes from a registration. */
const isRegistered = (edge: Edge): boolean => edge.event !== START && edge.as !== UNMATCHED;

const NONE: readonly never[] = Object.freeze([]);
/** The result of a move; these machines have no actions. */
const createResult = <S extends string, C>(
  name: S,
  context: C,
): MoveResult<PlannedState<S, C>, never> => ({
  state: { name, context },
  actions: NONE,
});

/** A name that is '*' means any state, here and everywhere. */
const listSources = <S extends string>(from: From<S>): readonly S[] | '*' => {
  const names = typeof from === 'string' ? [from as S] : [...from]; // one name of a state, or '*'
  return names.some((name) => name === '*') ? '*' : names;
};

/**
 * Registrations for a state and event in the order of trial: those that name the state, then those
 * for `*`.
 */
const rowsFor = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  state: S,
  event: string | null,
): readonly Registration<S, C, R>[] => {
  const rows = plan.rows.filter(({ events }) =>
    event === null ? events === null : events?.includes(event),
  );
  const exact = rows.filter(({ from }) => from !== '*' && from.includes(state));
  return plan.ends.has(state) ? exact : [...exact, ...rows.filter(({ from }) => from === '*')];
};

/** All states mentioned, in that order, the initial one first. */
const stateNames = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  initial: S,
): readonly S[] => {
  const { rows, states, ends, errors } = plan;
  const used = rows.flatMap(({ from, to }) => [
    ...(from === '*' ? [] : from),
    ...(to === '*' ? [] : [to]),
  ]);
  // These two sets hold only names of states.
  const marked = [...ends, ...errors] as S[];
  return [...new Set([initial, ...states.keys(), ...used, ...marked])];
};

const eventNames = <S extends string, C, R>({ rows }: MachinePlan<S, C, R>): readonly string[] => [
  ...new Set(rows.flatMap(({ events }) => events ?? [])),
];

/** Compiles the plan into a table for the stepper. */
const compilePlan = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  names: readonly S[],
  compileRow: (from: S, row: Registration<S, C, R>) => PlannedBranch<S, C>,
): CompiledTable<PlannedState<S, C>, HasType, never> => {
  const events = eventNames(plan);
  const listBranches = (state: S, event: string | null): readonly PlannedBranch<S, C>[] =>
    rowsFor(plan, state, event).map((row) => compileRow(state, row));
  const unmatched: Move<S, C> = (state) => ({
    state,
    actions: NONE,
    late: 'no transition applies',
  });
  const row = (name: S) => ({
    on: Object.fromEntries([
      ...events.map((event) => [
        event,
        [...listBranches(name, event), { as: UNMATCHED, stay: unmatched }],
      ]),
      [START, [{ as: '', stay: (state: PlannedState<S, C>) => ({ state, actions: NONE }) }]],
    ]),
    always: listBranches(name, null),
  });
  return compileTable<PlannedState<S, C>, HasType, never>(names, [...events, START], new Set(), {
    states: Object.fromEntries(names.map((name) => [name, row(name)])),
    defaults: {},
  });
};

/** Describes the machine without running it. */
const describePlan = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  initial: S,
  names: readonly S[],
  all: readonly Edge[],
) => {
  const events = eventNames(plan);
  const edges = Object.freeze(all.filter(isRegistered));
  // A transition without an event and without a guard leaves the state at once.
  const goesOn = (state: S): boolean =>
    rowsFor(plan, state, null).some(({ guard }) => guard === undefined);
  const transient = names.filter(goesOn);
  return {
    edges,
    initial,
    transient,
    ends: [...plan.ends],
    ignored: [],
    states: Object.fromEntries(names.map((name) => [name, plan.states.get(name)?.about ?? ''])),
    events: Object.fromEntries(events.map((event) => [event, ''])),
    report: createReport({ initial, states: names, ends: plan.ends, transient, events, edges }),
  };
};

const START_EVENT: HasType = { type: START };

/** Gives a function the name that diagrams show. */
const rename = <F extends (...input: never[]) => unknown>(name: string, work: F): F =>
  Object.defineProperty(work, 'name', { value: name });

/** The name of a callback; empty if it only has the name of its field. */
const callbackName = (callback: { readonly name: string } | undefined): string =>
  callback === undefined || /^(guard|action)$/.test(callback.name) ? '' : callback.name;

/** The transition that is being taken, for errors. */
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
const refusePromise = <T>(returned: T): T => {
  if (typeof returned !== 'object' || returned === null || !('then' in returned)) return returned;
  if (typeof returned.then !== 'function') return returned;
  Promise.resolve(returned).catch(() => undefined); // nothing is lost: the step has failed already
  throw new TypeError(
    'it returned a Promise; callbacks are synchronous: wait before you send the event',
  );
};

/**
 * The context after onExit or onEnter of a state. `by`: the event and the label of the transition.
 */
const runBorderCallback = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  callback: 'onExit' | 'onEnter',
  state: S,
  context: C,
  by: Taken = AT_START,
): C => {
  const work = plan.states.get(state)?.[callback];
  if (work === undefined) return context;
  const place = { ...by, state };
  return call(callback, place, () => plan.next(context, refusePromise(work(context))));
};

/** Event and label of a transition, for errors. The label defaults to the name of the callback. */
const takenBy = <S, C, R>(
  { events, label }: Registration<S, C, R>,
  event: HasType,
  callback: string,
): Taken => ({
  event: events && event.type, // null for a transition without an event
  label: label || callback,
});

const compileGuard = <S extends string, C, R>(state: S, row: Registration<S, C, R>) => {
  const { guard } = row;
  if (guard === undefined) return {};
  const name = callbackName(guard);
  const holds = ({ context }: PlannedState<S, C>, event: HasType): boolean =>
    call('guard', { state, ...takenBy(row, event, name) }, () =>
      refusePromise(guard(event, context)),
    );
  return { when: rename(name || 'guard', holds) };
};

const compileArrow = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  from: S,
  row: Registration<S, C, R>,
): PlannedBranch<S, C> => {
  const { action, label } = row;
  const name = callbackName(action);
  const act = (event: HasType, context: C, by: Taken): C => {
    if (action === undefined) return context;
    return call('action', { state: from, ...by }, () =>
      plan.next(context, refusePromise(action(event, context))),
    );
  };
  if (row.internal === 'yes') {
    const stay = ({ context }: PlannedState<S, C>, event: HasType) =>
      createResult(from, act(event, context, takenBy(row, event, name)));
    return { ...compileGuard(from, row), as: label, stay: rename(name, stay) };
  }
  const to = row.to === '*' ? from : row.to;
  const go = ({ context }: PlannedState<S, C>, event: HasType) => {
    const by = takenBy(row, event, name);
    const acted = act(event, runBorderCallback(plan, 'onExit', from, context, by), by);
    return createResult(to, runBorderCallback(plan, 'onEnter', to, acted, by));
  };
  return { ...compileGuard(from, row), as: label, to, then: rename(name, go) };
};

// ---- The report ----

/** A pair of state and event. */
export type Pair<S extends string> = { readonly state: S; readonly event: string };

/** An edge that is never taken, because `behind` comes first and has no guard. */
export type Shadowed = { readonly edge: Edge; readonly behind: Edge };

/** Suspicious parts of a machine. None is an error: a pair may be missing on purpose. */
export type BuildReport<S extends string> = {
  /** States that no path from the initial state reaches, regardless of guards. */
  readonly unreachable: readonly S[];
  /** Pairs without a transition, except those of terminal and transient states. */
  readonly missing: readonly Pair<S>[];
  readonly shadowed: readonly Shadowed[];
};

/** Finds shadowed edges. The edges of one pair are in the order of trial. */
const findShadows = (edges: readonly Edge[]): readonly Shadowed[] => {
  const open = new Map<string, Edge>();
  const shadowed: Shadowed[] = [];
  for (const edge of edges) {
    const pair = JSON.stringify([edge.from, edge.event]);
    const behind = open.get(pair);
    if (behind !== undefined) shadowed.push({ edge, behind });
    else if (edge.when === '') open.set(pair, edge);
  }
  return shadowed;
};

/** Reports on a whole machine. */
const createReport = <S extends string>(table: {
  readonly initial: S;
  readonly states: readonly S[];
  readonly ends: ReadonlySet<string>;
  /** Transient states: no event can meet them. */
  readonly transient: readonly S[];
  readonly events: readonly string[];
  readonly edges: readonly Edge[];
}): BuildReport<S> => {
  const { initial, states, ends, transient, events, edges } = table;
  const reachable = new Set<string>([initial]);
  for (const state of reachable)
    for (const edge of edges) if (edge.from === state) reachable.add(edge.to);
  const has = new Set(edges.map(({ from, event }) => JSON.stringify([from, event])));
  return {
    unreachable: states.filter((state) => !reachable.has(state)),
    missing: states
      .filter((state) => !ends.has(state) && !transient.includes(state))
      .flatMap((state) => events.map((event) => ({ state, event })))
      .filter(({ state, event }) => !has.has(JSON.stringify([state, event]))),
    shadowed: findShadows(edges),
  };
};

// ---- Errors: each message says what to do ----

/** A registration after `build()`. */
export class MachineFrozen extends Error {
  override readonly name = 'MachineFrozen';
  constructor(registration: string) {
    super(`${registration}: this machine is built already; register everything before build()`);
  }
}

/** An impossible registration. */
export class BadRegistration extends Error {
  override readonly name = 'BadRegistration';
}

/** A setting out of its range. */
export class BadSetting extends Error {
  override readonly name = 'BadSetting';
}

/** A step that was begun inside another step of the same machine. */
export class MachineBusy extends Error {
  override readonly name = 'MachineBusy';
  constructor(what: string) {
    super(
      `${what} from inside a step: let a source or a listener do it, or return the change ` +
        'from the callback',
    );
  }
}

/** A change of state without a transition. */
export class IllegalTransition extends Error {
  override readonly name = 'IllegalTransition';
  readonly from: string;
  readonly to: string;
  /** States that transitions lead to from there. */
  readonly legal: readonly string[];

  constructor(from: string, to: string, legal: readonly string[]) {
    const ways = legal.length === 0 ? 'nowhere' : `to ${legal.join(', ')}`;
    super(`no transition leads from ${from} to ${to}; from there one goes ${ways}`);
    this.from = from;
    this.to = to;
    this.legal = legal;
  }
}

/** Too many events in a row without a transition: the source makes no progress. */
export class UnmatchedEvents extends Error {
  override readonly name = 'UnmatchedEvents';
  readonly state: string;
  readonly event: string;
  readonly times: number;

  constructor(state: string, event: string, times: number) {
    const many = times === 1 ? 'an event' : `${times} events in a row`;
    super(
      `${many} had no transition, the last was ${event} in ${state}: ` +
        'register one, or let the source send something else',
    );
    this.state = state;
    this.event = event;
    this.times = times;
  }
}

/** A circle of transitions without an event. */
export class EndlessTransitions extends Error {
  override readonly name = 'EndlessTransitions';
  readonly state: string;
  /** null if the machine was entering its first state. */
  readonly event: string | null;

  constructor(state: string, event: string | null, why: string) {
    const when = event === null ? `to begin in ${state}` : `${event} in ${state}`;
    super(`${when}: ${why}; a guard must end the circle of transitions without an event`);
    this.state = state;
    this.event = event;
  }
}

export type CallbackKind = 'guard' | 'onExit' | 'action' | 'onEnter';

/** A callback threw. The state is unchanged; the context too, unless a callback has mutated it. */
export class CallbackFailed extends Error {
  override readonly name = 'CallbackFailed';
  readonly callback: CallbackKind;
  /** The state that owns the callback, or the source of the transition. */
  readonly state: string;
  /** null for a transition without an event. */
  readonly event: string | null;
  /** The transition's label, or the name of its guard or action; may be empty. */
  readonly label: string;

  constructor(
    callback: CallbackKind,
    place: { readonly state: string; readonly event: string | null; readonly label: string },
    cause: unknown,
  ) {
    const { state, event, label } = place;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const what = label === '' ? callback : `${callback} of ${label}`;
    super(`${what} failed in ${state}${event === null ? '' : ` on ${event}`}: ${reason}`, {
      cause,
    });
    this.callback = callback;
    this.state = state;
    this.event = event;
    this.label = label;
  }
}
