/**
 * The type of a projection: the table of a seed (another published agent) as data, and a function
 * that tells our steps as steps of that table.
 */

import type { Action } from '@pawl/agent/machine/action';
import type { Event, FailureOrigin } from '@pawl/agent/machine/event';
import type { Settings } from '@pawl/agent/machine/settings';
import type { RestingState, State } from '@pawl/agent/machine/state';
import { markdownTable, mermaid } from '@pawl/machine/kernel/diagrams';
import type { Edge, MachineDescription, Step } from '@pawl/machine/kernel/table';

/** One arrow of a seed's table. */
export type ProjectionEdge = {
  /** Stable: `from/event/to`, with a number if there are several. */
  readonly id: string;
  readonly from: string;
  /** The seed's event; null if its text names none. */
  readonly event: string | null;
  /** The condition, in the seed's words; empty for none. */
  readonly when: string;
  readonly to: string;
  /** The seed's action; null if its text names none. */
  readonly action: string | null;
  /** `text`: in the seed text. `code`: only in its program. `forced`: bypasses its table. */
  readonly source: 'text' | 'code' | 'forced';
};

/**
 * One step of the seed's machine. `edge` is null for an illegal step, which its table does not
 * have.
 */
export type ProjectionStep = {
  readonly from: string;
  readonly event: string | null;
  readonly to: string;
  readonly action: string | null;
  readonly edge: ProjectionEdge | null;
  /** The origin of a failure, if the seed's errors name one. */
  readonly origin?: FailureOrigin;
};

/** The state of the seed's machine between two of our steps: plain data that can be compared. */
export type ProjectionCursor = { readonly state: string };

/** The seed's names, each with our name for it. */
type OurWords = Readonly<Record<string, string>>;

export type Projection = {
  /** `minimal-head`: seed 000 with the later changes of its program. */
  readonly name: 'minimal' | 'minimal-head' | 'loom' | 'sketch' | 'tools';
  readonly title: string;
  /** The seed texts it is taken from. */
  readonly seeds: readonly string[];
  /** The seed's states, each with a line of documentation. */
  readonly states: Readonly<Record<string, string>>;
  /** The seed's events and actions, each with a line; empty if its text names none. */
  readonly events: Readonly<Record<string, string>>;
  readonly actions: Readonly<Record<string, string>>;
  readonly initial: string;
  readonly ends: readonly string[];
  /** States that the seed itself calls transient. */
  readonly transient: readonly string[];
  readonly edges: readonly ProjectionEdge[];
  /** Edges that no run takes, by id, each with its reason. */
  readonly unreached: Readonly<Record<string, string>>;
  readonly ours: {
    readonly states: OurWords;
    readonly events: OurWords;
    readonly actions: OurWords;
  };
  /** For each of our resting states: the states in which the seed's machine may stand meanwhile. */
  readonly stands: Readonly<Record<RestingState['name'], readonly string[]>>;
  /** Settings that make the agent behave like the seed. */
  readonly settings: Partial<Settings>;
  readonly begin: ProjectionCursor;
  /** Projects one of our steps to zero or more steps of the seed. Pure. */
  project(
    cursor: ProjectionCursor,
    before: State,
    event: Event,
    step: Step<State, Action>,
  ): { readonly cursor: ProjectionCursor; readonly steps: readonly ProjectionStep[] };
};

/** Whether our machine refused the event: then it is no step of any seed's machine. */
export const isRefused = (before: State, taken: Step<State, Action>): boolean =>
  taken.state === before && taken.actions.length === 0 && taken.diagnostics.length > 0;

// ---- Edges of a seed's table, written as rows ----

/** A row of a seed's table: in, event, condition, goes to, action. */
export type ArrowRow = readonly [
  from: string,
  event: string | null,
  when: string,
  to: string,
  action: string | null,
];

type Sourced = { readonly source: ProjectionEdge['source']; readonly row: ArrowRow };

/** Rows with the same source. */
export const arrowRows = (
  source: ProjectionEdge['source'],
  ...list: readonly ArrowRow[]
): readonly Sourced[] => list.map((row) => ({ source, row }));

const rowName = ([from, event, , to]: ArrowRow): string => `${from}/${event ?? ''}/${to}`;

/** The edges of a table, each with a unique id. */
export const createArrows = (table: readonly Sourced[]): readonly ProjectionEdge[] =>
  table.map(({ source, row }, index) => {
    const [from, event, when, to, action] = row;
    const alike = table.filter((other) => rowName(other.row) === rowName(row));
    const before = table.slice(0, index + 1).filter((other) => rowName(other.row) === rowName(row));
    const id = alike.length === 1 ? rowName(row) : `${rowName(row)}/${before.length}`;
    return { id, from, event, when, to, action, source };
  });

// ---- The edge of a step ----

/** A step of the seed without its source state. */
export type ProjectedStep = Pick<ProjectionStep, 'event' | 'to' | 'action'>;

/** Finds the edge of a step: same states, same event, and the action that the table requires. */
type FindStep = (from: string, step: ProjectedStep) => ProjectionStep;

export const stepFinder = (edges: readonly ProjectionEdge[]): FindStep => {
  const leaving = new Map<string, ProjectionEdge[]>();
  for (const edge of edges) leaving.set(edge.from, [...(leaving.get(edge.from) ?? []), edge]);
  return (from, { event, to, action }) => {
    const edge = leaving
      .get(from)
      ?.find(
        (one) =>
          one.to === to && one.event === event && (one.action === null || one.action === action),
      );
    return { from, event, to, action, edge: edge ?? null };
  };
};

// ---- Diagrams of a seed's machine, in the form of ours ----

/** `as` and `then` are what the diagram shows beside an edge. */
const toEdge = ({ id, from, event, when, to, action, source }: ProjectionEdge): Edge => ({
  id,
  from,
  event,
  when,
  to,
  as: source === 'text' ? '' : source,
  then: action ?? '',
  kind: 'go',
});

const describe = (
  { states, events, initial, transient, ends, edges }: Projection,
  draw: (edge: ProjectionEdge) => Edge,
): MachineDescription => ({
  states,
  events,
  initial,
  transient,
  ends,
  edges: edges.map(draw),
  ignored: [],
});

/**
 * An edge for the diagram: the condition joins the event, and an edge missing in the seed text is
 * marked.
 */
const chartEdge = (edge: ProjectionEdge): Edge => {
  const { event, when, source } = edge;
  const condition = when === '' ? '' : ` (${when})`;
  const unnamed = source === 'text' ? null : source;
  return { ...toEdge(edge), event: event === null ? unnamed : `${event}${condition}` };
};

/** A Mermaid chart of the seed's machine. */
export const projectionDiagram = (projection: Projection): string =>
  mermaid(describe(projection, chartEdge));

/**
 * The seed's edges as a Markdown table. An edge missing in the seed text names its source after the
 * state.
 */
export const projectionTable = (projection: Projection): string =>
  markdownTable(describe(projection, toEdge));

/** A seed's machine as plain JSON. */
export const projectionJson = ({ project: _project, begin: _begin, ...rest }: Projection) => rest;
