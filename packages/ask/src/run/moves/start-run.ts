/**
 * Starts a run: checks the depth, then starts the environment. The root has depth 0, a child one
 * more than its parent. A run at `depthMax` has no environment: it is one plain call.
 *
 * table.ts names the guards and moves. A move here makes no model call: it leaves the run deciding
 * (`firstDecision`), and the `always` rows of the state make the call in the same step, beside the
 * environment that starts, unless a policy stops the run.
 */

import { emptyConversation } from '@pawl/agent/machine/conversation';
import { AppendList } from '@pawl/machine/kernel/append-list';
import type { OutsideAction } from '../action.js';
import { addUserText } from '../conversation.js';
import type { RunEventOf } from '../event.js';
import { go, ignore, type Next, nextId } from '../move-result.js';
import type { CodeSettings } from '../settings.js';
import type { Run, RunIn, Task } from '../state.js';
import { noRepeat } from '../stop-policies.js';
import { plainWords, taskWords } from '../texts-for-model.js';
import { firstDecision } from './model-call.js';

type RunStart = {
  readonly nodeId: string;
  readonly depth: number;
  /** From this depth on a run is a plain call. Equal to `depth` for a run that must be one. */
  readonly depthMax: number;
  readonly settings: CodeSettings;
  readonly model: string;
  readonly task: Task;
  /** The parent's deadline; null if it has none. */
  readonly deadlineAt: number | null;
};

/** A new run. */
export const newRun = ({
  nodeId,
  depth,
  depthMax,
  settings,
  model,
  task,
  deadlineAt,
}: RunStart): RunIn<'INIT'> => ({
  name: 'INIT',
  work: { kind: 'new' },
  run: {
    nodeId,
    depth,
    depthMax,
    settings,
    model,
    task,
    iterationsMax: depth === 0 ? settings.iterationsMax : settings.childIterationsMax,
    conversation: emptyConversation,
    characters: 0,
    environment: 'none',
    iterations: 0,
    counters: { request: 0, cell: 0, timer: 0, read: 0, policy: 0 },
    past: AppendList.empty(),
    errors: 0,
    code: noRepeat, // how often in a row the same code and the same output came
    output: noRepeat,
    lastText: '',
    notes: [],
    closing: null, // set once the model is asked for its answer
    deadline: deadlineAt === null ? null : { dueAt: deadlineAt, timerId: null },
    // what the run may still spend; the tree sets it before every step
    purse: { left: { usd: null, tokens: null }, unpriced: 0 },
  },
});

export const hasStarted = (state: RunIn<'INIT'>): boolean => state.work.kind !== 'new';
export const ignoreStart = (state: RunIn<'INIT'>): Next<'INIT'> =>
  ignore(state, 'the run has begun already');

export const depthIsReached = ({ run }: RunIn<'INIT'>): boolean => run.depth >= run.depthMax;

/** The run's time limit; Infinity: none. */
export const timeLimitMs = ({ depth, settings }: Run): number => {
  const { timeMs } = depth === 0 ? settings.limits : settings.childLimits;
  return timeMs === 'unlimited' ? Number.POSITIVE_INFINITY : timeMs;
};

/**
 * Starts the run's time limit, if it ends before the parent's, which `before.deadline` is here. The
 * parent's own timer ends this run, too.
 */
const startClock = (before: Run, at: number): { run: Run; actions: readonly OutsideAction[] } => {
  const timeMs = timeLimitMs(before);
  if (timeMs === Number.POSITIVE_INFINITY) return { run: before, actions: [] };
  const dueAt = at + timeMs;
  if (before.deadline !== null && before.deadline.dueAt <= dueAt) {
    return { run: before, actions: [] };
  }
  const [timerId, run] = nextId(before, 'timer');
  return {
    run: { ...run, deadline: { dueAt, timerId } },
    actions: [{ type: 'ScheduleTimer', timerId, dueAt, delayMs: timeMs }],
  };
};

/** Begins a plain call, without an environment. */
export const startPlain = (
  state: RunIn<'INIT'>,
  event: RunEventOf<'Started'>,
): Next<'SHALLOW_CALL'> => {
  const { run, actions } = startClock(state.run, event.at);
  return go(
    { name: 'SHALLOW_CALL', run: addUserText(run, 'user', plainWords(run)), work: firstDecision },
    ...actions,
  );
};

/** Begins a run with an environment. */
export const startRun = (state: RunIn<'INIT'>, event: RunEventOf<'Started'>): Next<'INIT'> => {
  const { run, actions } = startClock(state.run, event.at);
  const withTask: Run = { ...addUserText(run, 'user', taskWords(run)), environment: 'starting' };
  return go(
    { ...state, run: withTask, work: firstDecision },
    ...actions,
    startEnvironment(withTask),
  );
};

/**
 * Starts a new environment and reruns the recorded cells in it: none for a new run, and those so
 * far after the environment was lost (resume.ts).
 */
export const startEnvironment = ({ task, past }: Run): OutsideAction => ({
  type: 'StartEnvironment',
  material: task.kind === 'prompt' ? { kind: 'text', text: task.prompt } : { kind: 'inputs' },
  past: past.toArray(),
});
