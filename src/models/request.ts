import type {
  LanguageModelV3CallOptions,
  LanguageModelV3FunctionTool,
  LanguageModelV3Prompt,
  SharedV3ProviderOptions,
} from '@ai-sdk/provider';
import type {
  AssistantMessage,
  AssistantPart,
  Message,
  ProviderMetadata,
  ResultPart,
  UserMessage,
  UserText,
} from '../agent/message.js';
import type { ModelRequest, ToolDeclaration } from '../needs.js';

/**
 * A request in the words of the AI SDK.
 *
 * 1. Apart from cache markers, what was sent before is sent again byte for byte: a pure function of the request.
 * 2. Results come before text. A part that a wire forbids (blank text) is left out.
 * 3. At most three cache markers: the instructions (which cover the tools), and the last two user messages, so that
 *    the point where the previous request ended is always one of them.
 * 4. What a provider wants back goes back to the model that it came from, and to no other.
 */

/** In what the wires differ when they are written to. */
export type Dialect = {
  /** `provider/name`: the model that is written to. */
  readonly modelId: string;
  /** Whether the provider caches only what is marked. */
  readonly marksCache: boolean;
  /** Whether metadata of a reply that was cut goes back: thoughts never do, and where what is left refers to them, it must not. */
  readonly keepsCut: boolean;
  /** Said of every tool where the wire would assume otherwise: the schema is a promise of ours, not a grammar. */
  readonly strictTools?: false;
  /** Whether it takes no GIF: a request with one would be refused, and every later one with it. */
  readonly refusesGif?: true;
};

type Prompt = LanguageModelV3Prompt;
type Marked = { readonly providerOptions?: SharedV3ProviderOptions };
type AssistantContent = Extract<Prompt[number], { role: 'assistant' }>['content'];

const MARKER = { anthropic: { cacheControl: { type: 'ephemeral' } } } as const;
const mark = (marked: boolean): Marked => (marked ? { providerOptions: { ...MARKER } } : {});

const isBlank = (text: string): boolean => text.trim() === '';

const optionsOf = (metadata: ProviderMetadata | undefined): Marked => {
  if (metadata === undefined) return {};
  // Metadata is kept exactly as the SDK gave it: JSON objects by provider, only typed as read-only here.
  return { providerOptions: metadata as SharedV3ProviderOptions };
};

type UserContent = Extract<Prompt[number], { role: 'user' }>['content'];

/** Pictures that the model takes; not every wire takes them inside a result, so that they come behind all results. */
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

/** What the user says or shows. */
const convertSaid = (
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

/** `idOf` gives the id under which a call was sent. */
const convertUser = (
  { parts }: UserMessage,
  idOf: (callId: string) => string,
  marked: boolean,
  dialect: Dialect,
): Prompt => {
  const results = parts.filter((part) => part.type === 'result');
  const said = [
    ...results.flatMap((part) => convertImages(part, dialect)),
    ...parts.flatMap((part) => (part.type === 'result' ? [] : convertSaid(part, dialect))),
  ];
  const prompt: Prompt = [];
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
      ...mark(marked && said.length === 0 && index === results.length - 1),
    }));
    prompt.push({ role: 'tool', content });
  }
  if (said.length > 0) {
    const content = said.map((part, index) => ({ ...part, ...mark(marked && index === said.length - 1) }));
    prompt.push({ role: 'user', content });
  }
  return prompt;
};

const convertPart = (
  part: AssistantPart,
  idOf: (callId: string) => string,
  own: boolean,
): AssistantContent => {
  const options = optionsOf(own ? part.metadata : undefined);
  switch (part.type) {
    case 'text':
      return isBlank(part.text) ? [] : [{ type: 'text', text: part.text, ...options }];
    case 'reasoning':
      // Without its signature the provider would reject it.
      return own && part.metadata !== undefined ? [{ type: 'reasoning', text: part.text, ...options }] : [];
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

/** Ids of calls are what their provider makes of them: for another one they get plain ones, by their place. */
const plainIds = ({ parts }: AssistantMessage, place: number): ReadonlyMap<string, string> =>
  new Map(
    parts
      .filter((part) => part.type === 'call')
      .map(({ callId }, index) => [callId, `call_${place}_${index + 1}`]),
  );

const NO_IDS: ReadonlyMap<string, string> = new Map();

/** What the user says in a row stands in one message. */
const append = (prompt: Prompt, added: Prompt): void => {
  for (const message of added) {
    const last = prompt.at(-1);
    if (last?.role === 'user' && message.role === 'user') last.content.push(...message.content);
    else prompt.push(message);
  }
};

const convertMessages = (messages: readonly Message[], dialect: Dialect): Prompt => {
  const users = messages.flatMap(({ role }, index) => (role === 'user' ? [index] : []));
  const marked = new Set(dialect.marksCache ? users.slice(-2) : []);
  const prompt: Prompt = [];
  let ids = NO_IDS;
  const idOf = (callId: string): string => ids.get(callId) ?? callId;
  for (const [index, message] of messages.entries()) {
    if (message.role === 'user') {
      append(prompt, convertUser(message, idOf, marked.has(index), dialect));
      continue;
    }
    const isOurs = message.model === dialect.modelId;
    ids = isOurs ? NO_IDS : plainIds(message, index);
    const own = isOurs && (!message.cut || dialect.keepsCut);
    const content = message.parts.flatMap((part) => convertPart(part, idOf, own));
    if (content.length > 0) append(prompt, [{ role: 'assistant', content }]);
  }
  return prompt;
};

const convertTool = (
  { name, description, inputSchema }: ToolDeclaration,
  { strictTools }: Dialect,
  marked: boolean,
): LanguageModelV3FunctionTool => ({
  type: 'function',
  name,
  description,
  // A JSON Schema of an object, as every tool declares it; the types differ in being writable.
  inputSchema: inputSchema as LanguageModelV3FunctionTool['inputSchema'],
  ...(strictTools === undefined ? {} : { strict: strictTools }),
  ...mark(marked),
});

/** The prompt of a request, its tools and whether they may be called. */
export const convertRequest = (
  { instructions, tools, messages, toolChoice }: ModelRequest,
  dialect: Dialect,
): Pick<LanguageModelV3CallOptions, 'prompt' | 'tools' | 'toolChoice'> => {
  const { marksCache } = dialect;
  const instructed = !isBlank(instructions);
  const system: Prompt = instructed ? [{ role: 'system', content: instructions, ...mark(marksCache) }] : [];
  const last = marksCache && !instructed ? tools.length - 1 : -1;
  return {
    prompt: [...system, ...convertMessages(messages, dialect)],
    ...(tools.length > 0
      ? { tools: tools.map((tool, index) => convertTool(tool, dialect, index === last)) }
      : {}),
    ...(toolChoice === undefined ? {} : { toolChoice: { type: toolChoice } }),
  };
};
