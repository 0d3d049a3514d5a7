/**
 * Chat Completions, as OpenAI once defined it and as Ollama, LM Studio, llama.cpp, vLLM, OpenRouter
 * and others speak it.
 *
 * From top to bottom: the model; the conversation as this API wants it; `readReply`, which reads
 * the events of a reply; thoughts within its text; and calls, whose pieces servers send in many
 * ways.
 */

import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { StopReason } from '../machine/event.js';
import type { AssistantMessage, AssistantPart, CallPart } from '../machine/message.js';
import {
  asCount,
  asText,
  isObject,
  type Loose,
  listIn,
  markOwn,
  objectIn,
} from '../platform/untrusted-input.js';
import type { Model, TokenUsage, ToolDeclaration } from '../ports/model.js';
import { withoutDefinitions } from './tool-schema.js';
import { brokenOff, eventError, oddEvent, overloaded, windowFull } from './wire-errors.js';
import {
  type AdapterOptions,
  connect,
  type EventReader,
  errorSource,
  exchange,
  findStopReason,
  isBlank,
  readTotals,
  type SentMessage,
  type SentUser,
  type StreamedReply,
  sentChoice,
  sentMessages,
  wireModel,
} from './wire-model.js';

/** A model of a server that speaks Chat Completions. */
export const compatibleModel = (options: AdapterOptions): Model => {
  const { name, modelId, baseUrl, apiKey, facts } = options;
  const fetch = connect(options);
  const provider = errorSource(options, baseUrl);
  const { host: server } = provider;
  // Ollama takes PNG, JPEG and WebP only.
  const dialect = { modelId, server, marksCache: false, refusesGif: true } as const;
  const headers: Record<string, string> =
    apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const url = `${baseUrl}/chat/completions`;
  return markOwn(
    wireModel(
      {
        provider,
        dialect,
        body: (request) => {
          const { instructions, tools } = request;
          const takesEffort = request.effort !== undefined && facts.effort !== 'none';
          return {
            model: name,
            max_tokens: request.outputTokensMax ?? facts.outputTokensMax,
            ...(takesEffort ? { reasoning_effort: request.effort } : {}),
            messages: [
              ...(isBlank(instructions) ? [] : [{ role: 'system', content: instructions }]),
              ...sentMessages(request.messages, dialect).flatMap(convertMessage),
            ],
            tools: tools.length === 0 ? undefined : tools.map(convertTool),
            tool_choice: sentChoice(request),
            stream: true,
            stream_options: { include_usage: true },
          };
        },
        send: async (body, reply, signal) => {
          const { read, end } = readReply(reply);
          await exchange(fetch, { url, headers, body }, read, reply, signal);
          end();
        },
      },
      options,
    ),
  );
};

const convertTool = ({ name, description, inputSchema }: ToolDeclaration): object => ({
  type: 'function',
  function: { name, description, parameters: withoutDefinitions(inputSchema) },
});

/** Stands between results and the user's words: servers (Mistral) refuse one behind the other. */
const BETWEEN = { role: 'assistant', content: '[results above]' };

const convertMessage = (message: SentMessage): readonly object[] => {
  if (message.role === 'assistant') return [convertReply(message)];
  const { results, content } = message;
  return [
    ...results.map(({ callId, text }) => ({ role: 'tool', tool_call_id: callId, content: text })),
    ...(results.length > 0 && content.length > 0 ? [BETWEEN] : []),
    ...(content.length > 0 ? [{ role: 'user', content: convertUserContent(content) }] : []),
  ];
};

const convertUserContent = (content: SentUser['content']): string | readonly object[] => {
  const [first] = content;
  if (content.length === 1 && first?.type === 'text') return first.text;
  return content.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'image_url', image_url: { url: `data:${part.mediaType};base64,${part.base64}` } },
  );
};

/** What came with a part of the reply: the fields of its server. */
const besideOf = ({ metadata }: AssistantPart): Loose => objectIn(metadata, PLACE);

