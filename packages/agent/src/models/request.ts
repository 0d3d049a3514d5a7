/**
 * A request in words that are no wire's: those of the AI SDK, so that models of its packages take
 * it as it is.
 *
 * 1. Apart from cache markers, what was sent before is sent again byte for byte: a pure function of
 *    the request.
 * 2. Results come before text. A part that a wire forbids (blank text) is left out.
 * 3. At most three cache markers: the instructions (which cover the tools), and the last two user
 *    messages, so that the point where the previous request ended is always one of them.
 * 4. What a provider wants back goes back to the model that it came from, and to no other: with the
 *    part that it came with, or, where it belongs to the whole reply (OpenRouter's
 *    `reasoning_details`), with the message.
 * 5. Ids of calls of another model become nine letters and digits, the one form that every provider
 *    takes (Mistral).
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type {
  AssistantMessage,
  AssistantPart,
  Message,
  ProviderMetadata,
  ResultPart,
  UserMessage,
  UserText,
} from '../machine/message.js';
import { objectIn } from '../platform/untrusted-input.js';
import type { ModelRequest, ToolDeclaration } from '../ports/model.js';
import { withoutDefinitions } from './tool-schema.js';

/** How requests differ between wires. */
export type Dialect = {
  /** The model that gets the request: `provider/name`. */
  readonly modelId: string;
  /** True if the provider caches only marked parts. */
  readonly marksCache: boolean;
  /**
   * True if metadata of a cut reply goes back. Its thoughts never do, so metadata that refers to
   * them must not either.
   */
  readonly keepsCut: boolean;
  /**
   * Sent with every tool if the wire's default is strict: our schemas describe input, they don't
   * restrict decoding.
   */
  readonly strictTools?: false;
  /**
   * Set if the provider takes definitions (`$defs`) in the schema of a tool; otherwise they are
   * inlined.
   */
  readonly takesDefinitions?: true;
  /**
   * Set if the provider takes no GIF: it would refuse the request, and every later one of the
   * conversation.
   */
  readonly refusesGif?: true;
};

type Marked = { readonly providerOptions?: ProviderMetadata };

type PromptText = Marked & { readonly type: 'text'; readonly text: string };
/** A picture, as base64. */
type PromptPicture = Marked & {
  readonly type: 'file';
  readonly mediaType: string;
  readonly data: string;
};
type PromptThought = Marked & { readonly type: 'reasoning'; readonly text: string };
type PromptCall = Marked & {
  readonly type: 'tool-call';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: JsonObject;
};
type PromptResult = Marked & {
  readonly type: 'tool-result';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly output: { readonly type: 'text' | 'error-text'; readonly value: string };
};
type UserContent = (PromptText | PromptPicture)[];
type AssistantContent = (PromptText | PromptThought | PromptCall)[];

export type PromptMessage =
  | (Marked & { readonly role: 'system'; readonly content: string })
  | { readonly role: 'user'; readonly content: UserContent }
  | { readonly role: 'tool'; readonly content: readonly PromptResult[] }
  | (Marked & { readonly role: 'assistant'; readonly content: AssistantContent });
export type PromptMessages = readonly PromptMessage[];

export type PromptTool = Marked &
  ToolDeclaration & { readonly type: 'function'; readonly strict?: false };

/** The prompt of a request, its tools and whether they may be called. */
export type PromptRequest = {
  readonly prompt: PromptMessages;
  readonly tools?: readonly PromptTool[];
  readonly toolChoice?: { readonly type: 'none' };
};

const MARKER = { anthropic: { cacheControl: { type: 'ephemeral' } } } as const;
const mark = (marked: boolean): Marked => (marked ? { providerOptions: MARKER } : {});
/** Whether the provider is to cache all up to here. */
export const isMarked = ({ providerOptions }: Marked): boolean => providerOptions === MARKER;

const isBlank = (text: string): boolean => text.trim() === '';

const toOptions = (metadata: ProviderMetadata | undefined): Marked =>
  metadata === undefined ? {} : { providerOptions: metadata };

/**
 * Pictures that the model takes. They follow all results, since not every wire takes them inside a
 * result.
 */
const convertImages = (
  { images = [] }: ResultPart | UserText,
  { modelId, refusesGif }: Dialect,
): UserContent =>
  images.flatMap(({ mediaType, base64 }): UserContent => {
    if (base64 === undefined) return [];
    if (mediaType === 'image/gif' && refusesGif)
      return [{ type: 'text', text: `[a picture is not shown: ${modelId} takes no GIF]` }];
    return [{ type: 'file', mediaType, data: base64 }];
  });

/** The user's text and pictures. */
const convertUserText = (
  part: Exclude<UserMessage['parts'][number], ResultPart>,
  dialect: Dialect,
): UserContent => {
  switch (part.type) {
    case 'text':
      return [
        ...(isBlank(part.text) ? [] : [{ type: 'text' as const, text: part.text }]),
        ...convertImages(part, dialect),
      ];
    default:
      return part.type satisfies never;
  }
};

