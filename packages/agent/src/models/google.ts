/**
 * Google's generative language API.
 *
 * From top to bottom: the model and the body of its request; the conversation as this API wants it;
 * `readReply`, which reads the events of a reply; and calls, which Vertex AI sends in pieces.
 */

import { randomUUID } from 'node:crypto';
import type { StopReason } from '../machine/event.js';
import type { AssistantMessage, ProviderMetadata } from '../machine/message.js';
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
import { withoutDefinitions } from './tool-schema.js';
import { eventError, malformedReply, oddEvent } from './wire-errors.js';
import {
  type AdapterOptions,
  addTokens,
  connect,
  type EventReader,
  errorSource,
  exchange,
  findStopReason,
  isBlank,
  readTotals,
  type SentMessage,
  type StreamedReply,
  sentChoice,
  sentMessages,
  versionedUrl,
  wireModel,
} from './wire-model.js';

/** A model of Google's. */
export const googleModel = (options: AdapterOptions): Model => {
  const base = versionedUrl(options.baseUrl, 'v1beta');
  const { apiKey = '', modelId } = options;
  const fetch = connect(options);
  const provider = errorSource(options, base);
  const { host: server } = provider;
  const dialect = { modelId, server, marksCache: false, refusesGif: true } as const;
  const path = options.name.includes('/') ? options.name : `models/${options.name}`;
  // A name may have folders: `publishers/google/models/gemini-3.8-flash` on Vertex AI.
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  const url = `${base}/${path}:streamGenerateContent?alt=sse`;
  const headers = { 'x-goog-api-key': apiKey };
  return markOwn(
    wireModel(
      {
        provider,
        dialect,
        body: (request) => createBody(request, { ...options, name }, dialect),
        send: async (body, reply, signal) => {
          const { read, continuation } = readReply(reply);
          // One request, unless the provider hands the reply out in parts: then one for each part.
          for (let more: object | null = {}; more !== null; more = continuation())
            await exchange(
              fetch,
              { url, headers, body: { ...body, ...more } },
              read,
              reply,
              signal,
            );
        },
      },
      options,
    ),
  );
};

const createBody = (
  request: ModelRequest,
  options: AdapterOptions,
  dialect: Parameters<typeof sentMessages>[1],
): object => {
  const thinkingConfig = thinkingFor(options, request);
  const instructions = isBlank(request.instructions) ? [] : [{ text: request.instructions }];
  const contents = sentMessages(request.messages, dialect).flatMap((message) =>
    convertMessage(message, options.name),
  );
  // Gemma has no field for instructions: they begin the first message.
  const takesInstructions = !options.name.startsWith('gemma-');
  const [first] = contents;
  if (!takesInstructions && first?.role === 'user')
    first.parts.unshift(...instructions.map(({ text }) => ({ text: `${text}\n\n` })));
  return {
    generationConfig: {
      maxOutputTokens: request.outputTokensMax ?? options.facts.outputTokensMax,
      ...(Object.keys(thinkingConfig).length === 0 ? {} : { thinkingConfig }),
    },
    contents,
    ...(takesInstructions && instructions.length > 0
      ? { systemInstruction: { parts: instructions } }
      : {}),
    ...(request.tools.length === 0
      ? {}
      : { tools: [{ functionDeclarations: request.tools.map(declareTool) }] }),
    ...(sentChoice(request) === undefined
      ? {}
      : { toolConfig: { functionCallingConfig: { mode: 'NONE' } } }),
  };
};

type Level = NonNullable<ModelRequest['effort']>;

/**
 * Thinking tokens of the second generation, which has no levels; as Google itself translates them.
 */
const BUDGETS: Readonly<Record<Level, number>> = {
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  xhigh: 24_576,
  max: 24_576,
};

/** Settings of the model's thoughts. */
const thinkingFor = (
  { name, facts, summaries = 'on' }: AdapterOptions,
  { effort, outputTokensMax = facts.outputTokensMax }: ModelRequest,
): object => {
  const takesBudget = /^gemini-2\./.test(name);
  // Thoughts are part of the output: an answer must still fit behind them.
  const most = outputTokensMax >> 1;
  return {
    ...(effort !== undefined && takesBudget
      ? { thinkingBudget: Math.min(BUDGETS[effort], most) }
      : {}),
    ...(facts.thinking === 'yes' && summaries === 'on' ? { includeThoughts: true } : {}),
    ...(effort !== undefined && !takesBudget ? { thinkingLevel: effort } : {}),
  };
};

