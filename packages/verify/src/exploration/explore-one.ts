import { explore, type Progress } from '@pawl/machine/explorer/explore-states';
import type { Projection } from '../projections/projection.js';
import type { Configuration } from './configurations/configuration.js';
import { type AgentMachine, modelOf } from './exploration-model.js';
import type { ExplorationResult } from './exploration-result.js';
import { traceOf } from './write-trace.js';

/** Explores one configuration. `watch` receives the progress. */
export const exploreOne = (
  configuration: Configuration,
  machine: AgentMachine,
  projections: readonly Projection[],
  statesMax: number,
  watch: (progress: Progress) => void,
): ExplorationResult => {
  const { name, about } = configuration;
  const { model, seen } = modelOf(configuration, machine, projections);
  const { violation, ...figures } = explore(model, { statesMax, watch });
  const takenOf = (projection: Projection): readonly string[] =>
    projection.edges.filter((arrow) => seen.arrows.has(arrow)).map(({ id }) => id);
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
            kind: violation.faults.some((fault) =>
              projections.some(({ name }) => fault.startsWith(`${name}: `)),
            )
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
    arrows: Object.fromEntries(projections.map((projection) => [projection.name, takenOf(projection)])),
  };
};
