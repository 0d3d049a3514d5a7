/**
 * The conversation: what the model has seen, in order.
 *
 * 1. Roles alternate; no message is empty.
 * 2. Each call of an assistant message is answered once, in the next message, in call order, before any text.
 */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

/** Why a piece of text stands in a user message. Only `user` text goes back to the editor when a turn fails. */
export type TextOrigin = 'user' | 'note' | 'summary';

/**
 * A picture. Its bytes are a blob (base64 text) by the sha256 of that text: never in an event or a state. `base64` is
 * set in requests alone, for models that take images.
 */
export type Image = { readonly mediaType: ImageType; readonly sha256: string; readonly base64?: string };
export type ImageType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp';

export type UserText = {
  readonly type: 'text';
  readonly origin: TextOrigin;
  readonly text: string;
  /** What the user shows with it. */
  readonly images?: readonly Image[];
};

/** The answer to one call. `failed` is also said in the text, since not every wire has an error flag. */
export type ResultPart = {
  readonly type: 'result';
  readonly callId: string;
  readonly tool: string;
  readonly failed: boolean;
  readonly text: string;
  readonly images?: readonly Image[];
};

export type UserMessage = { readonly role: 'user'; readonly parts: readonly (ResultPart | UserText)[] };

/** What a provider wants back unchanged with a part (signatures, encrypted reasoning); opaque to the machine. */
export type ProviderMetadata = JsonObject;

export type AssistantText = {
  readonly type: 'text';
  readonly text: string;
  readonly metadata?: ProviderMetadata;
};
export type ReasoningPart = {
  readonly type: 'reasoning';
  readonly text: string;
  readonly metadata?: ProviderMetadata;
};

/** A tool the model asked for. `input` is `{}` where `rawInput` holds text that was no JSON object. */
export type CallPart = {
  readonly type: 'call';
  readonly callId: string;
  readonly tool: string;
  readonly input: JsonObject;
  readonly rawInput?: string;
  readonly metadata?: ProviderMetadata;
};

export type AssistantPart = AssistantText | ReasoningPart | CallPart;

/** `model` is `provider/name`: reasoning is only ever sent back to the model it came from, never from a `cut` reply. */
export type AssistantMessage = {
  readonly role: 'assistant';
  readonly model: string;
  readonly cut: boolean;
  readonly parts: readonly AssistantPart[];
};

export type Message = UserMessage | AssistantMessage;
