/**
 * Drivers of a built machine: `run` and `runAsync` ask a source for the next event, `startMachine`
 * takes events that are sent.
 *
 * 1. Steps run one at a time. A step that throws changes nothing.
 * 2. A source without progress is an error: fewer than `maxUnmatched` events in a row may have no
 *    transition.
 * 3. Listeners run after the step, each with one entry at a time. No listener can stop the machine
 *    or another listener.
 *
 * From top to bottom: runs with a source; the history of a started machine and its listeners; and
 * `startMachine`.
 */

import { typeIn } from '../kernel/shape.js';
import type { Diagnostic, HasType } from '../kernel/table.js';
import {
  BadSetting,
  type BuilderStep,
  type BuiltMachine,
  IllegalTransition,
  MachineBusy,
  UnmatchedEvents,
} from './builder.js';

const UNMATCHED_MAX = 100;
const HISTORY_MAX = 100;
const WAITING_MAX = 100;

/** Returns the next event for the state and context. null or undefined ends the run. */
export type Source<S extends string, C, E> = (state: S, context: C) => E | null | undefined;
export type AsyncSource<S extends string, C, E> = (
  state: S,
  context: C,
) => Promise<E | null | undefined>;

export type RunOptions<S extends string, C> = {
  /** The first state; default is the machine's initial state. */
  readonly initial?: S;
  /** Events in a row without a transition; default 100. With 1 the first is an error. */
  readonly maxUnmatched?: number;
  /** Called for every event without a transition. */
  readonly onDiagnostic?: (diagnostic: Diagnostic, context: C) => void;
};

/** The end of a run: a terminal state, or the state in which the source ended. */
export type Ran<S extends string, C> = { readonly state: S; readonly context: C };

/** The value, if it is a whole number from 1. */
const atLeastOne = (name: string, value: number): number => {
  if (!Number.isInteger(value) || value < 1)
    throw new BadSetting(`${name} is ${value}: give a whole number from 1`);
  return value;
};

const eventName = (event: unknown): string => typeIn(event) ?? 'what is no event';

/** A run: where it is now, and how it takes the next event. */
const openRun = <S extends string, E extends HasType, C>(
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
      for (const diagnostic of stepped.diagnostics)
        options.onDiagnostic?.(diagnostic, stepped.context);
      unmatched = stepped.path.length > 0 ? 0 : unmatched + 1;
      if (unmatched >= most) throw new UnmatchedEvents(now.state, eventName(event), unmatched);
      now = { state: stepped.state, context: stepped.context };
    },
  };
};

/**
 * Runs until a terminal state or the end of the source. Throws CallbackFailed, UnmatchedEvents,
 * EndlessTransitions and the errors of the source.
 */
export const run = <S extends string, E extends HasType, C>(
  machine: BuiltMachine<S, E, C>,
  context: NoInfer<C>,
  source: NoInfer<Source<S, C, E>>,
  options: NoInfer<RunOptions<S, C>> = {},
): Ran<S, C> => {
  const current = openRun(machine, context, options);
  while (!current.isOver()) {
    const { state, context: latest } = current.now();
    const event = source(state, latest);
    if (event === null || event === undefined) break;
    current.take(event);
  }
  return current.now();
};

/** As `run`, with an asynchronous source. Callbacks of the machine stay synchronous. */
export const runAsync = async <S extends string, E extends HasType, C>(
  machine: BuiltMachine<S, E, C>,
  context: NoInfer<C>,
  source: NoInfer<AsyncSource<S, C, E>>,
  options: NoInfer<RunOptions<S, C>> = {},
): Promise<Ran<S, C>> => {
  const current = openRun(machine, context, options);
  while (!current.isOver()) {
    const { state, context: latest } = current.now();
    const event = await source(state, latest);
    if (event === null || event === undefined) break;
    current.take(event);
  }
  return current.now();
};

/** One change of state. */
export type HistoryEntry<S extends string> = {
  readonly from: S;
  readonly to: S;
  /** null for a transition without an event. */
  readonly event: string | null;
  readonly label: string;
  readonly atMs: number;
  /** `yes`: by `forceTransition`. */
  readonly forced: 'no' | 'yes';
  /** Given with `transitionTo` and `forceTransition`. */
  readonly reason: string | null;
};

/** Receives each entry after the step. Its promise is awaited before the next entry. */
export type Listener<S extends string> = (entry: HistoryEntry<S>) => PromiseLike<void> | void;

export type StartOptions<S extends string> = {
  /** Milliseconds since any fixed time. */
  readonly now: () => number;
  readonly initial?: S;
  /** Maximum number of entries in the history; default 100, at least 1. */
  readonly historyMax?: number;
  /** Maximum number of entries that wait for a busy listener; default 100, at least 1. */
  readonly waitingMax?: number;
  /** Called when a listener is dropped: it threw, or was too slow. */
  readonly onDropped?: (listener: Listener<S>, why: string) => void;
};

/** A machine with its current state, driven by `send`. */
export type RunningMachine<S extends string, E extends HasType, C> = {
  readonly state: S;
  readonly context: C;
  /**
   * Throws like the machine's `step`, and then changes nothing. An event without a transition is a
   * diagnostic.
   */
  send(event: E): BuilderStep<S, C>;
  /**
   * Goes to a state if some transition leads there, regardless of event and guard; else throws
   * IllegalTransition.
   */
  transitionTo(to: S, reason?: string): void;
  /** Goes to any state. The history marks it as forced. */
  forceTransition(to: S, reason: string): void;
  /** Oldest first. */
  history(): readonly HistoryEntry<S>[];
  /** Milliseconds since the state was last entered. */
  timeInStateMs(): number;
  isTerminal(): boolean;
  isError(): boolean;
  /** Returns a function that removes the listener. */
  listen(listener: Listener<S>): () => void;
};