const convertReply = ({ parts: sent }: AssistantMessage): object => {
  const text = sent.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const calls = sent.flatMap((part) => (part.type === 'call' ? convertCall(part) : []));
  const thoughts: { [field: string]: unknown } = {};
  const thinking: object[] = [];
  for (const part of sent) {
    if (part.type !== 'reasoning') continue;
    const { sentAs, ...beside } = besideOf(part);
    if (sentAs === IN_CONTENT)
      thinking.push({ type: 'thinking', thinking: [{ type: 'text', text: part.text }] });
    else if (typeof sentAs === 'string')
      thoughts[sentAs] = `${asText(thoughts[sentAs]) ?? ''}${part.text}`;
    Object.assign(thoughts, beside);
  }
  const words = calls.length > 0 && text === '' ? null : text;
  const parts = text === '' ? thinking : [...thinking, { type: 'text', text }];
  return {
    ...thoughts,
    role: 'assistant',
    content: thinking.length === 0 ? words : parts,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
};

const convertCall = (part: CallPart): object => {
  const { function: besideFunction, ...beside } = besideOf(part);
  return {
    ...beside,
    id: part.callId,
    type: 'function',
    function: {
      ...(isObject(besideFunction) ? besideFunction : {}),
      name: part.tool,
      arguments: JSON.stringify(part.input),
    },
  };
};

/** Under this name the metadata of a part has what its server sent beside it. */
const PLACE = 'openaiCompatible';

/** In place of the name of a field: the thought is a part of the content (Mistral). */
const IN_CONTENT = 'content';

/** What came beside a part, without the fields that everybody knows, and without empty ones. */
const besideIn = (sent: Loose, known: ReadonlySet<string>): JsonObject =>
  Object.fromEntries(
    Object.entries(sent).filter(
      ([name, value]) => !known.has(name) && value !== null && value !== undefined && value !== '',
    ),
  ) as JsonObject; // it came as JSON

const MESSAGE_FIELDS: ReadonlySet<string> = new Set([
  'role',
  'content',
  'refusal',
  'tool_calls',
  'function_call',
]);
const CALL_FIELDS: ReadonlySet<string> = new Set(['index', 'id', 'type', 'function']);
const FUNCTION_FIELDS: ReadonlySet<string> = new Set(['name', 'arguments']);

/** Names under which servers stream thoughts as text; two names may stand for the same thought. */
const THOUGHT_FIELD = /reason|think|thought/i;

/**
 * The thought in fields of a piece, and the field that it goes back as. Another server would refuse
 * the field.
 */
const thoughtIn = (
  beside: JsonObject,
): { readonly text: string; readonly sentAs: string } | null => {
  for (const [sentAs, text] of Object.entries(beside))
    if (THOUGHT_FIELD.test(sentAs) && typeof text === 'string') return { text, sentAs };
  return null;
};

/** `read` takes one event; `end` checks that no call is half. */
type Reader = { readonly read: EventReader; end(): void };

/** Reads the events of one reply. */
const readReply = (reply: StreamedReply): Reader => {
  const divide = divideThoughts();
  const hasName = createNameFilter();
  const calls = new Calls(reply);
  let open: 'none' | 'text' | 'reasoning' = 'none';

  /** `sentAs`: the field that a thought goes back as; null: it does not. */
  const add = (type: 'text' | 'reasoning', text: string, sentAs: string | null = null): void => {
    if (text === '') return;
    if (open !== type) reply.begin(type, type);
    open = type;
    reply.add(type, type, text, sentAs === null ? undefined : { [PLACE]: { sentAs } });
  };

  /** `isLast`: no more text follows, so none waits for a mark of thoughts to become whole. */
  const readDelta = (delta: Loose, isLast: boolean): void => {
    const refusal = asText(delta.refusal);
    if (refusal !== null) reply.refuse(refusal);
    const beside = besideIn(delta, MESSAGE_FIELDS);
    const named = thoughtIn(beside);
    const { [named?.sentAs ?? '']: _, ...others } = beside;
    reply.addExtraFields(others);
    const content = typeof delta.content === 'string' ? delta.content : '';
    const { thought, text } = content === '' && !isLast ? NOTHING : divide(content, isLast);
    if (named !== null) add('reasoning', named.text, named.sentAs);
    add('reasoning', thought);
    for (const part of listIn(delta.content)) readPart(part);
    add('text', text);
    // The form of a call before `tool_calls`.
    const single = isObject(delta.function_call) ? [{ function: delta.function_call }] : [];
    for (const call of [...listIn(delta.tool_calls), ...single]) {
      // thoughts behind a call are another part than those before it
      if (open === 'reasoning') open = 'none';
      if (hasName(call)) calls.add(call);
    }
  };

  const readPart = (part: Loose): void => {
    if (part.type === 'text') add('text', asText(part.text) ?? '');
    if (part.type !== 'thinking') return;
    const words = listIn(part.thinking).map((each) =>
      each.type === 'text' ? (asText(each.text) ?? '') : '',
    );
    add('reasoning', words.join(''), IN_CONTENT);
  };

  const read = (event: Loose): 'more' => {
    if ((event.error ?? null) !== null) throw eventError(event);
    if (!Array.isArray(event.choices)) throw oddEvent('no choices');
    const [choice] = listIn(event.choices);
    const usage = findUsage(event, choice);
    if (usage !== null) reply.count(readUsage(usage));
    const reason = asText(choice?.finish_reason);
    if (reason !== null) reply.stop(convertReason(reason));
    // Some servers send a whole message as the only piece.
    const delta = isObject(choice?.delta) ? choice.delta : objectIn(choice, 'message');
    // When calls begin, the text is at its end.
    readDelta(delta, reason !== null || listIn(delta.tool_calls).length > 0);
    return 'more';
  };
  return { read, end: () => calls.end() };
};

const convertReason = (reason: string): StopReason | Error => {
  switch (reason) {
    // A gateway (z.ai: `network_error`) lost the provider behind it in the middle of the reply.
    case 'error':
    case 'network_error':
      return brokenOff();
    // DeepSeek.
    case 'insufficient_system_resource':
      return overloaded(reason);
    // z.ai.
    case 'model_context_window_exceeded':
      return windowFull();
    default:
      return findStopReason(STOP_REASONS, reason);
  }
};

const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  stop: 'end',
  eos: 'end',
  length: 'maxTokens',
  tool_calls: 'toolUse',
  function_call: 'toolUse',
  content_filter: 'contentFilter',
  /** Mistral: the end of the window. */
  model_length: 'maxTokens',
  /** z.ai. */
  sensitive: 'contentFilter',
};

