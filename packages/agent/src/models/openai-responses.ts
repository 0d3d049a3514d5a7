/**
 * OpenAI's Responses API. The provider stores nothing (`store: false`): a model's thoughts come
 * encrypted and go back with the conversation, to the same model only.
 *
 * From top to bottom: the model; the conversation as items of this API; `ResponseReader`, which
 * reads the events of a reply; and the end of a reply, its usage and its errors. An item is a
 * message, a call or a thought; `output_index` is its place.
 */

import type { StopReason } from '../machine/event.js';
import type { AssistantMessage, ProviderMetadata } from '../machine/message.js';
import {
  asText,
  isObject,
  type Loose,
  listIn,
  markOwn,
  objectIn,
} from '../platform/untrusted-input.js';
import type { Model, TokenUsage, ToolDeclaration } from '../ports/model.js';
import { eventError, oddEvent } from './wire-errors.js';
import {
  type AdapterOptions,
  connect,
  errorSource,
  exchange,
  isBlank,
  readTotals,
  type SentMessage,
  type StreamedReply,
  sentChoice,
  sentMessages,
  textIn,
  wireModel,
} from './wire-model.js';

/** A model that is reached by the Responses API. */
export const openAiModel = (options: AdapterOptions): Model => {
  const { baseUrl, apiKey = '', name, modelId, facts } = options;
  const provider = errorSource(options, baseUrl);
  const dialect = {
    modelId,
    server: provider.host,
    marksCache: false,
  } as const;
  const asksForSummary = facts.thinking === 'yes' && options.summaries !== 'off';
  const isReasoning = facts.thinking === 'yes' || isReasoningModel(name);
  const fetch = connect(options);
  const headers = { authorization: `Bearer ${apiKey}` };
  const url = `${baseUrl}/responses`;
  return markOwn(
    wireModel(
      {
        provider,
        dialect,
        body: (request) => {
          const { instructions, tools, effort } = request;
          const role = isReasoning ? 'developer' : 'system';
          // OpenAI refuses summaries to organisations that are not verified (lessons.ts).
          const summary = asksForSummary ? { summary: 'auto' } : {};
          const reasoning = { ...(effort === undefined ? {} : { effort }), ...summary };
          return {
            model: name,
            input: [
              ...(isBlank(instructions) ? [] : [{ role, content: instructions }]),
              ...sentMessages(request.messages, dialect).flatMap((message) =>
                convertMessage(message, isReasoning),
              ),
            ],
            max_output_tokens: request.outputTokensMax ?? facts.outputTokensMax,
            store: false,
            ...(isReasoning ? { include: ['reasoning.encrypted_content'] } : {}),
            ...(isReasoning && Object.keys(reasoning).length > 0 ? { reasoning } : {}),
            tools: tools.length === 0 ? undefined : tools.map(convertTool),
            tool_choice: sentChoice(request),
            stream: true,
          };
        },
        send: (body, reply, signal) => {
          const reader = new ResponseReader(reply);
          return exchange(
            fetch,
            { url, headers, body },
            (event) => reader.read(event),
            reply,
            signal,
          );
        },
      },
      options,
    ),
  );
};

/**
 * Models that think, by OpenAI's names: they take a developer's message in place of the system's,
 * and options of their thoughts. Of others the facts of the model say it.
 */
const isReasoningModel = (name: string): boolean => {
  if (/^o\d+(-|$)/.test(name)) return true;
  const [, major, minor, variant = ''] = /^gpt-(\d+)(?:\.(\d+))?(?:-(.+))?$/.exec(name) ?? [];
  return Number(major) >= 5 && (minor !== undefined || !variant.startsWith('chat'));
};

const convertTool = ({ name, description, inputSchema }: ToolDeclaration): object => ({
  type: 'function',
  name,
  description,
  parameters: inputSchema,
  strict: false, // our schemas describe input, they don't restrict decoding
});

/** An item of the input. */
type Item = { readonly type?: string; readonly [key: string]: unknown };

/** Whether a thought has what came of it. */
const isComplete = ({ encrypted_content: secret, content }: Item): boolean =>
  (secret ?? content ?? null) !== null;

