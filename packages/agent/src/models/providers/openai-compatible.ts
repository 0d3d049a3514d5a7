import type { LanguageModelV3StreamPart, LanguageModelV3Usage } from '@ai-sdk/provider';
import type { StopReason } from '../../machine/event.js';
import type { Model } from '../../ports/model.js';
import { asCount, asText, type Loose, listIn, objectIn } from '../untyped-json.js';
import { editChatEvents } from './chat-events.js';
import {
  type AdapterOptions,
  brokenOff,
  errorSourceOf,
  type FromEvent,
  fetchOf,
  overloaded,
  type Wire,
  windowFull,
} from './provider-adapter.js';
import { wireModel } from './sdk-model.js';

/** Chat Completions, as OpenAI once defined it and as Ollama, LM Studio, llama.cpp, vLLM, OpenRouter and others speak it. */

const stopReasons: Readonly<Record<string, StopReason>> = {
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

const stopReasonOf = (raw: string | undefined): StopReason | Error | null => {
  switch (raw) {
    // A gateway (z.ai: `network_error`) lost the provider behind it in the middle of the reply.
    case 'error':
    case 'network_error':
      return brokenOff();
    // DeepSeek.
    case 'insufficient_system_resource':
      return overloaded(raw);
    // z.ai.
    case 'model_context_window_exceeded':
      return windowFull();
    default:
      return raw === undefined ? null : (stopReasons[raw] ?? 'other');
  }
};

/** Marks thoughts that go back; the package reads it under this key. */
const METADATA = { openaiCompatible: { sentAs: 'reasoning_content' } };

/** A server that calls thoughts `reasoning_content` wants them back under that name; others would refuse the field. */
const fromEvent = (event: Loose): FromEvent => {
  const delta = objectIn(objectIn(objectIn(event, 'choices'), 0), 'delta');
  const refusal = asText(delta.refusal);
  if (refusal !== null) return { refusal };
  const details = listIn(delta.reasoning_details);
  if (details.length > 0) return { details };
  return asText(delta.reasoning_content) === null ? {} : { thoughtMetadata: METADATA };
};

/** xAI leaves thoughts out of `completion_tokens`, but not out of `total_tokens`. */
const outputTokens = ({ raw }: LanguageModelV3Usage): number =>
  asCount(objectIn({ raw }, 'raw').total_tokens) - asCount(objectIn({ raw }, 'raw').prompt_tokens);

/** The package reports an error if a stream ends without a reason; gather-reply.ts decides whether it broke off. */
const isMissingReason = (part: LanguageModelV3StreamPart): boolean =>
  part.type === 'error' &&
  /ended without a finish reason/.test(asText(objectIn(part, 'error').message) ?? '');

export const compatibleModel = (options: AdapterOptions): Model => {
  const { name, modelId, baseUrl, apiKey } = options;
  const wire: Wire = {
    provider: errorSourceOf(options, baseUrl),
    open: async () => {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      const open = createOpenAICompatible({
        name: 'compatible',
        baseURL: baseUrl,
        ...(apiKey === undefined ? {} : { apiKey }),
        includeUsage: true,
        fetch: fetchOf(options),
      });
      return open(name);
    },
    // Ollama takes PNG, JPEG and WebP only.
    dialect: { modelId, marksCache: false, keepsCut: false, refusesGif: true },
    options: ({ effort }) =>
      effort === undefined || options.facts.effort === 'none'
        ? {}
        : { providerOptions: { openaiCompatible: { reasoningEffort: effort } } },
    stopReason: ({ raw }) => stopReasonOf(raw),
    fromEvent,
    editEvents: editChatEvents,
    outputTokens,
    passOver: () => isMissingReason,
  };
  return wireModel(wire, options);
};
