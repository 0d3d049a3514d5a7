/**
 * Compaction: older messages are replaced by a summary, in three modes: idle (before a turn or on
 * request), mid (between rounds), overflow (request too large). The file ends with the moves
 * of GatheringAdditionalMessages, from which mid begins.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`. `rest` in the table is the move with which a state begins to wait.
 * `In<N>` is the state N, `On<T>` the event T.
 */

import { verdictsIn } from '../../policy/judged-call.js';
import type { Action } from '../action.js';
import {
  compactableLength,
  estimateTokens,
  messagesOf,
  replaceBySummary,
} from '../conversation.js';
import type { Event, On } from '../event.js';
import {
  appendInputs,
  changeSession,
  go,
  type In,
  type MoveTo,
  NOTHING_COUNTED,
  nextId,
  type SessionData,
} from '../state.js';
import { showHooks } from './hooks.js';
import { countFailedCompaction, countUsage, newCallingLlm } from './request.js';

type Mode = In<'Compacting'>['mode'];
type Compacting = In<'Compacting'>;

/** Whether there is at least a user message with its answer. */
export const enoughToCompact = (session: SessionData): boolean =>
  compactableLength(session.conversation) >= 2;

/** Whether an automatic compaction may start now (rules.md#one-compaction-between-replies). */
export const mayCompact = (session: SessionData): boolean =>
  session.mayCompact === 'yes' && enoughToCompact(session);

/** Whether the conversation is above the threshold, long enough, and may be compacted. */
export const needsCompaction = (session: SessionData, ratio: number): boolean =>
  session.contextTokens > ratio * session.settings.windowTokens && mayCompact(session);

/**
 * The state of a compaction of the current conversation. `startCompaction` starts it, and gives it
 * its id.
 */
export const newCompacting = (
  session: SessionData,
  mode: Mode,
  instructions?: string,
): Compacting => ({
  name: 'Compacting',
  session,
  compactionId: '',
  length: compactableLength(session.conversation),
  ...(instructions === undefined ? {} : { instructions }),
  mode,
});

/** The `rest` of Compacting: starts it under a new id; a resumed session keeps the id it has. */
export const startCompaction = (state: Compacting): MoveTo<'Compacting'> => {
  const { length, instructions } = state;
  const request = { length, ...(instructions === undefined ? {} : { instructions }) };
  if (state.compactionId !== '')
    return go(state, { type: 'StartCompaction', compactionId: state.compactionId, ...request });
  const [compactionId, session] = nextId(state.session, 'compaction');
  const unaccounted = [...session.unaccounted, compactionId];
  return go(
    { ...state, compactionId, session: changeSession(session, { mayCompact: 'no', unaccounted }) },
    { type: 'StartCompaction', compactionId, ...request },
  );
};

/**
 * CompactRequested: compacts; no turn waits for it, so only what was queued meanwhile is sent
 * (rules.md#compact-on-request).
 */
export const compactNow = (
  state: In<'WaitingForUserInput'>,
  event: On<'CompactRequested'>,
): MoveTo<'Compacting'> =>
  go(newCompacting(state.session, { kind: 'idle', resume: 'rest' }, event.instructions));

export const isStaleCompaction = (
  state: Compacting,
  event: On<'CompactionCompleted'> | On<'CompactionFailed'>,
): boolean => event.compactionId !== state.compactionId;

/** Also on request, where no turn waits. */
export const beforeTurn = (state: Compacting): boolean => state.mode.kind === 'idle';
export const beforeWaitingTurn = (state: Compacting): boolean =>
  state.mode.kind === 'idle' && state.mode.resume !== 'rest';
export const midTurnAndFits = (state: Compacting): boolean =>
  state.mode.kind === 'mid' && state.session.contextTokens < state.session.settings.windowTokens;

const noSummary = '[earlier messages were dropped; their summary is empty]';

const summaryText = (event: On<'CompactionCompleted'>): string =>
  event.summary.trim() === '' ? noSummary : event.summary;

/** The session with the summary in place of its older messages. */
const withSummary = (state: Compacting, event: On<'CompactionCompleted'>): SessionData => {
  const session = countUsage(state.session, event.compactionId, event.usage);
  const conversation = replaceBySummary(session.conversation, state.length, summaryText(event));
  // Only the summary, one message with calls and its results remain to be measured.
  const contextTokens = estimateTokens(messagesOf(conversation));
  return changeSession(session, { conversation, contextTokens, measured: NOTHING_COUNTED });
};