const convertMessage = (message: SentMessage, isReasoning: boolean): readonly Item[] => {
  if (message.role === 'assistant') return convertReply(message, isReasoning);
  const content = message.content.map((part) =>
    part.type === 'text'
      ? { type: 'input_text', text: part.text }
      : { type: 'input_image', image_url: `data:${part.mediaType};base64,${part.base64}` },
  );
  return [
    ...message.results.map(({ callId: call_id, text: output }) => ({
      type: 'function_call_output',
      call_id,
      output,
    })),
    ...(content.length === 0 ? [] : [{ role: 'user', content }]),
  ];
};

type Thought = Item & {
  readonly summary: object[];
  encrypted_content?: unknown;
  /** The words themselves, which only servers other than OpenAI's hand out. */
  content?: object[];
};

/** Adds what a part has of a thought. */
const addToThought = (thought: Thought, text: string, { secret, words }: Loose): void => {
  if (text !== '' && words === true)
    thought.content = [...(thought.content ?? []), { type: 'reasoning_text', text }];
  else if (text !== '') thought.summary.push({ type: 'summary_text', text });
  if ((secret ?? null) !== null) thought.encrypted_content = secret;
};

/** The parts of one thought are one item. Without what came of it a thought would be refused. */
const convertReply = ({ parts }: AssistantMessage, isReasoning: boolean): readonly Item[] => {
  const items: Item[] = [];
  const thoughts = new Map<unknown, Thought>();
  for (const part of parts) {
    const {
      itemId,
      phase,
      reasoningEncryptedContent: secret,
      words,
    } = objectIn(part.metadata, 'openai');
    switch (part.type) {
      case 'text': {
        // A model that thinks takes the id of a message only together with a thought before it.
        const hasThought = [...thoughts.values()].some(isComplete);
        const withId = asText(itemId) !== null && (!isReasoning || hasThought);
        items.push({
          role: 'assistant',
          content: [{ type: 'output_text', text: part.text }],
          ...(withId ? { id: itemId } : {}),
          ...(phase === undefined || phase === null ? {} : { phase }),
        });
        break;
      }
      case 'call':
        items.push({
          type: 'function_call',
          call_id: part.callId,
          name: part.tool,
          arguments: JSON.stringify(part.input),
        });
        break;
      case 'reasoning': {
        const key = asText(itemId) ?? part;
        const id = asText(itemId) === null ? {} : { id: itemId };
        const known = thoughts.get(key);
        const thought: Thought = known ?? { type: 'reasoning', ...id, summary: [] };
        if (known === undefined) items.push(thought);
        thoughts.set(key, thought);
        addToThought(thought, part.text, { secret, words });
        break;
      }
      default:
        part satisfies never;
    }
  }
  return items.filter((item) => item.type !== 'reasoning' || isComplete(item));
};

/** A thought that is streamed: its summaries, and which of them have ended. */
type OpenThought = {
  /** Its encrypted content. */
  readonly secret: string | null;
  readonly summaries: Map<unknown, 'open' | 'done'>;
};

/** Events that only say that the model is at work. */
const SIGNS_OF_LIFE: ReadonlySet<unknown> = new Set([
  'keepalive',
  'response.in_progress',
  'response.queued',
]);

/** Reads the events of one reply. Items of the provider's own tools are no part of it. */
class ResponseReader {
  readonly #reply: StreamedReply;
  readonly #nameItem = createItemNames();
  readonly #thoughts = new Map<string, OpenThought>();
  /** Ids of the calls that are streamed, by place. */
  readonly #calls = new Map<unknown, string>();
  /** Items of which a piece has come, and those that came whole: see `noteItem`. */
  readonly #streamed = new Set<string>();
  readonly #ended = new Set<string>();
  #hasCalled = false;

  constructor(reply: StreamedReply) {
    this.#reply = reply;
  }

