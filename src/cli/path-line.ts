import type { Stepped } from '../needs.js';

/** Whether the step led anywhere: events that stay (deltas, progress) do not. */
export const moved = ({ path }: Stepped): boolean =>
  path.some((edge) => edge.from !== edge.to || edge.event === null);

/** The states that a step passed, from where it stood to where it rests. */
export const statesOf = ({ path }: Stepped): readonly string[] => {
  const [first] = path;
  return first === undefined ? [] : [first.from, ...path.map((edge) => edge.to)];
};

/** One line of a path: the journal's line, the event, the states it went through. Live and replayed alike. */
export const pathLine = (stepped: Stepped): string =>
  `${String(stepped.seq ?? '').padStart(4)}  ${stepped.event.type.padEnd(19)} ${statesOf(stepped).join(' → ')}`;