/** Tells the user of the summary. */
const showSummary = (state: Compacting, event: On<'CompactionCompleted'>): readonly Action[] => [
  ...showHooks(verdictsIn(event.hooks)),
  {
    type: 'DisplayNotice',
    kind: 'compacted',
    text: `${state.length} messages were replaced by a summary`,
    summary: summaryText(event),
  },
];

/**
 * Idle compaction completed: back to waiting; inputs queued meanwhile are sent
 * (rules.md#summary-keeps-unanswered, rules.md#compact-on-request).
 */
export const returnCompacted = (
  state: Compacting,
  event: On<'CompactionCompleted'>,
): MoveTo<'WaitingForUserInput'> => {
  const session = withSummary(state, event);
  const isRepeated = state.mode.kind === 'idle' && state.mode.resume === 'sendAgain';
  // An empty queue sends nothing.
  const next = isRepeated ? 'sendAgain' : 'sendQueue';
  return go(
    { name: 'WaitingForUserInput', session, reason: { kind: 'compacted' }, next },
    ...showSummary(state, event),
  );
};

/**
 * Mid or overflow compaction completed: sends the waiting call
 * (rules.md#request-after-compaction).
 */
export const sendCompacted = (
  state: Compacting,
  event: On<'CompactionCompleted'>,
): MoveTo<'CallingLlm'> => {
  const { purpose, attempt } =
    state.mode.kind === 'overflow' ? state.mode : ({ purpose: 'toolResults', attempt: 1 } as const);
  return go(
    newCallingLlm(withSummary(state, event), purpose, attempt),
    ...showSummary(state, event),
  );
};

const failureText = ({ message }: On<'CompactionFailed'>): string =>
  `the conversation could not be summarised: ${message}`;

/** Tells the user that there is no summary. */
const showFailure = (event: On<'CompactionFailed'>): readonly Action[] => [
  ...showHooks(verdictsIn(event.hooks)),
  { type: 'DisplayWarning', kind: 'compaction', text: failureText(event) },
];

/**
 * Idle compaction failed with input waiting: the turn begins anyway
 * (rules.md#compaction-failed).
 */
export const goOnUncompacted = (
  state: Compacting,
  event: On<'CompactionFailed'>,
): MoveTo<'WaitingForUserInput'> => {
  const session = countFailedCompaction(state.session, event);
  // `rest` for the compiler: see `beforeWaitingTurn`
  const next = state.mode.kind === 'idle' ? state.mode.resume : 'rest';
  const reason = {
    kind: 'error',
    error: 'compaction',
    origin: 'llm',
    message: event.message,
  } as const;
  return go({ name: 'WaitingForUserInput', session, reason, next }, ...showFailure(event));
};

/**
 * Mid compaction failed, and the window still fits: sends the results
 * (rules.md#compaction-failed).
 */
export const sendUncompacted = (
  state: Compacting,
  event: On<'CompactionFailed'>,
): MoveTo<'CallingLlm'> => {
  const session = countFailedCompaction(state.session, event);
  return go(newCallingLlm(session, 'toolResults', 1), ...showFailure(event));
};

/** The turn can't go on without a summary, or it was requested. */
export const failCompaction = (
  state: Compacting,
  event: On<'CompactionFailed'>,
): MoveTo<'Failed'> => {
  const session = countFailedCompaction(state.session, event);
  const message = failureText(event);
  return go({ name: 'Failed', session, error: 'compaction', message }, ...showFailure(event));
};

// ---- GatheringAdditionalMessages ----

/**
 * Entry: appends steering messages to the results, in order (rules.md#steering-joins-results).
 */
export const gatherSteers = (
  state: In<'GatheringAdditionalMessages'>,
  _event: Event,
): MoveTo<'GatheringAdditionalMessages'> => {
  const { session } = state;
  const steers = session.queue.filter((item) => item.mode === 'steer');
  const queue = session.queue.filter((item) => item.mode !== 'steer');
  return go({ ...state, session: appendInputs(changeSession(session, { queue }), steers) });
};

export const aboveMidThreshold = (state: In<'GatheringAdditionalMessages'>): boolean =>
  needsCompaction(state.session, state.session.settings.compactMidRatio);

export const compactMidTurn = (state: In<'GatheringAdditionalMessages'>): MoveTo<'Compacting'> =>
  go(newCompacting(state.session, { kind: 'mid' }));

export const sendResults = (state: In<'GatheringAdditionalMessages'>): MoveTo<'CallingLlm'> =>
  go(newCallingLlm(state.session, 'toolResults', 1));
