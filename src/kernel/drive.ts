import type { BuiltMachine, Stepped } from './builder.js';
import { BadSetting, IllegalTransition, MachineBusy, UnmatchedEvents } from './faults.js';
import { ring } from './ring.js';
import type { Diagnostic } from './step.js';
import type { Typed } from './table.js';

/**
 * Who drives a built machine: a source that is asked for the next event (`run`, `runAsync`), or whoever sends one
 * (`startMachine`).
 *
 * 1. One step at a time, whole or not at all.
 * 2. A source that makes no progress does not spin: after `maxUnmatched` events in a row without a transition it is
 *    an error.
 * 3. Listeners run after the step, one entry at a time each; none of them can stop the machine or another listener.
 */

const UNMATCHED_MAX = 100;
const HISTORY_MAX = 100;
const WAITING_MAX = 100;

/** Looks at state and context, does what it likes, and gives the next event; nothing ends the run. */
export type Source<S extends string, C, E> = (state: S, context: C) => E | null | undefined;
export type AsyncSource<S extends string, C, E> = (state: S, context: C) => Promise<E | null | undefined>;

export type RunOptions<S extends string, C> = {
  /** Where it begins, if not in the machine's own initial state. */
  readonly initial?: S;
  /** Events in a row without a transition; default 100. With 1 the first is an error. */
  readonly maxUnmatched?: number;
  /** Told of every event that had no transition. */
  readonly onDiagnostic?: (diagnostic: Diagnostic, context: C) => void;
};

/** Where a run ended: in a terminal state, or where its source had no more events. */
export type Ran<S extends string, C> = { readonly state: S; readonly context: C };

const atLeastOne = (name: string, value: number): number => {
  if (!Number.isInteger(value) || value < 1)
    throw new BadSetting(`${name} is ${value}: give a whole number from 1`);
  return value;
};

/** A run between two events. */
const begin = <S extends string, E extends Typed, C>(
  machine: BuiltMachine<S, E, C>,
  context: C,
  options: RunOptions<S, C>,
) => {
  const most = atLeastOne('maxUnmatched', options.maxUnmatched ?? UNMATCHED_MAX);
  let now: Ran<S, C> = machine.enter(options.initial ?? machine.initial, context);
  let unmatched = 0;
  return {
    now: () => now,
    isOver: () => machine.isTerminal(now.state),
    take(event: E): void {
      const stepped = machine.step(now.state, now.context, event);
      for (const diagnostic of stepped.diagnostics) options.onDiagnostic?.(diagnostic, stepped.context);
      unmatched = stepped.path.length > 0 ? 0 : unmatched + 1;
      if (unmatched >= most) throw new UnmatchedEvents(now.state, event.type, unmatched);
      now = { state: stepped.state, context: stepped.context };
    },
  };
};

/**
 * Runs until a terminal state, or until the source gives nothing. Throws what a callback or the source throws
 * (a callback's failure as CallbackFailed), UnmatchedEvents and EndlessTransitions.
 */
export const run = <S extends string, E extends Typed, C>(
  machine: BuiltMachine<S, E, C>,
  context: NoInfer<C>,
  source: NoInfer<Source<S, C, E>>,
  options: NoInfer<RunOptions<S, C>> = {},
): Ran<S, C> => {
  const going = begin(machine, context, options);
  while (!going.isOver()) {
    const { state, context: held } = going.now();
    const event = source(state, held);
    if (event === null || event === undefined) break;
    going.take(event);
  }
  return going.now();
};

/** As `run`, with a source that is awaited; the callbacks of the machine are not. */
export const runAsync = async <S extends string, E extends Typed, C>(
  machine: BuiltMachine<S, E, C>,
  context: NoInfer<C>,
  source: NoInfer<AsyncSource<S, C, E>>,
  options: NoInfer<RunOptions<S, C>> = {},
): Promise<Ran<S, C>> => {
  const going = begin(machine, context, options);
  while (!going.isOver()) {
    const { state, context: held } = going.now();
    const event = await source(state, held);
    if (event === null || event === undefined) break;
    going.take(event);
  }
  return going.now();
};

/** A state left and a state entered. */
export type HistoryEntry<S extends string> = {
  readonly from: S;
  readonly to: S;
  /** null: none was needed. */
  readonly event: string | null;
  readonly label: string;
  readonly atMs: number;
  /** `yes`: by `forceTransition`, whether a transition leads there or not. */
  readonly forced: 'no' | 'yes';
  /** Given with `transitionTo` and `forceTransition`. */
  readonly reason: string | null;
};

/** Told of each entry, after the step. What it returns is awaited before it is told the next. */
export type Listener<S extends string> = (entry: HistoryEntry<S>) => PromiseLike<void> | void;

export type StartOptions<S extends string> = {
  /** Milliseconds, from whatever beginning. */
  readonly now: () => number;
  readonly initial?: S;
  /** Entries that the history keeps; default 100, at least 1. */
  readonly historyMax?: number;
  /** Entries that may wait for a listener that is not done; default 100, at least 1. */
  readonly waitingMax?: number;
  /** Told of a listener that is told nothing any more: it threw, or was too slow. */
  readonly onDropped?: (listener: Listener<S>, why: string) => void;
};

