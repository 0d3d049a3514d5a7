import type { StopReason } from '../agent/event.js';
import type { Model } from '../needs.js';
import { asText, type Loose, objectIn } from './loose.js';
import { type FromEvent, fetchOf, type Wire, type WireOptions } from './wire.js';
import { wireModel } from './wire-model.js';

/** Chat Completions, as OpenAI once defined it and as Ollama, LM Studio, llama.cpp, vLLM, OpenRouter and others speak it. */

export type CompatibleOptions = WireOptions & {
  /** How the model is called here, e.g. `ollama/qwen3`. */
  readonly modelId: string;
  /** As people call what is there, e.g. `Ollama`. */
  readonly providerName: string;
  /** With the version at its end, e.g. `http://127.0.0.1:1234/v1`. */
  readonly baseUrl: string;
  /** Local servers want none. */
  readonly apiKey?: string;
  readonly keyVariable: string;
};

const stopReasons: Readonly<Record<string, StopReason>> = {
  stop: 'end',
  eos: 'end',
  length: 'maxTokens',
  tool_calls: 'toolUse',
  function_call: 'toolUse',
  content_filter: 'contentFilter',
};

/** `error`: a gateway lost the provider behind it in the middle of the reply. */
const stopReasonOf = (raw: string | undefined): StopReason | null =>
  raw === undefined || raw === 'error' ? null : (stopReasons[raw] ?? 'other');

/** The key under which the package finds what goes back. */
const METADATA = { openaiCompatible: { sentAs: 'reasoning_content' } };

/** A server that names thoughts `reasoning_content` wants them back so; others would refuse the field. */
const fromEvent = (event: Loose): FromEvent => {
  const delta = objectIn(objectIn(objectIn(event, 'choices'), 0), 'delta');
  const refusal = asText(delta.refusal);
  if (refusal !== null) return { refusal };
  return asText(delta.reasoning_content) === null ? {} : { thoughtMetadata: METADATA };
};

export const compatibleModel = (options: CompatibleOptions): Model => {
  const { name, modelId, providerName, baseUrl, apiKey, keyVariable } = options;
  const wire: Wire = {
    provider: { name: providerName, keyVariable, host: new URL(baseUrl).host },
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
    stopReason: ({ raw }) => stopReasonOf(raw),
    fromEvent,
  };
  return wireModel(wire, options);
};