/**
 * Where servers report usage: OpenAI and most others in the event, Kimi in its choice, Groq in
 * `x_groq`, Ollama's own counts in the event. Sources: "Chat" in Kimi's API documentation, the
 * chunk's `x_groq.usage` in Groq's SDKs, `ChatResponse` in Ollama's API documentation.
 */
const findUsage = (event: Loose, choice: Loose | undefined): Loose | null => {
  const places = [event.usage, objectIn(event, 'x_groq').usage, choice?.usage];
  const usage = places.find(isObject);
  if (usage !== undefined) return usage;
  const { prompt_eval_count: prompt_tokens, eval_count: completion_tokens } = event;
  return completion_tokens === undefined ? null : { prompt_tokens, completion_tokens };
};

/**
 * Tokens of the cache: OpenAI's names, then those of Kimi (`cached_tokens`) and DeepSeek
 * (`prompt_cache_hit_tokens`), whose prompt includes them, too; `cache_write_tokens` are
 * OpenRouter's ("Usage accounting" in its documentation). xAI leaves thoughts out of
 * `completion_tokens`, but not out of `total_tokens`.
 */
const readUsage = (usage: Loose): TokenUsage | null => {
  const details = objectIn(usage, 'prompt_tokens_details');
  const prompt = asCount(usage.prompt_tokens);
  const total = asCount(usage.total_tokens ?? 0);
  const output = asCount(usage.completion_tokens ?? (total === 0 ? null : 0));
  return readTotals({
    inputTokens: prompt,
    outputTokens:
      prompt === null || output === null || total === null
        ? null
        : Math.max(output, total - prompt),
    cacheReadTokens: details.cached_tokens ?? usage.cached_tokens ?? usage.prompt_cache_hit_tokens,
    cacheWriteTokens: details.cache_write_tokens,
  });
};

