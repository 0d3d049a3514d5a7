/**
 * A model from the AI SDK as a model of the agent, for users of the library who have one already.
 */

import { types } from 'node:util';
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3FinishReason,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
  SharedV3ProviderOptions,
} from '@ai-sdk/provider';
import type { StopReason } from '../machine/event.js';
import type { AssistantPart, ProviderMetadata } from '../machine/message.js';
import { isObject } from '../platform/untrusted-input.js';
import type { Model, ModelFacts, ModelRequest, TokenUsage } from '../ports/model.js';
import { catalogueFacts } from './catalogue.js';
import { withoutDefinitions } from './tool-schema.js';
import { brokenOff, eventError } from './wire-errors.js';
import {
  cachedUsers,
  type Dialect,
  findStopReason,
  isBlank,
  readTokens,
  readTotals,
  type SentMessage,
  type SentUser,
  type StreamedReply,
  sentChoice,
  sentMessages,
  type Wire,
  wireModel,
} from './wire-model.js';

/**
 * The part of an AI SDK language model (`LanguageModelV3` or `LanguageModelV4`) that Pawl calls, so
 * that its type needs no package.
 */
export type AiSdkLanguageModel = {
  readonly specificationVersion: 'v3' | 'v4';
  /** For example `openai.responses`. */
  readonly provider: string;
  readonly modelId: string;
  doStream(options: never): PromiseLike<{ readonly stream: object }>;
};

/**
 * Makes an agent's model from an AI SDK model. Pawl calls its `doStream`, so that only the machine
 * retries. Facts that are not given come from the catalogue; for a model that is not in it they are
 * safe assumptions without a price. `name`: the id of the model; default: family and name, as in
 * `openai/gpt-5`. Throws for a package of another generation.
 */
export const aiSdkModel = (
  languageModel: AiSdkLanguageModel,
  facts: Partial<ModelFacts> = {},
  name?: string,
): Model => {
  const { specificationVersion, provider, modelId } = languageModel;
  if (specificationVersion !== 'v3' && specificationVersion !== 'v4') {
    throw new TypeError(
      `${provider}/${modelId} is a model of the specification ` +
        `${String(specificationVersion)}: install a version of its package that offers v3 or v4 ` +
        '(AI SDK 6 or newer)',
    );
  }
  const [family = provider] = provider.split('.');
  const id = name ?? `${family}/${modelId}`;
  const allFacts = { ...catalogueFacts(id), ...facts };
  const model: unknown = languageModel;
  // The package takes the place of one of Pawl's own adapters, each of which has a `Wire`.
  const wire: Wire = {
    provider: {
      name: family,
      keyVariable: `the key of ${family}'s package`, // the package alone knows the variable
      host: provider,
    },
    dialect: { modelId: id, marksCache: family === 'anthropic' },
    body: (request) => ({
      ...convertRequest(request, wire.dialect, specificationVersion),
      maxOutputTokens: request.outputTokensMax ?? allFacts.outputTokensMax,
    }),
    send: async (body, reply, abortSignal) => {
      const { doStream } = model as LanguageModelV3; // it says so; v4 differs as `fileData` says
      const call = body as LanguageModelV3CallOptions; // made by `body` above
      const { stream } = await doStream.call(model, { ...call, abortSignal });
      const reader = stream.getReader();
      try {
        await readParts(reader, reply);
      } finally {
        // the rest of the stream is not read, so its failure changes nothing
        reader.cancel().catch(() => undefined);
      }
    },
  };
  return wireModel(wire, { facts: allFacts });
};

/** Up to a part with this marker, the provider is to cache the prompt. */
const MARKED = { providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } } as const;

type Options = Pick<LanguageModelV3CallOptions, 'prompt' | 'tools' | 'toolChoice'>;

/** A request as packages take it. The types are those of v3. */
const convertRequest = (
  request: ModelRequest,
  dialect: Dialect,
  version: AiSdkLanguageModel['specificationVersion'],
): Options => {
  const { instructions, tools } = request;
  const marked = dialect.marksCache ? MARKED : {};
  const choice = sentChoice(request);
  const sent = sentMessages(request.messages, dialect);
  const cached = dialect.marksCache ? cachedUsers(sent) : new Set<SentMessage>();
  const system: LanguageModelV3Prompt = isBlank(instructions)
    ? []
    : [{ role: 'system', content: instructions, ...marked }];
  // Without instructions the last tool has their marker.
  const markedTool = system.length === 0 ? tools.at(-1) : undefined;
  const convertTool = (tool: ModelRequest['tools'][number]) => ({
    type: 'function' as const,
    name: tool.name,
    description: tool.description,
    inputSchema: withoutDefinitions(tool.inputSchema),
    ...(tool === markedTool ? marked : {}),
  });
  const messages = sent.flatMap(
    (message): LanguageModelV3Prompt =>
      message.role === 'assistant'
        ? [{ role: 'assistant', content: message.parts.map(convertPart) }]
        : convertUser(message, cached.has(message) ? marked : {}, version),
  );
  return {
    prompt: [...system, ...messages],
    ...(tools.length === 0 ? {} : { tools: tools.map(convertTool) }),
    ...(choice === undefined ? {} : { toolChoice: { type: choice } }),
  };
};

type Content<R extends LanguageModelV3Message['role']> = Extract<
  LanguageModelV3Message,
  { role: R }
>['content'];

