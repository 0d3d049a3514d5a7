/**
 * The only retry of the agent. The user sees it, can cancel it and can skip the wait.
 *
 * From top to bottom: the delay; a conversation that is too long for the model; a refused picture;
 * retries and their texts; the model that takes over after the last retry; empty replies; and the
 * cut of a long text.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`. `In<N>` is the state N, `On<T>` the event T.
 */

import type { Action } from '../action.js';
import { messagesOf, openParts, takeBackInput } from '../conversation.js';
import type { ModelErrorKind, On } from '../event.js';
import type { Message, UserMessage } from '../message.js';
import type { FallbackModel, ModelSettings, Prices, RetrySchedule, Settings } from '../settings.js';
import {
  changeSession,
  go,
  type In,
  type MoveTo,
  NOTHING_COUNTED,
  nextId,
  type SessionData,
  schedule,
  timerFrom,
} from '../state.js';
import { hasMoneyLimit } from './budget.js';
import { mayCompact, newCompacting } from './compaction.js';
import { countFailure, countUsage, newCallingLlm, retractPartial } from './request.js';
import { durationText, modelErrorText, resetText, restore } from './stop.js';

type Calling = In<'CallingLlm'>;
type Failure = On<'LlmFailed'>;

/** Milliseconds before retry `retry` (from 1). */
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

/** The settings that retries need. */
type RetrySettings = Pick<
  Settings,
  'maxRetries' | 'retrySchedule' | 'retryJitterMs' | 'retryAfterCapMs'
>;
/** A failed model call of any machine. */
type FailedCall = Pick<Failure, 'error' | 'jitter'>;

/**
 * Milliseconds before retry `retry` (from 1): the larger of the schedule and the delay that the
 * provider asked for. With a schedule of 2 s and a jitter of up to 500 ms, of which the event draws
 * 0.4, it is 2,200 ms.
 */
export const retryDelayMs = (
  settings: RetrySettings,
  retry: number,
  { error, jitter }: FailedCall,
): number => {
  const { retrySchedule, retryJitterMs } = settings;
  const scheduled = scheduledDelayMs(retrySchedule, retry);
  // Stryker disable next-line ConditionalExpression: asked for the compiler
  const share = retrySchedule.kind === 'exponential' ? (retrySchedule.jitter ?? 0) : 0;
  const added = jitter * retryJitterMs + share * scheduled * jitter;
  return Math.max(scheduled + Math.round(added), error.retryAfterMs ?? 0);
};

/** Takes back the text of a failed call, which is not stored. */
const retractText = (state: Calling): readonly Action[] =>
  retractPartial(state.requestId, state.partial);

/** First overflow: the conversation is longer than the model's window, and may be summarised. */
export const overflowMayCompact = (state: Calling, event: Failure): boolean =>
  event.error.kind === 'contextOverflow' && mayCompact(state.session);

export const compactOverflow = (state: Calling, event: Failure): MoveTo<'Compacting'> => {
  const session = countFailure(state.session, event);
  const { purpose, attempt } = state;
  return go(newCompacting(session, { kind: 'overflow', purpose, attempt }), ...retractText(state));
};

/** Room for the note about the cut, so that a cut result never counts as long again. */
const CUT_BYTES_MIN = 128;
const cutBytes = ({ settings }: SessionData): number =>
  Math.max(CUT_BYTES_MIN, settings.resultCutBytes);

export const mayCutResults = ({ session, purpose }: Calling, event: Failure): boolean =>
  event.error.kind === 'contextOverflow' &&
  purpose === 'toolResults' &&
  openParts(session.conversation).some(
    (part) => part.type === 'result' && utf8Bytes(part.text) > cutBytes(session),
  );

/**
 * Second overflow: the last results are cut and sent again (rules.md#overflow-cuts-results).
 */
export const sendCutResults = (state: Calling, event: Failure): MoveTo<'CallingLlm'> => {
  const session = countFailure(state.session, event);
  const limit = cutBytes(session);
  const parts = openParts(session.conversation).map((part) => {
    if (part.type !== 'result') return part;
    const note =
      `\n[… ${utf8Bytes(part.text)} bytes in all, cut because the conversation was too long ` +
      `…]\n`;
    return { ...part, text: cutMiddle(part.text, limit, note) };
  });
  const open: UserMessage = { role: 'user', parts };
  const cut = changeSession(session, {
    conversation: { ...session.conversation, open },
    measured: NOTHING_COUNTED,
  });
  const text = 'the conversation is too long for the model: the last results were cut';
  return go(newCallingLlm(cut, state.purpose, state.attempt), ...retractText(state), {
    type: 'DisplayWarning',
    kind: 'compaction',
    text,
  });
};

