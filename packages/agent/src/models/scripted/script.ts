import type { ModelErrorKind, StopReason } from '../../machine/event.js';
import type { JsonObject } from '../../machine/message.js';
import type { ModelFacts, TokenUsage } from '../../ports/model.js';

/** The script of a scripted model; docs/scripted-model.md explains each field. */

/** `contains`: each of these texts. `matches`: a regular expression. `lacks`: none of these texts. */
export type TextExpectation = {
  readonly contains?: string | readonly string[];
  readonly matches?: string;
  readonly lacks?: string | readonly string[];
};

export type ResultExpectation = TextExpectation & { readonly callId: string; readonly failed?: boolean };

export type Expectation = {
  /** The exact number of messages. */
  readonly messages?: number;
  /** All texts and results of the last message. */
  readonly last?: TextExpectation;
  readonly instructions?: TextExpectation;
  readonly results?: readonly ResultExpectation[];
  /** Tools that must be offered. */
  readonly tools?: readonly string[];
};

export type ScriptedCall = {
  readonly tool: string;
  /** Default `call-REPLY-CALL`, both counted from 1. */
  readonly callId?: string;
  readonly input?: JsonObject;
  /** In place of `input`: text that need not be JSON. */
  readonly rawInput?: string;
};

export type ScriptedFailure = {
  readonly kind: ModelErrorKind;
  readonly message?: string;
  readonly retryAfterMs?: number;
};

export type ScriptedReply = {
  readonly expect?: Expectation;
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly ScriptedCall[];
  readonly stopReason?: StopReason;
  readonly usage?: Partial<TokenUsage>;
  /** Delay before each piece. */
  readonly delayMs?: number;
  readonly fail?: ScriptedFailure;
  readonly stall?: boolean;
  readonly cut?: boolean;
};

/** A reply to every request whose last message matches, at any place of its conversation. */
export type ScriptedRule = Omit<ScriptedReply, 'expect' | 'calls'> & {
  /** A regular expression; `text` may use its groups. */
  readonly when: string;
};

export type Script = {
  readonly replies: readonly ScriptedReply[];
  /** Tried in their order, before the replies. */
  readonly rules?: readonly ScriptedRule[];
  readonly facts?: Partial<Pick<ModelFacts, 'windowTokens' | 'outputTokensMax' | 'prices'>>;
};

export const callIdOf = (call: ScriptedCall, number: number, index: number): string =>
  call.callId ?? `call-${number}-${index + 1}`;

export const rawInputOf = (call: ScriptedCall): string => call.rawInput ?? JSON.stringify(call.input ?? {});

/** True if a conversation keeps the reply: it is whole and not empty. */
export const isAnswer = ({ fail, stall, cut, text, reasoning, calls }: ScriptedReply): boolean =>
  fail === undefined && !stall && !cut && Boolean(text || reasoning || calls?.length);
