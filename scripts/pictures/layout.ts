/**
 * Where boxes and arrows of a chart lie: laid out by ELK, which gives the same answer each time.
 */

import elk, { type ElkNode } from 'elkjs/lib/elk.bundled.js';
import {
  type Chart,
  type ChartArrow,
  LABEL_LINE_PIXELS,
  LABEL_PIXELS,
  NAME_PIXELS,
  NOTE_LINE_PIXELS,
  NOTE_PIXELS,
} from '../../packages/inspector/src/model/chart.js';

const BOX_EDGE_PIXELS = 14;
const NAME_LINE_PIXELS = 20;
/** Width of a character as a share of the font size, with a reserve since fonts differ. */
const BOLD_SHARE = 0.64;
const PLAIN_SHARE = 0.55;
const MONOSPACE_SHARE = 0.62;
const NOTE_CHARACTERS = 32;

const OPTIONS = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.layered.cycleBreaking.strategy': 'DEPTH_FIRST',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.layered.thoroughness': '60',
  'elk.layered.spacing.nodeNodeBetweenLayers': '26',
  'elk.layered.spacing.edgeNodeBetweenLayers': '14',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '11',
  'elk.spacing.edgeEdge': '11',
  'elk.spacing.edgeNode': '16',
  'elk.spacing.nodeNode': '40',
  'elk.spacing.edgeLabel': '3',
  'elk.edgeLabels.inline': 'false',
  'elk.padding': '[top=20,left=20,bottom=20,right=20]',
  'elk.randomSeed': '1',
};

/** What a chart shows: its states in order, each with its words, and the arrows between them. */
export type ChartPlan = {
  readonly states: readonly { readonly name: string; readonly about: string }[];
  readonly arrows: readonly ChartArrow[];
  /** Options of ELK that differ for this chart. */
  readonly options?: Readonly<Record<string, string>>;
};

/** Words on lines of at most so many characters. */
const wrap = (text: string): readonly string[] => {
  const lines: string[] = [];
  for (const word of text.split(' ').filter((one) => one !== '')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < NOTE_CHARACTERS)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
};

const widest = (lines: readonly string[]): number =>
  Math.max(0, ...lines.map(({ length }) => length));

const boxSize = (name: string, lines: readonly string[]) => ({
  width: Math.ceil(
    Math.max(name.length * NAME_PIXELS * BOLD_SHARE, widest(lines) * NOTE_PIXELS * PLAIN_SHARE) +
      2 * BOX_EDGE_PIXELS,
  ),
  height: NAME_LINE_PIXELS + lines.length * NOTE_LINE_PIXELS + (lines.length === 0 ? 12 : 18),
});

const labelSize = (label: ChartArrow['label']) => ({
  width: Math.ceil(widest(label.map(({ text }) => text)) * LABEL_PIXELS * MONOSPACE_SHARE) + 4,
  height: label.length * LABEL_LINE_PIXELS,
});

const graphOf = ({ states, arrows, options }: ChartPlan): ElkNode => ({
  id: 'root',
  layoutOptions: { ...OPTIONS, ...options },
  children: states.map(({ name, about }) => ({ id: name, ...boxSize(name, wrap(about)) })),
  edges: arrows.map(({ from, to, kind, label }, index) => ({
    id: String(index),
    sources: [from],
    targets: [to],
    labels: label.length === 0 ? [] : [{ text: String(index), ...labelSize(label) }],
    layoutOptions: { 'elk.layered.priority.direction': kind === 'onward' ? '10' : '1' },
  })),
});

/** Positions in the file are whole tenths of a pixel. */
const tenths = (value = 0): number => Math.round(value * 10) / 10;

export const layOut = async (plan: ChartPlan): Promise<Chart> => {
  const placed = await new elk.default().layout(graphOf(plan));
  const abouts = new Map(plan.states.map(({ name, about }) => [name, about]));
  return {
    width: tenths(placed.width),
    height: tenths(placed.height),
    boxes: (placed.children ?? []).map(({ id, x, y, width, height }) => ({
      name: id,
      lines: wrap(abouts.get(id) ?? ''),
      x: tenths(x),
      y: tenths(y),
      width: tenths(width),
      height: tenths(height),
    })),
    lines: (placed.edges ?? []).map(({ sections = [], labels: [label] = [] }, index) => {
      const arrow = plan.arrows[index];
      const [section] = sections;
      if (arrow === undefined || section === undefined)
        throw new Error(`arrow ${index} was not laid out`);
      const points = [section.startPoint, ...(section.bendPoints ?? []), section.endPoint];
      return {
        ...arrow,
        points: points.map(({ x, y }) => [tenths(x), tenths(y)] as const),
        at: label === undefined ? null : [tenths(label.x), tenths(label.y)],
      };
    }),
  };
};
