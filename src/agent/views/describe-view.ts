import { markdownTable, mermaid } from '../../kernel/describe.js';
import type { Described, Edge } from '../../kernel/step.js';
import type { View, ViewEdge } from './view.js';

/** Pictures of a seed's own machine, drawn as ours is. */

const edgeOf = ({ id, from, event, when, to, action, source }: ViewEdge): Edge => ({
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
  { states, events, initial, transient, ends, edges }: View,
  draw: (edge: ViewEdge) => Edge,
): Described => ({ states, events, initial, transient, ends, edges: edges.map(draw), ignored: [] });

/** On a line of a chart a condition stands beside its event, and what is not in the text says so. */
const chartEdge = (edge: ViewEdge): Edge => {
  const { event, when, source } = edge;
  const condition = when === '' ? '' : ` (${when})`;
  const unnamed = source === 'text' ? null : source;
  return { ...edgeOf(edge), event: event === null ? unnamed : `${event}${condition}` };
};

/** The seed's own chart, for Mermaid. */
export const chartOf = (view: View): string => mermaid(describe(view, chartEdge));

/** The seed's arrows, one a row, as Markdown; where the arrow is not in its text, its source stands behind the state. */
export const tableOf = (view: View): string => markdownTable(describe(view, edgeOf));

/** Everything that is known of a seed's machine, as plain JSON. */
export const viewJson = ({ project: _project, begin: _begin, ...rest }: View) => rest;