/**
 * Tools are declared by their JSON Schema. Definitions are inlined: a reference may have no
 * neighbours there.
 */
const declareTool = ({
  name,
  description,
  inputSchema,
}: ModelRequest['tools'][number]): object => ({
  name,
  description,
  parametersJsonSchema: withoutDefinitions(inputSchema),
});

type Content = { readonly role: 'user' | 'model'; readonly parts: object[] };

const convertMessage = (message: SentMessage, model: string): readonly Content[] => {
  if (message.role === 'assistant') return [{ role: 'model', parts: convertReply(message, model) }];
  const results = message.results.map(({ callId: id, tool: name, text }) => ({
    functionResponse: { id, name, response: { name, content: text } },
  }));
  const content = message.content.map((part) =>
    part.type === 'text'
      ? { text: part.text }
      : { inlineData: { mimeType: part.mediaType, data: part.base64 } },
  );
  return [results, content].flatMap((parts): readonly Content[] =>
    parts.length === 0 ? [] : [{ role: 'user', parts }],
  );
};

/**
 * Takes the place of a signature that a call of another model lacks: without any, Gemini 3 refuses
 * the conversation.
 */
const NO_SIGNATURE = 'skip_thought_signature_validator';

/** Whether the model is of a generation that signs its calls: Gemini 3 and later. */
const wantsSignatures = (model: string): boolean =>
  /^gemini-/.test(model) && !/^gemini-([12]([.-]|$)|pro(-vision)?$)/.test(model);

/** The first call of a reply is signed for all of them. */
const convertReply = ({ parts }: AssistantMessage, model: string): object[] => {
  let isSigned = false;
  return parts.flatMap((part): readonly object[] => {
    const signature = asText(objectIn(part.metadata, 'google').thoughtSignature);
    const signed = signature === null ? {} : { thoughtSignature: signature };
    switch (part.type) {
      case 'text':
        return part.text === '' ? [] : [{ text: part.text, ...signed }];
      case 'reasoning':
        return part.text === '' ? [] : [{ text: part.text, thought: true, ...signed }];
      case 'call': {
        const functionCall = { id: part.callId, name: part.tool, args: part.input };
        if (signature !== null) isSigned = true;
        const needsOne = signature === null && !isSigned && wantsSignatures(model);
        return [{ functionCall, ...(needsOne ? { thoughtSignature: NO_SIGNATURE } : signed) }];
      }
      default:
        return part satisfies never;
    }
  });
};

const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  STOP: 'end',
  MAX_TOKENS: 'maxTokens',
  CONTINUATION: 'maxTokens', // counts only if no other part follows
  SAFETY: 'contentFilter',
  RECITATION: 'contentFilter',
  BLOCKLIST: 'contentFilter',
  PROHIBITED_CONTENT: 'contentFilter',
  SPII: 'contentFilter',
  IMAGE_SAFETY: 'contentFilter',
};

/** Reasons for a reply that the provider itself could not read: a retry may succeed. */
const MALFORMED: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
  'UNEXPECTED_TOOL_CALL',
]);

const convertReason = (reason: string): StopReason | Error =>
  MALFORMED.has(reason) ? malformedReply(reason) : findStopReason(STOP_REASONS, reason);

type Reader = {
  readonly read: EventReader;
  /** What the next request adds, if the provider hands the reply out in parts; null at its end. */
  continuation(): object | null;
};

const NO_TOKENS: TokenUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
};

