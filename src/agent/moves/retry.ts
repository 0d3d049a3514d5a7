import type { Action } from '../action.js';
import { changeSession } from '../change.js';
import { openParts, takeBackInput } from '../conversation.js';
import type { ModelErrorKind, On } from '../event.js';
import type { UserMessage } from '../message.js';
import type { Next } from '../move.js';
import { go } from '../move.js';
import type { RetrySchedule, Settings } from '../settings.js';
import type { In, Session } from '../state.js';
import { account } from './account.js';
import { mayCompact, startCompaction } from './compaction.js';
import { cutMiddle, utf8Bytes } from './cut.js';
import { retract } from './partial.js';
import { nextId, sendRequest } from './request.js';
import { callWords, duration, resetWords } from './words.js';

/** The only retry there is: user sees it, can cancel it and hurry it (R18-R23, 2.7). */

type Calling = In<'CallingLlm'>;
type Failure = On<'LlmFailed'>;

/** Delay before retry `retry` (from 1) in milliseconds. */
const scheduledDelayMs = (schedule: RetrySchedule, retry: number): number => {
  switch (schedule.kind) {
    case 'linear':
      return schedule.stepMs * retry;
    case 'exponential':
      return Math.min(schedule.baseMs * schedule.factor ** (retry - 1), schedule.capMs);
    case 'list':
      return schedule.delaysMs[Math.min(retry, schedule.delaysMs.length) - 1] ?? 0;
    default:
      return schedule satisfies never;
  }
};

/** What a machine must be set to in order to retry. */
type RetrySettings = Pick<Settings, 'maxRetries' | 'retrySchedule' | 'retryJitterMs' | 'retryAfterCapMs'>;
/** A model call that failed, whatever machine made it. */
type FailedCall = Pick<Failure, 'error' | 'jitter'>;

/** The larger of our schedule and the provider's wish, before retry `retry` (from 1). */
export const retryDelayMs = (
  settings: RetrySettings,
  retry: number,
  { error, jitter }: FailedCall,
): number => {
  const own = scheduledDelayMs(settings.retrySchedule, retry) + Math.round(jitter * settings.retryJitterMs);
  return Math.max(own, error.retryAfterMs ?? 0);
};

const leave = (state: Calling): readonly Action[] => retract(state.requestId, state.partial);

export const isStaleReply = (state: Calling, event: { readonly requestId: string }): boolean =>
  event.requestId !== state.requestId;

export const overflowMayCompact = (state: Calling, event: Failure): boolean =>
  event.error.kind === 'contextOverflow' && mayCompact(state.session);

export const compactOverflow = (state: Calling, event: Failure): Next<'Compacting'> => {
  const session = account(state.session, event.requestId, event.usage);
  const started = startCompaction(session, {
    kind: 'overflow',
    purpose: state.purpose,
    attempt: state.attempt,
  });
  return go(started.state, ...leave(state), ...started.actions);
};

const longResults = (session: Session): boolean =>
  openParts(session.conversation).some(
    (part) => part.type === 'result' && utf8Bytes(part.text) > session.settings.resultCutBytes,
  );

export const mayCutResults = (state: Calling, event: Failure): boolean =>
  event.error.kind === 'contextOverflow' && state.purpose === 'toolResults' && longResults(state.session);

const cutResult = (text: string, limit: number): string =>
  cutMiddle(
    text,
    limit,
    `\n[… ${utf8Bytes(text)} bytes in all, cut because the conversation was too long …]\n`,
  );

/** Second overflow: the last results are cut, and sent once more (R18b). */
export const sendCutResults = (state: Calling, event: Failure): Next<'CallingLlm'> => {
  const session = account(state.session, event.requestId, event.usage);
  const limit = session.settings.resultCutBytes;
  const parts = openParts(session.conversation).map((part) =>
    part.type === 'result' ? { ...part, text: cutResult(part.text, limit) } : part,
  );
  const open: UserMessage = { role: 'user', parts };
  const cut = changeSession(session, { conversation: { ...session.conversation, open } });
  const sent = sendRequest(cut, state.purpose, state.attempt);
  const text = 'the conversation is too long for the model: the last results were cut';
  return go(
    sent.state,
    ...leave(state),
    { type: 'DisplayWarning', kind: 'compaction', text },
    ...sent.actions,
  );
};

export const inputOverflowed = (state: Calling, event: Failure): boolean =>
  event.error.kind === 'contextOverflow' && state.purpose === 'user';

