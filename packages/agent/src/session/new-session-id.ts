import { randomBytes } from 'node:crypto';
import type { Clock } from '../ports/clock.js';

/** Ids sort by time, also as file names. */
export const newSessionId = (clock: Clock): string => {
  const time = new Date(clock.now()).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
  return `${time}-${randomBytes(4).toString('hex')}`;
};
