import type { Hooks } from '../ports/after-tool-hooks.js';
import type { HooksNeeds } from './after-tool-hooks.js';
import { DEADLINES_MS } from './phase-deadlines.js';

/** The hooks of one session, whose code is loaded when a call may change files for the first time. */

export const createLateHooks = (needs: HooksNeeds): Hooks => {
  let loaded: Hooks | null = null;
  let loading: Promise<Hooks> | null = null;
  const load = (): Promise<Hooks> => {
    loading ??= import('./after-tool-hooks.js').then(({ createHooks }) => (loaded = createHooks(needs)));
    return loading;
  };
  return {
    deadlinesMs: DEADLINES_MS,
    before: async (call, settings) => (await load()).before(call, settings),
    after: async (call, settings) => (await load()).after(call, settings),
    recover: async (workspace) => (await (await load()).recover?.(workspace)) ?? '',
    // not loaded yet: `run` loads them
    runNow: (phase, context) => loaded?.runNow?.(phase, context) ?? null,
    run: async (phase, context) => (await load()).run(phase, context),
  };
};
