/**
 * From the end of a model call to the end of the turn or the tools.
 *
 * From top to bottom: pieces of the stream; the complete reply; what follows from it
 * (ProcessingLlmResponse): calls, an answer, a refusal or nothing; and the check for a
 * cancellation. A reply is "drained" if the turn was cancelled and its provider can't abort: it is
 * paid for, so its text stays, and none of its calls runs.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`, or `ignore(state, why)`. `rest` in the table is the move with which a
 * state begins to wait. `In<N>` is the state N, `On<T>` the event T.
 */

import { hookNotes, hookRemarks, someHookObjects, verdictsIn } from '../../policy/judged-call.js';
import type { Action } from '../action.js';
import type { Event, On } from '../event.js';
import type { AssistantMessage } from '../message.js';
import {
  appendReply,
  appendResults,
  type CancelCause,
  changeCalling,
  changeSession,
  changeTurn,
  go,
  type In,
  ignore,
  type MoveTo,
  type PendingReply,
  type SessionData,
  type SessionUpdate,
} from '../state.js';
import { cancelledResult, refusedResult } from './batch-calls.js';
import { showHooks, showObjections } from './hooks.js';
import { countUsage, retractPartial } from './request.js';
import { isStopping, isStoppingAtLimit } from './stop.js';

type Calling = In<'CallingLlm'>;
type Completed = On<'LlmCompleted'>;
type Processing = In<'ProcessingLlmResponse'>;

// ---- Pieces of the stream ----

export const isStaleReply = (state: Calling, event: { readonly requestId: string }): boolean =>
  event.requestId !== state.requestId;

/**
 * Text of the stream is shown at once and kept until the reply is complete
 * (rules.md#streamed-text).
 */
export const showDelta = (state: Calling, event: On<'TextDelta'>): MoveTo<'CallingLlm'> =>
  go(changeCalling(state, { partial: state.partial + event.text }), {
    type: 'DisplayText',
    text: event.text,
  });

/**
 * Watchers display reasoning and partial calls; the machine keeps nothing of them
 * (rules.md#display-only).
 */
export const showOnly = (state: Calling): MoveTo<'CallingLlm'> => go(state);
export const ignoreOldReply = (state: Calling): MoveTo<'CallingLlm'> =>
  ignore(state, 'stale: it belongs to an old request');

// ---- The complete reply ----

const messageText = (message: AssistantMessage | null): string =>
  message?.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? '';

/** Whether a reply has neither text nor calls. */
const isEmpty = (event: Pick<Completed, 'message' | 'calls'>): boolean =>
  event.calls.length === 0 && messageText(event.message).trim() === '';

const callIdsRepeat = (reply: Pick<PendingReply, 'calls'>): boolean =>
  new Set(reply.calls.map((call) => call.callId)).size !== reply.calls.length;

/**
 * A reply that can't be understood, or whose calls are not exactly the judged ones, in the same
 * order.
 */
const isMalformed = (reply: Pick<PendingReply, 'calls' | 'message'>): boolean => {
  const { message, calls } = reply;
  if (message === null || callIdsRepeat(reply)) return true;
  const parts = message.parts.filter((part) => part.type === 'call');
  return (
    parts.length !== calls.length ||
    // Stryker disable next-line OptionalChaining: asked before
    parts.some(({ callId }, index) => callId !== calls[index]?.callId)
  );
};

/** Whether a cancelled reply has no calls that need results. */
const answersNothing = (event: Completed): boolean =>
  event.calls.length === 0 || isMalformed(event);

/** The reply of a cancelled turn has no calls that need results: only its text stays. */
export const drainedInVain = (state: Calling, event: Completed): boolean =>
  isStopping(state) && answersNothing(event);
/** The same, where a limit cancelled the turn. */
export const drainedInVainAtLimit = (state: Calling, event: Completed): boolean =>
  isStoppingAtLimit(state) && answersNothing(event);

