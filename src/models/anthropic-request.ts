import type {
  LanguageModelV3CallOptions,
  LanguageModelV3FunctionTool,
  LanguageModelV3Prompt,
  SharedV3ProviderOptions,
} from '@ai-sdk/provider';
import type { AssistantPart, Message, ProviderMetadata, UserMessage } from '../agent/message.js';
import type { ModelRequest, ToolDeclaration } from '../needs.js';

/**
 * A request in the words of the AI SDK.
 *
 * 1. Apart from cache markers, what was sent before is sent again byte for byte: a pure function of the request.
 * 2. Results come before text. A part that the wire forbids (blank text) is left out.
 * 3. At most three cache markers: the instructions (which cover the tools), and the last two user messages, so that
 *    the point where the previous request ended is always one of them.
 */

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

const convertUser = ({ parts }: UserMessage, marked: boolean): Prompt => {
  const results = parts.filter((part) => part.type === 'result');
  const texts = parts.filter((part) => part.type === 'text').filter(({ text }) => !isBlank(text));
  const prompt: Prompt = [];
  if (results.length > 0) {
    const content = results.map(({ callId, tool, failed, text }, index) => ({
      type: 'tool-result' as const,
      toolCallId: callId,
      toolName: tool,
      // The wire forbids an error without content.
      output: {
        type: failed ? ('error-text' as const) : ('text' as const),
        value: isBlank(text) ? '(no output)' : text,
      },
      ...mark(marked && texts.length === 0 && index === results.length - 1),
    }));
    prompt.push({ role: 'tool', content });
  }
  if (texts.length > 0) {
    const content = texts.map(({ text }, index) => ({
      type: 'text' as const,
      text,
      ...mark(marked && index === texts.length - 1),
    }));
    prompt.push({ role: 'user', content });
  }
  return prompt;
};

const convertPart = (part: AssistantPart): AssistantContent => {
  switch (part.type) {
    case 'text':
      return isBlank(part.text) ? [] : [{ type: 'text', text: part.text, ...optionsOf(part.metadata) }];
    case 'reasoning':
      // Without its signature the provider would reject it.
      return part.metadata === undefined
        ? []
        : [{ type: 'reasoning', text: part.text, ...optionsOf(part.metadata) }];
    case 'call':
      return [
        {
          type: 'tool-call',
          toolCallId: part.callId,
          toolName: part.tool,
          input: part.input,
          ...optionsOf(part.metadata),
        },
      ];
    default:
      return part satisfies never;
  }
};

const convertMessages = (messages: readonly Message[]): Prompt => {
  const users = messages.flatMap(({ role }, index) => (role === 'user' ? [index] : []));
  const marked = new Set(users.slice(-2));
  return messages.flatMap((message, index): Prompt => {
    if (message.role === 'user') return convertUser(message, marked.has(index));
    const content = message.parts.flatMap(convertPart);
    return content.length === 0 ? [] : [{ role: 'assistant', content }];
  });
};

const convertTool = (
  { name, description, inputSchema }: ToolDeclaration,
  marked: boolean,
): LanguageModelV3FunctionTool => ({
  type: 'function',
  name,
  description,
  // A JSON Schema of an object, as every tool declares it; the types differ in being writable.
  inputSchema: inputSchema as LanguageModelV3FunctionTool['inputSchema'],
  ...mark(marked),
});

/** The prompt of a request, its tools and whether they may be called. */
export const convertRequest = ({
  instructions,
  tools,
  messages,
  toolChoice,
}: ModelRequest): Pick<LanguageModelV3CallOptions, 'prompt' | 'tools' | 'toolChoice'> => {
  const instructed = !isBlank(instructions);
  const system: Prompt = instructed ? [{ role: 'system', content: instructions, ...mark(true) }] : [];
  const converted = tools.map((tool, index) => convertTool(tool, !instructed && index === tools.length - 1));
  return {
    prompt: [...system, ...convertMessages(messages)],
    ...(tools.length > 0 ? { tools: converted } : {}),
    ...(toolChoice === undefined ? {} : { toolChoice: { type: toolChoice } }),
  };
};
