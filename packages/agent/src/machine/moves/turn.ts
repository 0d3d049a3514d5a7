/**
 * Moves of WaitingForUserInput, the begin and the end of a turn.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`, or `ignore(state, why)`. `rest` in the table is the move with which a
 * state begins to wait. `In<N>` is the state N, `On<T>` the event T.
 */

import type { Event, On, QueuedInput } from '../event.js';
import { readLimit } from '../settings.js';
import {
  appendInputs,
  appendTexts,
  changeCounter,
  changeSession,
  go,
  type In,
  ignore,
  type MoveTo,
  nextId,
  type SessionData,
  type State,
  type Stay,
  withSession,
} from '../state.js';
import {
  isLimit,
  noStreaks,
  raiseLimit,
  rearm,
  sessionIsSpent,
  sessionLimit,
  setLimit,
  spentText,
  startClock,
} from './budget.js';
import { enoughToCompact, needsCompaction, newCompacting } from './compaction.js';
import { newCallingLlm } from './request.js';

type Waiting = In<'WaitingForUserInput'>;

// ---- Waiting ----

export const startSession = (state: In<'Ready'>): MoveTo<'WaitingForUserInput'> =>
  go({
    name: 'WaitingForUserInput',
    session: state.session,
    reason: { kind: 'start' },
    next: 'rest',
  });

/**
 * UserInput while waiting: sends the held queue and then the text as one message
 * (rules.md#input-starts-turn).
 */
export const releaseInput = (
  state: In<'Ready'> | Waiting,
  event: On<'UserInput'>,
): MoveTo<'WaitingForUserInput'> => {
  // Only a new input or a reply allows another automatic compaction.
  const session: SessionData = { ...enqueue(state.session, event), mayCompact: 'yes' };
  // The state does not rest with this reason: the text is sent, or held for another reason.
  return go({ name: 'WaitingForUserInput', session, reason: { kind: 'start' }, next: 'sendQueue' });
};

export const ignoreBlank = (state: Waiting): MoveTo<'WaitingForUserInput'> =>
  ignore(state, 'the input was blank');
export const nothingToCancel = (state: Waiting): MoveTo<'WaitingForUserInput'> =>
  ignore(state, 'no turn is running');

/** Whether the conversation ends with a message that has no reply. */
export const lastIsUsers = (state: Waiting): boolean => state.session.conversation.open !== null;

/** RetryLast: sends the same conversation again, nothing is appended (rules.md#retry-last). */
export const releaseAgain = (state: Waiting): MoveTo<'WaitingForUserInput'> =>
  go({ ...state, next: 'sendAgain' });

export const nothingToRetry = (state: Waiting): MoveTo<'WaitingForUserInput'> =>
  go(state, {
    type: 'DisplayNotice',
    kind: 'nothingToDo',
    text: 'nothing to send again: the last message is the answer',
  });

export const canCompact = (state: Waiting): boolean => enoughToCompact(state.session);

export const nothingToCompact = (state: Waiting): MoveTo<'WaitingForUserInput'> =>
  go(state, { type: 'DisplayNotice', kind: 'nothingToDo', text: 'nothing to compact yet' });

export const failInput = (state: Waiting, event: On<'InputFailed'>): MoveTo<'Failed'> =>
  go({ name: 'Failed', session: state.session, error: 'input', message: event.message });

// ---- ApproveBudget while waiting (rules.md#raised-limit) ----

export const isNoLimit = (_state: Waiting, event: On<'ApproveBudget'>): boolean =>
  !isLimit(event.limit);
export const refuseLimit = (
  state: Waiting,
  event: On<'ApproveBudget'>,
): MoveTo<'WaitingForUserInput'> => raiseLimit(state, event);

/** Whether the raised limit is the one that stopped the session, and no other is reached. */
const raiseReleases = (
  { reason, session }: Waiting,
  { dimension, limit }: On<'ApproveBudget'>,
): boolean =>
  // Stryker disable next-line ConditionalExpression: asked for the compiler
  reason.kind === 'budget' &&
  reason.dimension === dimension &&
  sessionLimit(setLimit(session, dimension, readLimit(limit))) === null;
export const queueWaitsForBudget = (state: Waiting, event: On<'ApproveBudget'>): boolean =>
  raiseReleases(state, event) && state.session.queue.length > 0;
export const conversationWaitsForBudget = (state: Waiting, event: On<'ApproveBudget'>): boolean =>
  raiseReleases(state, event) && lastIsUsers(state);

