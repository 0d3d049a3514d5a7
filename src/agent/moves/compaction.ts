import type { Action } from '../action.js';
import { changeSession } from '../change.js';
import { compactableLength, estimateTokens, messagesOf, replaceBySummary } from '../conversation.js';
import type { Event, On } from '../event.js';
import type { Next } from '../move.js';
import { go } from '../move.js';
import type { In, Session } from '../state.js';
import { account } from './account.js';
import { nextId, sendRequest } from './request.js';
import { tellInputs } from './tell.js';

/** Compaction: idle (before a turn, or asked for), mid (between rounds), overflow (the provider refused the size). */

type Mode = In<'Compacting'>['mode'];
type Compacting = In<'Compacting'>;

/** At least a user message and its answer: less is not worth a summary. */
export const enoughToCompact = (session: Session): boolean => compactableLength(session.conversation) >= 2;

/** Whether an automatic compaction may start now (R74 allows one between replies). */
export const mayCompact = (session: Session): boolean =>
  session.mayCompact === 'yes' && enoughToCompact(session);

const over = (session: Session, ratio: number): boolean =>
  session.contextTokens > ratio * session.settings.windowTokens;

/** The conversation is above its threshold, and compacting it is worth while and allowed. */
export const needsCompaction = (session: Session, ratio: number): boolean =>
  over(session, ratio) && mayCompact(session);

export const startCompaction = (
  before: Session,
  mode: Mode,
  instructions?: string,
): { state: Compacting; actions: readonly Action[] } => {
  const [compactionId, numbered] = nextId(before, 'compaction');
  const session = changeSession(numbered, {
    mayCompact: 'no',
    unaccounted: [...numbered.unaccounted, compactionId],
  });
  const length = compactableLength(session.conversation);
  const task = { compactionId, length, ...(instructions === undefined ? {} : { instructions }) };
  return {
    state: { name: 'Compacting', session, ...task, mode },
    actions: [{ type: 'StartCompaction', ...task }],
  };
};

/** CompactRequested: the user asks; nothing is sent afterwards (R7). */
export const compactNow = (
  state: In<'WaitingForUserInput'>,
  event: On<'CompactRequested'>,
): Next<'Compacting'> => startCompaction(state.session, { kind: 'idle', resume: 'rest' }, event.instructions);

export const isStaleCompaction = (
  state: Compacting,
  event: On<'CompactionCompleted'> | On<'CompactionFailed'>,
): boolean => event.compactionId !== state.compactionId;

export const beforeTurn = (state: Compacting): boolean => state.mode.kind === 'idle';
const midTurn = (state: Compacting): boolean => state.mode.kind === 'mid';
export const beforeWaitingTurn = (state: Compacting): boolean =>
  state.mode.kind === 'idle' && state.mode.resume !== 'rest';
export const midTurnAndFits = (state: Compacting): boolean =>
  midTurn(state) && state.session.contextTokens < state.session.settings.windowTokens;

const noSummary = '[earlier messages were dropped; their summary is empty]';

const summaryOf = (event: On<'CompactionCompleted'>): string =>
  event.summary.trim() === '' ? noSummary : event.summary;

const summarised = (state: Compacting, event: On<'CompactionCompleted'>): Session => {
  const session = account(state.session, event.compactionId, event.usage);
  const conversation = replaceBySummary(session.conversation, state.length, summaryOf(event));
  // At most the summary, one call message and its results are left to measure.
  const contextTokens = estimateTokens(messagesOf(conversation));
  return changeSession(session, { conversation, contextTokens });
};

const doneNotice = (state: Compacting, event: On<'CompactionCompleted'>): Action => ({
  type: 'DisplayNotice',
  kind: 'compacted',
  text: `${state.length} messages were replaced by a summary`,
  summary: summaryOf(event),
});

