import type { Action } from '../../machine/action.js';
import type { CallOutcome, JudgedCall } from '../../machine/call.js';
import { messagesOf } from '../../machine/conversation.js';
import type { JsonObject } from '../../machine/message.js';
import type { SessionData, State } from '../../machine/state.js';

/** What hooks read at each moment, with the names of fields that scripts for other agents know. */

export const ofCall = ({ callId, tool, input, traits, facts }: JudgedCall): JsonObject => ({
  tool_name: tool,
  tool_use_id: callId,
  tool_input: input,
  changes_something: traits.mutating,
  paths: [...facts.paths],
  hosts: [...facts.hosts],
});

export const ofOutcome = (call: JudgedCall, { status, text }: CallOutcome): JsonObject => ({
  ...ofCall(call),
  tool_response: { status, text },
});

/** The calls of the last batch with their results. */
export const ofBatch = ({ conversation }: SessionData): JsonObject => {
  const messages = messagesOf(conversation);
  const results = messages.at(-1);
  const reply = messages.at(-2);
  const calls = reply?.role === 'assistant' ? reply.parts.filter((part) => part.type === 'call') : [];
  const failed = (callId: string): boolean =>
    results?.parts.some((part) => part.type === 'result' && part.callId === callId && part.failed) === true;
  return {
    tool_calls: calls.map(({ callId, tool, input }) => ({
      tool_name: tool,
      tool_use_id: callId,
      tool_input: input,
      failed: failed(callId),
    })),
  };
};

export const ofRequest = (state: State, requestId: string): JsonObject => {
  const { settings, contextTokens, usage } = state.session;
  return {
    request_id: requestId,
    attempt: state.name === 'CallingLlm' ? state.attempt : 1,
    model: settings.model,
    context_tokens: contextTokens,
    cost_usd: usage.costUsd,
  };
};

export const ofTurnEnd = ({ turn: { objections = 0 } }: SessionData, text: string): JsonObject => ({
  last_assistant_message: text,
  stop_hook_active: objections > 0,
  objections,
});

type Compaction = Extract<Action, { readonly type: 'StartCompaction' }>;

export const ofCompaction = (state: State, { length, instructions }: Compaction): JsonObject => {
  const isAsked = state.name === 'Compacting' && state.mode.kind === 'idle' && state.mode.resume === 'rest';
  return {
    trigger: isAsked ? 'manual' : 'auto',
    messages: length,
    ...(instructions === undefined ? {} : { custom_instructions: instructions }),
  };
};

/** What the user is asked; null if nothing is wanted. A session that has just been opened says so itself. */
export const ofQuestion = (action: Action, state: State): JsonObject | null => {
  if (action.type === 'RequestApproval')
    return { ...ofCall(action.call), notification_type: 'approval', message: action.why };
  if (action.type !== 'PromptForInput' || state.name !== 'WaitingForUserInput') return null;
  const { reason } = state;
  if (reason.kind === 'start' || reason.kind === 'resumed') return null;
  const message = 'cause' in reason ? `${reason.kind}: ${reason.cause}` : reason.kind;
  return { notification_type: 'waiting', message };
};
