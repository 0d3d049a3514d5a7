/** Diagrams and tables of a machine, all made from its list of edges. */

import type { Edge, MachineDescription } from './table.js';

const LABELS_MAX = 4;

/**
 * Label of one edge: its event, else its guard; empty for an edge that has neither and does
 * nothing.
 */
const edgeLabel = ({ event, when, then }: Edge): string => {
  if (event !== null) return event;
  if (when !== '') return `[${when}]`;
  return then === '' ? '' : 'otherwise';
};

/** Label of the line between two states. */
const lineLabel = (edges: readonly Edge[]): string => {
  const words = [...new Set(edges.map(edgeLabel))].filter((word) => word !== '');
  if (words.length <= LABELS_MAX) return words.join(', ');
  return `${words.slice(0, LABELS_MAX - 1).join(', ')}, … ${words.length - LABELS_MAX + 1} more`;
};

/** Draws a Mermaid state diagram: one line per pair of states, without the edges that stay. */
export const mermaid = (machine: MachineDescription): string => {
  const pairs = new Map<string, Edge[]>();
  for (const edge of machine.edges.filter(({ kind }) => kind === 'go')) {
    const line = `${edge.from} --> ${edge.to}`;
    pairs.set(line, [...(pairs.get(line) ?? []), edge]);
  }
  const lines = ['stateDiagram-v2', `  [*] --> ${machine.initial}`];
  for (const [line, edges] of pairs) {
    const label = lineLabel(edges);
    lines.push(`  ${line}${label === '' ? '' : `: ${label}`}`);
  }
  for (const end of machine.ends) lines.push(`  ${end} --> [*]`);
  if (machine.transient.length > 0)
    lines.push(
      '  classDef passed stroke-dasharray: 4 4',
      `  class ${machine.transient.join(',')} passed`,
    );
  return lines.join('\n');
};

/**
 * One row per edge, in the order of trial; then the ignored pairs with their reasons. `asked`: what
 * each edge asks for, by its id, as one more column.
 */
export const markdownTable = (
  machine: MachineDescription,
  asked?: Readonly<Record<string, string>>,
): string => {
  const column = (text: string): string => (asked === undefined ? '' : ` ${text} |`);
  const rows = machine.edges.map((edge) => {
    const to = edge.kind === 'stay' ? 'stays' : edge.to;
    return (
      `| ${edge.from} | ${edge.event ?? '–'} | ${edge.when} | ` +
      `${edge.as === '' ? to : `${to} (${edge.as})`} | ${edge.then} ` +
      `|${column(asked?.[edge.id] ?? '')}`
    );
  });
  const ignored = machine.ignored.map(
    (pair) => `| ${pair.state} | ${pair.event} | ${pair.ignore} | ${pair.why} |`,
  );
  const heads = ['| in | event | when | goes to | does |', '|---|---|---|---|---|'];
  const arrows = [
    `${heads[0]}${column('asks for')}`,
    `${heads[1]}${asked === undefined ? '' : '---|'}`,
    ...rows,
  ];
  if (ignored.length === 0) return arrows.join('\n');
  return [
    ...arrows,
    '',
    '| in | event | ignored as | because |',
    '|---|---|---|---|',
    ...ignored,
  ].join('\n');
};

/** The edges as plain JSON, with the names and their one-line documentation. */
export const edgesJson = (machine: MachineDescription) => ({
  states: machine.states,
  events: machine.events,
  initial: machine.initial,
  transient: machine.transient,
  ends: machine.ends,
  edges: machine.edges,
  ignored: machine.ignored,
});
