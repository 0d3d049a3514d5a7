/**
 * The refinement check: the steps of our machine, told as steps of another agent (projected to a
 * seed), must be steps of its machine (projection.ts). The cursor is the state of that machine. An
 * arrow is an edge of the seed's table.
 *
 * It runs at every step of an exploration, so it makes no strings and no lists unless there is a
 * fault.
 */

import type { Action } from '@pawl/agent/machine/action';
import type { Event } from '@pawl/agent/machine/event';
import type { State } from '@pawl/agent/machine/state';
import type { Step } from '@pawl/machine/kernel/table';
import type { Projection, ProjectionCursor, ProjectionEdge, ProjectionStep } from './projection.js';

type RefinedStep = {
  readonly cursor: ProjectionCursor;
  readonly steps: readonly ProjectionStep[];
  /** Faults in sentences. */
  readonly faults: readonly string[];
};

const NONE: readonly string[] = [];

/** Projects one of our steps and checks it: unknown edges, gaps, a wrong final state. */
export const checkRefinement = (
  projection: Projection,
  cursor: ProjectionCursor,
  before: State,
  event: Event,
  step: Step<State, Action>,
): RefinedStep => {
  const projected = projection.project(cursor, before, event, step);
  const broken = isLegal(projection, cursor, projected.steps)
    ? NONE
    : stepFaults(projection, cursor, projected.steps);
  const isAllowed = isAllowedState(projection, step.state, projected.cursor);
  const lost =
    `${projection.name}: the seed stands in ${projected.cursor.state} where we rest in ` +
    `${step.state.name}`;
  const faults = isAllowed ? broken : [...broken, lost];
  return { cursor: projected.cursor, steps: projected.steps, faults };
};

const describeStep = (
  projection: Projection,
  { from, event, to, action }: ProjectionStep,
): string =>
  `${projection.name}: ${from} --${event ?? ''}--> ${to}${action === null ? '' : ` / ${action}`}`;

const isArrow = (
  projection: Projection,
  { from, event, to, action, edge }: ProjectionStep,
): boolean =>
  edge !== null &&
  edge.from === from &&
  edge.event === event &&
  edge.to === to &&
  (edge.action === null || edge.action === action) &&
  projection.edges.includes(edge);

const stepFaults = (
  projection: Projection,
  cursor: ProjectionCursor,
  steps: readonly ProjectionStep[],
): readonly string[] => {
  const faults: string[] = [];
  let { state } = cursor;
  for (const step of steps) {
    const words = describeStep(projection, step);
    if (step.from !== state) faults.push(`${words} begins elsewhere: the seed stands in ${state}`);
    if (!isArrow(projection, step)) faults.push(`${words} is no arrow of the seed`);
    state = step.to;
  }
  return faults;
};

const isLegal = (
  projection: Projection,
  cursor: ProjectionCursor,
  steps: readonly ProjectionStep[],
): boolean => {
  let { state } = cursor;
  for (const step of steps) {
    // Stryker disable next-line ConditionalExpression: a shortcut
    if (step.from !== state || !isArrow(projection, step)) return false;
    state = step.to;
  }
  return true;
};

const isAllowedState = (
  projection: Projection,
  { name }: State,
  cursor: ProjectionCursor,
): boolean => {
  // Only resting states have an entry. A machine that is broken on purpose may end a step in one.
  const stands: Readonly<Record<string, readonly string[]>> = projection.stands;
  return stands[name]?.includes(cursor.state) === true;
};

/** One cursor for each projection. */
type ProjectionCursors = readonly ProjectionCursor[];

export const initialCursors = (projections: readonly Projection[]): ProjectionCursors =>
  projections.map((projection) => projection.begin);

type RefinedSteps = {
  readonly cursors: ProjectionCursors;
  readonly faults: readonly string[];
  /** Edges taken, of all projections. */
  readonly reached: readonly ProjectionEdge[];
};

/** Checks one of our steps against every projection; `cursors[i]` belongs to `projections[i]`. */
export const checkRefinements = (
  projections: readonly Projection[],
  cursors: ProjectionCursors,
  before: State,
  event: Event,
  step: Step<State, Action>,
): RefinedSteps => {
  const after: ProjectionCursor[] = [];
  const faults: string[] = [];
  const reached: ProjectionEdge[] = [];
  for (const [index, projection] of projections.entries()) {
    const followed = checkRefinement(
      projection,
      cursors[index] ?? projection.begin,
      before,
      event,
      step,
    );
    after.push(followed.cursor);
    faults.push(...followed.faults);
    for (const { edge } of followed.steps) if (edge !== null) reached.push(edge);
  }
  return { cursors: after, faults, reached };
};

/** Edges of a seed that were not taken and have no reason in `unreached`. */
export const missingArrows = (
  projection: Projection,
  reached: ReadonlySet<ProjectionEdge>,
): readonly ProjectionEdge[] =>
  projection.edges.filter(
    (edge) => projection.unreached[edge.id] === undefined && !reached.has(edge),
  );
