import type { ModelErrorKind, StopReason } from '../agent/event.js';
import type { JsonObject } from '../agent/message.js';
import type { ModelFacts, TokenUsage } from '../needs.js';

/** The scripted model's script: docs/scripted-model.md says what each field does. */

/** `contains`: each of these; `matches`: a regular expression; `lacks`: none of these. */
export type TextExpectation = {
  readonly contains?: string | readonly string[];
  readonly matches?: string;
  readonly lacks?: string | readonly string[];
};

export type ResultExpectation = TextExpectation & { readonly callId: string; readonly failed?: boolean };

export type Expectation = {
  /** The exact number of messages. */
  readonly messages?: number;
  /** The last message, all its texts and results. */
  readonly last?: TextExpectation;
  readonly instructions?: TextExpectation;
  readonly results?: readonly ResultExpectation[];
  /** Names that must be among the tools. */
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

export type Reply = {
  readonly expect?: Expectation;
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly ScriptedCall[];
  readonly stopReason?: StopReason;
  readonly usage?: Partial<TokenUsage>;
  /** Waited before each piece. */
  readonly delayMs?: number;
  readonly fail?: ScriptedFailure;
  readonly stall?: boolean;
  readonly cut?: boolean;
};

/** A reply to every request whose last message matches, wherever its conversation stands. */
export type Rule = Omit<Reply, 'expect' | 'calls'> & {
  /** A regular expression; `text` may name what its groups caught. */
  readonly when: string;
};

export type Script = {
  readonly replies: readonly Reply[];
  /** Tried in their order, before the replies. */
  readonly rules?: readonly Rule[];
  readonly facts?: Partial<Pick<ModelFacts, 'windowTokens' | 'outputTokensMax' | 'prices'>>;
};

export const callIdOf = (call: ScriptedCall, number: number, index: number): string =>
  call.callId ?? `call-${number}-${index + 1}`;

export const rawInputOf = (call: ScriptedCall): string => call.rawInput ?? JSON.stringify(call.input ?? {});

/** Whether a reply is one that a conversation keeps: it comes to its end, and there is something in it. */
export const isAnswer = ({ fail, stall, cut, text, reasoning, calls }: Reply): boolean =>
  fail === undefined && !stall && !cut && Boolean(text || reasoning || calls?.length);