export const approveAndSend = (
  state: Waiting,
  event: On<'ApproveBudget'>,
): MoveTo<'WaitingForUserInput'> => {
  const raised = raiseLimit(state, event);
  return go({ ...raised.state, next: 'sendQueue' }, ...raised.actions);
};
export const approveAndOfferRetry = (
  state: Waiting,
  event: On<'ApproveBudget'>,
): MoveTo<'WaitingForUserInput'> => {
  const raised = raiseLimit(state, event);
  const text = 'the last message was not answered: a retry sends it again';
  return go(raised.state, ...raised.actions, { type: 'DisplayNotice', kind: 'retryLast', text });
};
export const approveLimit = (
  state: Waiting,
  event: On<'ApproveBudget'>,
): MoveTo<'WaitingForUserInput'> => raiseLimit(state, event);

// ---- Begin turn: what WaitingForUserInput does without an event (rules.md#begin-turn) ----

/** Whether something is to be sent: the queue, or the same conversation again. */
export const turnIsReleased = (state: Waiting): boolean =>
  state.next === 'sendAgain' || (state.next === 'sendQueue' && state.session.queue.length > 0);

export const sessionLimitReached = (state: Waiting): boolean =>
  turnIsReleased(state) && sessionIsSpent(state);

/** A session limit is reached: the input stays queued until the user raises the limit. */
export const holdForBudget = (state: Waiting, event: Event): MoveTo<'WaitingForUserInput'> => {
  const dimension = sessionLimit(state.session) ?? 'usd';
  // Raises the limit by itself if the setting autoRearm is on; else there are no actions.
  const { session, actions } = rearm(state.session, dimension);
  const next = actions.length === 0 ? 'raise the limit to go on' : 'it goes with your next message';
  const text = `not sent: ${spentText(state.session, dimension, event.at)}; ${next}`;
  const reason = { kind: 'budget', dimension } as const;
  return go(
    { name: 'WaitingForUserInput', session, reason, next: 'rest' },
    { type: 'DisplayNotice', kind: 'approveBudget', text },
    ...actions,
  );
};

export const fellBack = (state: Waiting): boolean =>
  state.session.settings.primary !== undefined && turnIsReleased(state);

/** The turn that begins goes to the user's model again (rules.md#fallback). */
export const returnToPrimary = (state: Waiting): MoveTo<'WaitingForUserInput'> => {
  const { primary, ...others } = state.session.settings;
  const settings = { ...others, ...primary };
  return go(withSession(state, changeSession(state.session, { settings })), {
    type: 'DisplayNotice',
    kind: 'fallback',
    text: `${settings.model} is asked again`,
  });
};

/** Whether the conversation is to be summarised before the turn begins. */
export const windowIsFilling = (state: Waiting): boolean =>
  turnIsReleased(state) && needsCompaction(state.session, state.session.settings.compactAtRatio);

export const compactFirst = (state: Waiting): MoveTo<'Compacting'> =>
  go(newCompacting(state.session, { kind: 'idle', resume: state.next }));

/**
 * Moves the queue into the conversation as one user message and starts the time limit of the turn.
 */
export const beginTurn = (state: Waiting, event: Event): MoveTo<'CallingLlm'> => {
  const queue = state.next === 'sendQueue' ? state.session.queue : [];
  const noted = appendTexts(state.session, 'note', state.session.notes);
  const asked = appendInputs(changeSession(noted, { notes: [] }), queue);
  const [turnId, numbered] = nextId(asked, 'turn');
  const { objections } = numbered.turn;
  const turn = {
    turnId,
    rounds: 0,
    truncations: 0,
    streaks: noStreaks,
    finishing: 'no' as const,
    startedAt: event.at,
    timeLimit: null,
    // A new turn does not reset what counts per session.
    warned: numbered.turn.warned.filter(
      (dimension) => dimension === 'usd' || dimension === 'tokens',
    ),
    // A turn for an objection continues the count; input of the user resets it.
    // Stryker disable next-line ConditionalExpression: asked before
    objections: state.next === 'sendAgain' ? objections : 0,
  };
  const rest = state.next === 'sendQueue' ? [] : numbered.queue;
  const clock = startClock(
    changeSession(numbered, { queue: rest, turn, emptyReplies: 0 }),
    event.at,
  );
  return go(newCallingLlm(clock.session, 'user', 1), ...clock.actions);
};

