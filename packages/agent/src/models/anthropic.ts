/**
 * Anthropic's Messages API.
 *
 * From top to bottom: the model and the settings of its thoughts; the conversation as this API
 * wants it, with marks up to where the provider caches; and `readReply`, which reads the events of
 * a reply.
 */

import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import type { StopReason } from '../machine/event.js';
import type { AssistantPart, ProviderMetadata } from '../machine/message.js';
import {
  asCount,
  asText,
  isObject,
  type Loose,
  listIn,
  markOwn,
  objectIn,
} from '../platform/untrusted-input.js';
import type { Model, ModelRequest, TokenUsage } from '../ports/model.js';
import { eventError, oddEvent, windowFull } from './wire-errors.js';
import {
  type AdapterOptions,
  addTokens,
  cachedUsers,
  connect,
  type EventReader,
  errorSource,
  exchange,
  findStopReason,
  isBlank,
  readTokens,
  type SentMessage,
  type SentUser,
  type StreamedReply,
  sentChoice,
  sentMessages,
  textIn,
  versionedUrl,
  wireModel,
} from './wire-model.js';

const API_VERSION = '2023-06-01';

/** A model of Anthropic's. */
export const anthropicModel = (options: AdapterOptions): Model => {
  const url = versionedUrl(options.baseUrl, 'v1');
  const { apiKey = '', modelId } = options;
  const fetch = connect(options);
  const provider = errorSource(options, url);
  const dialect = {
    modelId,
    server: provider.host,
    marksCache: true,
  } as const;
  const mark = cacheMark(options);
  const headers = { 'anthropic-version': API_VERSION, 'x-api-key': apiKey };
  return markOwn(
    wireModel(
      {
        provider,
        dialect,
        body: (request) => {
          const { instructions, tools } = request;
          const marked = { cache_control: mark };
          const choice = sentChoice(request);
          // The instructions cover the tools. Without any, the last tool has their mark.
          const hasInstructions = !isBlank(instructions);
          const markedTool = hasInstructions ? undefined : tools.at(-1);
          return {
            model: options.name,
            max_tokens: request.outputTokensMax ?? options.facts.outputTokensMax,
            ...thinkingFor(options, request),
            system: hasInstructions ? [{ type: 'text', text: instructions, ...marked }] : undefined,
            messages: convertMessages(sentMessages(request.messages, dialect), marked),
            tools:
              tools.length === 0
                ? undefined
                : tools.map((tool) => convertTool(tool, tool === markedTool ? marked : {})),
            tool_choice: choice === undefined ? undefined : { type: choice },
            stream: true,
          };
        },
        send: (body, reply, signal) =>
          exchange(
            fetch,
            { url: `${url}/messages`, headers, body },
            readReply(reply),
            reply,
            signal,
          ),
      },
      options,
    ),
  );
};

type Level = NonNullable<ModelRequest['effort']>;

/**
 * Thinking tokens for models that take a number instead of a level; all are below such a model's
 * output limit.
 */
const BUDGETS: Readonly<Record<Level, number>> = {
  low: 4_000,
  medium: 10_000,
  high: 20_000,
  xhigh: 20_000,
  max: 20_000,
};

const THINKING_TOKENS_MIN = 1_024;

/** An effort makes models think that would not think by themselves. */
const thinkingFor = (
  { thinksByItself = false, facts, summaries = 'on' }: AdapterOptions,
  { effort, outputTokensMax = facts.outputTokensMax }: ModelRequest,
): object => {
  const thinking =
    summaries === 'on' ? { type: 'adaptive', display: 'summarized' } : { type: 'adaptive' };
  if (effort === undefined) return thinksByItself && summaries === 'on' ? { thinking } : {};
  if (facts.effort !== 'budget') return { thinking, output_config: { effort } };
  // Thoughts are part of the output: half of it stays for the answer.
  const budget = Math.min(BUDGETS[effort], outputTokensMax >> 1);
  // A smaller one is refused.
  if (budget < THINKING_TOKENS_MIN) return {};
  return { thinking: { type: 'enabled', budget_tokens: budget } };
};

/** A part of a message. */
type Block = { readonly type: string; readonly [key: string]: unknown };

/** Says on a part: cache the request up to here, for so long. */
type CacheMark = { readonly type: 'ephemeral'; readonly ttl?: '1h' };

const FIVE_MINUTES_MS = 300_000;

/** Five minutes are the provider's own choice, so a request does not name them. */
const cacheMark = ({ facts }: AdapterOptions): CacheMark =>
  (facts.cacheLifetimeMs ?? 0) > FIVE_MINUTES_MS
    ? { type: 'ephemeral', ttl: '1h' }
    : { type: 'ephemeral' };