  read(event: Loose): 'more' {
    const id = this.#nameItem(event);
    const { output_index: place, summary_index: index } = event;
    switch (event.type) {
      case 'response.output_item.added':
        this.#beginItem(objectIn(event, 'item'), place, id);
        break;
      case 'response.output_item.done':
        this.#endItem(objectIn(event, 'item'), place, id);
        break;
      case 'response.output_text.delta':
        noteItem(this.#streamed, 'message', id, place);
        this.#reply.add('text', id, textIn(event, 'delta'));
        break;
      case 'response.function_call_arguments.delta': {
        const callId = this.#calls.get(place);
        if (callId !== undefined) this.#reply.addInput(callId, textIn(event, 'delta'));
        break;
      }
      case 'response.reasoning_summary_part.added':
        this.#beginSummary(id, index);
        break;
      case 'response.reasoning_summary_text.delta':
        noteItem(this.#streamed, 'reasoning', id, place);
        this.#reply.add('reasoning', `${id}:${index}`, textIn(event, 'delta'), {
          openai: { itemId: id },
        });
        break;
      case 'response.reasoning_summary_part.done':
        this.#findThought(id).summaries.set(index, 'done');
        break;
      // servers other than OpenAI's stream the thoughts themselves
      case 'response.reasoning_text.delta':
        noteItem(this.#streamed, 'reasoning', id, place);
        this.#reply.add('reasoning', `${id}:words`, textIn(event, 'delta'), wordsMetadata(id));
        break;
      case 'response.refusal.delta':
        noteItem(this.#streamed, 'message', id, place);
        this.#reply.refuse(textIn(event, 'delta'));
        break;
      case 'response.completed':
      case 'response.incomplete':
        this.#addUnsent(listIn(objectIn(event, 'response').output));
        endResponse(this.#reply, event, this.#hasCalled);
        break;
      case 'response.failed':
        endResponse(this.#reply, event, false);
        break;
      case 'error':
        throw eventError(event);
      default:
        if (typeof event.type !== 'string')
          throw (event.error ?? event.message ?? null) === null
            ? oddEvent('an event without a type')
            : eventError(event);
        if (SIGNS_OF_LIFE.has(event.type)) this.#reply.alive();
    }
    return 'more';
  }

  #beginItem(item: Loose, place: unknown, id: string): void {
    if (item.type === 'message') this.#reply.begin('text', id, messageMetadata(id, item));
    if (item.type === 'function_call') {
      this.#calls.set(place, textIn(item, 'call_id'));
      this.#reply.beginCall(textIn(item, 'call_id'), textIn(item, 'name'));
    }
    if (item.type === 'reasoning') {
      const secret = asText(item.encrypted_content);
      this.#thoughts.set(id, { secret, summaries: new Map([[0, 'open']]) });
      this.#reply.begin('reasoning', `${id}:0`, thoughtMetadata(id, secret));
    }
  }

  #endItem(item: Loose, place: unknown, id: string): void {
    if (item.type !== 'function_call') noteItem(this.#ended, item.type, id, place);
    if (item.type === 'message') this.#endMessage(item, id);
    if (item.type === 'function_call') {
      this.#hasCalled = true;
      const callId = textIn(item, 'call_id');
      this.#ended.add(`function_call ${callId}`);
      if (this.#calls.get(place) !== callId) this.#reply.beginCall(callId, textIn(item, 'name'));
      this.#calls.delete(place);
      this.#reply.endCall(callId, textIn(item, 'arguments'), { openai: { itemId: id } });
    }
    if (item.type === 'reasoning') this.#endThought(item, id);
  }

  #endMessage(item: Loose, id: string): void {
    this.#reply.addOnlyMetadata('text', id, messageMetadata(id, item));
    if (hasItem(this.#streamed, 'message', id)) return;
    for (const { type, text, refusal } of listIn(item.content)) {
      if (type === 'output_text') this.#reply.add('text', id, asText(text) ?? '');
      if (type === 'refusal') this.#reply.refuse(asText(refusal) ?? '');
    }
  }

  #endThought(item: Loose, id: string): void {
    const metadata = thoughtMetadata(id, asText(item.encrypted_content));
    for (const index of this.#findThought(id).summaries.keys())
      this.#reply.addOnlyMetadata('reasoning', `${id}:${index}`, metadata);
    if (hasItem(this.#streamed, 'reasoning', id)) return;
    for (const [index, { text }] of listIn(item.summary).entries())
      this.#reply.add('reasoning', `${id}:${index}`, asText(text) ?? '', metadata);
    for (const { text } of listIn(item.content))
      this.#reply.add('reasoning', `${id}:words`, asText(text) ?? '', wordsMetadata(id));
  }

  /** Adds the items that only the end of the reply has. */
  #addUnsent(output: readonly Loose[]): void {
    const sent = new Set([...this.#streamed, ...this.#ended]);
    for (const [index, item] of output.entries()) {
      const id = asText(item.id) ?? '';
      const names = item.type === 'function_call' ? [textIn(item, 'call_id')] : [id, `@${index}`];
      if (!hasItem(sent, item.type, ...names)) this.#endItem(item, index, id);
    }
  }

  /**
   * A new summary closes those that are at their end: what is encrypted comes with the last one.
   */
  #beginSummary(id: string, index: unknown): void {
    if (index === 0) return;
    const { summaries, secret } = this.#findThought(id);
    for (const [known, state] of summaries) if (state === 'done') summaries.delete(known);
    summaries.set(index, 'open');
    this.#reply.begin('reasoning', `${id}:${index}`, thoughtMetadata(id, secret));
  }

  #findThought(id: string): OpenThought {
    const thought = this.#thoughts.get(id) ?? { secret: null, summaries: new Map([[0, 'open']]) };
    this.#thoughts.set(id, thought);
    return thought;
  }
}

/** Notes an item other than a call, by its id and by its place. */
const noteItem = (items: Set<string>, type: unknown, id: string, place: unknown): void => {
  items.add(`${type} ${id}`).add(`${type} @${place}`);
};

/** Whether one of these names is noted. An item without an id may be any of its type. */
const hasItem = (items: ReadonlySet<string>, type: unknown, ...names: readonly string[]): boolean =>
  [...names, ''].some((name) => items.has(`${type} ${name}`));

/**
 * Gives all events of an item the id of its first one. GitHub Copilot names an item anew in each
 * event; its place (`output_index`) stays the same.
 */
const createItemNames = (): ((event: Loose) => string) => {
  const ids = new Map<unknown, string>();
  return ({ type, output_index: place, item, item_id: named }) => {
    const itemId = (isObject(item) ? asText(item.id) : asText(named)) ?? '';
    if (place === undefined) return itemId;
    if (type === 'response.output_item.added' && itemId !== '') ids.set(place, itemId);
    return ids.get(place) ?? itemId;
  };
};

/** `phase`: the provider's own mark of a message, which goes back with it. */
const messageMetadata = (itemId: string, { phase }: Loose): ProviderMetadata => ({
  openai: { itemId, ...(typeof phase === 'string' ? { phase } : {}) },
});

/** The words of a thought, which go back as such. */
const wordsMetadata = (itemId: string): ProviderMetadata => ({ openai: { itemId, words: true } });

const thoughtMetadata = (
  itemId: string,
  reasoningEncryptedContent: string | null,
): ProviderMetadata => ({
  openai: { itemId, reasoningEncryptedContent },
});

/** Reads the last event of a reply. */
const endResponse = (reply: StreamedReply, event: Loose, hasCalled: boolean): void => {
  const response = objectIn(event, 'response');
  if (isObject(response.usage)) reply.count(readUsage(response.usage));
  if (event.type === 'response.failed' && isObject(response.error)) throw eventError(event);
  const reason = asText(objectIn(response, 'incomplete_details').reason);
  if (reason !== null || event.type !== 'response.failed')
    reply.stop(hasCalled && !CUT.has(reason) ? 'toolUse' : convertReason(reason, event.type));
};

/** Reasons for which a call may be cut. */
const CUT: ReadonlySet<string | null> = new Set(['max_output_tokens', 'content_filter']);

/** Only a reply that is incomplete has a reason of its own, as a rule. */
const convertReason = (reason: string | null, type: unknown): StopReason => {
  if (reason === 'max_output_tokens') return 'maxTokens';
  if (reason === 'content_filter') return 'contentFilter';
  return reason === null && type === 'response.completed' ? 'end' : 'other';
};

const readUsage = (usage: Loose): TokenUsage | null => {
  const details = objectIn(usage, 'input_tokens_details');
  return readTotals({
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    cacheReadTokens: details.cached_tokens,
    cacheWriteTokens: details.cache_write_tokens,
  });
};
