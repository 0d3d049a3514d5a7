import type { Described, Edge } from './step.js';

/** Pictures of a machine, all from its one list of edges: nothing draws a machine by hand. */

const labelsMax = 4;

/** The event, or the guard where no event is needed; nothing of an arrow that has neither and does nothing. */
const wordOf = ({ event, when, then }: Edge): string => {
  if (event !== null) return event;
  if (when !== '') return `[${when}]`;
  return then === '' ? '' : 'otherwise';
};

/** What stands on the line between two states. */
const labelOf = (edges: readonly Edge[]): string => {
  const words = [...new Set(edges.map(wordOf))].filter((word) => word !== '');
  if (words.length <= labelsMax) return words.join(', ');
  return `${words.slice(0, labelsMax - 1).join(', ')}, … ${words.length - labelsMax + 1} more`;
};

/** A Mermaid state diagram: one line per pair of states; arrows that stay are left out. */
export const mermaid = (machine: Described): string => {
  const pairs = groupEdges(machine.edges);
  const lines = ['stateDiagram-v2', `  [*] --> ${machine.initial}`];
  for (const [line, edges] of pairs) {
    const label = labelOf(edges);
    lines.push(`  ${line}${label === '' ? '' : `: ${label}`}`);
  }
  for (const end of machine.ends) lines.push(`  ${end} --> [*]`);
  if (machine.transient.length > 0)
    lines.push('  classDef passed stroke-dasharray: 4 4', `  class ${machine.transient.join(',')} passed`);
  return lines.join('\n');
};

/** Arrows that lead from one state to another stand on one line: `From --> To`. */
const groupEdges = (edges: readonly Edge[]): ReadonlyMap<string, readonly Edge[]> => {
  const groups = new Map<string, Edge[]>();
  for (const edge of edges) {
    if (edge.kind === 'stay') continue;
    const line = `${edge.from} --> ${edge.to}`;
    const group = groups.get(line);
    if (group === undefined) groups.set(line, [edge]);
    else group.push(edge);
  }
  return groups;
};

/** One row per arrow, in the order in which branches are tried; then the pairs that are ignored, if any, and why. */
export const markdownTable = (machine: Described): string => {
  const rows = machine.edges.map((edge) => {
    const to = edge.kind === 'stay' ? 'stays' : edge.to;
    return `| ${edge.from} | ${edge.event ?? '–'} | ${edge.when} | ${edge.as === '' ? to : `${to} (${edge.as})`} | ${edge.then} |`;
  });
  const ignored = machine.ignored.map(
    (pair) => `| ${pair.state} | ${pair.event} | ${pair.ignore} | ${pair.why} |`,
  );
  const arrows = ['| in | event | when | goes to | does |', '|---|---|---|---|---|', ...rows];
  if (ignored.length === 0) return arrows.join('\n');
  return [...arrows, '', '| in | event | ignored as | because |', '|---|---|---|---|', ...ignored].join('\n');
};

/** The edges as plain JSON, with the names and their one-line documentation. */
export const edgesJson = (machine: Described) => ({
  states: machine.states,
  events: machine.events,
  initial: machine.initial,
  transient: machine.transient,
  ends: machine.ends,
  edges: machine.edges,
  ignored: machine.ignored,
});