/** `marked`: the field of a part up to which the provider caches the prompt; empty: of no part. */
const convertTool = (
  { name, description, inputSchema }: ModelRequest['tools'][number],
  marked: object,
): object => ({
  name,
  description,
  input_schema: inputSchema,
  ...marked,
  // pieces of the input come as the model writes them, not once they are valid JSON
  eager_input_streaming: true,
});

/** Results and what the user says are one message. */
const convertMessages = (sent: readonly SentMessage[], marked: object): readonly object[] => {
  const cached = cachedUsers(sent);
  const messages: { role: 'user' | 'assistant'; content: Block[] }[] = [];
  for (const message of sent) {
    const { role } = message;
    const content =
      message.role === 'user'
        ? convertUser(message, cached.has(message) ? marked : {})
        : callsLast(message.parts.map(convertPart));
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else messages.push({ role, content });
  }
  return messages;
};

/** `marked` goes to the last part. */
const convertUser = ({ results, content }: SentUser, marked: object): Block[] => {
  const blocks: Block[] = [
    ...results.map(({ callId, text, failed }) => ({
      type: 'tool_result',
      tool_use_id: callId,
      content: text,
      ...(failed ? { is_error: true } : {}),
    })),
    ...content.map((part) => {
      if (part.type === 'text') return { type: 'text', text: part.text };
      const { mediaType: media_type, base64: data } = part;
      return { type: 'image', source: { type: 'base64', media_type, data } };
    }),
  ];
  return blocks.map((block, index) =>
    index === blocks.length - 1 ? { ...block, ...marked } : block,
  );
};

const convertPart = (part: AssistantPart): Block => {
  const beside = objectIn(part.metadata, 'anthropic');
  switch (part.type) {
    case 'text':
      return { ...beside, type: 'text', text: part.text };
    case 'reasoning':
      return convertThought(part.text, beside);
    case 'call':
      return { ...beside, type: 'tool_use', id: part.callId, name: part.tool, input: part.input };
    default:
      return part satisfies never;
  }
};

/** A server other than Anthropic's may send thoughts without a signature, and want them back so. */
const convertThought = (thinking: string, { redactedData, ...beside }: Loose): Block =>
  asText(redactedData) === null
    ? { ...beside, type: 'thinking', thinking }
    : { type: 'redacted_thinking', data: redactedData };

/** Calls stand behind the text of their message; thoughts keep their place. */
const callsLast = (content: readonly Block[]): Block[] => {
  const sorted: Block[] = [];
  let calls: Block[] = [];
  for (const block of content) {
    if (block.type === 'tool_use') {
      calls.push(block);
      continue;
    }
    if (block.type !== 'text') {
      sorted.push(...calls);
      calls = [];
    }
    sorted.push(block);
  }
  return [...sorted, ...calls];
};

/**
 * A block that is streamed. Blocks of the provider's own tools, and those that we don't know, are
 * no part of the reply.
 */
type OpenBlock =
  | { readonly kind: 'text' | 'reasoning' | 'redacted' | 'none' }
  /** `whole`: its input, as it stood at the beginning. */
  | { readonly kind: 'call'; readonly id: string; readonly whole: string; input: string };

/**
 * Reads the events of one reply. Anthropic adds events, blocks and deltas, and asks clients to
 * ignore those they don't know.
 */
const readReply = (reply: StreamedReply): EventReader => {
  const blocks = new Map<unknown, OpenBlock>();
  let isFirst = true;
  /** Id of the message; null before its start. */
  let messageId: unknown = null;
  let stopReason: string | undefined;
  /** Later counts replace those before. */
  let counts: Loose = {};
  const count = (reported: unknown, coverage: 'whole' | 'part'): void => {
    if (!isObject(reported)) return;
    const merged: { [name: string]: unknown } = { ...counts };
    for (const [name, value] of Object.entries(reported)) merged[name] = value ?? merged[name];
    counts = merged;
    let usage = readUsage(counts);
    // The sums leave out the server's own compactions ("Compaction" in Anthropic's documentation).
    for (const iteration of listIn(counts.iterations))
      if (iteration.type === 'compaction') usage = addTokens(usage, readUsage(iteration));
    reply.count(usage, coverage);
  };
  return (event) => {
    const wasFirst = isFirst;
    isFirst = false;
    switch (event.type) {
      case 'message_start': {
        const message = objectIn(event, 'message');
        if (messageId !== null && messageId !== message.id) throw oddEvent('another message began');
        if (messageId !== null) return 'more';
        messageId = message.id;
        count(message.usage, 'part');
        return 'more';
      }
      case 'content_block_start':
        blocks.set(
          event.index,
          beginBlock(reply, String(event.index), objectIn(event, 'content_block')),
        );
        return 'more';
      case 'content_block_delta':
        addDelta(reply, String(event.index), blocks.get(event.index), objectIn(event, 'delta'));
        return 'more';
      case 'content_block_stop': {
        const block = blocks.get(event.index);
        if (block?.kind === 'call')
          reply.endCall(block.id, block.input === '' ? block.whole : block.input);
        return 'more';
      }
      case 'message_delta':
        stopReason = asText(objectIn(event, 'delta').stop_reason) ?? stopReason;
        // Only the output that is counted at the end is that of the whole reply.
        count(
          event.usage,
          asCount(objectIn(event, 'usage').output_tokens) === null ? 'part' : 'whole',
        );
        return 'more';
      case 'message_stop':
        reply.stop(convertReason(stopReason));
        return 'end';
      case 'ping': // come while the model thinks unseen
        reply.alive();
        return 'more';
      case 'error':
        throw eventError(event, wasFirst ? errorStatus(objectIn(event, 'error')) : undefined);
      default:
        if (typeof event.type !== 'string') throw oddEvent('an event without a type');
        return 'more';
    }
  };
};

