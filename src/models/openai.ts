import type { Model } from '../needs.js';
import { asText, type Loose } from './loose.js';
import { type FromEvent, fetchOf, unifiedStopReason, type Wire, type WireOptions } from './wire.js';
import { wireModel } from './wire-model.js';

/**
 * OpenAI's Responses API. The provider keeps nothing (`store: false`): what a model thought comes encrypted and goes
 * back with the conversation, to the same model only.
 */

export type OpenAiOptions = WireOptions & {
  readonly apiKey: string;
  /** With the version at its end; default the provider's own. */
  readonly baseUrl?: string;
};

const DEFAULT_BASE_URL = 'https://api.openai.com/v1';

const SIGNS_OF_LIFE: ReadonlySet<unknown> = new Set(['keepalive', 'response.in_progress', 'response.queued']);

const fromEvent = (event: Loose): FromEvent => {
  const refusal = event.type === 'response.refusal.delta' ? asText(event.delta) : null;
  if (refusal !== null) return { refusal };
  return SIGNS_OF_LIFE.has(event.type) ? { isAlive: true } : {};
};

export const openAiModel = (options: OpenAiOptions): Model => {
  const url = options.baseUrl ?? DEFAULT_BASE_URL;
  const thinks = options.facts.thinking === 'yes';
  const wire: Wire = {
    provider: { name: 'OpenAI', keyVariable: 'OPENAI_API_KEY', host: new URL(url).host },
    open: async () => {
      const { createOpenAI } = await import('@ai-sdk/openai');
      const { apiKey, name } = options;
      return createOpenAI({ apiKey, baseURL: url, fetch: fetchOf(options) }).responses(name);
    },
    dialect: {
      modelId: `openai/${options.name}`,
      marksCache: false,
      keepsCut: false,
      strictTools: false,
    },
    options: {
      providerOptions: { openai: { store: false, ...(thinks ? { reasoningSummary: 'auto' } : {}) } },
    },
    // The end of a whole reply has no reason of its own on this wire; the package takes it from the event.
    stopReason: unifiedStopReason,
    fromEvent,
  };
  return wireModel(wire, options);
};