/** `marked` goes to the last part. */
const convertUser = (
  message: SentUser,
  marked: object,
  version: AiSdkLanguageModel['specificationVersion'],
): LanguageModelV3Prompt => {
  const last = message.content.at(-1) ?? message.results.at(-1);
  const results: Content<'tool'> = message.results.map((part) => ({
    type: 'tool-result',
    toolCallId: part.callId,
    toolName: part.tool,
    output: { type: part.failed ? 'error-text' : 'text', value: part.text },
    ...(part === last ? marked : {}),
  }));
  const content: Content<'user'> = message.content.map((part) => ({
    ...(part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'file', mediaType: part.mediaType, data: fileData(part.base64, version) }),
    ...(part === last ? marked : {}),
  }));
  return [
    ...(results.length === 0 ? [] : [{ role: 'tool' as const, content: results }]),
    ...(content.length === 0 ? [] : [{ role: 'user' as const, content }]),
  ];
};

/** In v4 the data of a file says what it is. */
const fileData = (data: string, version: AiSdkLanguageModel['specificationVersion']): string =>
  version === 'v3' ? data : ({ type: 'data', data } as unknown as string); // the type is that of v3

const convertPart = (part: AssistantPart): Content<'assistant'>[number] => {
  const { metadata = {} } = part;
  // Safe: metadata is JSON, under the names of providers.
  const beside = { providerOptions: metadata as SharedV3ProviderOptions };
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, text: part.text, ...beside };
    case 'call': {
      const { callId: toolCallId, tool: toolName, input } = part;
      return { type: 'tool-call', toolCallId, toolName, input, ...beside };
    }
    default:
      return part satisfies never;
  }
};

/** The stream of an AI SDK model. */
type Parts = {
  read(): PromiseLike<{ readonly done: boolean; readonly value?: LanguageModelV3StreamPart }>;
};

/** Reads the stream to its end; throws if it breaks off before. */
const readParts = async (parts: Parts, reply: StreamedReply): Promise<void> => {
  const read = readReply(reply);
  for (;;) {
    const { done, value } = await parts.read();
    if (done || value === undefined) throw brokenOff();
    if (value.type === 'error') throw readError(value.error);
    if (read(value) === 'end') return;
  }
};

/** The error in a stream: one of the package's own, or what the provider reports, as it came. */
const readError = (error: unknown): unknown => {
  if (types.isNativeError(error) || !isObject(error)) return error;
  const { statusCode } = error; // some packages add it
  return eventError(error, typeof statusCode === 'number' ? statusCode : undefined);
};

/** Reads one part of the stream into the reply. */
const readReply = (reply: StreamedReply): ((part: LanguageModelV3StreamPart) => 'more' | 'end') => {
  /** Ids of calls that the provider ran itself, so no tool answers them. */
  const ranElsewhere = new Set<string>();
  /** Ids of calls whose input is streamed. */
  const streamedIds = new Set<string>();
  const beginCall = (id: string, tool: string): void => {
    streamedIds.add(id);
    reply.beginCall(id, tool);
  };
  return (part) => {
    const metadata =
      // Safe: metadata is JSON, under the names of providers.
      'providerMetadata' in part ? (part.providerMetadata as ProviderMetadata) : undefined;
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        reply.begin(partKind(part), part.id, metadata);
        return 'more';
      case 'text-delta':
      case 'reasoning-delta':
        reply.add(partKind(part), part.id, part.delta, metadata);
        return 'more';
      case 'text-end':
      case 'reasoning-end':
        reply.addOnlyMetadata(partKind(part), part.id, metadata);
        return 'more';
      case 'tool-input-start':
        if (part.providerExecuted === true) ranElsewhere.add(part.id);
        else beginCall(part.id, part.toolName);
        return 'more';
      case 'tool-input-delta':
        if (!ranElsewhere.has(part.id)) reply.addInput(part.id, part.delta);
        return 'more';
      case 'tool-call':
        if (part.providerExecuted === true) return 'more';
        if (!streamedIds.has(part.toolCallId)) beginCall(part.toolCallId, part.toolName);
        reply.endCall(part.toolCallId, part.input, metadata);
        return 'more';
      case 'finish':
        // v4 only: the provider's stream broke off
        if (String(part.finishReason.unified) === 'interrupted') throw brokenOff();
        reply.stop(convertReason(part.finishReason));
        reply.count(convertUsage(part.usage));
        return 'end';
      default:
        // warnings, sources, results of the provider's own tools: no part of a reply here
        return 'more';
    }
  };
};

const partKind = ({ type }: LanguageModelV3StreamPart): 'text' | 'reasoning' =>
  type.startsWith('text') ? 'text' : 'reasoning';

type UnifiedReason = LanguageModelV3FinishReason['unified'];
const REASONS: Readonly<Record<Exclude<UnifiedReason, 'error'>, StopReason>> = {
  stop: 'end',
  'tool-calls': 'toolUse',
  length: 'maxTokens',
  'content-filter': 'contentFilter',
  other: 'other',
};

/** Null if the provider gave no reason. */
const convertReason = ({ unified, raw }: LanguageModelV3FinishReason): StopReason | null => {
  if (unified === 'error' || (unified === 'other' && raw === undefined)) return null;
  return findStopReason(REASONS, unified);
};

/**
 * A package that reports `noCache` has subtracted the cached tokens, even from a total that never
 * contained them: then `noCache` is negative, and the total is right. Without `noCache` the total
 * usually contains them.
 */
const convertUsage = ({ inputTokens, outputTokens }: LanguageModelV3Usage): TokenUsage | null => {
  const { noCache, total, cacheRead, cacheWrite } = inputTokens;
  const counts = {
    inputTokens: noCache === undefined || noCache < 0 ? total : noCache,
    outputTokens: outputTokens.total,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
  };
  return noCache === undefined ? readTotals(counts) : readTokens(counts);
};