export const emptyMayRetry = (state: Calling, event: Completed): boolean =>
  !isMalformed(event) &&
  isEmpty(event) &&
  event.stopReason !== 'refusal' &&
  event.stopReason !== 'contentFilter' &&
  state.session.emptyReplies < state.session.settings.emptyRetries;

/**
 * Counts the usage of a completed reply, and takes the model's count as the size of the
 * conversation.
 */
const countReply = (state: Calling, event: Completed): SessionData => {
  const { usage } = event;
  const counted =
    usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens;
  const session = countUsage(state.session, event.requestId, usage);
  return changeSession(session, {
    contextTokens: counted > 0 && !usage.estimated ? counted : session.contextTokens,
    mayCompact: 'yes',
    emptyReplies: isEmpty(event) ? session.emptyReplies + 1 : 0,
  });
};

/** The reply as the transient states carry it. */
const pendingReply = (state: Calling, event: Completed): PendingReply => ({
  message: event.message,
  calls: event.calls,
  stopReason: event.stopReason,
  shown: state.partial,
  draining: state.call.mode === 'draining' ? state.call.cause : null,
  requestId: event.requestId,
  hooks: verdictsIn(event.hooks),
});

export const readReply = (state: Calling, event: Completed): MoveTo<'ProcessingLlmResponse'> =>
  go(
    {
      name: 'ProcessingLlmResponse',
      session: countReply(state, event),
      reply: pendingReply(state, event),
    },
    ...(event.effort === undefined ? [] : [EFFORT_REFUSED]),
  );

const EFFORT_REFUSED: Action = {
  type: 'DisplayWarning',
  kind: 'effort',
  text: 'the server refused the level of effort: the model decides how much it thinks',
};

/** Shows text that was not streamed, and retracts streamed text that the reply does not have. */
const showRest = (reply: PendingReply): readonly Action[] => {
  const text = messageText(reply.message);
  const takeBack = retractPartial(reply.requestId, reply.shown);
  if (text.trim() === '') return takeBack;
  if (!text.startsWith(reply.shown)) return [...takeBack, { type: 'DisplayText', text }];
  const rest = text.slice(reply.shown.length);
  return rest === '' ? [] : [{ type: 'DisplayText', text: rest }];
};

/** The reply of a cancelled call: its text is kept, the turn ends (rules.md#draining). */
export const keepDrained = (state: Calling, event: Completed): SessionUpdate => {
  const session = countReply(state, event);
  const reply = pendingReply(state, event);
  const stored =
    // Stryker disable next-line ConditionalExpression: asked before
    reply.message !== null && !isMalformed(reply) && !isEmpty(reply)
      ? appendReply(session, reply.message)
      : session;
  const unstored = stored === session;
  return {
    session: stored,
    actions: unstored ? retractPartial(reply.requestId, reply.shown) : showRest(reply),
  };
};

// ---- ProcessingLlmResponse ----

export const malformed = (state: Processing): boolean => isMalformed(state.reply);

const whyMalformed = (reply: PendingReply): string => {
  if (reply.message === null) return 'the reply could not be understood';
  return callIdsRepeat(reply)
    ? 'the reply has two calls of the same id'
    : 'the reply has other calls than those that were checked';
};

export const refuseReply = (state: Processing): MoveTo<'Failed'> => {
  const { shown, requestId } = state.reply;
  const message = whyMalformed(state.reply);
  const failed = { name: 'Failed', session: state.session, error: 'malformed', message } as const;
  return go(failed, ...retractPartial(requestId, shown));
};

/** Whether the model or its provider stopped the reply before its end. */
const stoppedShort = ({ stopReason }: PendingReply): boolean =>
  stopReason === 'refusal' || stopReason === 'contentFilter' || stopReason === 'other';

/**
 * A cancelled reply with calls takes the path of the calls, so that each is answered
 * (rules.md#cancelled-reply-runs-no-call).
 */
