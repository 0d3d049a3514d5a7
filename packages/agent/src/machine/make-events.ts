import type { CallFacts, CallTraits, JudgedCall } from './call.js';
import type { InputMode, On } from './event.js';
import type { AssistantPart, JsonObject } from './message.js';
import type { Usage } from './values/usage.js';

/** Events for those who drive the machine themselves, with defaults for what they seldom say. */

/** What a driver of the machine says of a call; the rest has defaults. */
export type CallDraft = {
  readonly callId: string;
  readonly tool: string;
  readonly input?: JsonObject;
  readonly traits?: Partial<CallTraits>;
  readonly facts?: Partial<CallFacts>;
  readonly title?: string;
};

/** In doubt a call changes something, runs alone, and does not run again after an interruption. */
const TRAITS: CallTraits = { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 60_000 };

/**
 * A call as an LlmCompleted carries it. Defaults: no input; a valid call; `traits` of a call that changes something, runs
 * alone, never runs again after an interruption and has 60 s; no paths, hosts or words; `shape`, the key of a grant for
 * this exact call, is the tool with its input.
 */
export const toolCall = ({ callId, tool, input = {}, traits, facts, title }: CallDraft): JudgedCall => ({
  callId,
  tool,
  input,
  verdict: { kind: 'ok' },
  traits: { ...TRAITS, ...traits },
  facts: { argv: [], paths: [], hosts: [], shape: `${tool} ${JSON.stringify(input)}`, ...facts },
  ...(title === undefined ? {} : { title }),
});

/** What a model replied to a request; the rest has defaults. */
export type ReplyDraft = {
  readonly requestId: string;
  readonly at: number;
  /** `provider/name`. */
  readonly model: string;
  readonly text?: string;
  readonly calls?: readonly JudgedCall[];
  readonly usage?: Usage;
};

const NO_USAGE: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: null,
};

/**
 * A complete reply of a model: its text, then its calls. It stops for tools if there are calls. Default usage: no tokens,
 * at an unknown price.
 */
export const modelReply = ({
  requestId,
  at,
  model,
  text = '',
  calls = [],
  usage = NO_USAGE,
}: ReplyDraft): On<'LlmCompleted'> => {
  const parts: readonly AssistantPart[] = [
    ...(text === '' ? [] : [{ type: 'text', text } as const]),
    ...calls.map(({ callId, tool, input }) => ({ type: 'call', callId, tool, input }) as const),
  ];
  const message = parts.length === 0 ? null : ({ role: 'assistant', model, cut: false, parts } as const);
  const stopReason = calls.length > 0 ? 'toolUse' : 'end';
  return { type: 'LlmCompleted', requestId, at, message, calls, stopReason, usage };
};

/** A text of the user. `steer` reaches the model at once, between its tools; `followUp` begins the next turn. */
export const userInput = (text: string, at: number, mode: InputMode = 'steer'): On<'UserInput'> => ({
  type: 'UserInput',
  at,
  text,
  mode,
});
