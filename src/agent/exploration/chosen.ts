import type { Event, InputMode, QueuedInput } from '../event.js';
import { isEnded } from '../moves/batch.js';
import type { In, State } from '../state.js';
import { type Label, type Node, type Scenery, user } from './node.js';
import { raisedLimit } from './replies.js';

/** What the user may do in a node. */

export const chosen = (node: Node, scenery: Scenery): readonly Label[] => {
  const { state, now: at } = node;
  const { bounds, configuration } = scenery;
  const labels = [...inputs(state, at, scenery), ...edits(state, at), ...limits(state, at, scenery)];
  if (bounds.cancels > 0) labels.push(user({ type: 'CancelTurn', at }));
  if (bounds.shutdowns > 0) {
    labels.push(user({ type: 'ShutdownRequested', at }));
    if (state.name === 'ShuttingDown') labels.push(user(openedAgain(state, at)));
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

export const openedAgain = (state: State, at: number): Event => ({
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

/** A text of its own for each input, so that none can stand for another. */
const textAfter = (state: State): string => `text ${state.session.counters.input + 1}`;

const inputs = (state: State, at: number, { bounds }: Scenery): Label[] => {
  const text = textAfter(state);
  const labels = [user({ type: 'UserInput', at, text: ' ', mode: 'steer' })];
  // Without a word from the user nothing begins: between turns there is always room for one.
  const isIdle =
    state.session.queue.length === 0 && (state.name === 'Ready' || state.name === 'WaitingForUserInput');
  if (isIdle || queued(state, 'steer') < bounds.steers)
    labels.push(user({ type: 'UserInput', at, text, mode: 'steer' }));
  if (queued(state, 'followUp') < bounds.followUps)
    labels.push(user({ type: 'UserInput', at, text, mode: 'followUp' }));
  return labels;
};

/** The queue without its first item, and turned around. */
const edits = (state: State, at: number): readonly Label[] => {
  const { queue } = state.session;
  if (queue.length === 0) return [];
  const edited = (items: readonly QueuedInput[]): Label => user({ type: 'EditQueue', at, items });
  return queue.length === 1 ? [edited([])] : [edited(queue.slice(1)), edited(queue.toReversed())];
};

// ---- Limits ----

/** A limit that was lifted, and one that is none. */
const limits = (state: State, at: number, { settings }: Scenery): readonly Label[] => {
  const { usd, tokens, timeMs } = settings.limits;
  const raise = (dimension: 'usd' | 'tokens' | 'time', limit: number): Label =>
    user({ type: 'ApproveBudget', at, dimension, limit });
  const labels: Label[] = [];
  if (usd > 0) labels.push(raise('usd', raisedLimit));
  if (tokens > 0) labels.push(raise('tokens', 0));
  if (timeMs > 0)
    labels.push(raise('time', state.session.settings.limits.timeMs === timeMs ? timeMs * 2 : timeMs));
  if (state.name === 'WaitingForUserInput') labels.push(raise('usd', -1));
  return labels;
};

// ---- Calls ----

const aboutCalls = (state: In<'ExecutingTools'>, at: number, scenery: Scenery): readonly Label[] => {
  const { batchId, calls } = state;
  const { bounds, configuration } = scenery;
  const labels: Label[] = [];
  for (const call of calls) {
    if (isEnded(call)) continue;
    const { callId } = call.judged;
    if (bounds.cancels > 0) labels.push(user({ type: 'CancelTool', at, batchId, callId }));
    if (call.status !== 'awaitingApproval') continue;
    const answer = (event: Pick<Extract<Event, { type: 'ApprovalAnswered' }>, 'answer' | 'scope'>): Label =>
      user({ type: 'ApprovalAnswered', at, batchId, callId, ...event });
    for (const scope of configuration.scopes) labels.push(answer({ answer: { kind: 'allow' }, scope }));
    labels.push(answer({ answer: { kind: 'deny', reason: 'not this' }, scope: 'once' }));
  }
  return labels;
};
