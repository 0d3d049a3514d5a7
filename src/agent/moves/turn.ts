import { changeSession } from '../change.js';
import type { Event, On } from '../event.js';
import type { Next } from '../move.js';
import { go, ignore } from '../move.js';
import type { In, Session } from '../state.js';
import { isLimit, raiseLimit, rearm, sessionLimit, spentText } from './budget.js';
import { startClock } from './clock.js';
import { enoughToCompact, needsCompaction, startCompaction } from './compaction.js';
import { enqueue } from './queue.js';
import { nextId, sendRequest } from './request.js';
import { noStreaks } from './streaks.js';
import { tell, tellInputs } from './tell.js';

/** Waiting for the user, and how a turn begins (R1-R7, R0f). */

type Waiting = In<'WaitingForUserInput'>;

export const startSession = (state: In<'Ready'>): Next<'WaitingForUserInput'> =>
  go({ name: 'WaitingForUserInput', session: state.session, reason: { kind: 'start' }, next: 'rest' });

/** UserInput while waiting: what was held goes first, then the text, all as one message (R3). */
export const releaseInput = (
  state: In<'Ready'> | Waiting,
  event: On<'UserInput'>,
): Next<'WaitingForUserInput'> => {
  const session: Session = { ...enqueue(state.session, event), mayCompact: 'yes' };
  // It does not rest so: the text is sent, or held for a reason of its own.
  return go({ name: 'WaitingForUserInput', session, reason: { kind: 'start' }, next: 'sendQueue' });
};

export const ignoreBlank = (state: Waiting): Next<'WaitingForUserInput'> =>
  ignore(state, 'the input was blank');
export const nothingToCancel = (state: Waiting): Next<'WaitingForUserInput'> =>
  ignore(state, 'no turn is running');

export const lastIsUsers = (state: Waiting): boolean => state.session.conversation.open !== null;

/** RetryLast: the conversation as it stands is sent again, nothing is appended (R5). */
export const releaseAgain = (state: Waiting): Next<'WaitingForUserInput'> =>
  go({ ...state, next: 'sendAgain' });

export const nothingToRetry = (state: Waiting): Next<'WaitingForUserInput'> =>
  go(state, {
    type: 'DisplayNotice',
    kind: 'nothingToDo',
    text: 'nothing to send again: the last message is the answer',
  });

export const canCompact = (state: Waiting): boolean => enoughToCompact(state.session);

export const nothingToCompact = (state: Waiting): Next<'WaitingForUserInput'> =>
  go(state, { type: 'DisplayNotice', kind: 'nothingToDo', text: 'nothing to compact yet' });

export const failInput = (state: Waiting, event: On<'InputFailed'>): Next<'Failed'> =>
  go({ name: 'Failed', session: state.session, error: 'input', message: event.message });

// ---- ApproveBudget while waiting (R75, R76) ----

export const isNoLimit = (_state: Waiting, event: On<'ApproveBudget'>): boolean => !isLimit(event.limit);
export const refuseLimit = (state: Waiting, event: On<'ApproveBudget'>): Next<'WaitingForUserInput'> =>
  raiseLimit(state, event);

const stoppedForBudget = (state: Waiting): boolean => state.reason.kind === 'budget';
export const queueWaitsForBudget = (state: Waiting): boolean =>
  stoppedForBudget(state) && state.session.queue.length > 0;
export const conversationWaitsForBudget = (state: Waiting): boolean =>
  stoppedForBudget(state) && lastIsUsers(state);

export const approveAndSend = (state: Waiting, event: On<'ApproveBudget'>): Next<'WaitingForUserInput'> => {
  const raised = raiseLimit(state, event);
  return go({ ...raised.state, next: 'sendQueue' }, ...raised.actions);
};
export const approveAndOfferRetry = (
  state: Waiting,
  event: On<'ApproveBudget'>,
): Next<'WaitingForUserInput'> => {
  const raised = raiseLimit(state, event);
  const text = 'the last message was not answered: a retry sends it again';
  return go(raised.state, ...raised.actions, { type: 'DisplayNotice', kind: 'retryLast', text });
};
export const approveLimit = (state: Waiting, event: On<'ApproveBudget'>): Next<'WaitingForUserInput'> =>
  raiseLimit(state, event);

// ---- Begin turn: the branches that WaitingForUserInput takes without an event (R0f) ----

