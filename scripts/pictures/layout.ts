import elk, { type ElkNode, type ElkPoint } from 'elkjs/lib/elk.bundled.js';
import type { RestingArrow } from './resting.js';

/** Where boxes and arrows of the picture lie: laid out by ELK, which gives the same answer each time. */

export type Box = {
  readonly name: string;
  readonly lines: readonly string[];
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
};

export type Line = {
  readonly arrow: RestingArrow;
  readonly points: readonly ElkPoint[];
  /** The label and its upper left corner; null for an arrow without a label. */
  readonly label: { readonly lines: readonly LabelLine[]; readonly x: number; readonly y: number } | null;
};

/** `passed`: the name of a state on the way; else what begins the arrow. */
export type LabelLine = { readonly text: string; readonly kind: 'cause' | 'passed' };

export type Layout = {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly Box[];
  readonly lines: readonly Line[];
};

export const NAME_PIXELS = 14;
export const NOTE_PIXELS = 11.5;
export const LABEL_PIXELS = 11;
export const NOTE_LINE_PIXELS = 15;
export const LABEL_LINE_PIXELS = 14;
const BOX_EDGE_PIXELS = 14;
const NAME_LINE_PIXELS = 20;
/** Width of a character as a share of the font size, with a reserve since fonts differ. */
const BOLD_SHARE = 0.64;
const PLAIN_SHARE = 0.55;
const MONOSPACE_SHARE = 0.62;

const NOTE_CHARACTERS = 32;
const CAUSES_MAX = 2;

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

/** Words on lines of at most so many characters. */
const wrap = (text: string): readonly string[] => {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < NOTE_CHARACTERS)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
};

/** `[turnIsReleased]` as `turn is released`. */
const readable = (cause: string): string =>
  cause.startsWith('[')
    ? cause.slice(1, -1).replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    : cause;

/** Causes, then the states on the way if there is one way. Only arrows on which work goes on have words. */
const labelOf = ({ kind, causes, ways }: RestingArrow): readonly LabelLine[] => {
  if (kind !== 'onward') return [];
  const [first = '', ...rest] = causes.map(readable);
  const words = causes.length <= CAUSES_MAX ? [first, ...rest] : [first, `+ ${rest.length} more`];
  const [way = []] = ways.length === 1 ? ways : [];
  return [
    ...words.map((text) => ({ text, kind: 'cause' as const })),
    ...way.map((text) => ({ text: `· ${text}`, kind: 'passed' as const })),
  ];
};

const widest = (lines: readonly string[]): number => Math.max(0, ...lines.map(({ length }) => length));

export const layOut = async (
  states: Readonly<Record<string, string>>,
  names: readonly string[],
  arrows: readonly RestingArrow[],
): Promise<Layout> => {
  const notes = new Map(names.map((name) => [name, wrap(states[name] ?? '')]));
  const graph: ElkNode = {
    id: 'root',
    layoutOptions: OPTIONS,
    children: names.map((name) => {
      const lines = notes.get(name) ?? [];
      const inner = Math.max(
        name.length * NAME_PIXELS * BOLD_SHARE,
        widest(lines) * NOTE_PIXELS * PLAIN_SHARE,
      );
      return {
        id: name,
        width: Math.ceil(inner + 2 * BOX_EDGE_PIXELS),
        height: NAME_LINE_PIXELS + lines.length * NOTE_LINE_PIXELS + 18,
      };
    }),
    edges: arrows.map((arrow, index) => {
      const lines = labelOf(arrow);
      const label = {
        text: String(index),
        width: Math.ceil(widest(lines.map(({ text }) => text)) * LABEL_PIXELS * MONOSPACE_SHARE) + 4,
        height: lines.length * LABEL_LINE_PIXELS,
      };
      return {
        id: String(index),
        sources: [arrow.from],
        targets: [arrow.to],
        labels: lines.length === 0 ? [] : [label],
        layoutOptions: { 'elk.layered.priority.direction': arrow.kind === 'onward' ? '10' : '1' },
      };
    }),
  };
  const placed = await new elk.default().layout(graph);
  const boxes = (placed.children ?? []).map(({ id, x = 0, y = 0, width = 0, height = 0 }) => ({
    name: id,
    lines: notes.get(id) ?? [],
    x,
    y,
    width,
    height,
  }));
  const lines = (placed.edges ?? []).map(({ sections = [], labels = [] }, index) => {
    const arrow = arrows[index];
    const [section] = sections;
    if (arrow === undefined || section === undefined) throw new Error(`arrow ${index} was not laid out`);
    const [label] = labels;
    return {
      arrow,
      points: [section.startPoint, ...(section.bendPoints ?? []), section.endPoint],
      label: label === undefined ? null : { lines: labelOf(arrow), x: label.x ?? 0, y: label.y ?? 0 },
    };
  });
  return { width: placed.width ?? 0, height: placed.height ?? 0, boxes, lines };
};
