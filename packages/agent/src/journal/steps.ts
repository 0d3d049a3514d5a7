/**
 * Computes the steps of a journal. Pure: no action is performed, and the same entries give the same
 * steps.
 */

import { initialState, step } from '../machine/machine.js';
import type { State } from '../machine/state.js';
import type { AgentTypes, Entry, Header, MachineTypes } from '../ports/journal.js';
import type { Stepped } from '../ports/session.js';

/** One entry of a journal with the step that it caused; equal to the live step. */
export type JournalStep<M extends MachineTypes = AgentTypes> = Stepped<M> & {
  readonly seq: number;
  /** The state before the event. */
  readonly before: M['state'];
};

/** The part of a machine that steps. */
export type SteppedMachine<M extends MachineTypes> = {
  initialState(settings: M['settings']): M['state'];
  step(state: M['state'], event: M['event']): Omit<Stepped<M>, 'seq' | 'event'>;
};

/** Applies one entry to the state before it. */
export const stepEntry = <M extends MachineTypes>(
  machine: Pick<SteppedMachine<M>, 'step'>,
  before: M['state'],
  { seq, event }: Entry<M>,
): JournalStep<M> => {
  const { state, actions, path, diagnostics } = machine.step(before, event);
  return { seq, event, before, state, actions, path, diagnostics };
};

/** Steps one entry after the other. */
const createStepper = ({ settings }: Pick<Header, 'settings'>): ((entry: Entry) => JournalStep) => {
  let state: State = initialState(settings);
  return (entry) => {
    const stepped = stepEntry({ step }, state, entry);
    ({ state } = stepped);
    return stepped;
  };
};

const stepsOfList = function* (
  header: Pick<Header, 'settings'>,
  entries: Iterable<Entry>,
): Generator<JournalStep, undefined> {
  const stepOne = createStepper(header);
  for (const entry of entries) yield stepOne(entry);
};

const stepsOfStream = async function* (
  header: Pick<Header, 'settings'>,
  entries: AsyncIterable<Entry>,
): AsyncGenerator<JournalStep, undefined> {
  const stepOne = createStepper(header);
  for await (const entry of entries) yield stepOne(entry);
};

/**
 * Computes each step of an agent's session from its journal: the state before, the event, the edges
 * taken, the state after, the actions. `entries` must start at seq 1 and can come from a file, a
 * list or a running session (`session.events()`, `runtime.read(id)`). Stop iterating to stop the
 * work. No action is performed. Only reading `entries` can throw; an event that the machine does
 * not know gives a diagnostic.
 */
export function steps(
  header: Pick<Header, 'settings'>,
  entries: Iterable<Entry>,
): Generator<JournalStep, undefined>;
export function steps(
  header: Pick<Header, 'settings'>,
  entries: AsyncIterable<Entry>,
): AsyncGenerator<JournalStep, undefined>;
export function steps(
  header: Pick<Header, 'settings'>,
  entries: Iterable<Entry> | AsyncIterable<Entry>,
): Generator<JournalStep, undefined> | AsyncGenerator<JournalStep, undefined> {
  return Symbol.iterator in entries ? stepsOfList(header, entries) : stepsOfStream(header, entries);
}
