import type { StateName } from '@pawl/agent/machine/state';
import { isJournalUnsynced } from '../checks/journal.js';
import type { World } from '../world.js';

/**
 * The process crashes at the n-th point: counted from its start, from the moment at which its session is open, or of
 * those points at which the session is in a state, or at which entries (`syncing`) or a new file and its name (`naming`) were
 * written and are not durable yet.
 */
export type CrashPlan = {
  readonly from: 'opening' | 'running' | 'syncing' | 'naming' | StateName;
  readonly points: number;
};

/**
 * When the next process crashes. Three moments are rare and tell much, so they are planned more often: the creation of the
 * session, the first syncs of a process that finds a journal that a killed one has left unsynced, and waiting to retry.
 */
export const planCrash = (world: World): CrashPlan => {
  const { choices, isCreated, lives, plan } = world;
  if (!isCreated && choices.chance(0.15)) return { from: 'naming', points: choices.between(1, 8) };
  if (lives > 1 && isJournalUnsynced(world) && choices.chance(0.7)) {
    const from = choices.pick('syncing', 'naming', 'syncing', 'opening');
    return { from, points: choices.between(1, from === 'opening' ? 60 : 4) };
  }
  if (plan.isAboutRetries) return { from: 'Error', points: choices.between(1, 20) };
  const from = choices.pick(
    'running',
    'opening',
    'running',
    'ExecutingTools',
    'PostToolsHook',
    'Error',
    'Compacting',
    'syncing',
    'naming',
  );
  const points = choices.between(
    1,
    from === 'running' ? choices.pick(40, 10, 120, 300) : choices.pick(10, 3, 40),
  );
  return { from, points };
};
