import { randomBytes } from 'node:crypto';
import type { Clock } from '../ports/clock.js';

/** Sorts by time, as names of files do. */
export const newSessionId = (clock: Clock): string => {
  const time = new Date(clock.now()).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
  return `${time}-${randomBytes(4).toString('hex')}`;
};