/** Marks around thoughts within the text. */
const THINK = '<think>';
const END = '</think>';
const NOTHING = { thought: '', text: '' };

/** Length of the longest beginning of `mark` with which the text ends. */
const heldLength = (text: string, mark: string): number => {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--)
    if (mark.startsWith(text.slice(-length))) return length;
  return 0;
};

type Split = { readonly thought: string; readonly text: string };

/**
 * Divides the content of a stream, piece by piece: thoughts that stand as `<think>…</think>` at its
 * beginning are reasoning, and are not sent back. Characters that may be half of a mark wait for
 * the next piece.
 */
const divideThoughts = (): ((piece: string, isLast: boolean) => Split) => {
  let place: 'start' | 'thought' | 'gap' | 'text' = 'start';
  let held = '';
  return (piece, isLast) => {
    let rest = held + piece;
    let thought = '';
    held = '';
    if (place === 'start') {
      const trimmed = rest.trimStart();
      if (trimmed.startsWith(THINK)) {
        place = 'thought';
        rest = trimmed.slice(THINK.length);
      } else if (!isLast && THINK.startsWith(trimmed)) {
        held = rest;
        return { thought, text: '' };
      } else place = 'text';
    }
    if (place === 'thought') {
      const end = rest.indexOf(END);
      const length = end === -1 ? rest.length - (isLast ? 0 : heldLength(rest, END)) : end;
      thought = rest.slice(0, length);
      if (end === -1) held = rest.slice(length);
      else place = 'gap';
      rest = end === -1 ? '' : rest.slice(end + END.length);
    }
    if (place === 'gap') {
      rest = rest.trimStart();
      if (rest !== '') place = 'text';
    }
    return { thought, text: rest };
  };
};

/**
 * A call without a name belongs to a tool of the gateway, which ran it: it is left out, with all
 * its pieces. A call is known by its index. Where no name was sent at all, it may still come.
 */
const createNameFilter = (): ((call: Loose) => boolean) => {
  const nameless = new Set<unknown>();
  const named = new Set<unknown>();
  return (call) => {
    const { name } = objectIn(call, 'function');
    if (typeof name === 'string' && name.trim() !== '') named.add(call.index);
    else if (typeof name === 'string' && !named.has(call.index)) nameless.add(call.index);
    return named.has(call.index) || !nameless.has(call.index);
  };
};

/** What a server sent beside a call, such as the signature of the thought that led to it. */
const besideCall = (piece: Loose): JsonObject => {
  const besideFunction = besideIn(objectIn(piece, 'function'), FUNCTION_FIELDS);
  return {
    ...besideIn(piece, CALL_FIELDS),
    ...(Object.keys(besideFunction).length === 0 ? {} : { function: besideFunction }),
  };
};

type OpenCall = {
  readonly id: string;
  readonly tool: string;
  /** Ids and places (indexes) that its pieces had. */
  readonly ids: Set<string>;
  readonly places: Set<number>;
  input: string;
};

/** The names of a piece of a call; null where it has none. */
type PieceNames = {
  readonly id: string | null;
  readonly place: number | null;
  readonly tool: string | null;
  /**
   * It begins an input, so it is the first piece of a call unless that call still waits for its
   * input.
   */
  readonly isStart: boolean;
};

/**
 * The calls of one reply, of which servers send pieces in many ways: with a place in each piece or
 * in none, with an id in each, in the first or in none, one id or one place for several calls, a
 * name behind the first piece of the input.
 */
class Calls {
  readonly #reply: StreamedReply;
  readonly #calls: OpenCall[] = [];
  /** Input that came before the name of its call, by place. */
  readonly #waiting = new Map<
    number,
    { readonly id: string | null; readonly input: string; readonly beside: JsonObject }
  >();

  constructor(reply: StreamedReply) {
    this.#reply = reply;
  }

