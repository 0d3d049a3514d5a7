import type { Action } from '../action.js';
import { changeCalling, changeSession, changeTurn } from '../change.js';
import type { On } from '../event.js';
import type { AssistantMessage } from '../message.js';
import type { Next } from '../move.js';
import { go, ignore } from '../move.js';
import type { In, Reply, Session } from '../state.js';
import { account } from './account.js';
import { cancelledResult, refusedResult } from './outcomes.js';
import { retract } from './partial.js';
import { answer, store } from './tell.js';

/** From the end of a model call to the end of the turn or the tools (R8-R17). */

type Calling = In<'CallingLlm'>;
type Completed = On<'LlmCompleted'>;
type Processing = In<'ProcessingLlmResponse'>;

/** A piece of text: shown at once, kept until the reply is whole (R8). */
export const showDelta = (state: Calling, event: On<'TextDelta'>): Next<'CallingLlm'> =>
  go(changeCalling(state, { partial: state.partial + event.text }), {
    type: 'DisplayText',
    text: event.text,
  });

/** Reasoning and half calls are shown by whoever looks on; the machine keeps nothing of them (R9). */
export const showOnly = (state: Calling): Next<'CallingLlm'> => go(state);
export const ignoreOldReply = (state: Calling): Next<'CallingLlm'> =>
  ignore(state, 'stale: it belongs to an old request');

const textOf = (message: AssistantMessage | null): string =>
  message?.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? '';

const isEmpty = (event: Pick<Completed, 'message' | 'calls'>): boolean =>
  event.calls.length === 0 && textOf(event.message).trim() === '';

const callIdsRepeat = (reply: Pick<Reply, 'calls'>): boolean =>
  new Set(reply.calls.map((call) => call.callId)).size !== reply.calls.length;

const isMalformed = (reply: Pick<Reply, 'calls' | 'message'>): boolean =>
  reply.message === null || callIdsRepeat(reply);

/** Whether a reply that nobody waits for any more has no calls that must be answered. */
const answersNothing = (event: Completed): boolean => event.calls.length === 0 || isMalformed(event);
/** Those for the time limit come first. */
export const drainedByUser = (state: Calling, event: Completed): boolean =>
  state.call.mode === 'draining' && answersNothing(event);
export const drainedByTime = (state: Calling, event: Completed): boolean =>
  state.call.mode === 'draining' && state.call.cause === 'time' && answersNothing(event);

export const emptyMayRetry = (state: Calling, event: Completed): boolean =>
  event.message !== null &&
  isEmpty(event) &&
  event.stopReason !== 'refusal' &&
  event.stopReason !== 'contentFilter' &&
  state.session.emptyReplies < state.session.settings.emptyRetries;

/** Books a completed reply: its usage, the size of the conversation as the model counted it. */
const book = (state: Calling, event: Completed): Session => {
  const { usage } = event;
  const counted = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens;
  const session = account(state.session, event.requestId, usage);
  return changeSession(session, {
    contextTokens: counted > 0 ? counted : session.contextTokens,
    mayCompact: 'yes',
    emptyReplies: isEmpty(event) ? session.emptyReplies + 1 : 0,
  });
};

const replyOf = (state: Calling, event: Completed): Reply => ({
  message: event.message,
  calls: event.calls,
  stopReason: event.stopReason,
  shown: state.partial,
  draining: state.call.mode === 'draining' ? state.call.cause : null,
  requestId: event.requestId,
});

export const readReply = (state: Calling, event: Completed): Next<'ProcessingLlmResponse'> =>
  go({ name: 'ProcessingLlmResponse', session: book(state, event), reply: replyOf(state, event) });

/** Shows what was not streamed; takes back what was streamed and is not so. */
const showRest = (reply: Reply): readonly Action[] => {
  const text = textOf(reply.message);
  const takeBack = retract(reply.requestId, reply.shown);
  if (text.trim() === '') return takeBack;
  if (!text.startsWith(reply.shown)) return [...takeBack, { type: 'DisplayText', text }];
  const rest = text.slice(reply.shown.length);
  return rest === '' ? [] : [{ type: 'DisplayText', text: rest }];
};

const drained = (state: Calling, event: Completed) => {
  const session = book(state, event);
  const reply = replyOf(state, event);
  const stored =
    reply.message !== null && !isMalformed(reply) && !isEmpty(reply)
      ? store(session, reply.message)
      : session;
  const unstored = stored === session;
  return { session: stored, actions: unstored ? retract(reply.requestId, reply.shown) : showRest(reply) };
};
/** The reply that a cancelled call still brought: its text is kept, the turn is over (R21). */
export const keepDrained = (state: Calling, event: Completed): Next<'Cancelled'> => {
  const { session, actions } = drained(state, event);
  return go({ name: 'Cancelled', session, cause: 'user' }, ...actions);
};
export const keepDrainedForTime = (state: Calling, event: Completed): Next<'BudgetExceeded'> => {
  const { session, actions } = drained(state, event);
  return go({ name: 'BudgetExceeded', session, dimension: 'time' }, ...actions);
};

// ---- ProcessingLlmResponse ----