/** A machine with its state, for those who send events. */
export type RunningMachine<S extends string, E extends Typed, C> = {
  readonly state: S;
  readonly context: C;
  /** Throws as the machine's `step`; then nothing has changed. An event without a transition is a diagnostic. */
  send(event: E): Stepped<S, C>;
  /** Goes to a state if some transition leads there, whatever its event and guard; else throws IllegalTransition. */
  transitionTo(to: S, reason?: string): void;
  /** Goes to a state in any case; the history marks it. */
  forceTransition(to: S, reason: string): void;
  /** Oldest first. */
  history(): readonly HistoryEntry<S>[];
  /** Since the state was entered, again if it was. */
  timeInStateMs(): number;
  isTerminal(): boolean;
  isError(): boolean;
  /** Returns what ends it. */
  listen(listener: Listener<S>): () => void;
};

type Ear<S extends string> = { tell(entry: HistoryEntry<S>): void; close(): void };

/** Tells one listener, in a queue of its own. Once it was dropped or closed it is told nothing, and dropped no more. */
const openEar = <S extends string>(
  listener: Listener<S>,
  most: number,
  drop: (why: string) => void,
): Ear<S> => {
  const waiting: HistoryEntry<S>[] = [];
  let life: 'idle' | 'busy' | 'closed' = 'idle';
  const close = (): void => {
    life = 'closed';
    waiting.length = 0;
  };
  const giveUp = (why: string): void => {
    if (life === 'closed') return;
    close();
    drop(why);
  };
  const work = async (): Promise<void> => {
    try {
      for (let entry = waiting.shift(); entry !== undefined; entry = waiting.shift()) await listener(entry);
      if (life === 'busy') life = 'idle';
    } catch (thrown) {
      giveUp(`it threw: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    }
  };
  const tell = (entry: HistoryEntry<S>): void => {
    if (waiting.length >= most) {
      giveUp(`${most} entries wait for it`);
      return;
    }
    waiting.push(entry);
    if (life !== 'idle') return;
    life = 'busy';
    void Promise.resolve().then(work);
  };
  return { tell, close };
};

/** What has happened, and who is told. */
const openRecord = <S extends string>(options: StartOptions<S>) => {
  const past = ring<HistoryEntry<S>>(atLeastOne('historyMax', options.historyMax ?? HISTORY_MAX));
  const waitingMax = atLeastOne('waitingMax', options.waitingMax ?? WAITING_MAX);
  const ears = new Set<Ear<S>>();
  let enteredAtMs = options.now();
  return {
    add(entry: Omit<HistoryEntry<S>, 'atMs'>): void {
      enteredAtMs = options.now();
      const stamped = Object.freeze({ ...entry, atMs: enteredAtMs });
      past.add(stamped);
      for (const ear of ears) ear.tell(stamped);
    },
    history: () => past.toArray(),
    timeInStateMs: () => options.now() - enteredAtMs,
    listen(listener: Listener<S>): () => void {
      const ear = openEar(listener, waitingMax, (why) => {
        ears.delete(ear);
        // Later, so that whoever is told can't stop a step either.
        void Promise.resolve().then(() => options.onDropped?.(listener, why));
      });
      ears.add(ear);
      return () => {
        ears.delete(ear);
        ear.close();
      };
    },
  };
};

/** Starts a machine in its initial state, whose onEnter runs. */
export const startMachine = <S extends string, E extends Typed, C>(
  machine: BuiltMachine<S, E, C>,
  context: NoInfer<C>,
  options: NoInfer<StartOptions<S>>,
): RunningMachine<S, E, C> => {
  const { add, history, timeInStateMs, listen } = openRecord(options);
  let phase: 'resting' | 'stepping' = 'resting';
  let held: Ran<S, C> = machine.enter(options.initial ?? machine.initial, context);

  const stepOnce = (what: string, work: () => Stepped<S, C>): Stepped<S, C> => {
    if (phase === 'stepping') throw new MachineBusy(what);
    phase = 'stepping';
    try {
      const stepped = work();
      held = { state: stepped.state, context: stepped.context };
      return stepped;
    } finally {
      phase = 'resting';
    }
  };
  const follow = (path: Stepped<S, C>['path']): void => {
    for (const { from, to, event, as, kind } of path) {
      // The ends of a machine's edges are states of it.
      if (kind === 'go') add({ from: from as S, to: to as S, event, label: as, forced: 'no', reason: null });
    }
  };
  const moveTo = (to: S, forced: 'no' | 'yes', reason: string | null): void => {
    const from = held.state;
    const { path } = stepOnce(`a transition to ${to}`, () => machine.move(from, held.context, to));
    add({ from, to, event: null, label: '', forced, reason });
    follow(path);
  };
  return {
    get state() {
      return held.state;
    },
    get context() {
      return held.context;
    },
    send(event) {
      const stepped = stepOnce(`send ${event.type}`, () => machine.step(held.state, held.context, event));
      follow(stepped.path);
      return stepped;
    },
    transitionTo(to, reason) {
      const legal = machine.legalFrom(held.state);
      if (!legal.includes(to)) throw new IllegalTransition(held.state, to, legal);
      moveTo(to, 'no', reason ?? null);
    },
    forceTransition: (to, reason) => moveTo(to, 'yes', reason),
    isTerminal: () => machine.isTerminal(held.state),
    isError: () => machine.isError(held.state),
    ...{ history, timeInStateMs, listen },
  };
};