/** An error in place of a reply counts as one of the request: the status of its type. */
const errorStatus = ({ type }: Loose): number => STATUSES.get(type) ?? 500;

const STATUSES: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['request_too_large', 413],
  ['timeout_error', 504],
  ['overloaded_error', 529],
]);

const convertReason = (reason: string | undefined): StopReason | Error | null => {
  if (reason === 'model_context_window_exceeded') return windowFull();
  return reason === undefined ? null : findStopReason(STOP_REASONS, reason);
};

const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  end_turn: 'end',
  stop_sequence: 'end',
  tool_use: 'toolUse',
  max_tokens: 'maxTokens',
  refusal: 'refusal',
};

const readUsage = (counts: Loose): TokenUsage | null =>
  readTokens({
    inputTokens: counts.input_tokens,
    outputTokens: counts.output_tokens,
    cacheReadTokens: counts.cache_read_input_tokens,
    cacheWriteTokens: counts.cache_creation_input_tokens,
  });

/** Fields of a block that everybody knows. */
const BLOCK_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'text',
  'thinking',
  'id',
  'name',
  'input',
]);

/** What a server sent beside a block; undefined: nothing. */
const besideBlock = (block: Loose): ProviderMetadata | undefined => {
  let beside: JsonObject | undefined;
  for (const [name, value] of Object.entries(block))
    if (!BLOCK_FIELDS.has(name) && value !== null) beside = { ...beside, [name]: value as Json }; // it came as JSON
  return beside === undefined ? undefined : { anthropic: beside };
};

/** Begins the part of the reply that a block is. */
const beginBlock = (reply: StreamedReply, id: string, block: Loose): OpenBlock => {
  switch (block.type) {
    case 'text':
      reply.begin('text', id, besideBlock(block));
      reply.add('text', id, asText(block.text) ?? '');
      return { kind: 'text' };
    case 'thinking':
      reply.begin('reasoning', id, besideBlock(block) ?? { anthropic: {} });
      reply.add('reasoning', id, asText(block.thinking) ?? '');
      return { kind: 'reasoning' };
    case 'redacted_thinking':
      reply.begin('reasoning', id, { anthropic: { redactedData: textIn(block, 'data') } });
      return { kind: 'redacted' };
    case 'tool_use': {
      const callId = textIn(block, 'id');
      reply.beginCall(callId, textIn(block, 'name'), besideBlock(block));
      const whole = isObject(block.input) ? JSON.stringify(block.input) : '{}';
      return { kind: 'call', id: callId, whole, input: '' };
    }
    default:
      if (typeof block.type !== 'string') throw oddEvent('a block without a type');
      return { kind: 'none' };
  }
};

/** Adds a piece to the block. */
const addDelta = (
  reply: StreamedReply,
  id: string,
  block: OpenBlock | undefined,
  delta: Loose,
): void => {
  if (block?.kind === 'none') return;
  switch (delta.type) {
    case 'text_delta':
      reply.add('text', id, textIn(delta, 'text'));
      break;
    case 'thinking_delta':
      reply.add('reasoning', id, textIn(delta, 'thinking'));
      break;
    case 'signature_delta':
      if (block?.kind === 'reasoning')
        reply.addOnlyMetadata('reasoning', id, {
          anthropic: { signature: textIn(delta, 'signature') },
        });
      break;
    case 'input_json_delta': {
      const text = textIn(delta, 'partial_json');
      if (block?.kind !== 'call' || text === '') break;
      block.input += text;
      reply.addInput(block.id, text);
      break;
    }
    default:
      if (typeof delta.type !== 'string') throw oddEvent('a delta without a type');
  }
};
