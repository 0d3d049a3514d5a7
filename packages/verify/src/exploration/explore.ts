/**
 * Explores one configuration of the machine completely: every event in every state that can be
 * reached within its bounds. A projection tells the same steps as steps of another agent (a seed),
 * whose table they must obey.
 */

import { explore, type Progress } from '@pawl/machine/explorer/explore';
import type { Edge } from '@pawl/machine/kernel/table';
import type { Projection } from '../projections/projection.js';
import type { Configuration } from './configuration.js';
import { type AgentMachine, createModel } from './exploration-model.js';
import { writeTrace } from './write-trace.js';

/** Explores one configuration. `watch` receives the progress. */
export const exploreOne = (
  configuration: Configuration,
  machine: AgentMachine,
  projections: readonly Projection[],
  statesMax: number,
  watch: (progress: Progress) => void,
): ExplorationResult => {
  const { name, about } = configuration;
  const { model, seen } = createModel(configuration, machine, projections);
  const { violation, ...figures } = explore(model, { statesMax, watch });
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
            // A fault of a projection begins with its name.
            kind: violation.faults.some((fault) =>
              projections.some(({ name }) => fault.startsWith(`${name}: `)),
            )
              ? 'view'
              : 'promise',
            events: violation.path.length,
            trace: writeTrace(
              configuration,
              violation.faults,
              violation.path.map(({ event }) => event),
            ),
          },
    edges: [...seen.edges].map(({ id }) => id),
    arrows: Object.fromEntries(
      projections.map((projection) => [
        projection.name,
        projection.edges.filter((arrow) => seen.arrows.has(arrow)).map(({ id }) => id),
      ]),
    ),
  };
};

// ---- Results: plain values, since they may come from other processes ----

type CheckViolation = {
  readonly configuration: string;
  readonly faults: readonly string[];
  /**
   * `view`: a projected step is illegal in the seed's table. `promise`: a rule of
   * docs/design/rules.md is broken.
   */
  readonly kind: 'promise' | 'view';
  readonly events: number;
  /** A shortest path to the violation, as a trace. */
  readonly trace: string;
};

export type ExplorationResult = {
  readonly name: string;
  readonly about: string;
  readonly states: number;
  readonly steps: number;
  readonly depth: number;
  readonly complete: boolean;
  readonly violation: CheckViolation | null;
  /** Ids of the machine's edges that were taken. */
  readonly edges: readonly string[];
  /** Ids of the edges that were taken, by the name of the projection. */
  readonly arrows: Readonly<Record<string, readonly string[]>>;
};

/**
 * Edges of the machine that no configuration takes, by id, with their reasons. A reason for a taken
 * edge is a fault.
 */
export const excusedArrows: Readonly<Record<string, string>> = {};

/** Coverage of a list of edges, with the reasons for missing ones. */
export type Coverage = {
  readonly reached: number;
  readonly all: number;
  readonly explained: readonly { readonly id: string; readonly why: string }[];
  readonly missing: readonly string[];
  /** Edges that have a reason why they can't be taken, and were taken or do not exist. */
  readonly mistaken: readonly string[];
};

const measureCoverage = (
  all: readonly string[],
  taken: ReadonlySet<string>,
  reasons: Readonly<Record<string, string>>,
): Coverage => {
  const unreached = all.filter((id) => !taken.has(id));
  return {
    reached: all.length - unreached.length,
    all: all.length,
    explained: unreached.flatMap((id) =>
      reasons[id] === undefined ? [] : [{ id, why: reasons[id] }],
    ),
    missing: unreached.filter((id) => reasons[id] === undefined),
    mistaken: Object.keys(reasons).filter((id) => taken.has(id) || !all.includes(id)),
  };
};

export type CheckResult = {
  readonly complete: boolean;
  readonly states: number;
  readonly steps: number;
  readonly violations: number;
  readonly illegalProjections: number;
  readonly configurations: readonly Omit<ExplorationResult, 'edges' | 'arrows' | 'violation'>[];
  readonly edges: Coverage;
  readonly views: readonly (Coverage & { readonly name: string })[];
  /** The shortest violation. */
  readonly violation: CheckViolation | null;
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** Combines the results of all configurations. `unreached`: reasons for edges, by id. */
export const combineResults = (
  explored: readonly ExplorationResult[],
  edges: readonly Edge[],
  projections: readonly Projection[],
  unreached: Readonly<Record<string, string>>,
): CheckResult => {
  const violations = explored.flatMap(({ violation }) => (violation === null ? [] : [violation]));
  const taken = new Set(explored.flatMap((one) => one.edges));
  return {
    complete: explored.every(({ complete }) => complete),
    states: sum(explored.map(({ states }) => states)),
    steps: sum(explored.map(({ steps }) => steps)),
    violations: violations.filter(({ kind }) => kind === 'promise').length,
    illegalProjections: violations.filter(({ kind }) => kind === 'view').length,
    configurations: explored.map(
      ({ edges: _edges, arrows: _arrows, violation: _violation, ...figures }) => figures,
    ),
    edges: measureCoverage(
      edges.map(({ id }) => id),
      taken,
      unreached,
    ),
    views: projections.map((projection) => ({
      name: projection.name,
      ...measureCoverage(
        projection.edges.map(({ id }) => id),
        new Set(explored.flatMap(({ arrows }) => arrows[projection.name] ?? [])),
        projection.unreached,
      ),
    })),
    violation: violations.toSorted((one, other) => one.events - other.events)[0] ?? null,
  };
};

/** Whether the check is complete and without faults. */
export const isSound = ({ complete, violation, edges, views }: CheckResult): boolean =>
  complete &&
  violation === null &&
  [edges, ...views].every(({ missing, mistaken }) => missing.length === 0 && mistaken.length === 0);
