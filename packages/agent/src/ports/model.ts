/** Interface between the runtime and a language model. Types only. */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { ModelError, StopReason } from '../machine/event.js';
import type {
  AssistantText,
  Message,
  ProviderMetadata,
  ReasoningPart,
} from '../machine/message.js';
import type { EffortLevel, Prices } from '../machine/settings.js';

export type ModelFacts = {
  readonly windowTokens: number;
  readonly outputTokensMax: number;
  readonly thinking: 'yes' | 'no';
  /**
   * How a request sets the reasoning effort: by level, as a token budget, or not at all. Absent:
   * treated as `levels`.
   */
  readonly effort?: 'levels' | 'budget' | 'none';
  /** Levels of effort that the model has; absent: unknown, so each is sent as it is. */
  readonly effortLevels?: readonly EffortLevel[];
  readonly tools: 'yes' | 'no';
  /** Whether the model accepts pictures; absent if unknown. */
  readonly images?: 'yes' | 'no';
  /** null if unknown. */
  readonly prices: Prices | null;
  /**
   * How long the provider keeps what it has read of a request, in milliseconds from the request on.
   * Absent: unknown.
   */
  readonly cacheLifetimeMs?: number;
  /** Where the facts come from; null if the model is not in the catalogue. */
  readonly source: string | null;
};

export type ToolDeclaration = {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: JsonObject;
};

export type ModelRequest = {
  readonly instructions: string;
  readonly tools: readonly ToolDeclaration[];
  readonly messages: readonly Message[];
  /**
   * `none` asks for a reply without tool calls. Models that don't support this may call tools
   * anyway.
   */
  readonly toolChoice?: 'none';
  /** The largest reply, thoughts included; absent: that of the model's facts. */
  readonly outputTokensMax?: number;
  /** Money is set aside for `outputTokensMax`, so the request is not sent without this bound. */
  readonly isBoundPaid?: true;
  /** Reasoning effort; absent: the model decides. Models that don't support it ignore it. */
  readonly effort?: EffortLevel;
};

/**
 * Token counts from the provider. `inputTokens` excludes tokens read from or written to the cache.
 */
export type TokenUsage = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
};

/** An unparsed tool call: `rawInput` is the text that the model wrote, never repaired. */
export type RawCall = {
  readonly type: 'call';
  readonly callId: string;
  readonly tool: string;
  readonly rawInput: string;
  readonly metadata?: ProviderMetadata;
};

export type ModelPiece =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** The next part of the input of a call, as the model writes it; empty when the call begins. */
  | { readonly type: 'toolCall'; readonly tool: string; readonly text: string }
  | {
      readonly type: 'completed';
      readonly parts: readonly (AssistantText | ReasoningPart | RawCall)[];
      readonly stopReason: StopReason;
      /** Of the whole reply; null: the server has not reported it. */
      readonly usage: TokenUsage | null;
      /** `refused`: the server refused the level of effort, so the request had none. */
      readonly effort?: 'refused';
    }
  | { readonly type: 'failed'; readonly error: ModelError; readonly usage: TokenUsage | null };

/** A language model at one provider. */
export type Model = {
  /** `provider/name`. */
  readonly id: string;
  readonly facts: ModelFacts;
  /** Whether an abort ends a call at the provider. If not, a cancelled call is read to its end. */
  readonly canAbort: 'yes' | 'no';
  /** Loads code for the first call in the background. That call reports any failure. */
  prepare?(): void;
  /**
   * Makes one call, without retries. Yields pieces and ends with exactly one `completed` or
   * `failed`; it never rejects. After `signal` is aborted it may end without either.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelPiece>;
};