export const inputOverflowed = (state: Calling, event: Failure): boolean =>
  event.error.kind === 'contextOverflow' && state.purpose === 'user';

/**
 * Final overflow: the user's text goes back to the editor, so that the next input does not fail in
 * the same way (rules.md#overflow-gives-input-back).
 */
export const giveBackInput = (state: Calling, event: Failure): MoveTo<'Failed'> => {
  const session = countFailure(state.session, event);
  const { inputs, conversation } = takeBackInput(session.conversation);
  const message = `the conversation is too long for the model: ${event.error.message}`;
  const failed = {
    name: 'Failed',
    session: changeSession(session, { conversation, measured: NOTHING_COUNTED }),
    error: 'contextOverflow',
    message,
  } as const;
  return inputs.length === 0
    ? go(failed, ...retractText(state))
    : go(failed, ...retractText(state), restore(inputs));
};

// ---- A refused picture ----

const picturesIn = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => ('images' in part ? part.images.map(({ sha256 }) => sha256) : [])),
  );

/**
 * Pictures that the refusal can mean: the new ones of this request. Without new ones all pictures
 * in the conversation, since the model may have changed.
 */
const suspectPictures = ({ conversation, refusedPictures }: SessionData): readonly string[] => {
  const shown = (messages: readonly Message[]): readonly string[] =>
    picturesIn(messages).filter((sha256) => !refusedPictures.includes(sha256));
  const fresh = shown(conversation.open === null ? [] : [conversation.open]);
  return [...new Set(fresh.length > 0 ? fresh : shown(messagesOf(conversation)))];
};

export const pictureIsRefused = ({ session }: Calling, { error }: Failure): boolean =>
  error.about === 'picture' && suspectPictures(session).length > 0;

/**
 * The request is sent once more without the pictures, and no later one shows them
 * (rules.md#refused-pictures).
 */
export const sendWithoutPictures = (state: Calling, event: Failure): MoveTo<'CallingLlm'> => {
  const counted = countFailure(state.session, event);
  const suspects = suspectPictures(counted);
  const refusedPictures = [...counted.refusedPictures, ...suspects];
  const session = changeSession(counted, { refusedPictures });
  const pictures = suspects.length === 1 ? 'the picture' : 'the pictures';
  const text = `${event.error.message}; sent again without ${pictures}, which no later request shows`;
  return go(newCallingLlm(session, state.purpose, state.attempt), ...retractText(state), {
    type: 'DisplayWarning',
    kind: 'refused',
    text,
  });
};

/** Whether the settings allow the wait that the provider asks for. */
const withinCap = ({ retryAfterCapMs }: RetrySettings, { error }: FailedCall): boolean =>
  (error.retryAfterMs ?? 0) <= retryAfterCapMs;

/**
 * Errors for which a retry can't help, even if the error says `retryable` (rules.md#give-up).
 */
const neverRetried: ReadonlySet<ModelErrorKind> = new Set([
  'auth',
  'badRequest',
  'refused',
  'quotaExhausted',
  'contextOverflow',
]);

/**
 * Whether another attempt may follow `attempt` (from 1). Every machine that calls models uses this
 * rule.
 */
export const isRetried = (settings: RetrySettings, attempt: number, call: FailedCall): boolean =>
  call.error.retryable &&
  !neverRetried.has(call.error.kind) &&
  attempt <= settings.maxRetries &&
  withinCap(settings, call);

export const mayRetry = (state: Calling, event: Failure): boolean =>
  isRetried(state.session.settings, state.attempt, event);

/** The text shown while a retry waits after failed attempt `attempt`. */
export const retryText = (
  { maxRetries }: RetrySettings,
  attempt: number,
  { error }: FailedCall,
  delayMs: number,
): string =>
  `${modelErrorText(error)}: ${error.message}; trying again in ${durationText(delayMs)} ` +
  `(retry ${attempt} of ${maxRetries})`;

