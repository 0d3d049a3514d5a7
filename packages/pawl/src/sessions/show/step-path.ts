import type { MachineTypes } from '@pawl/agent/ports/machine-types';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import type { Edge } from '@pawl/machine/kernel/step-types';

/** The parts of a step that tell its path; for any machine. */
export type Walk = Pick<Stepped<MachineTypes>, 'seq' | 'event' | 'path'>;

/** The edges that changed the state. Internal transitions are left out: they run no exit or entry. */
export const walked = ({ path }: Pick<Walk, 'path'>): readonly Edge[] =>
  path.filter((edge) => edge.kind === 'go');

/** Whether the step changed the state. Deltas, progress and all but the last of several results don't. */
export const moved = (stepped: Pick<Walk, 'path'>): boolean => walked(stepped).length > 0;

/** The states of a step, from the one before it to the one after it; empty if it stayed. */
export const statesOf = (stepped: Pick<Walk, 'path'>): readonly string[] => {
  const edges = walked(stepped);
  const [first] = edges;
  return first === undefined ? [] : [first.from, ...edges.map((edge) => edge.to)];
};

export type Path = Walk['path'];

/** The edges of a tree's step by run, in the order of each run's first edge. */
export const pathsOf = (stepped: Pick<Walk, 'path'>): ReadonlyMap<string, Path> => {
  const paths = new Map<string, Edge[]>();
  for (const edge of walked(stepped)) {
    // Edges of a tree carry the id of their run.
    const node = 'node' in edge && typeof edge.node === 'string' ? edge.node : '';
    paths.set(node, [...(paths.get(node) ?? []), edge]);
  }
  return paths;
};

/** How often each state was entered, in order of first entry: `A · B ×2`. */
export const countStates = (steps: readonly Pick<Walk, 'path'>[]): string => {
  const times = new Map<string, number>();
  for (const step of steps) for (const { to } of walked(step)) times.set(to, (times.get(to) ?? 0) + 1);
  return [...times].map(([name, count]) => (count === 1 ? name : `${name} ×${count}`)).join(' · ');
};

/** One line of a path: journal line, event, states. The same for live and replayed steps. */
export const pathLine = (stepped: Walk): string =>
  `${String(stepped.seq ?? '').padStart(4)}  ${stepped.event.type.padEnd(19)} ${statesOf(stepped).join(' → ')}`;