type ListenerQueue<S extends string> = { push(entry: HistoryEntry<S>): void; close(): void };

/** Queue of one listener. A dropped or closed listener receives nothing more. */
const openListenerQueue = <S extends string>(
  listener: Listener<S>,
  most: number,
  drop: (why: string) => void,
): ListenerQueue<S> => {
  const waiting: HistoryEntry<S>[] = [];
  let status: 'idle' | 'busy' | 'closed' = 'idle';
  const close = (): void => {
    status = 'closed';
    waiting.length = 0;
  };
  const giveUp = (why: string): void => {
    if (status === 'closed') return;
    close();
    drop(why);
  };
  const work = async (): Promise<void> => {
    try {
      for (let entry = waiting.shift(); entry !== undefined; entry = waiting.shift())
        await listener(entry);
      // Stryker disable next-line ConditionalExpression: it is told nothing any more
      if (status === 'busy') status = 'idle';
    } catch (thrown) {
      giveUp(`it threw: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    }
  };
  const push = (entry: HistoryEntry<S>): void => {
    if (waiting.length >= most) {
      giveUp(`${most} entries wait for it`);
      return;
    }
    waiting.push(entry);
    if (status !== 'idle') return;
    status = 'busy';
    void Promise.resolve().then(work);
  };
  return { push, close };
};

/** The history and its listeners. */
const openHistory = <S extends string>(options: StartOptions<S>) => {
  const past = ringBuffer<HistoryEntry<S>>(
    atLeastOne('historyMax', options.historyMax ?? HISTORY_MAX),
  );
  const waitingMax = atLeastOne('waitingMax', options.waitingMax ?? WAITING_MAX);
  const queues = new Set<ListenerQueue<S>>();
  let enteredAtMs = options.now();
  return {
    add(entry: Omit<HistoryEntry<S>, 'atMs'>): void {
      enteredAtMs = options.now();
      const stamped = Object.freeze({ ...entry, atMs: enteredAtMs });
      past.add(stamped);
      for (const queue of queues) queue.push(stamped);
    },
    history: () => past.toArray(),
    timeInStateMs: () => options.now() - enteredAtMs,
    listen(listener: Listener<S>): () => void {
      const queue = openListenerQueue(listener, waitingMax, (why) => {
        queues.delete(queue);
        // Later, so that `onDropped` can't stop a step either. If it fails, nobody can be informed.
        void Promise.resolve()
          .then(() => options.onDropped?.(listener, why))
          .catch(() => undefined);
      });
      queues.add(queue);
      return () => {
        queues.delete(queue);
        queue.close();
      };
    },
  };
};

/** Starts a machine: enters its initial state and runs its onEnter. */
export const startMachine = <S extends string, E extends HasType, C>(
  machine: BuiltMachine<S, E, C>,
  context: NoInfer<C>,
  options: NoInfer<StartOptions<S>>,
): RunningMachine<S, E, C> => {
  const { add, history, timeInStateMs, listen } = openHistory(options);
  let phase: 'resting' | 'stepping' = 'resting';
  let current: Ran<S, C> = machine.enter(options.initial ?? machine.initial, context);

  const stepOnce = (what: string, work: () => BuilderStep<S, C>): BuilderStep<S, C> => {
    if (phase === 'stepping') throw new MachineBusy(what);
    phase = 'stepping';
    try {
      const stepped = work();
      current = { state: stepped.state, context: stepped.context };
      return stepped;
    } finally {
      phase = 'resting';
    }
  };
  const addPath = (path: BuilderStep<S, C>['path']): void => {
    for (const { from, to, event, as, kind } of path) {
      if (kind !== 'go') continue;
      // The ends of a machine's edges are states of it.
      add({ from: from as S, to: to as S, event, label: as, forced: 'no', reason: null });
    }
  };
  const moveTo = (to: S, forced: 'no' | 'yes', reason: string | null): void => {
    const from = current.state;
    const { path } = stepOnce(`a transition to ${to}`, () =>
      machine.move(from, current.context, to),
    );
    add({ from, to, event: null, label: '', forced, reason });
    addPath(path);
  };
  return {
    get state() {
      return current.state;
    },
    get context() {
      return current.context;
    },
    send(event) {
      const stepped = stepOnce(`send ${eventName(event)}`, () =>
        machine.step(current.state, current.context, event),
      );
      addPath(stepped.path);
      return stepped;
    },
    transitionTo(to, reason) {
      const legal = machine.legalFrom(current.state);
      if (!legal.includes(to)) throw new IllegalTransition(current.state, to, legal);
      moveTo(to, 'no', reason ?? null);
    },
    forceTransition: (to, reason) => moveTo(to, 'yes', reason),
    isTerminal: () => machine.isTerminal(current.state),
    isError: () => machine.isError(current.state),
    history,
    timeInStateMs,
    listen,
  };
};

type RingBuffer<T> = { add(item: T): void; toArray(): readonly T[] };

/** Keeps the last `most` items, oldest first. */
const ringBuffer = <T>(most: number): RingBuffer<T> => {
  const items: T[] = [];
  let next = 0;
  return {
    add(item) {
      items[next] = item;
      next = (next + 1) % most;
    },
    // The items from `next` on are older; there are none until the buffer is full.
    toArray: () => [...items.slice(next), ...items.slice(0, next)],
  };
};
