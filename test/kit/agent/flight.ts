import type { State } from '../../../packages/agent/src/machine/state.js';

/** Ids of what is in flight, for events that answer it. */

export const requestOf = (state: State): string =>
  state.name === 'CallingLlm' ? state.requestId : 'req-none';
export const batchOf = (state: State): string =>
  state.name === 'ExecutingTools' ? state.batchId : 'batch-none';
export const hookOf = (state: State): string =>
  state.name === 'PostToolsHook' ? state.hookId : 'hook-none';
export const compactionOf = (state: State): string =>
  state.name === 'Compacting' ? state.compactionId : 'compaction-none';

/** The timer the state waits for: a retry, the grace of a batch, the grace of a call. */
export const timerOf = (state: State): string => {
  if (state.name === 'Error') return state.timerId;
  if (state.name !== 'ExecutingTools') return 'timer-none';
  if (state.phase.mode === 'cancelling') return state.phase.graceTimerId ?? 'timer-none';
  for (const one of state.calls)
    if ('graceTimerId' in one && one.graceTimerId !== null) return one.graceTimerId;
  return 'timer-none';
};