/** Rest of WaitingForUserInput: holds the queue and prompts the user. */
export const promptForInput = (state: Waiting): MoveTo<'WaitingForUserInput'> =>
  go({ ...state, next: 'rest' }, { type: 'PromptForInput' });

// ---- EndOfTurn ----

/**
 * A queue follows the turn, or the objection of a hook: WaitingForUserInput sends it, or holds it
 * at a limit (rules.md#queued-turn, rules.md#hook-objects-to-end,
 * rules.md#limit-at-end-of-turn).
 */
export const nextTurnWaits = (state: In<'EndOfTurn'>): boolean =>
  state.session.queue.length > 0 || state.objected === 'yes';

export const endTurn = (state: In<'EndOfTurn'>): MoveTo<'WaitingForUserInput'> =>
  go({
    name: 'WaitingForUserInput',
    session: state.session,
    reason: { kind: 'endOfTurn', cause: state.cause },
    next: 'rest',
  });

/** With both, the queue is sent, and the objection with it. */
export const endTurnAndBeginNext = (state: In<'EndOfTurn'>): MoveTo<'WaitingForUserInput'> => {
  const ended = endTurn(state);
  return go({ ...ended.state, next: state.session.queue.length > 0 ? 'sendQueue' : 'sendAgain' });
};

/**
 * The turn ended normally at a session limit: shows a notice, and sends nothing by itself
 * (rules.md#limit-at-end-of-turn).
 */
export const endTurnAtLimit = (
  state: In<'EndOfTurn'>,
  event: Event,
): MoveTo<'WaitingForUserInput'> => {
  const ended = endTurn(state);
  const dimension = sessionLimit(state.session) ?? 'usd';
  // raises the limit by itself if the setting autoRearm is on
  const { session, actions } = rearm(state.session, dimension);
  const text = spentText(state.session, dimension, event.at);
  return go(
    { ...ended.state, session },
    { type: 'DisplayNotice', kind: 'budget', text },
    ...actions,
  );
};

// ---- The queue: inputs that the user typed while the machine was busy ----

export const isBlank = (_state: State, event: On<'UserInput'>): boolean => event.text.trim() === '';

/** Appends an input to the queue under a new id. */
export const enqueue = (session: SessionData, event: On<'UserInput'>): SessionData => {
  const input = session.counters.input + 1;
  const { text, mode, images } = event;
  const shown = images === undefined ? {} : { images };
  const item = { inputId: `input-${input}`, text, mode, ...shown };
  return changeCounter(changeSession(session, { queue: [...session.queue, item] }), 'input', input);
};

/** UserInput in a busy state is queued, never dropped (rules.md#queue-input). */
export const queueInput = <S extends State>(state: S, event: On<'UserInput'>): Stay<S> => {
  if (isBlank(state, event)) return ignore(state, 'the input was blank');
  const session = enqueue(state.session, event);
  const text = `queued (${session.queue.length})`;
  return go(withSession(state, session), { type: 'DisplayNotice', kind: 'queued', text });
};

/**
 * EditQueue: items keep their ids and images. Those with an unknown or repeated id are ignored, and
 * those with a blank text (rules.md#edit-queue).
 */
export const editQueue = <S extends State>(state: S, event: On<'EditQueue'>): Stay<S> => {
  const known = new Map(state.session.queue.map((item) => [item.inputId, item]));
  const isFirstOfId = ({ inputId }: QueuedInput, index: number): boolean =>
    event.items.findIndex((other) => other.inputId === inputId) === index;
  const queue = event.items
    .filter(
      (item, index) =>
        known.has(item.inputId) && isFirstOfId(item, index) && item.text.trim() !== '',
    )
    .map(({ inputId, text, mode }): QueuedInput => {
      // Stryker disable next-line OptionalChaining: asked before
      const images = known.get(inputId)?.images; // an edited input keeps them
      return { inputId, text, mode, ...(images === undefined ? {} : { images }) };
    });
  const same =
    queue.length === state.session.queue.length &&
    queue.every((item, index) => {
      const old = state.session.queue[index];
      // Stryker disable next-line OptionalChaining: asked before
      return old?.inputId === item.inputId && old.text === item.text && old.mode === item.mode;
    });
  return same
    ? ignore(state, 'the queue is as it was')
    : go(withSession(state, changeSession(state.session, { queue })));
};
