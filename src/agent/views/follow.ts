import type { Step } from '../../kernel/step.js';
import type { Action } from '../action.js';
import type { Event } from '../event.js';
import type { State } from '../state.js';
import type { View, ViewCursor, ViewEdge, ViewStep } from './view.js';

/**
 * The refinement check: our steps, in a seed's words, are steps of the seed's own machine.
 *
 * It is asked of every step that an explorer takes, so it makes no strings and no lists where nothing is wrong.
 */

export type Followed = {
  readonly cursor: ViewCursor;
  readonly steps: readonly ViewStep[];
  /** What is wrong, in sentences; empty for nothing. */
  readonly faults: readonly string[];
};

const NONE: readonly string[] = [];

const wordsOf = (view: View, { from, event, to, action }: ViewStep): string =>
  `${view.name}: ${from} --${event ?? ''}--> ${to}${action === null ? '' : ` / ${action}`}`;

const isArrow = (view: View, { from, event, to, action, edge }: ViewStep): boolean =>
  edge !== null &&
  edge.from === from &&
  edge.event === event &&
  edge.to === to &&
  (edge.action === null || edge.action === action) &&
  view.edges.includes(edge);

const stepFaults = (view: View, cursor: ViewCursor, steps: readonly ViewStep[]): readonly string[] => {
  const faults: string[] = [];
  let { state } = cursor;
  for (const step of steps) {
    const words = wordsOf(view, step);
    if (step.from !== state) faults.push(`${words} begins elsewhere: the seed stands in ${state}`);
    if (!isArrow(view, step)) faults.push(`${words} is no arrow of the seed`);
    state = step.to;
  }
  return faults;
};

const isLegal = (view: View, cursor: ViewCursor, steps: readonly ViewStep[]): boolean => {
  let { state } = cursor;
  for (const step of steps) {
    if (step.from !== state || !isArrow(view, step)) return false;
    state = step.to;
  }
  return true;
};

const standsWell = (view: View, { name }: State, cursor: ViewCursor): boolean => {
  // Of a state that never rests nothing is said; a machine that is broken on purpose may end a step there.
  const stands: Readonly<Record<string, readonly string[]>> = view.stands;
  return stands[name]?.includes(cursor.state) === true;
};

/** One step of ours in a seed's words, and what is wrong with it: an arrow that is none, a gap, a wrong place in the end. */
export const follow = (
  view: View,
  cursor: ViewCursor,
  before: State,
  event: Event,
  step: Step<State, Action>,
): Followed => {
  const projected = view.project(cursor, before, event, step);
  const broken = isLegal(view, cursor, projected.steps) ? NONE : stepFaults(view, cursor, projected.steps);
  const stands = standsWell(view, step.state, projected.cursor);
  const lost = `${view.name}: the seed stands in ${projected.cursor.state} where we rest in ${step.state.name}`;
  const faults = stands ? broken : [...broken, lost];
  return { cursor: projected.cursor, steps: projected.steps, faults };
};

/** Where the seeds' machines stand, in the order of the views. */
export type Cursors = readonly ViewCursor[];

export const beginAll = (views: readonly View[]): Cursors => views.map((view) => view.begin);

export type FollowedAll = {
  readonly cursors: Cursors;
  readonly faults: readonly string[];
  /** Arrows taken, of all views. */
  readonly reached: readonly ViewEdge[];
};

/** One step of ours in the words of every seed; `cursors` stand in the order of `views`. */
export const followAll = (
  views: readonly View[],
  cursors: Cursors,
  before: State,
  event: Event,
  step: Step<State, Action>,
): FollowedAll => {
  const after: ViewCursor[] = [];
  const faults: string[] = [];
  const reached: ViewEdge[] = [];
  for (const [index, view] of views.entries()) {
    const followed = follow(view, cursors[index] ?? view.begin, before, event, step);
    after.push(followed.cursor);
    faults.push(...followed.faults);
    for (const { edge } of followed.steps) if (edge !== null) reached.push(edge);
  }
  return { cursors: after, faults, reached };
};

/** Arrows of a seed that were not taken and of which it is not said why. */
export const missingIn = (view: View, reached: ReadonlySet<ViewEdge>): readonly ViewEdge[] =>
  view.edges.filter((edge) => view.unreached[edge.id] === undefined && !reached.has(edge));
