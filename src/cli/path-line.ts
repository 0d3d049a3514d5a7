import type { Edge } from '../kernel/step.js';
import type { Stepped } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';

/** A step of whatever machine, as far as its path goes. */
export type Walk = Pick<Stepped<MachineTypes>, 'seq' | 'event' | 'path'>;

/** An arrow that stays is none that was walked: neither exit nor entry ran. */
export const walked = ({ path }: Pick<Walk, 'path'>): readonly Edge[] =>
  path.filter((edge) => edge.kind === 'go');

/** Whether the step led anywhere: events that stay (deltas, progress, one of several results) do not. */
export const moved = (stepped: Pick<Walk, 'path'>): boolean => walked(stepped).length > 0;

/** The states that a step passed, from where it stood to where it rests. */
export const statesOf = (stepped: Pick<Walk, 'path'>): readonly string[] => {
  const edges = walked(stepped);
  const [first] = edges;
  return first === undefined ? [] : [first.from, ...edges.map((edge) => edge.to)];
};

export type Path = Walk['path'];

/** What the step of a tree walked, for each run that moved, in the order of their first edges. */
export const pathsOf = (stepped: Pick<Walk, 'path'>): ReadonlyMap<string, Path> => {
  const paths = new Map<string, Edge[]>();
  for (const edge of walked(stepped)) {
    // the edges of a tree name their run
    const node = 'node' in edge && typeof edge.node === 'string' ? edge.node : '';
    paths.set(node, [...(paths.get(node) ?? []), edge]);
  }
  return paths;
};

/** How often each state was entered, in the order of the first times: `A · B ×2`. */
export const countStates = (steps: readonly Pick<Walk, 'path'>[]): string => {
  const times = new Map<string, number>();
  for (const step of steps) for (const { to } of walked(step)) times.set(to, (times.get(to) ?? 0) + 1);
  return [...times].map(([name, count]) => (count === 1 ? name : `${name} ×${count}`)).join(' · ');
};

/** One line of a path: the journal's line, the event, the states it went through. Live and replayed alike. */
export const pathLine = (stepped: Walk): string =>
  `${String(stepped.seq ?? '').padStart(4)}  ${stepped.event.type.padEnd(19)} ${statesOf(stepped).join(' → ')}`;
