import { emptyConversation } from '../../agent/conversation.js';
import { Log } from '../../kernel/log.js';
import type { OutsideAction } from '../action.js';
import type { On } from '../event.js';
import type { Next } from '../move.js';
import { go, ignore, nextId } from '../move.js';
import { noRepeat } from '../policies.js';
import type { CodeSettings } from '../settings.js';
import type { In, Run, Task } from '../state.js';
import { tell } from '../talk.js';
import { plainWords, taskWords } from '../words.js';
import { decide } from './call.js';

/** How a run begins: the test of depth first; then the environment and the first call, side by side. */

type Birth = {
  readonly nodeId: string;
  readonly depth: number;
  /** From this depth on a run is a plain call: its own for what is to be one. */
  readonly depthMax: number;
  readonly settings: CodeSettings;
  readonly task: Task;
  /** When the parent's time is over; null if it has no limit. */
  readonly deadlineAt: number | null;
};

/** A run that has not begun. */
export const newRun = ({ nodeId, depth, depthMax, settings, task, deadlineAt }: Birth): In<'INIT'> => ({
  name: 'INIT',
  work: { kind: 'new' },
  run: {
    nodeId,
    depth,
    depthMax,
    settings,
    task,
    iterationsMax: depth === 0 ? settings.iterationsMax : settings.childIterationsMax,
    conversation: emptyConversation,
    characters: 0,
    environment: 'none',
    iterations: 0,
    counters: { request: 0, cell: 0, timer: 0, read: 0, policy: 0 },
    past: Log.empty(),
    errors: 0,
    code: noRepeat,
    output: noRepeat,
    lastText: '',
    notes: [],
    closing: null,
    deadline: deadlineAt === null ? null : { dueAt: deadlineAt, timerId: null },
    purse: { left: { usd: null, tokens: null }, unpriced: 0 },
  },
});

export const hasStarted = (state: In<'INIT'>): boolean => state.work.kind !== 'new';
export const ignoreStart = (state: In<'INIT'>): Next<'INIT'> => ignore(state, 'the run has begun already');

export const depthIsReached = ({ run }: In<'INIT'>): boolean => run.depth >= run.depthMax;

/** The run's own time limit, if it ends sooner than the parent's. */
const startClock = (before: Run, at: number): { run: Run; actions: readonly OutsideAction[] } => {
  const { timeMs } = before.depth === 0 ? before.settings.limits : before.settings.childLimits;
  const dueAt = at + timeMs;
  if (timeMs === 0 || (before.deadline !== null && before.deadline.dueAt <= dueAt)) {
    return { run: before, actions: [] };
  }
  const [timerId, run] = nextId(before, 'timer');
  return {
    run: { ...run, deadline: { dueAt, timerId } },
    actions: [{ type: 'ScheduleTimer', timerId, dueAt }],
  };
};

/** One plain call; no environment is ever started. */
export const startPlain = (state: In<'INIT'>, event: On<'Started'>): Next<'SHALLOW_CALL'> => {
  const { run, actions } = startClock(state.run, event.at);
  const told = tell(run, 'user', plainWords(run));
  return go({ name: 'SHALLOW_CALL', run: told, work: decide }, ...actions);
};

/** The environment starts while the model is called. */
export const startRun = (state: In<'INIT'>, event: On<'Started'>): Next<'INIT'> => {
  const { run, actions } = startClock(state.run, event.at);
  const told: Run = { ...tell(run, 'user', taskWords(run)), environment: 'starting' };
  return go({ ...state, run: told, work: decide }, ...actions, startEnvironment(told));
};

/** A fresh environment that comes to where the run is. */
export const startEnvironment = ({ task, past }: Run): OutsideAction => ({
  type: 'StartEnvironment',
  material: task.kind === 'prompt' ? { kind: 'text', text: task.prompt } : { kind: 'inputs' },
  past: past.toArray(),
});