/** The text shown when `attempt` was the last one. */
export const failureText = (
  settings: RetrySettings,
  attempt: number,
  call: FailedCall & { readonly at: number },
): string => {
  const { message, retryAfterMs } = call.error;
  const tried = attempt > 1 ? ` (after ${attempt - 1} ${attempt === 2 ? 'retry' : 'retries'})` : '';
  const wait = withinCap(settings, call) ? '' : `; ${resetText(call.at, retryAfterMs ?? 0)}`;
  return `${modelErrorText(call.error)}: ${message}${tried}${wait}`;
};

export const waitToRetry = (state: Calling, event: Failure): MoveTo<'Error'> => {
  const delayMs = retryDelayMs(state.session.settings, state.attempt, event);
  const [timerId, session] = nextId(countFailure(state.session, event), 'timer');
  const { purpose, attempt } = state;
  const { kind, message } = event.error;
  const timer = timerFrom(timerId, event.at, delayMs);
  const text = retryText(state.session.settings, attempt, event, delayMs);
  return go(
    { name: 'Error', session, purpose, attempt, error: { kind, message }, ...timer },
    ...retractText(state),
    { type: 'DisplayWarning', kind: 'retry', text },
    schedule(timer),
  );
};

/**
 * No retry: the error is not retryable, the attempts are used up, or the wait is too long
 * (rules.md#give-up).
 */
export const giveUp = (state: Calling, event: Failure): MoveTo<'Failed'> => {
  const session = countFailure(state.session, event);
  const message = failureText(state.session.settings, state.attempt, event);
  const skipped = isOutage(event) ? searchFallback(session).skipped : [];
  return go(
    { name: 'Failed', session, error: event.error.kind, message },
    ...retractText(state),
    ...(skipped.length === 0 ? [] : [fallbackWarning(skipped.join('; '))]),
  );
};

// ---- Another model takes over for the rest of the turn (rules.md#fallback) ----

/** Failures of a provider. Another provider may answer the same request. */
const outages: ReadonlySet<ModelErrorKind> = new Set([
  'rateLimited',
  'overloaded',
  'unreachable',
  'timeout',
]);

/** Without errors that the user must repair, such as a certificate that is not trusted. */
const isOutage = ({ error }: Failure): boolean =>
  error.kind === 'quotaExhausted' || (error.retryable && outages.has(error.kind));

/** Why the model can't take the request; null if it can. */
const fallbackFault = (session: SessionData, model: FallbackModel): string | null => {
  const { prices, unpriced, tools, windowTokens } = model;
  const { contextTokens, settings } = session;
  if (tools === 'no') return 'it calls no tools';
  if (prices === null && unpriced === undefined && hasMoneyLimit(session))
    return 'its price is unknown, and there is a limit in dollars';
  return contextTokens > windowTokens * settings.compactMidRatio
    ? `its window of ${windowTokens} tokens is too small for the conversation of ${contextTokens}`
    : null;
};

/** The models that have not been asked in this turn, each once. */
const laterModels = ({ settings }: SessionData): readonly FallbackModel[] => {
  // Stryker disable next-line ArrayDeclaration: any other value counts as the user's model
  const { model, primary, fallback = [] } = settings;
  const ids = fallback.map((one) => one.model);
  const asked = primary === undefined ? -1 : ids.indexOf(model);
  return fallback.filter(
    (one, index) =>
      index > asked && ids.indexOf(one.model) === index && one.model !== (primary?.model ?? model),
  );
};

/** The next model that can take the request, and why those before it can't. */
const searchFallback = (
  session: SessionData,
): { readonly next: FallbackModel | null; readonly skipped: readonly string[] } => {
  const skipped: string[] = [];
  for (const next of laterModels(session)) {
    const fault = fallbackFault(session, next);
    if (fault === null) return { next, skipped };
    skipped.push(`${next.model} is passed over: ${fault}`);
  }
  return { next: null, skipped };
};

export const mayFallBack = ({ session }: Calling, event: Failure): boolean =>
  isOutage(event) && searchFallback(session).next !== null;

const fallbackWarning = (text: string): Action => ({
  type: 'DisplayWarning',
  kind: 'fallback',
  text,
});

