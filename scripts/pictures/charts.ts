/**
 * The charts of packages/inspector/src/charts/charts.json: what each shows, taken from the tables
 * and from nothing else. A plan names the boxes and arrows; layout.ts gives them places. In a
 * resting state the machine waits. Kinds of arrows: on `onward` work goes on, `stopped` ends a turn
 * early, `closed` leads to the end of the session.
 */

import type {
  Chart,
  ChartArrow,
  ChartName,
  LabelLine,
} from '../../packages/inspector/src/model/chart.js';
import type { Edge, MachineDescription } from '../../packages/machine/src/kernel/table.js';
import { projections } from '../../packages/verify/src/projections/all-projections.js';
import type { Projection } from '../../packages/verify/src/projections/projection.js';
import { type ChartPlan, layOut } from './layout.js';
import { EARLY_ENDS, type RestingArrow, restingArrows, restingStates } from './resting.js';

const CAUSES_MAX = 2;

/** `[turnIsReleased]` as `turn is released`. */
const readable = (cause: string): string =>
  cause.startsWith('[')
    ? cause.slice(1, -1).replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    : cause;

const causeLines = (causes: readonly string[]): readonly LabelLine[] => {
  const [first = '', ...rest] = causes.map(readable);
  const words = causes.length <= CAUSES_MAX ? [first, ...rest] : [first, `+ ${rest.length} more`];
  return words.filter((text) => text !== '').map((text) => ({ text, kind: 'cause' }));
};

/**
 * Causes, then the states on the way if there is one way. Only arrows on which work goes on have
 * words.
 */
const restingLabel = ({ kind, causes, ways }: RestingArrow): readonly LabelLine[] => {
  if (kind !== 'onward') return [];
  const [way = []] = ways.length === 1 ? ways : [];
  return [
    ...causeLines(causes),
    ...way.map((text) => ({ text: `· ${text}`, kind: 'passed' as const })),
  ];
};

/** The chart of README: states in which the machine waits. */
export const restingPlan = (machine: MachineDescription): ChartPlan => ({
  states: restingStates(machine).map((name) => ({ name, about: machine.states[name] ?? '' })),
  arrows: restingArrows(machine).map((arrow) => ({
    from: arrow.from,
    to: arrow.to,
    kind: arrow.kind,
    label: restingLabel(arrow),
  })),
});

type NamedArrow = { readonly from: string; readonly to: string; readonly cause: string };

/**
 * One arrow for each pair of states, in the order of the table. Arrows back to the same state are
 * left out.
 */
const arrowsBetween = (
  edges: readonly NamedArrow[],
  kindOf: (arrow: NamedArrow) => ChartArrow['kind'],
): readonly ChartArrow[] => {
  const pairs = new Map<string, { readonly arrow: NamedArrow; readonly causes: Set<string> }>();
  for (const arrow of edges) {
    if (arrow.from === arrow.to) continue;
    const key = `${arrow.from} ${arrow.to}`;
    const pair = pairs.get(key) ?? { arrow, causes: new Set<string>() };
    pairs.set(key, pair);
    if (arrow.cause !== '') pair.causes.add(arrow.cause);
  }
  return [...pairs.values()].map(({ arrow, causes }) => {
    const kind = kindOf(arrow);
    return {
      from: arrow.from,
      to: arrow.to,
      kind,
      label: kind === 'onward' ? causeLines([...causes]) : [],
    };
  });
};

const causeOf = ({ event, when }: Edge): string => event ?? (when === '' ? '' : `[${when}]`);

/**
 * Every state of the table. Its arrows to the end are left out: they start everywhere and would
 * hide the others.
 */
const wholePlan = (machine: MachineDescription): ChartPlan => {
  const edges = machine.edges.filter(({ kind, to }) => kind === 'go' && !machine.ends.includes(to));
  const kindOf = ({ from, to }: NamedArrow) =>
    EARLY_ENDS.includes(to) || EARLY_ENDS.includes(from) ? 'stopped' : 'onward';
  return {
    states: Object.keys(machine.states).map((name) => ({ name, about: '' })),
    arrows: arrowsBetween(
      edges.map((edge) => ({ from: edge.from, to: edge.to, cause: causeOf(edge) })),
      kindOf,
    ),
  };
};

const projectionPlan = ({ states, edges, ends }: Projection): ChartPlan => ({
  states: Object.keys(states).map((name) => ({ name, about: '' })),
  arrows: arrowsBetween(
    edges.map(({ from, to, event, when }) => ({
      from,
      to,
      cause: event ?? (when === '' ? '' : when),
    })),
    ({ to }) => (ends.includes(to) ? 'closed' : 'onward'),
  ),
});

export const chartPlans = (
  machine: MachineDescription,
): readonly (readonly [name: ChartName, plan: ChartPlan])[] => [
  ['resting', restingPlan(machine)],
  ['whole', wholePlan(machine)],
  ...projections.map((view) => [view.name, projectionPlan(view)] as const),
];

export const layOutAll = async (
  machine: MachineDescription,
): Promise<Readonly<Record<string, Chart>>> => {
  const charts: [string, Chart][] = [];
  for (const [name, plan] of chartPlans(machine)) charts.push([name, await layOut(plan)]);
  return Object.fromEntries(charts);
};

/** As the file holds it: a line for each box and each arrow, so that a diff can be read. */
export const chartsText = (charts: Readonly<Record<string, Chart>>): string => {
  const listOf = (items: readonly unknown[]): string =>
    `[\n${items.map((item) => JSON.stringify(item)).join(',\n')}\n]`;
  const all = Object.entries(charts).map(
    ([name, { width, height, boxes, lines }]) =>
      `${JSON.stringify(name)}: {"width": ${width}, "height": ${height},\n"boxes": ${listOf(boxes)},\n"lines": ${listOf(lines)}}`,
  );
  return `{\n${all.join(',\n')}\n}\n`;
};
