import type { ViewEdge, ViewStep } from './view.js';

/** Arrows of a seed's table: written as rows, found by what a step says. */

/** A row of a seed's table, in its order of columns: in, event, condition, goes to, action. */
export type Row = readonly [
  from: string,
  event: string | null,
  when: string,
  to: string,
  action: string | null,
];

type Sourced = { readonly source: ViewEdge['source']; readonly row: Row };

/** Rows of one source. */
export const rows = (source: ViewEdge['source'], ...list: readonly Row[]): readonly Sourced[] =>
  list.map((row) => ({ source, row }));

const nameOf = ([from, event, , to]: Row): string => `${from}/${event ?? ''}/${to}`;

/** The arrows of a table, each with an id of its own. */
export const arrowsOf = (table: readonly Sourced[]): readonly ViewEdge[] =>
  table.map(({ source, row }, index) => {
    const [from, event, when, to, action] = row;
    const alike = table.filter((other) => nameOf(other.row) === nameOf(row));
    const before = table.slice(0, index + 1).filter((other) => nameOf(other.row) === nameOf(row));
    const id = alike.length === 1 ? nameOf(row) : `${nameOf(row)}/${before.length}`;
    return { id, from, event, when, to, action, source };
  });

/** A step as it is said, from wherever the seed's machine stands. */
export type Said = Pick<ViewStep, 'event' | 'to' | 'action'>;

/** Finds the step's arrow: same states, same event, and the action that the table asks for. */
export type FindStep = (from: string, said: Said) => ViewStep;

export const stepsOf = (edges: readonly ViewEdge[]): FindStep => {
  const leaving = new Map<string, ViewEdge[]>();
  for (const edge of edges) leaving.set(edge.from, [...(leaving.get(edge.from) ?? []), edge]);
  return (from, { event, to, action }) => {
    const edge = leaving
      .get(from)
      ?.find((one) => one.to === to && one.event === event && (one.action === null || one.action === action));
    return { from, event, to, action, edge: edge ?? null };
  };
};
