import type { JournalStep } from '@pawl/agent/journal/read/steps';
import type { Projection, ProjectionCursor } from '@pawl/verify/projections/projection';

/** The way of a session through the states of one chart. */

export type Hop = { readonly from: string; readonly to: string };

type Traced = { readonly hops: readonly Hop[]; readonly state: string };

/** Counts are kept at each such entry, so that going back does not count from the first one. */
const KEPT_EVERY = 256;

/** Which hops a step makes on a chart, given where the step before it ended. */
type Tracer = { readonly begin: string; trace(step: JournalStep): Traced };

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
      const projected = projection.project(cursor, step.before, step.event, step);
      ({ cursor } = projected);
      const hops = projected.steps
        .filter(({ from, to }) => from !== to)
        .map(({ from, to }) => ({ from, to }));
      return { hops, state: cursor.state };
    },
  };
};

export const keyOfHop = ({ from, to }: Hop): string => `${from} ${to}`;

export class ChartTrace {
  readonly #tracer: Tracer;
  readonly #traced: Traced[] = [];
  readonly #kept: (readonly [string, number][])[] = [[]];
  #counts = new Map<string, number>();
  #countedTo = 0;

  private constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** `chart`: a projection, or one of our own charts. */
  static of(chart: Projection | 'whole' | 'resting'): ChartTrace {
    if (chart === 'whole') return new ChartTrace(wholeTracer());
    return new ChartTrace(chart === 'resting' ? restingTracer() : projectionTracer(chart));
  }

  /** Follows the steps that are new. They are always given from the first on. */
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

  /** How often each arrow was taken up to the entry, by `keyOfHop`. */
  countsAt(seq: number): ReadonlyMap<string, number> {
    const last = Math.min(seq, this.#traced.length);
    const kept = Math.min(Math.floor(last / KEPT_EVERY), this.#kept.length - 1);
    if (last < this.#countedTo || this.#countedTo < kept * KEPT_EVERY) {
      this.#counts = new Map(this.#kept[kept]);
      this.#countedTo = kept * KEPT_EVERY;
    }
    for (; this.#countedTo < last; this.#countedTo++) {
      if (this.#countedTo === this.#kept.length * KEPT_EVERY) this.#kept.push([...this.#counts]);
      for (const hop of this.#traced[this.#countedTo]?.hops ?? []) {
        const key = keyOfHop(hop);
        this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
      }
    }
    return this.#counts;
  }
}