/** K idle completed: back to waiting; what was queued meanwhile is sent (R70, R71). */
export const returnCompacted = (
  state: Compacting,
  event: On<'CompactionCompleted'>,
): Next<'WaitingForUserInput'> => {
  const session = summarised(state, event);
  const asked = state.mode.kind === 'idle' ? state.mode.resume : 'rest';
  // An empty queue sends nothing.
  const next = asked === 'sendAgain' ? asked : 'sendQueue';
  return go(
    { name: 'WaitingForUserInput', session, reason: { kind: 'compacted' }, next },
    doneNotice(state, event),
  );
};

/** K mid or overflow completed: the call that waited is sent (R72). */
export const sendCompacted = (state: Compacting, event: On<'CompactionCompleted'>): Next<'CallingLlm'> => {
  const { purpose, attempt } =
    state.mode.kind === 'overflow' ? state.mode : ({ purpose: 'toolResults', attempt: 1 } as const);
  const sent = sendRequest(summarised(state, event), purpose, attempt);
  return go(sent.state, doneNotice(state, event), ...sent.actions);
};

const failedWarning = (event: On<'CompactionFailed'>): Action => ({
  type: 'DisplayWarning',
  kind: 'compaction',
  text: `the conversation could not be summarised: ${event.message}`,
});

/** K idle failed with input waiting: the turn begins without compaction (R73). */
export const goOnUncompacted = (
  state: Compacting,
  event: On<'CompactionFailed'>,
): Next<'WaitingForUserInput'> => {
  const session = account(state.session, event.compactionId, event.usage);
  const next = state.mode.kind === 'idle' ? state.mode.resume : 'rest';
  const reason = { kind: 'error', error: 'compaction', message: event.message } as const;
  return go({ name: 'WaitingForUserInput', session, reason, next }, failedWarning(event));
};

/** K mid failed below the hard window: the results are sent as they are (R73). */
export const sendUncompacted = (state: Compacting, event: On<'CompactionFailed'>): Next<'CallingLlm'> => {
  const sent = sendRequest(account(state.session, event.compactionId, event.usage), 'toolResults', 1);
  return go(sent.state, failedWarning(event), ...sent.actions);
};

export const failCompaction = (state: Compacting, event: On<'CompactionFailed'>): Next<'Failed'> => {
  const session = account(state.session, event.compactionId, event.usage);
  const message = `the conversation could not be summarised: ${event.message}`;
  return go({ name: 'Failed', session, error: 'compaction', message }, failedWarning(event));
};

const abort = (state: Compacting): Action => ({ type: 'AbortCompaction', compactionId: state.compactionId });

export const cancelCompaction = (state: Compacting): Next<'Cancelled'> =>
  go({ name: 'Cancelled', session: state.session, cause: 'user' }, abort(state));

export const stopCompactionForTime = (state: Compacting): Next<'BudgetExceeded'> =>
  go({ name: 'BudgetExceeded', session: state.session, dimension: 'time' }, abort(state));

// ---- GatheringAdditionalMessages ----

/** Entry: messages queued to steer join the results, in order (R52). */
export const gatherSteers = (
  state: In<'GatheringAdditionalMessages'>,
  _event: Event,
): Next<'GatheringAdditionalMessages'> => {
  const { session } = state;
  const steers = session.queue.filter((item) => item.mode === 'steer');
  const queue = session.queue.filter((item) => item.mode !== 'steer');
  return go({ ...state, session: tellInputs(changeSession(session, { queue }), steers) });
};

export const aboveMidThreshold = (state: In<'GatheringAdditionalMessages'>): boolean =>
  needsCompaction(state.session, state.session.settings.compactMidRatio);

export const compactMidTurn = (state: In<'GatheringAdditionalMessages'>): Next<'Compacting'> =>
  startCompaction(state.session, { kind: 'mid' });

export const sendResults = (state: In<'GatheringAdditionalMessages'>): Next<'CallingLlm'> =>
  sendRequest(state.session, 'toolResults', 1);
