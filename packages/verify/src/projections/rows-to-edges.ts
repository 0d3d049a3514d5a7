import type { ProjectionEdge, ProjectionStep } from './projection.js';

/** Edges of a seed's table, written as rows, and the look-up of a step's edge. */

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

const nameOf = ([from, event, , to]: ArrowRow): string => `${from}/${event ?? ''}/${to}`;

/** The edges of a table, each with a unique id. */
export const arrowsOf = (table: readonly Sourced[]): readonly ProjectionEdge[] =>
  table.map(({ source, row }, index) => {
    const [from, event, when, to, action] = row;
    const alike = table.filter((other) => nameOf(other.row) === nameOf(row));
    const before = table.slice(0, index + 1).filter((other) => nameOf(other.row) === nameOf(row));
    const id = alike.length === 1 ? nameOf(row) : `${nameOf(row)}/${before.length}`;
    return { id, from, event, when, to, action, source };
  });

/** A step of the seed without its source state. */
export type ProjectedStep = Pick<ProjectionStep, 'event' | 'to' | 'action'>;

/** Finds the edge of a step: same states, same event, and the action that the table requires. */
export type FindStep = (from: string, said: ProjectedStep) => ProjectionStep;

export const stepFinder = (edges: readonly ProjectionEdge[]): FindStep => {
  const leaving = new Map<string, ProjectionEdge[]>();
  for (const edge of edges) leaving.set(edge.from, [...(leaving.get(edge.from) ?? []), edge]);
  return (from, { event, to, action }) => {
    const edge = leaving
      .get(from)
      ?.find((one) => one.to === to && one.event === event && (one.action === null || one.action === action));
    return { from, event, to, action, edge: edge ?? null };
  };
};
