import { randomUUID } from 'node:crypto';
import type * as restate from '@restatedev/restate-sdk';
import { RESULT_KEPT_MS } from './session-worker.js';

/** This process. */
const PROCESS_ID = randomUUID();

/**
 * Records the process that begins a call, before its work. Returns whether the call was begun by another one, or so long
 * ago that this one has forgotten it.
 */
export const isBegunElsewhere = async (ctx: restate.Context): Promise<boolean> => {
  const born = await ctx.run('born in', () => ({ processId: PROCESS_ID, at: performance.now() }));
  return born.processId !== PROCESS_ID || performance.now() - born.at >= RESULT_KEPT_MS;
};