/** Reads the events of one reply. */
const readReply = (reply: StreamedReply): Reader => {
  const calls = readCalls(reply);
  let open: { readonly type: 'text' | 'reasoning'; readonly id: string } | null = null;
  let parts = 0;
  let isBlocked = false;
  /** Continues a reply that the provider hands out in parts. */
  let nextToken: string | null = null;
  const usedTokens = new Set<string>();
  /** Tokens of the parts before; null: of one of them they are not known. */
  let before: TokenUsage | null = NO_TOKENS;
  /** Tokens of this part. */
  let current: TokenUsage | null = null;

  const add = (
    type: 'text' | 'reasoning',
    text: string,
    metadata: ProviderMetadata | undefined,
  ): void => {
    if (open?.type !== type) {
      open = { type, id: String(parts++) };
      reply.begin(type, open.id, metadata);
    }
    reply.add(type, open.id, text, metadata);
  };

  const readText = (part: Loose): void => {
    if (typeof part.text !== 'string') return;
    const metadata = readSignature(part);
    if (part.text !== '') add(part.thought === true ? 'reasoning' : 'text', part.text, metadata);
    else if (open?.type === 'text') reply.addOnlyMetadata('text', open.id, metadata);
  };

  const read = (event: Loose): 'more' => {
    if ((event.error ?? null) !== null) throw eventError(event);
    if (isObject(event.usageMetadata)) {
      current = readUsage(event.usageMetadata);
      reply.count(addTokens(before, current));
    }
    if (isBlock(objectIn(event, 'promptFeedback').blockReason)) {
      isBlocked = true;
      reply.stop('contentFilter');
    }
    const [candidate] = listIn(event.candidates);
    if (isBlocked || candidate === undefined) return 'more';
    const content = listIn(objectIn(candidate, 'content').parts);
    for (const part of content) readText(part);
    for (const part of content)
      if (isObject(part.functionCall)) calls.read(part.functionCall, readSignature(part));
    const reason = asText(candidate.finishReason);
    if (reason === 'CONTINUATION') nextToken = asText(candidate.continuationToken) ?? nextToken;
    if (reason === null) return 'more';
    calls.cut();
    reply.stop(convertReason(reason));
    return 'more';
  };

  const continuation = (): object | null => {
    const continuationToken = nextToken;
    nextToken = null;
    // the same part again and again would be paid for each time
    if (continuationToken === null || usedTokens.has(continuationToken)) return null;
    usedTokens.add(continuationToken);
    before = addTokens(before, current);
    current = null;
    reply.count(before, 'part');
    return { continuationToken };
  };
  return { read, continuation };
};

const readSignature = ({ thoughtSignature }: Loose): ProviderMetadata | undefined => {
  const signature = asText(thoughtSignature);
  return signature === null ? undefined : { google: { thoughtSignature: signature } };
};

/** Why a prompt was refused; servers also send that there is no reason. */
const isBlock = (reason: unknown): boolean =>
  asText(reason) !== null && !/^BLOCK(ED)?_REASON_UNSPECIFIED$/.test(String(reason));

/**
 * A count that is 0 is left out. The total includes all of them: the prompt, what tools of the
 * provider added to it, the reply and its thoughts. Source: `UsageMetadata` in the reference of the
 * Gemini API.
 */
const readUsage = (usage: Loose): TokenUsage | null => {
  const { promptTokenCount, totalTokenCount = 0, toolUsePromptTokenCount = 0 } = usage;
  const { candidatesTokenCount = 0, thoughtsTokenCount = 0 } = usage;
  const inputTokens = sum(promptTokenCount, toolUsePromptTokenCount);
  const outputTokens = sum(candidatesTokenCount, thoughtsTokenCount);
  const total = asCount(totalTokenCount);
  return readTotals({
    inputTokens,
    outputTokens:
      inputTokens === null || outputTokens === null || total === null
        ? null
        : Math.max(outputTokens, total - inputTokens),
    cacheReadTokens: usage.cachedContentTokenCount,
    cacheWriteTokens: 0,
  });
};

const sum = (one: unknown, other: unknown): number | null => {
  const first = asCount(one);
  const second = asCount(other);
  return first === null || second === null ? null : first + second;
};

/** A call that comes in pieces. */
type StreamedCall = { readonly id: string; readonly args: { [key: string]: unknown } };

/**
 * Reads calls. Most come whole; Vertex AI sends one in pieces: its name, then values with their
 * places (`partialArgs`), then a piece that says nothing. `cut`: the reply ends.
 */
