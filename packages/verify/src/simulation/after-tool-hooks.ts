/**
 * The hooks that run after the tools of a simulated session. Their commits are durable: they
 * belong to the world, not to the process. A second commit for a call is a violation. At a
 * `crashPoint` the process may crash. `isHealed`: the faults of the session are over.
 */

import type { HookContext, HookReport, Hooks } from '@pawl/agent/ports/hooks';
import type { SimulatedProcess } from './simulated-process.js';

const EMPTY: HookReport = {
  commits: [],
  changedFiles: [],
  dirty: false,
  note: '',
  warning: '',
  proceed: true,
};

const report = (name: string): HookReport => ({
  ...EMPTY,
  commits: [{ hash: name, subject: 'a commit' }],
});

/**
 * Commits once: announces the commit in the journal (`prepare`), and after an interruption looks
 * whether it was made (`interrupted`: what the interrupted run had announced).
 */
const commit = async (
  process: SimulatedProcess,
  { calls, interrupted, prepare, signal }: HookContext,
): Promise<HookReport> => {
  const { world } = process;
  const callIds = calls.map(({ callId }) => callId);
  const name = callIds.join('-');
  const isPrepared =
    interrupted?.some((effect) => effect.kind === 'commit' && effect.commit === name) === true;
  if (isPrepared && callIds.every((callId) => world.commits.has(callId))) return report(name);
  await prepare({
    kind: 'commit',
    gitFolder: '/workspace/.git',
    ref: 'main',
    before: null,
    commit: name,
  });
  process.crashPoint('before a commit');
  if (process.isDead || signal.aborted) return EMPTY;
  for (const callId of callIds) {
    const times = (world.commits.get(callId) ?? 0) + 1;
    world.commits.set(callId, times);
    if (times > 1)
      world.violate('commit-once', `the changes of ${callId} were committed ${times} times`);
  }
  world.noteSituation('commit made');
  world.log(`commit of ${name}`);
  process.crashPoint('after a commit');
  return report(name);
};

/** Hooks that take time, fail as the plan says, and commit what the calls changed. */
export const simulatedHooks = (process: SimulatedProcess): Hooks => ({
  // Around each call that changes something: looking at the workspace takes time.
  before: () => process.pause(0.5),
  after: () => process.pause(0.5),
  deadlinesMs: {
    CheckingGitCommits: 10_000,
    RunningAutoformatters: 30_000,
    AutoCommitting: 30_000,
  },
  // Now and then the first phase needs no waiting.
  runNow: (phase) =>
    phase === 'CheckingGitCommits' && !process.isDead && process.world.choices.chance(0.5)
      ? { ...EMPTY, dirty: true }
      : null,
  run: async (phase, context) => {
    const { world } = process;
    const { choices } = world;
    await process.pause(choices.pick(20, 900));
    if (!world.isHealed && choices.chance(world.plan.toolFaults)) {
      if (choices.chance(0.5)) await process.pause(100_000);
      throw new Error('EPIPE: the hook has failed');
    }
    if (context.signal.aborted) throw new Error('aborted');
    if (process.hasFailedToWrite || process.hasUsedReserve)
      world.violate('no-effect-after-failed-write', `${phase} after the journal has failed`);
    if (phase === 'CheckingGitCommits') return { ...EMPTY, dirty: true };
    if (phase === 'RunningAutoformatters')
      return { ...EMPTY, dirty: true, changedFiles: ['/workspace/a'] };
    // The model is asked for a text.
    if (choices.chance(0.3)) await context.write('name the commit', 'a change');
    return context.signal.aborted ? EMPTY : commit(process, context);
  },
});