/** `idOf` returns the id under which a call was sent. */
const convertUser = (
  { parts }: UserMessage,
  idOf: (callId: string) => string,
  marked: boolean,
  dialect: Dialect,
): PromptMessage[] => {
  const results = parts.filter((part) => part.type === 'result');
  const userParts = [
    ...results.flatMap((part) => convertImages(part, dialect)),
    ...parts.flatMap((part) => (part.type === 'result' ? [] : convertUserText(part, dialect))),
  ];
  const prompt: PromptMessage[] = [];
  if (results.length > 0) {
    const content = results.map(({ callId, tool, failed, text }, index) => ({
      type: 'tool-result' as const,
      toolCallId: idOf(callId),
      toolName: tool,
      // The wire forbids an error without content.
      output: {
        type: failed ? ('error-text' as const) : ('text' as const),
        value: isBlank(text) ? '(no output)' : text,
      },
      ...mark(marked && userParts.length === 0 && index === results.length - 1),
    }));
    prompt.push({ role: 'tool', content });
  }
  if (userParts.length > 0) {
    const content = userParts.map((part, index) => ({
      ...part,
      ...mark(marked && index === userParts.length - 1),
    }));
    prompt.push({ role: 'user', content });
  }
  return prompt;
};

/** The metadata of a reasoning part that belongs to the whole reply. */
const detailsIn = (part: AssistantPart): ProviderMetadata | null =>
  part.type === 'reasoning' &&
  objectIn(part.metadata, 'openaiCompatible').reasoning_details !== undefined
    ? (part.metadata ?? null)
    : null;

const replyDetails = ({ parts }: AssistantMessage): Marked => {
  for (const part of parts) {
    const metadata = detailsIn(part);
    if (metadata !== null) return toOptions(metadata);
  }
  return {};
};

const convertPart = (
  part: AssistantPart,
  idOf: (callId: string) => string,
  isOwn: boolean,
): AssistantContent => {
  const options = toOptions(isOwn ? part.metadata : undefined);
  switch (part.type) {
    case 'text':
      return isBlank(part.text) ? [] : [{ type: 'text', text: part.text, ...options }];
    case 'reasoning':
      // The provider would reject it without its signature. Details that go back with the message
      // are not sent twice.
      return isOwn && part.metadata !== undefined && detailsIn(part) === null
        ? [{ type: 'reasoning', text: part.text, ...options }]
        : [];
    case 'call':
      return [
        {
          type: 'tool-call',
          toolCallId: idOf(part.callId),
          toolName: part.tool,
          input: part.input,
          ...options,
        },
      ];
    default:
      return part satisfies never;
  }
};

/** A number in letters and digits, as short ids need it. */
const digits = (number: number, length: number): string =>
  number.toString(36).padStart(length, '0');

/** Ids of a reply's calls for another provider, made from their places. */
const plainIds = ({ parts }: AssistantMessage, place: number): ReadonlyMap<string, string> =>
  new Map(
    parts
      .filter((part) => part.type === 'call')
      .map(({ callId }, index) => [callId, `c${digits(place, 5)}${digits(index + 1, 3)}`]),
  );

const NO_IDS: ReadonlyMap<string, string> = new Map();

/** Joins user messages that follow each other into one. */
const append = (prompt: PromptMessage[], added: PromptMessages): void => {
  for (const message of added) {
    const last = prompt.at(-1);
    if (last?.role === 'user' && message.role === 'user') last.content.push(...message.content);
    else prompt.push(message);
  }
};

const convertMessages = (messages: readonly Message[], dialect: Dialect): PromptMessages => {
  const users = messages.flatMap(({ role }, index) => (role === 'user' ? [index] : []));
  const marked = new Set(dialect.marksCache ? users.slice(-2) : []);
  const prompt: PromptMessage[] = [];
  let ids = NO_IDS;
  const idOf = (callId: string): string => ids.get(callId) ?? callId;
  for (const [index, message] of messages.entries()) {
    if (message.role === 'user') {
      append(prompt, convertUser(message, idOf, marked.has(index), dialect));
      continue;
    }
    const isOurs = message.model === dialect.modelId;
    ids = isOurs ? NO_IDS : plainIds(message, index);
    const isOwn = isOurs && (!message.cut || dialect.keepsCut);
    const content = message.parts.flatMap((part) => convertPart(part, idOf, isOwn));
    if (content.length > 0)
      append(prompt, [{ role: 'assistant', content, ...(isOwn ? replyDetails(message) : {}) }]);
  }
  return prompt;
};

const convertTool = (
  { name, description, inputSchema }: ToolDeclaration,
  { strictTools, takesDefinitions }: Dialect,
  marked: boolean,
): PromptTool => ({
  type: 'function',
  name,
  description,
  inputSchema: takesDefinitions ? inputSchema : withoutDefinitions(inputSchema),
  ...(strictTools === undefined ? {} : { strict: strictTools }),
  ...mark(marked),
});

export const convertRequest = (
  { instructions, tools, messages, toolChoice }: ModelRequest,
  dialect: Dialect,
): PromptRequest => {
  const { marksCache } = dialect;
  const instructed = !isBlank(instructions);
  const system: PromptMessages = instructed
    ? [{ role: 'system', content: instructions, ...mark(marksCache) }]
    : [];
  const last = marksCache && !instructed ? tools.length - 1 : -1;
  return {
    prompt: [...system, ...convertMessages(messages, dialect)],
    ...(tools.length > 0
      ? { tools: tools.map((tool, index) => convertTool(tool, dialect, index === last)) }
      : {}),
    ...(toolChoice === undefined || tools.length === 0 ? {} : { toolChoice: { type: toolChoice } }),
  };
};
