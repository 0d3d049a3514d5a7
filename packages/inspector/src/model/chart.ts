/** Charts of machines, and the way of a session through the states of a chart. */

import type { JournalStep } from '@pawl/agent/journal/steps';
import {
  isRefused,
  type Projection,
  type ProjectionCursor,
} from '@pawl/verify/projections/projection';

/** `onward`: work continues. `stopped`: a turn ends early. `closed`: the session ends. */
export type ArrowKind = 'onward' | 'stopped' | 'closed';

/** `passed`: the name of a state on the way; else the cause of the arrow. */
export type LabelLine = { readonly text: string; readonly kind: 'cause' | 'passed' };

/** All ways from one state to another of one kind. */
export type ChartArrow = {
  readonly from: string;
  readonly to: string;
  readonly kind: ArrowKind;
  readonly label: readonly LabelLine[];
};

export type ChartBox = {
  readonly name: string;
  /** Lines of words below the name; may be empty. */
  readonly lines: readonly string[];
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
};

export type ChartLine = ChartArrow & {
  readonly points: readonly (readonly [x: number, y: number])[];
  /** The upper left corner of the label; null for an arrow without one. */
  readonly at: readonly [x: number, y: number] | null;
};

export type Chart = {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly ChartBox[];
  readonly lines: readonly ChartLine[];
};

/**
 * `resting`: only the states in which the agent waits. `whole`: every state of the table. The
 * others are projections.
 */
export type ChartName =
  | 'resting'
  | 'whole'
  | 'minimal'
  | 'minimal-head'
  | 'loom'
  | 'sketch'
  | 'tools';

/** Sizes of texts and of lines, for the layout and for the page. */
export const NAME_PIXELS = 14;
export const NOTE_PIXELS = 11.5;
export const LABEL_PIXELS = 11;
export const NOTE_LINE_PIXELS = 15;
export const LABEL_LINE_PIXELS = 14;

const CORNER_PIXELS = 7;
const rounded = (value: number): string => String(Math.round(value * 10) / 10);

/** An arrow as the `d` of an SVG path, with rounded corners. */
export const svgPath = (points: ChartLine['points']): string =>
  points
    .map(([x, y], index) => {
      const before = points[index - 1];
      const after = points[index + 1];
      if (before === undefined) return `M${rounded(x)} ${rounded(y)}`;
      if (after === undefined) return `L${rounded(x)} ${rounded(y)}`;
      const towards = ([otherX, otherY]: readonly [number, number]): string => {
        const length = Math.hypot(otherX - x, otherY - y);
        const share = Math.min(CORNER_PIXELS, length / 2) / (length || 1);
        return `${rounded(x + (otherX - x) * share)} ${rounded(y + (otherY - y) * share)}`;
      };
      return `L${towards(before)}Q${rounded(x)} ${rounded(y)} ${towards(after)}`;
    })
    .join('');

// ---- The way of a session through the states of one chart ----

/** An arrow that was taken. */
export type Hop = { readonly from: string; readonly to: string };

/** What one step did on the chart: its hops, and the state after it. */
type Traced = { readonly hops: readonly Hop[]; readonly state: string };

/** Which hops a step makes on a chart, from where the step before it ended. */
type Tracer = { readonly begin: string; trace(step: JournalStep): Traced };

/** The edges of the step that lead to another state. */
const goEdges = ({ path }: JournalStep): readonly Hop[] =>
  path.filter(({ kind, from, to }) => kind === 'go' && from !== to);

const wholeTracer = (): Tracer => ({
  begin: 'Ready',
  trace: (step) => ({ hops: goEdges(step), state: step.state.name }),
});

const restingTracer = (): Tracer => ({
  begin: 'Ready',
  trace(step) {
    const [first] = goEdges(step);
    const { name } = step.state;
    return {
      hops: first === undefined || first.from === name ? [] : [{ from: first.from, to: name }],
      state: name,
    };
  },
});

const projectionTracer = (projection: Projection): Tracer => {
  let cursor: ProjectionCursor = projection.begin;
  return {
    begin: projection.begin.state,
    trace(step) {
      if (isRefused(step.before, step)) return { hops: [], state: cursor.state };
      const projected = projection.project(cursor, step.before, step.event, step);
      ({ cursor } = projected);
      const hops = projected.steps
        .filter(({ from, to }) => from !== to)
        .map(({ from, to }) => ({ from, to }));
      return { hops, state: cursor.state };
    },
  };
};

export const hopKey = ({ from, to }: Hop): string => `${from} ${to}`;

/** The hops of all steps on one chart, and how often each arrow was taken. */
export class ChartTrace {
  readonly #tracer: Tracer;
  /** One for each step. */
  readonly #traced: Traced[] = [];
  /** The counts up to the entry `#countedTo`. */
  #counts = new Map<string, number>();
  #countedTo = 0;

  private constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** `chart`: a projection, or one of our charts. */
  static of(chart: Projection | 'whole' | 'resting'): ChartTrace {
    if (chart === 'whole') return new ChartTrace(wholeTracer());
    return new ChartTrace(chart === 'resting' ? restingTracer() : projectionTracer(chart));
  }

  /** Follows the new steps. Callers always pass all steps, from the first on. */
  follow(steps: readonly JournalStep[]): void {
    for (let index = this.#traced.length; index < steps.length; index++) {
      const step = steps[index];
      if (step !== undefined) this.#traced.push(this.#tracer.trace(step));
    }
  }

  stateAt(seq: number): string {
    return this.#traced[seq - 1]?.state ?? this.#tracer.begin;
  }

  hopsAt(seq: number): readonly Hop[] {
    return this.#traced[seq - 1]?.hops ?? [];
  }

  /** How often each arrow was taken up to the entry, by `hopKey`. */
  countsAt(seq: number): ReadonlyMap<string, number> {
    const last = Math.min(seq, this.#traced.length);
    if (last < this.#countedTo) {
      this.#counts = new Map();
      this.#countedTo = 0;
    }
    for (; this.#countedTo < last; this.#countedTo++)
      for (const hop of this.#traced[this.#countedTo]?.hops ?? []) {
        const key = hopKey(hop);
        this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
      }
    return this.#counts;
  }
}