  add(piece: Loose): void {
    const { name, arguments: input } = objectIn(piece, 'function');
    const id = asText(piece.id)?.trim() ? asText(piece.id) : null;
    const tool = asText(name)?.trim() ? asText(name) : null;
    const place = typeof piece.index === 'number' ? piece.index : null;
    // Some servers send the arguments as an object.
    const text = isObject(input) ? JSON.stringify(input) : (asText(input) ?? '');
    const isKnown = place === null || this.#calls.some(({ places }) => places.has(place));
    if (isKnown || tool !== null) {
      const waiting = place === null ? undefined : this.#waiting.get(place);
      if (place !== null) this.#waiting.delete(place);
      this.#addTo({ id: waiting?.id ?? id, place, tool }, `${waiting?.input ?? ''}${text}`, {
        ...waiting?.beside,
        ...besideCall(piece),
      });
      return;
    }
    const waiting = this.#waiting.get(place) ?? { id: null, input: '', beside: {} };
    this.#waiting.set(place, {
      id: waiting.id ?? id,
      input: waiting.input + text,
      beside: { ...waiting.beside, ...besideCall(piece) },
    });
  }

  end(): void {
    if (this.#waiting.size > 0) throw oddEvent('a call without a name');
  }

  #addTo(names: Omit<PieceNames, 'isStart'>, input: string, beside: JsonObject): void {
    const { id, place, tool } = names;
    const isStart = tool !== null && /^\s*[{[]/.test(input);
    const match = this.#find({ ...names, isStart });
    if (match === 'ambiguous') return;
    const call = match === 'new' ? this.#begin(tool, id) : match;
    if (id !== null) call.ids.add(id);
    if (place !== null) call.places.add(place);
    call.input += input;
    if (input !== '') this.#reply.addInput(call.id, input);
    if (Object.keys(beside).length > 0)
      this.#reply.addOnlyMetadata('call', call.id, { [PLACE]: beside });
  }

  #begin(tool: string | null, id: string | null): OpenCall {
    if (tool === null) throw oddEvent('a call without a name');
    const isFree = id !== null && this.#calls.every((call) => call.id !== id);
    const call = {
      id: isFree ? id : randomUUID(),
      tool,
      ids: new Set<string>(),
      places: new Set<number>(),
      input: '',
    };
    this.#calls.push(call);
    this.#reply.beginCall(call.id, tool);
    return call;
  }

  /**
   * The call that a piece continues. Servers name it by an id, by its index (`place`), by both, or
   * only in its first piece; some send the index of another call, or one id for two calls. Of an
   * ambiguous piece nothing is taken: the call's input is then no JSON, and the model is told so.
   */
  #find({ id, place, tool, isStart }: PieceNames): OpenCall | 'new' | 'ambiguous' {
    const named = (calls: readonly OpenCall[]): readonly OpenCall[] =>
      calls.filter((call) => tool === null || call.tool === tool);
    const atPlace = place === null ? [] : this.#calls.filter(({ places }) => places.has(place));
    if (id === null) {
      if (atPlace.length > 0) return choose(named(atPlace), isStart);
      return tool !== null ? 'new' : choose(this.#calls, false);
    }
    const same = this.#calls.filter(({ ids }) => ids.has(id));
    if (same.length === 0) {
      const known = named(atPlace);
      return known.length > 0 && !isStart ? choose(known, false) : 'new';
    }
    if (place === null) return tool === null ? choose(same, false) : choose(named(same), isStart);
    const both = choose(
      named(atPlace).filter((call) => same.includes(call)),
      isStart,
    );
    if (both !== 'new' || tool !== null) return both;
    return atPlace.length > 0 ? 'ambiguous' : choose(same, false);
  }
}

/** The only call among these; with `isStart` only those that wait for their input. */
const choose = (calls: readonly OpenCall[], isStart: boolean): OpenCall | 'new' | 'ambiguous' => {
  const [first, ...others] = isStart ? calls.filter(({ input }) => !isWholeInput(input)) : calls;
  if (first === undefined) return 'new';
  return others.length === 0 ? first : 'ambiguous';
};

const isWholeInput = (input: string): boolean => {
  try {
    return isObject(JSON.parse(input));
  } catch {
    return false; // its end is still to come
  }
};
