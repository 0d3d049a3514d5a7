/**
 * A model from the AI SDK as a model of the agent, for users of the library who have one already.
 */

import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider';
import type { StopReason } from '../machine/event.js';
import type { ProviderMetadata } from '../machine/message.js';
import type { Model, ModelFacts, TokenUsage } from '../ports/model.js';
import { catalogueFacts } from './catalogue.js';
import {
  brokenOff,
  convertRequest,
  readTokens,
  type StreamedReply,
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
 * safe assumptions without a price. Throws for a package of another generation.
 */
export const aiSdkModel = (
  languageModel: AiSdkLanguageModel,
  facts: Partial<ModelFacts> = {},
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
  const id = `${family}/${modelId}`;
  const allFacts = { ...catalogueFacts(id), ...facts };
  const model: unknown = languageModel;
  // The package takes the place of one of Pawl's own adapters, each of which has a `Wire`.
  const wire: Wire = {
    provider: {
      name: family,
      keyVariable: `the key that ${family}'s package was given`,
      host: provider,
    },
    dialect: { modelId: id, marksCache: family === 'anthropic', keepsCut: false },
    body: (request) => ({
      ...convertRequest(request, wire.dialect),
      maxOutputTokens: request.outputTokensMax ?? allFacts.outputTokensMax,
    }),
    send: async (body, reply, abortSignal) => {
      const { doStream } = model as LanguageModelV3; // it says that it is one
      // differs in being read-only
      const call = { ...body, abortSignal } as unknown as LanguageModelV3CallOptions;
      const { stream } = await doStream.call(
        model,
        specificationVersion === 'v4' ? withTaggedFiles(call) : call,
      );
      const reader = stream.getReader();
      try {
        await readParts(reader, reply);
      } finally {
        // Nobody reads the rest of the stream, so its failure changes nothing.
        reader.cancel().catch(() => undefined);
      }
    },
  };
  return wireModel(wire, { facts: allFacts });
};

/** The options as v4 has them: the data of a file says what it is. Else they are those of v3. */
const withTaggedFiles = (options: LanguageModelV3CallOptions): LanguageModelV3CallOptions => {
  const tag = (part: { readonly type: string; readonly data?: unknown }): object =>
    part.type === 'file' ? { ...part, data: { type: 'data', data: part.data } } : part;
  const prompt = options.prompt.map((message) =>
    typeof message.content === 'string'
      ? message
      : { ...message, content: message.content.map(tag) },
  );
  // the types are those of v3
  return { ...options, prompt: prompt as unknown as LanguageModelV3CallOptions['prompt'] };
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
    if (value.type === 'error') throw value.error;
    if (read(value) === 'end') return;
  }
};

/** Reads one part of the stream into the reply. */
const readReply = (reply: StreamedReply): ((part: LanguageModelV3StreamPart) => 'more' | 'end') => {
  /** Ids of calls that the provider ran itself: nobody here can answer them. */
  const ranElsewhere = new Set<string>();
  return (part) => {
    const metadata =
      // JSON by provider
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
        reply.note(partKind(part), part.id, metadata);
        return 'more';
      case 'tool-input-start':
        if (part.providerExecuted === true) ranElsewhere.add(part.id);
        else reply.beginCall(part.id, part.toolName);
        return 'more';
      case 'tool-input-delta':
        if (!ranElsewhere.has(part.id)) reply.addInput(part.id, part.delta);
        return 'more';
      case 'tool-call':
        if (part.providerExecuted !== true) reply.endCall(part.toolCallId, part.input, metadata);
        return 'more';
      case 'finish':
        // of v4: the stream of the provider ended without its end
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

/** Null if the provider gave no reason. */
const convertReason = ({ unified, raw }: LanguageModelV3FinishReason): StopReason | null => {
  switch (unified) {
    case 'stop':
      return 'end';
    case 'tool-calls':
      return 'toolUse';
    case 'length':
      return 'maxTokens';
    case 'content-filter':
      return 'contentFilter';
    case 'other':
      return raw === undefined ? null : 'other';
    case 'error':
      return null;
    default:
      return unified satisfies never;
  }
};

/** Packages subtract cached tokens even from a total that leaves them out. */
const convertUsage = ({ inputTokens, outputTokens }: LanguageModelV3Usage): TokenUsage | null => {
  const { noCache, total, cacheRead, cacheWrite } = inputTokens;
  return readTokens({
    inputTokens: noCache === undefined || noCache < 0 ? total : noCache,
    outputTokens: outputTokens.total,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
  });
};
