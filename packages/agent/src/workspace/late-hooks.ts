/**
 * The hooks after tools and the checkpoints of a session, as stand-ins: the first use loads the
 * code that does the work. Most sessions read first, and a start should not pay for git and
 * formatters.
 */

import { stateFolder } from '../platform/environment.js';
import type { Checkpoints } from '../ports/checkpoints.js';
import type { Hooks } from '../ports/hooks.js';
import type { HooksOptions } from './after-tool-hooks.js';
import type { WorkspaceObserver } from './checkpoints/own-changes.js';
import type { CheckpointsPlace } from './checkpoints/session-checkpoints.js';

/** The hooks of one session, whose code is loaded when a call may change files. */
export const createLateHooks = (options: HooksOptions): Hooks => {
  type Loaded = Omit<Hooks, 'deadlinesMs'>;
  let loaded: Loaded | null = null;
  let loading: Promise<Loaded> | null = null;
  const load = (): Promise<Loaded> => {
    loading ??= import('./after-tool-hooks.js').then(
      ({ createHooks }) => (loaded = createHooks(options)),
    );
    return loading;
  };
  return {
    // reading a repository takes milliseconds, a formatter seconds per file; a model writes the
    // commit message
    deadlinesMs: {
      CheckingGitCommits: 10_000,
      RunningAutoformatters: 60_000,
      AutoCommitting: 60_000,
    },
    before: async (call, settings) => (await load()).before(call, settings),
    after: async (call, settings) => (await load()).after(call, settings),
    // before the first load null, so that `run` is called, which loads
    runNow: (phase, context) => loaded?.runNow?.(phase, context) ?? null,
    run: async (phase, context) => (await load()).run(phase, context),
  };
};

/**
 * The checkpoints of one session, whose code is loaded at the first use: usually when a call may
 * change files.
 */
export const createLateCheckpoints = (
  place: Omit<CheckpointsPlace, 'stateFolder'>,
): Checkpoints & WorkspaceObserver => {
  type Loaded = Checkpoints & WorkspaceObserver;
  let loaded: Loaded | null = null;
  let loading: Promise<Loaded> | null = null;
  const load = (): Promise<Loaded> => {
    loading ??= import('./checkpoints/session-checkpoints.js').then(
      ({ createCheckpoints }) =>
        (loaded = createCheckpoints({ ...place, stateFolder: stateFolder(place.environment) })),
    );
    return loading;
  };
  return {
    before: async (...begun) => (await load()).before(...begun),
    after: async (...ended) => (await load()).after(...ended),
    withdraw: async (call) => (await load()).withdraw(call),
    take: async (ended) => (await load()).take(ended),
    // without the code loaded there is no checkpoint: nothing to sweep, record or close
    sweep: async (by) => (loading === null ? null : (await load()).sweep(by)),
    recorded: async () => (loading === null ? undefined : (await load()).recorded()),
    lookBefore: async (call) => (await load()).lookBefore(call),
    observe: async () => (await load()).observe(),
    reported: () => loaded?.reported(), // without the code nothing has been reported
    settle: async (files) => (await load()).settle(files),
    unkept: async (paths) => (await load()).unkept(paths),
    describe: async (checkpoints) => (await load()).describe(checkpoints),
    plan: async (request) => (await load()).plan(request),
    planFile: async (version) => (await load()).planFile(version),
    restore: async (plan) => (await load()).restore(plan),
    close: async () => (loading === null ? undefined : (await load()).close()),
  };
};