const priceText = (prices: Prices | null): string =>
  prices === null
    ? 'at an unknown price'
    : `at $${prices.input} in, $${prices.output} out per million tokens`;

/** The same request for the next model, which stays until the next turn begins. */
export const fallBack = (state: Calling, event: Failure): MoveTo<'CallingLlm'> => {
  const counted = countFailure(state.session, event);
  const { settings } = counted;
  const { next, skipped } = searchFallback(counted);
  // The guard has found one; the default only satisfies the type.
  // Stryker disable next-line ObjectLiteral: asked for the compiler
  const { model, windowTokens, cancelMode, prices = null } = next ?? { ...settings, prices: null };
  const { primary = modelSettings(settings) } = settings;
  const session = changeSession(counted, {
    settings: {
      ...settings,
      model,
      windowTokens,
      cancelMode: cancelMode ?? primary.cancelMode ?? settings.cancelMode,
      primary,
    },
  });
  const reason = failureText(settings, state.attempt, event);
  const takesOver = `${model} takes over until the next turn, ${priceText(prices)}`;
  return go(
    newCallingLlm(session, state.purpose, 1),
    ...retractText(state),
    fallbackWarning([reason, ...skipped, takesOver].join('; ')),
  );
};

const modelSettings = ({ model, windowTokens, cancelMode }: Settings): ModelSettings => ({
  model,
  windowTokens,
  cancelMode,
});

/**
 * Retries an empty reply, which is counted apart from attempts (`emptyMayRetry` in reply.ts)
 * (rules.md#empty-reply).
 */
export const waitAfterEmpty = (state: Calling, event: On<'LlmCompleted'>): MoveTo<'Error'> => {
  const counted = countUsage(state.session, event.requestId, event.usage);
  const emptyReplies = counted.emptyReplies + 1;
  const [timerId, numbered] = nextId(
    changeSession(counted, { emptyReplies, mayCompact: 'yes' }),
    'timer',
  );
  const delayMs = scheduledDelayMs(numbered.settings.retrySchedule, emptyReplies);
  const timer = timerFrom(timerId, event.at, delayMs);
  const error = { kind: 'empty', message: 'the model sent an empty reply' } as const;
  const text = `${error.message}; asking again in ${durationText(delayMs)}`;
  return go(
    {
      name: 'Error',
      session: numbered,
      purpose: state.purpose,
      attempt: state.attempt,
      error,
      ...timer,
    },
    ...retractText(state),
    { type: 'DisplayWarning', kind: 'empty', text },
    schedule(timer),
  );
};

export const isRetryTimer = (state: In<'Error'>, event: On<'TimerFired'>): boolean =>
  event.timerId === state.timerId;

/** The same messages under a new request id (rules.md#send-again). */
export const tryAgain = (state: In<'Error'>): MoveTo<'CallingLlm'> =>
  go(
    newCallingLlm(
      state.session,
      state.purpose,
      state.error.kind === 'empty' ? 1 : state.attempt + 1,
    ),
  );

// ---- The cut of a long text ----

const byteCount = (character: string): number => {
  const point = character.codePointAt(0) ?? 0;
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  return point < 0x10000 ? 3 : 4;
};

/** Size in bytes of UTF-8. */
export const utf8Bytes = (text: string): number => {
  let bytes = 0;
  for (const character of text) bytes += byteCount(character);
  return bytes;
};

/** How many of the characters fit into `limit` bytes. */
const takeBytes = (characters: readonly string[], limit: number): number => {
  let bytes = 0;
  let count = 0;
  for (const character of characters) {
    bytes += byteCount(character);
    if (bytes > limit) break;
    count += 1;
  }
  return count;
};

/**
 * Head and tail of a text with a note between them: at most `limit` bytes, whole characters only.
 * Of 1,000 bytes with a limit of 300 and a note of 40, the first and the last 130 stay.
 */
export const cutMiddle = (text: string, limit: number, note: string): string => {
  if (utf8Bytes(text) <= limit) return text;
  const half = Math.max(0, Math.floor((limit - utf8Bytes(note)) / 2));
  const characters = [...text];
  const head = characters.slice(0, takeBytes(characters, half));
  const tail = characters.slice(characters.length - takeBytes(characters.toReversed(), half));
  return head.join('') + note + tail.join('');
};