const released = (state: Waiting): boolean =>
  state.next === 'sendAgain' || (state.next === 'sendQueue' && state.session.queue.length > 0);

export const sessionLimitReached = (state: Waiting): boolean =>
  released(state) && sessionLimit(state.session) !== null;

/** A session limit holds until the user raises it: the input stays queued. */
export const holdForBudget = (state: Waiting, event: Event): Next<'WaitingForUserInput'> => {
  const dimension = sessionLimit(state.session) ?? 'usd';
  const text = `not sent: ${spentText(state.session, dimension, event.at)}; raise the limit to go on`;
  const { session, actions } = rearm(state.session, dimension);
  const reason = { kind: 'budget', dimension } as const;
  return go(
    { name: 'WaitingForUserInput', session, reason, next: 'rest' },
    { type: 'DisplayNotice', kind: 'approveBudget', text },
    ...actions,
  );
};

export const windowIsFilling = (state: Waiting): boolean =>
  released(state) && needsCompaction(state.session, state.session.settings.compactAtRatio);

export const compactFirst = (state: Waiting): Next<'Compacting'> =>
  startCompaction(state.session, { kind: 'idle', resume: state.next });

export const turnIsReleased = (state: Waiting): boolean => released(state);

/** The queue moves into the conversation as one user message, and the turn's clock starts. */
export const beginTurn = (state: Waiting, event: Event): Next<'CallingLlm'> => {
  const queue = state.next === 'sendQueue' ? state.session.queue : [];
  const noted = tell(state.session, 'note', state.session.notes);
  const told = tellInputs(changeSession(noted, { notes: [] }), queue);
  const [turnId, numbered] = nextId(told, 'turn');
  const turn = {
    turnId,
    rounds: 0,
    truncations: 0,
    streaks: noStreaks,
    finishing: 'no' as const,
    startedAt: event.at,
    timeLimit: null,
    warned: numbered.turn.warned.filter(perSession),
  };
  const left = state.next === 'sendQueue' ? [] : numbered.queue;
  const clock = startClock(changeSession(numbered, { queue: left, turn, emptyReplies: 0 }));
  const sent = sendRequest(clock.session, 'user', 1);
  return go(sent.state, ...clock.actions, ...sent.actions);
};

const perSession = (dimension: string): boolean => dimension === 'usd' || dimension === 'tokens';

/** Rest of WaitingForUserInput: the queue is held again, the user is asked. */
export const promptForInput = (state: Waiting): Next<'WaitingForUserInput'> =>
  go({ ...state, next: 'rest' }, { type: 'PromptForInput' });

// ---- EndOfTurn ----

export const queueWaits = (state: In<'EndOfTurn'>): boolean =>
  state.session.queue.length > 0 && sessionLimit(state.session) === null;
export const budgetHoldsQueue = (state: In<'EndOfTurn'>): boolean =>
  state.session.queue.length > 0 && sessionLimit(state.session) !== null;
export const endedAtLimit = (state: In<'EndOfTurn'>): boolean => sessionLimit(state.session) !== null;

export const endTurn = (state: In<'EndOfTurn'>): Next<'WaitingForUserInput'> =>
  go({
    name: 'WaitingForUserInput',
    session: state.session,
    reason: { kind: 'endOfTurn', cause: state.cause },
    next: 'rest',
  });

export const endTurnAndSendQueue = (state: In<'EndOfTurn'>): Next<'WaitingForUserInput'> => {
  const ended = endTurn(state);
  return go({ ...ended.state, next: 'sendQueue' });
};

/** The turn ended normally at a session limit: a notice, and nothing is sent by itself (R55). */
export const endTurnAtLimit = (state: In<'EndOfTurn'>, event: Event): Next<'WaitingForUserInput'> => {
  const ended = endTurn(state);
  const dimension = sessionLimit(state.session) ?? 'usd';
  const { session, actions } = rearm(state.session, dimension);
  const text = spentText(state.session, dimension, event.at);
  return go({ ...ended.state, session }, { type: 'DisplayNotice', kind: 'budget', text }, ...actions);
};
export const holdQueueAtLimit = (state: In<'EndOfTurn'>, event: Event): Next<'WaitingForUserInput'> => {
  const ended = endTurnAtLimit(state, event);
  const dimension = sessionLimit(state.session) ?? 'usd';
  return go({ ...ended.state, reason: { kind: 'budget', dimension } }, ...ended.actions);
};