const readCalls = (reply: StreamedReply) => {
  const open: StreamedCall[] = [];
  const end = (): void => {
    const call = open.pop();
    if (call !== undefined) reply.endCall(call.id, JSON.stringify(call.args));
  };
  const read = (call: Loose, metadata: ProviderMetadata | undefined): void => {
    const { args, willContinue } = call;
    const name = asText(call.name);
    const isPiece = Array.isArray(call.partialArgs) || (name !== null && willContinue === true);
    if (!isPiece) {
      const isEnd = (args ?? willContinue ?? null) === null;
      if (name !== null) addWholeCall(reply, call, name, metadata);
      else if (isEnd) end();
      return;
    }
    // a piece with a name begins a call; the others go on the last one
    if (name !== null) {
      const id = asText(call.id) ?? randomUUID();
      open.push({ id, args: {} });
      reply.beginCall(id, name, metadata);
    }
    const current = open.at(-1);
    if (current === undefined || !Array.isArray(call.partialArgs)) return;
    const pieces = listIn(call.partialArgs);
    for (const piece of pieces) addValue(current.args, piece);
    reply.addInput(current.id, ''); // shows that the reply goes on
    if (willContinue !== true && pieces.every((piece) => piece.willContinue !== true)) end();
  };
  /** Without its last brace a call counts as cut, if no other piece ends it. */
  const cut = (): void => {
    for (const { id, args } of open) reply.endCall(id, JSON.stringify(args).slice(0, -1));
  };
  return { read, cut };
};

const addWholeCall = (
  reply: StreamedReply,
  call: Loose,
  name: string,
  metadata: ProviderMetadata | undefined,
): void => {
  const id = asText(call.id) ?? randomUUID();
  const { args = null } = call;
  const input = typeof args === 'string' ? args : JSON.stringify(args ?? {});
  reply.beginCall(id, name, metadata);
  if (args !== null) reply.addInput(id, input);
  reply.endCall(id, input);
};

/** Adds one value at its place, such as `$.list[0].name`; a text may go on one that is there. */
const addValue = (root: { [key: string]: unknown }, piece: Loose): void => {
  const { jsonPath, stringValue: text, numberValue, boolValue, nullValue, willContinue } = piece;
  const isList = typeof jsonPath === 'string' && jsonPath.endsWith('[]');
  const keys =
    typeof jsonPath === 'string' ? keysIn(isList ? jsonPath.slice(0, -2) : jsonPath) : [];
  const last = keys.pop();
  if (last === undefined || [...keys, last].includes('__proto__')) return;
  let holder: { [key: string]: unknown } = root;
  for (const [index, key] of keys.entries()) {
    checkPlace(holder, key);
    if (!isObject(holder[key]))
      holder[key] = typeof (keys[index + 1] ?? last) === 'number' ? [] : {};
    holder = holder[key] as { [key: string]: unknown }; // a list takes numbers as keys
  }
  checkPlace(holder, last);
  const known = holder[last];
  const value =
    typeof text === 'string'
      ? text
      : (numberValue ?? boolValue ?? (nullValue === undefined ? undefined : null));
  if (typeof text === 'string' && typeof known === 'string') holder[last] = known + text;
  else if (value !== undefined) holder[last] = value;
  else if (known === undefined && willContinue !== true) holder[last] = isList ? [] : {};
};

/** A list grows at its end: a place far behind it would take all memory. */
const checkPlace = (holder: object, key: string | number): void => {
  if (Array.isArray(holder) && Number(key) > holder.length)
    throw oddEvent(`place ${key} of a list of ${holder.length}`);
};

/** A name, a quoted name, or a place in a list. */
const KEY = /([^.[\]]+)|\[(?:'([^']*)'|"([^"]*)"|(\d+))\]/g;

/** The keys of a place. */
const keysIn = (jsonPath: string): (string | number)[] =>
  [...jsonPath.replace(/^\$\.?/, '').matchAll(KEY)].map(([, name, one, two, number]) =>
    number === undefined ? (name ?? one ?? two ?? '') : Number(number),
  );