export const hasCalls = (state: Processing): boolean =>
  state.reply.calls.length > 0 && (!stoppedShort(state.reply) || state.reply.draining !== null);
export const refusedWithCalls = (state: Processing): boolean => state.reply.calls.length > 0;
export const saidNothing = (state: Processing): boolean => isEmpty(state.reply);

/**
 * Stores a reply that asks for tools, whether or not its calls run (rules.md#calls-decide).
 */
export const storeCalls = (state: Processing): MoveTo<'ToolUseRequested'> => {
  const { reply, session } = state;
  const truncations = reply.stopReason === 'maxTokens' ? session.turn.truncations + 1 : 0;
  const counted = changeTurn(session, { truncations });
  const stored = reply.message === null ? counted : appendReply(counted, reply.message);
  const hooks = reply.calls.flatMap((call) => showHooks(verdictsIn(call.hooks)));
  return go({ name: 'ToolUseRequested', session: stored, reply }, ...showRest(reply), ...hooks);
};

/** Tells the user of a refused, cut or empty reply. */
const replyWarning = (reply: PendingReply): readonly Action[] => {
  const empty = isEmpty(reply);
  if (stoppedShort(reply)) {
    const kind = reply.stopReason === 'other' ? 'stopped' : 'refused';
    return [{ type: 'DisplayWarning', kind, text: refusalText(reply) }];
  }
  if (reply.stopReason === 'maxTokens') {
    const text = 'the reply was cut off at the output limit of the model';
    return [{ type: 'DisplayWarning', kind: empty ? 'empty' : 'truncated', text }];
  }
  if (empty)
    return [{ type: 'DisplayWarning', kind: 'empty', text: 'the model sent an empty reply' }];
  return isCallAsText(messageText(reply.message).trim())
    ? [{ type: 'DisplayWarning', kind: 'callAsText', text: CALL_AS_TEXT }]
    : [];
};

const CALL_AS_TEXT =
  'the model wrote a call of a tool as text, so nothing ran: its server has to read the calls of ' +
  'this model (vLLM: --enable-auto-tool-choice --tool-call-parser, llama.cpp: --jinja), or ' +
  'another model has to be used';

