import { explore, type Progress } from '../../kernel/explore.js';
import type { Edge } from '../../kernel/step.js';
import type { View } from '../views/view.js';
import type { Configuration } from './configuration.js';
import { type Machine, modelOf } from './model.js';
import { traceOf } from './trace.js';

/** One configuration explored, and what many of them reach together: plain values, since they may come from other processes. */

export type Violation = {
  readonly configuration: string;
  readonly faults: readonly string[];
  /** Whether a seed's table has no arrow for what a step does in its words. */
  readonly kind: 'promise' | 'view';
  readonly events: number;
  /** A shortest way there, as a trace. */
  readonly trace: string;
};

export type Explored = {
  readonly name: string;
  readonly about: string;
  readonly states: number;
  readonly steps: number;
  readonly depth: number;
  readonly complete: boolean;
  readonly violation: Violation | null;
  /** Ids of the machine's arrows that were taken. */
  readonly edges: readonly string[];
  /** Ids of the arrows of each view that were taken, by its name. */
  readonly arrows: Readonly<Record<string, readonly string[]>>;
};

/** Explores one configuration. `watch` is told from time to time how far it is. */
export const exploreOne = (
  configuration: Configuration,
  machine: Machine,
  views: readonly View[],
  statesMax: number,
  watch: (progress: Progress) => void,
): Explored => {
  const { name, about } = configuration;
  const { model, seen } = modelOf(configuration, machine, views);
  const { violation, ...figures } = explore(model, { statesMax, watch });
  const takenOf = (view: View): readonly string[] =>
    view.edges.filter((arrow) => seen.arrows.has(arrow)).map(({ id }) => id);
  return {
    name,
    about,
    ...figures,
    violation:
      violation === null
        ? null
        : {
            configuration: name,
            faults: violation.faults,
            kind: violation.faults.some((fault) => views.some((view) => fault.startsWith(`${view.name}: `)))
              ? 'view'
              : 'promise',
            events: violation.path.length,
            trace: traceOf(
              configuration,
              violation.faults,
              violation.path.map(({ event }) => event),
            ),
          },
    edges: [...seen.edges].map(({ id }) => id),
    arrows: Object.fromEntries(views.map((view) => [view.name, takenOf(view)])),
  };
};

/** How much of a list of arrows was taken, and why not the rest. */
export type Reach = {
  readonly reached: number;
  readonly all: number;
  readonly explained: readonly { readonly id: string; readonly why: string }[];
  readonly missing: readonly string[];
  /** Arrows that were taken although there is a reason why they can't be. */
  readonly mistaken: readonly string[];
};

const reachOf = (
  all: readonly string[],
  taken: ReadonlySet<string>,
  reasons: Readonly<Record<string, string>>,
): Reach => {
  const left = all.filter((id) => !taken.has(id));
  return {
    reached: all.length - left.length,
    all: all.length,
    explained: left.flatMap((id) => (reasons[id] === undefined ? [] : [{ id, why: reasons[id] }])),
    missing: left.filter((id) => reasons[id] === undefined),
    mistaken: Object.keys(reasons).filter((id) => taken.has(id) || !all.includes(id)),
  };
};

export type Check = {
  readonly complete: boolean;
  readonly states: number;
  readonly steps: number;
  readonly violations: number;
  readonly illegalProjections: number;
  readonly configurations: readonly Omit<Explored, 'edges' | 'arrows' | 'violation'>[];
  readonly edges: Reach;
  readonly views: readonly (Reach & { readonly name: string })[];
  /** The shortest of those that were found. */
  readonly violation: Violation | null;
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** What the configurations say together. */
export const combine = (
  explored: readonly Explored[],
  edges: readonly Edge[],
  views: readonly View[],
  unreached: Readonly<Record<string, string>>,
): Check => {
  const found = explored.flatMap(({ violation }) => (violation === null ? [] : [violation]));
  const taken = new Set(explored.flatMap((one) => one.edges));
  return {
    complete: explored.every(({ complete }) => complete),
    states: sum(explored.map(({ states }) => states)),
    steps: sum(explored.map(({ steps }) => steps)),
    violations: found.filter(({ kind }) => kind === 'promise').length,
    illegalProjections: found.filter(({ kind }) => kind === 'view').length,
    configurations: explored.map(
      ({ edges: _edges, arrows: _arrows, violation: _violation, ...figures }) => figures,
    ),
    edges: reachOf(
      edges.map(({ id }) => id),
      taken,
      unreached,
    ),
    views: views.map((view) => ({
      name: view.name,
      ...reachOf(
        view.edges.map(({ id }) => id),
        new Set(explored.flatMap(({ arrows }) => arrows[view.name] ?? [])),
        view.unreached,
      ),
    })),
    violation: found.toSorted((one, other) => one.events - other.events)[0] ?? null,
  };
};

/** Whether the check found nothing to complain of. */
export const isSound = ({ complete, violation, edges, views }: Check): boolean =>
  complete &&
  violation === null &&
  [edges, ...views].every(({ missing, mistaken }) => missing.length === 0 && mistaken.length === 0);