export const malformed = (state: Processing): boolean => isMalformed(state.reply);

export const refuseReply = (state: Processing): Next<'Failed'> => {
  const { shown, requestId } = state.reply;
  const message =
    state.reply.message === null
      ? 'the reply could not be understood'
      : 'the reply has two calls of the same id';
  const failed = { name: 'Failed', session: state.session, error: 'malformed', message } as const;
  return go(failed, ...retract(requestId, shown));
};

const stoppedShort = ({ stopReason }: Reply): boolean =>
  stopReason === 'refusal' || stopReason === 'contentFilter' || stopReason === 'other';

/** A cancelled reply with calls takes the path of the calls, so that each is answered (R30). */
export const hasCalls = (state: Processing): boolean =>
  state.reply.calls.length > 0 && (!stoppedShort(state.reply) || state.reply.draining !== null);
export const refusedWithCalls = (state: Processing): boolean => state.reply.calls.length > 0;
export const saidNothing = (state: Processing): boolean => isEmpty(state.reply);

/** The reply asks for tools: it is stored, whatever becomes of its calls (R13). */
export const storeCalls = (state: Processing): Next<'ToolUseRequested'> => {
  const { reply, session } = state;
  const truncations = reply.stopReason === 'maxTokens' ? session.turn.truncations + 1 : 0;
  const counted = changeTurn(session, { truncations });
  const stored = reply.message === null ? counted : store(counted, reply.message);
  return go({ name: 'ToolUseRequested', session: stored, reply }, ...showRest(reply));
};

const warningOf = (reply: Reply): readonly Action[] => {
  const empty = isEmpty(reply);
  if (stoppedShort(reply)) return [{ type: 'DisplayWarning', kind: 'refused', text: refusalText(reply) }];
  if (reply.stopReason === 'maxTokens') {
    const text = 'the reply was cut off at the output limit of the model';
    return [{ type: 'DisplayWarning', kind: empty ? 'empty' : 'truncated', text }];
  }
  return empty ? [{ type: 'DisplayWarning', kind: 'empty', text: 'the model sent an empty reply' }] : [];
};

const refusalText = (reply: Reply): string => {
  switch (reply.stopReason) {
    case 'refusal':
      return 'the model refused to go on';
    case 'contentFilter':
      return "the provider's content filter stopped the reply";
    default:
      return 'the model stopped for a reason of its own';
  }
};

const causeOf = (reply: Reply): In<'EndOfTurn'>['cause'] => {
  if (stoppedShort(reply)) return 'refused';
  if (reply.stopReason === 'maxTokens') return 'truncated';
  return isEmpty(reply) ? 'empty' : 'answer';
};

const untruncated = ({ session, reply }: Processing): Session =>
  changeTurn(session, { truncations: reply.stopReason === 'maxTokens' ? session.turn.truncations : 0 });

const saidToolUse = (reply: Reply): { readonly late?: string } =>
  reply.stopReason === 'toolUse' ? { late: 'the model said that it would call a tool, and called none' } : {};

/** An empty reply is never stored (R12). */
export const endEmpty = (state: Processing): Next<'EndOfTurn'> => {
  const { reply } = state;
  const ended = { name: 'EndOfTurn', session: untruncated(state), cause: causeOf(reply) } as const;
  return { ...go(ended, ...showRest(reply), ...warningOf(reply)), ...saidToolUse(reply) };
};

export const endWithText = (state: Processing): Next<'EndOfTurn'> => {
  const { reply } = state;
  const session = reply.message === null ? untruncated(state) : store(untruncated(state), reply.message);
  const ended = { name: 'EndOfTurn', session, cause: causeOf(reply) } as const;
  return { ...go(ended, ...showRest(reply), ...warningOf(reply)), ...saidToolUse(reply) };
};

/** A refusal with calls: none runs, each is answered, the turn ends (R17). */
export const endRefused = (state: Processing): Next<'EndOfTurn'> => {
  const ended = endWithText(state);
  const session = answer(
    ended.state.session,
    state.reply.calls.map((call) => refusedResult(call, state.reply.stopReason)),
  );
  return go({ ...ended.state, session }, ...ended.actions);
};

// ---- CheckingForCancellation ----

type Checking = In<'CheckingForCancellation'>;

export const passOn = (state: In<'ToolUseRequested'>): Next<'CheckingForCancellation'> =>
  go({ ...state, name: 'CheckingForCancellation' });
export const drainedForUser = (state: Checking): boolean => state.reply.draining === 'user';
export const drainedForTime = (state: Checking): boolean => state.reply.draining === 'time';

const answered = (state: Checking): Session => {
  const cause = state.reply.draining ?? 'user';
  return answer(
    state.session,
    state.reply.calls.map((call) => cancelledResult(call, cause)),
  );
};
/** The turn was cancelled while the reply came: every call is answered, none runs (R30). */
export const answerCancelled = (state: Checking): Next<'Cancelled'> =>
  go({ name: 'Cancelled', session: answered(state), cause: 'user' });
export const answerOutOfTime = (state: Checking): Next<'BudgetExceeded'> =>
  go({ name: 'BudgetExceeded', session: answered(state), dimension: 'time' });
