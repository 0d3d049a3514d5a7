import type { Step } from '@pawl/machine/kernel/step-types';
import type { Action } from '../action.js';
import { brokenRule } from '../broken-rule-text.js';
import type { Event } from '../event.js';
import { sessionLimit } from '../moves/budget.js';
import type { State } from '../state.js';

/**
 * Steps that must lead to a request or to the compaction before it, unless a session limit is reached. Doing nothing is
 * the fault that other invariants can't see.
 */

type Taken = Step<State, Action>;

/** Why a step requires a request; null if it requires none. */
const reasonOf = (before: State, event: Event, { path }: Taken): string | null => {
  const { queue, conversation } = before.session;
  switch (before.name) {
    case 'WaitingForUserInput':
      if (event.type === 'UserInput' && event.text.trim() !== '') return 'a text of the user';
      return event.type === 'RetryLast' && conversation.open !== null ? 'a retry that was asked for' : null;
    case 'Error':
      if (event.type === 'RetryNow') return 'a retry that was asked for';
      return event.type === 'TimerFired' && event.timerId === before.timerId ? 'a retry that is due' : null;
    case 'Compacting': {
      if (event.type !== 'CompactionCompleted' || event.compactionId !== before.compactionId) break;
      const { mode } = before;
      if (mode.kind !== 'idle') return 'a summary in a turn';
      return mode.resume === 'sendAgain' || queue.length > 0 ? 'a summary before a turn' : null;
    }
    default:
      break;
  }
  const passes = (name: string): boolean => path.some(({ to }) => to === name);
  if (passes('GatheringAdditionalMessages')) return 'a batch that is over';
  const isReleased =
    passes('EndOfTurn') || (passes('Cancelled') && before.session.settings.queueOnCancel === 'send');
  return isReleased && queue.length > 0 ? 'a queue that is released' : null;
};

/** Whether the same step raised the limit that had held the request back. */
const hasRaisedItself = (state: State): boolean =>
  state.name === 'WaitingForUserInput' &&
  state.reason.kind === 'budget' &&
  state.session.settings.autoRearm === 'on';

export const requiredRequestFaults = (before: State, event: Event, step: Taken): readonly string[] => {
  const { actions, state } = step;
  const reason = reasonOf(before, event, step);
  if (reason === null || sessionLimit(state.session) !== null || hasRaisedItself(state)) return [];
  return actions.some(({ type }) => type === 'SendLlmRequest' || type === 'StartCompaction')
    ? []
    : [brokenRule('never-stuck', `${reason} leads to no request`)];
};
