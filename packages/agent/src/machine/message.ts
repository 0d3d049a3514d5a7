/**
 * Messages of the conversation.
 *
 * 1. Roles alternate; no message is empty.
 * 2. Each call of an assistant message is answered once, in the next message, in call order, before
 *    any text.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';

/**
 * The origin of a text in a user message. `note`: Pawl or a hook. `summary`: stands for compacted
 * messages. Only `user` text goes back to the editor when a turn fails.
 */
export type TextOrigin = 'user' | 'note' | 'summary';

/**
 * An image. Events and states hold only its hash: the sha256 of a blob with its base64 text.
 * `base64` is set only in requests, for models that take images.
 */
export type Image = {
  readonly mediaType: ImageType;
  readonly sha256: string;
  readonly base64?: string;
};
export type ImageType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp';

export type UserText = {
  readonly type: 'text';
  readonly origin: TextOrigin;
  readonly text: string;
  /** Images that the user sent with the text. */
  readonly images?: readonly Image[];
};

/**
 * The result of one call. The text also says that the call failed: not every provider has a flag.
 */
export type ResultPart = {
  readonly type: 'result';
  readonly callId: string;
  readonly tool: string;
  readonly failed: boolean;
  readonly text: string;
  readonly images?: readonly Image[];
};

export type UserMessage = {
  readonly role: 'user';
  readonly parts: readonly (UserText | ResultPart)[];
};

/** Data that a provider wants back unchanged with a part (signatures, encrypted reasoning). */
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

/** A tool call of the model. `input` is `{}` if `rawInput` holds text that is not a JSON object. */
export type CallPart = {
  readonly type: 'call';
  readonly callId: string;
  readonly tool: string;
  readonly input: JsonObject;
  readonly rawInput?: string;
  readonly metadata?: ProviderMetadata;
};

export type AssistantPart = AssistantText | ReasoningPart | CallPart;

/**
 * `model` is `provider/name`. Reasoning goes back only to this model, and never from a `cut` reply.
 */
export type AssistantMessage = {
  readonly role: 'assistant';
  readonly model: string;
  readonly cut: boolean;
  readonly parts: readonly AssistantPart[];
};

export type Message = UserMessage | AssistantMessage;
