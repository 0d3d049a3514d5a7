import type { Journal } from '../ports/journal.js';
import type { MachineTypes } from '../ports/machine-types.js';
import { attempt } from './attempt.js';

/** The time of a journal's last entry; null if there is none, or it can't be read: then time goes on by the clock. */
export const lastTime = async <M extends MachineTypes>(
  journal: Journal<M>,
  timeOf: (event: M['event']) => number,
): Promise<number | null> => {
  const read = await attempt(async () => {
    for await (const { event } of journal.read(Math.max(1, journal.seq))) return timeOf(event);
    return null;
  });
  return read.kind === 'done' ? read.value : null;
};
