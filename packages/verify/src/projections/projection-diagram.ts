import { markdownTable, mermaid } from '@pawl/machine/kernel/diagrams';
import type { Edge, MachineDescription } from '@pawl/machine/kernel/step-types';
import type { Projection, ProjectionEdge } from './projection.js';

/** Diagrams of a seed's machine, in the form of our own diagrams. */

const edgeOf = ({ id, from, event, when, to, action, source }: ProjectionEdge): Edge => ({
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
): MachineDescription => ({ states, events, initial, transient, ends, edges: edges.map(draw), ignored: [] });

/** An edge for the diagram: the condition joins the event, and an edge missing in the seed text is marked. */
const chartEdge = (edge: ProjectionEdge): Edge => {
  const { event, when, source } = edge;
  const condition = when === '' ? '' : ` (${when})`;
  const unnamed = source === 'text' ? null : source;
  return { ...edgeOf(edge), event: event === null ? unnamed : `${event}${condition}` };
};

/** The seed's own chart, for Mermaid. */
export const projectionDiagram = (projection: Projection): string => mermaid(describe(projection, chartEdge));

/** The seed's edges as a Markdown table. An edge missing in the seed text names its source after the state. */
export const projectionTable = (projection: Projection): string =>
  markdownTable(describe(projection, edgeOf));

/** A seed's machine as plain JSON. */
export const projectionJson = ({ project: _project, begin: _begin, ...rest }: Projection) => rest;