/** Final overflow: the user's text goes back to the editor, so that the next input does not meet the same wall (R18c). */
export const giveBackInput = (state: Calling, event: Failure): Next<'Failed'> => {
  const session = account(state.session, event.requestId, event.usage);
  const { texts, conversation } = takeBackInput(session.conversation);
  const message = `the conversation is too long for the model: ${event.error.message}`;
  const failed = {
    name: 'Failed',
    session: changeSession(session, { conversation }),
    error: 'contextOverflow',
    message,
  } as const;
  return texts.length === 0
    ? go(failed, ...leave(state))
    : go(failed, ...leave(state), { type: 'RestoreQueue', texts });
};

const withinCap = ({ retryAfterCapMs }: RetrySettings, { error }: FailedCall): boolean =>
  (error.retryAfterMs ?? 0) <= retryAfterCapMs;

/** Trying again cannot help, whatever the provider's edge says (2.7). */
const neverRetried: ReadonlySet<ModelErrorKind> = new Set([
  'auth',
  'badRequest',
  'refused',
  'quotaExhausted',
  'contextOverflow',
]);

/** Whether attempt `attempt` (from 1) may be followed by another: the rule of every machine that calls models. */
export const isRetried = (settings: RetrySettings, attempt: number, call: FailedCall): boolean =>
  call.error.retryable &&
  !neverRetried.has(call.error.kind) &&
  attempt <= settings.maxRetries &&
  withinCap(settings, call);

export const mayRetry = (state: Calling, event: Failure): boolean =>
  isRetried(state.session.settings, state.attempt, event);

/** What is said while attempt `attempt` has failed and the next one is waited for. */
export const retryText = (
  { maxRetries }: RetrySettings,
  attempt: number,
  { error }: FailedCall,
  delayMs: number,
): string =>
  `${callWords(error.kind)}: ${error.message}; trying again in ${duration(delayMs)} (retry ${attempt} of ${maxRetries})`;

/** What is said when attempt `attempt` was the last. */
export const failureText = (
  settings: RetrySettings,
  attempt: number,
  call: FailedCall & { readonly at: number },
): string => {
  const { kind, message, retryAfterMs } = call.error;
  const tried = attempt > 1 ? ` (after ${attempt - 1} ${attempt === 2 ? 'retry' : 'retries'})` : '';
  const wait = withinCap(settings, call) ? '' : `; ${resetWords(call.at, retryAfterMs ?? 0)}`;
  return `${callWords(kind)}: ${message}${tried}${wait}`;
};

export const waitToRetry = (state: Calling, event: Failure): Next<'Error'> => {
  const delayMs = retryDelayMs(state.session.settings, state.attempt, event);
  const [timerId, session] = nextId(account(state.session, event.requestId, event.usage), 'timer');
  const { purpose, attempt } = state;
  const { kind, message } = event.error;
  const dueAt = event.at + delayMs;
  const text = retryText(state.session.settings, attempt, event, delayMs);
  return go(
    { name: 'Error', session, purpose, attempt, error: { kind, message }, timerId, dueAt },
    ...leave(state),
    { type: 'DisplayWarning', kind: 'retry', text },
    { type: 'ScheduleTimer', timerId, dueAt },
  );
};

/** Not retryable, attempts used up, or a longer wait than we wait for (R20). */
export const giveUp = (state: Calling, event: Failure): Next<'Failed'> => {
  const session = account(state.session, event.requestId, event.usage);
  const message = failureText(state.session.settings, state.attempt, event);
  return go({ name: 'Failed', session, error: event.error.kind, message }, ...leave(state));
};

/** An empty reply is asked for again, if the settings say so; counted apart from attempts (R12). */
export const waitAfterEmpty = (state: Calling, event: On<'LlmCompleted'>): Next<'Error'> => {
  const booked = account(state.session, event.requestId, event.usage);
  const emptyReplies = booked.emptyReplies + 1;
  const [timerId, numbered] = nextId(changeSession(booked, { emptyReplies, mayCompact: 'yes' }), 'timer');
  const dueAt = event.at + scheduledDelayMs(numbered.settings.retrySchedule, emptyReplies);
  const error = { kind: 'empty', message: 'the model sent an empty reply' } as const;
  const text = `${error.message}; asking again in ${duration(dueAt - event.at)}`;
  return go(
    {
      name: 'Error',
      session: numbered,
      purpose: state.purpose,
      attempt: state.attempt,
      error,
      timerId,
      dueAt,
    },
    ...leave(state),
    { type: 'DisplayWarning', kind: 'empty', text },
    { type: 'ScheduleTimer', timerId, dueAt },
  );
};

export const isRetryTimer = (state: In<'Error'>, event: On<'TimerFired'>): boolean =>
  event.timerId === state.timerId;

/** The same messages under a new request id (R22, R23). */
export const tryAgain = (state: In<'Error'>): Next<'CallingLlm'> =>
  sendRequest(state.session, state.purpose, state.error.kind === 'empty' ? 1 : state.attempt + 1);