/** The beginning of a call in the words of a model: tags of its template, or code. */
const CALL_TAG =
  /(^|\n)\s*(<(\w+:)?tool_calls?>|<(function_calls|start_function_call)>|<invoke name=|<function=\w|\[TOOL_(CALLS|REQUEST)\]|functools\[|<\|(tool_calls?|python_tag|channel)|<\uff5ctool|```tool_code|(functions|default_api)[.:]\w+\()/;
const CALL_OBJECT =
  /^(```\w*\s*)?\[?\{\s*"(name|tool|function)"\s*:\s*"[\w.:/-]+"\s*,\s*"(arguments|parameters|input|args)"\s*:/;

/** Whether the text ends with a call. An answer that only mentions a call has text behind it. */
const isCallAsText = (text: string): boolean =>
  /[>}\])`]$/.test(text) && (CALL_TAG.test(text) || CALL_OBJECT.test(text));

const refusalText = (reply: PendingReply): string => {
  switch (reply.stopReason) {
    case 'refusal':
      return 'the model refused to go on';
    case 'contentFilter':
      return "the provider's content filter stopped the reply";
    default:
      return 'the model stopped for a reason of its own';
  }
};

/** Why the turn ends. */
const endCause = (reply: PendingReply): In<'EndOfTurn'>['cause'] => {
  if (stoppedShort(reply)) return 'refused';
  if (reply.stopReason === 'maxTokens') return 'truncated';
  return isEmpty(reply) ? 'empty' : 'answer';
};

/** The session with its count of cut replies; a whole one ends the row. */
const countTruncation = ({ session, reply }: Processing): SessionData =>
  changeTurn(session, {
    truncations: reply.stopReason === 'maxTokens' ? session.turn.truncations : 0,
  });

/** A diagnostic about a reply that announced a call and has none. */
const missingCall = (reply: PendingReply): { readonly late?: string } =>
  reply.stopReason === 'toolUse'
    ? { late: 'the model said that it would call a tool, and called none' }
    : {};

/** An empty reply is never stored (rules.md#empty-reply). */
export const endEmpty = (state: Processing): MoveTo<'EndOfTurn'> => {
  const { reply } = state;
  const ended = {
    name: 'EndOfTurn',
    session: countTruncation(state),
    cause: endCause(reply),
  } as const;
  return { ...go(ended, ...showRest(reply), ...replyWarning(reply)), ...missingCall(reply) };
};

export const endWithText = (state: Processing): MoveTo<'EndOfTurn'> => {
  const { reply } = state;
  const stored =
    reply.message === null
      ? countTruncation(state)
      : appendReply(countTruncation(state), reply.message);
  const { actions, ...judged } = judgeEnd(stored, reply);
  const ended = { name: 'EndOfTurn', ...judged, cause: endCause(reply) } as const;
  return {
    ...go(ended, ...showRest(reply), ...replyWarning(reply), ...actions),
    ...missingCall(reply),
  };
};

/** More turns in a row begin for no hook, whatever it says. */
const OBJECTIONS_MAX = 3;

/**
 * What hooks say about the end of the turn. An objection (`someHookObjects`) begins another turn
 * with its reason (rules.md#hook-objects-to-end). A turn that was to end at a limit ends. The
 * model reads the notes of hooks, or their remarks: notes and objections.
 */
const judgeEnd = (
  session: SessionData,
  { hooks }: PendingReply,
): SessionUpdate & Pick<In<'EndOfTurn'>, 'objected'> => {
  // Stryker disable next-line ConditionalExpression: a shortcut
  if (hooks.length === 0) return { session, actions: [] };
  const addNotes = (texts: readonly string[]): SessionData =>
    changeSession(session, { notes: [...session.notes, ...texts] });
  const shown = showObjections(hooks);
  if (!someHookObjects(hooks)) return { session: addNotes(hookNotes(hooks)), actions: shown };
  const { objections, finishing } = session.turn;
  if (finishing === 'no' && objections < OBJECTIONS_MAX) {
    const counted = changeTurn(addNotes(hookRemarks(hooks)), { objections: objections + 1 });
    return { session: counted, actions: shown, objected: 'yes' };
  }
  const why =
    finishing === 'no' ? `hooks have objected ${objections} times in a row` : 'a limit is reached';
  const text = `the turn ends in spite of the objection: ${why}`;
  const warning: Action = { type: 'DisplayWarning', kind: 'objection', text };
  return { session: addNotes(hookNotes(hooks)), actions: [...shown, warning] };
};

/**
 * A refusal with calls: none runs, each is answered, the turn ends (rules.md#refused-reply).
 */
export const endRefused = (state: Processing): MoveTo<'EndOfTurn'> => {
  const ended = endWithText(state);
  const session = appendResults(
    ended.state.session,
    state.reply.calls.map((call) => refusedResult(call, state.reply.stopReason)),
  );
  return go({ ...ended.state, session }, ...ended.actions);
};

// ---- CheckingForCancellation ----

type Checking = In<'CheckingForCancellation'>;

export const passOn = (state: In<'ToolUseRequested'>): MoveTo<'CheckingForCancellation'> =>
  go({ ...state, name: 'CheckingForCancellation' });

/**
 * The turn was cancelled while the reply came: every call is answered, none runs
 * (rules.md#cancelled-reply-runs-no-call).
 */
export const answerStopped = (
  state: Checking,
  _event: Event,
  cause: CancelCause,
): SessionUpdate => ({
  session: appendResults(
    state.session,
    state.reply.calls.map((call) => cancelledResult(call, cause)),
  ),
  actions: [],
});
