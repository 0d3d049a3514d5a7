import type { Event, InputMode, QueuedInput } from '@pawl/agent/machine/event';
import { isEnded } from '@pawl/agent/machine/moves/tools/tool-batch';
import type { In, State } from '@pawl/agent/machine/state';
import type { Limit } from '@pawl/agent/machine/values/limit-value';
import { raisedLimit } from './configurations/model-replies.js';
import {
  type ExplorationContext,
  type ExplorationEvent,
  type ExplorationNode,
  user,
} from './exploration-node.js';

/** Events that the user may send in a node. */

export const userEvents = (
  node: ExplorationNode,
  scenery: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { state, now: at } = node;
  const { bounds, configuration } = scenery;
  const labels = [...inputs(state, at, scenery), ...edits(state, at), ...limits(state, at, scenery)];
  if (bounds.cancels > 0) labels.push(user({ type: 'CancelTurn', at }));
  if (bounds.shutdowns > 0) {
    labels.push(user({ type: 'ShutdownRequested', at }));
    if (state.name === 'ShuttingDown') labels.push(user(resumedAfter(state, at)));
  }
  for (const patch of configuration.changes) labels.push(user({ type: 'SettingsChanged', at, patch }));
  switch (state.name) {
    case 'Ready':
      return [...labels, user({ type: 'Start', at })];
    case 'WaitingForUserInput':
      labels.push(user({ type: 'RetryLast', at }));
      if (bounds.compactions > 0) labels.push(user({ type: 'CompactRequested', at }));
      return labels;
    case 'Error':
      return [...labels, user({ type: 'RetryNow', at })];
    case 'ExecutingTools':
      return [...labels, ...aboutCalls(state, at, scenery)];
    default:
      return labels;
  }
};

export const resumedAfter = (state: State, at: number): Event => ({
  type: 'Resumed',
  at,
  epoch: state.session.epoch + 1,
});

// ---- Text ----

const queued = (state: State, mode: InputMode): number => {
  let count = 0;
  for (const item of state.session.queue) if (item.mode === mode) count += 1;
  return count;
};

/** A unique text for each input, so that inputs can't be confused. */
const textAfter = (state: State): string => `text ${state.session.counters.input + 1}`;

const inputs = (state: State, at: number, { bounds }: ExplorationContext): ExplorationEvent[] => {
  const text = textAfter(state);
  const labels = [user({ type: 'UserInput', at, text: ' ', mode: 'steer' })];
  // Only input begins a turn, so between turns one input is always possible.
  const isIdle =
    state.session.queue.length === 0 && (state.name === 'Ready' || state.name === 'WaitingForUserInput');
  if (isIdle || queued(state, 'steer') < bounds.steers)
    labels.push(user({ type: 'UserInput', at, text, mode: 'steer' }));
  if (queued(state, 'followUp') < bounds.followUps)
    labels.push(user({ type: 'UserInput', at, text, mode: 'followUp' }));
  return labels;
};

/** The queue without its first item, and reversed. */
const edits = (state: State, at: number): readonly ExplorationEvent[] => {
  const { queue } = state.session;
  if (queue.length === 0) return [];
  const edited = (items: readonly QueuedInput[]): ExplorationEvent => user({ type: 'EditQueue', at, items });
  return queue.length === 1 ? [edited([])] : [edited(queue.slice(1)), edited(queue.toReversed())];
};

// ---- Limits ----

/** Approvals that lift a limit, and an invalid one. */
const limits = (state: State, at: number, { settings }: ExplorationContext): readonly ExplorationEvent[] => {
  const { usd, tokens, timeMs } = settings.limits;
  const raise = (dimension: 'usd' | 'tokens' | 'time', limit: Limit): ExplorationEvent =>
    user({ type: 'ApproveBudget', at, dimension, limit });
  const labels: ExplorationEvent[] = [];
  if (usd !== 'unlimited') labels.push(raise('usd', raisedLimit));
  if (tokens !== 'unlimited') labels.push(raise('tokens', 0));
  if (timeMs !== 'unlimited')
    labels.push(raise('time', state.session.settings.limits.timeMs === timeMs ? timeMs * 2 : timeMs));
  if (state.name === 'WaitingForUserInput') labels.push(raise('usd', -1));
  return labels;
};

// ---- Calls ----

const aboutCalls = (
  state: In<'ExecutingTools'>,
  at: number,
  scenery: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { batchId, calls } = state;
  const { bounds, configuration } = scenery;
  const labels: ExplorationEvent[] = [];
  for (const call of calls) {
    if (isEnded(call)) continue;
    const { callId } = call.judged;
    if (bounds.cancels > 0) labels.push(user({ type: 'CancelTool', at, batchId, callId }));
    if (call.status !== 'awaitingApproval') continue;
    const answer = (
      event: Pick<Extract<Event, { type: 'ApprovalAnswered' }>, 'answer' | 'scope'>,
    ): ExplorationEvent => user({ type: 'ApprovalAnswered', at, batchId, callId, ...event });
    for (const scope of configuration.scopes) labels.push(answer({ answer: { kind: 'allow' }, scope }));
    labels.push(answer({ answer: { kind: 'deny', reason: 'not this' }, scope: 'once' }));
  }
  return labels;
};
