import type { Edge } from '../kernel/step.js';
import type { Stepped } from '../needs.js';

/** An arrow that stays is none that was walked: neither exit nor entry ran. */
export const walked = ({ path }: Stepped): readonly Edge[] => path.filter((edge) => edge.kind === 'go');

/** Whether the step led anywhere: events that stay (deltas, progress, one of several results) do not. */
export const moved = (stepped: Stepped): boolean => walked(stepped).length > 0;

/** The states that a step passed, from where it stood to where it rests. */
export const statesOf = (stepped: Stepped): readonly string[] => {
  const edges = walked(stepped);
  const [first] = edges;
  return first === undefined ? [] : [first.from, ...edges.map((edge) => edge.to)];
};

/** How often each state was entered, in the order of the first times: `A · B ×2`. */
export const countStates = (steps: readonly Stepped[]): string => {
  const times = new Map<string, number>();
  for (const step of steps) for (const { to } of walked(step)) times.set(to, (times.get(to) ?? 0) + 1);
  return [...times].map(([name, count]) => (count === 1 ? name : `${name} ×${count}`)).join(' · ');
};

/** One line of a path: the journal's line, the event, the states it went through. Live and replayed alike. */
export const pathLine = (stepped: Stepped): string =>
  `${String(stepped.seq ?? '').padStart(4)}  ${stepped.event.type.padEnd(19)} ${statesOf(stepped).join(' → ')}`;
