import type { StopReason } from '../agent/event.js';
import type { Model, TokenUsage } from '../needs.js';
import { passOverNews } from './anthropic-news.js';
import { asCount, type Loose, objectIn } from './loose.js';
import { type FromEvent, fetchOf, versionedUrl, type Wire, type WireOptions } from './wire.js';
import { wireModel } from './wire-model.js';

/** Anthropic's Messages API. */

export type AnthropicOptions = WireOptions & {
  readonly apiKey: string;
  /** With or without the version at its end; default the provider's own. */
  readonly baseUrl?: string;
  /** `summarized`: the model thinks as it sees fit, and what it thinks is streamed in short. Default: nothing is asked for. */
  readonly thinking?: 'summarized';
};

const DEFAULT_BASE_URL = 'https://api.anthropic.com';

const stopReasons: Readonly<Record<string, StopReason>> = {
  end_turn: 'end',
  stop_sequence: 'end',
  tool_use: 'toolUse',
  max_tokens: 'maxTokens',
  model_context_window_exceeded: 'maxTokens',
  refusal: 'refusal',
};

const readStart = (message: Loose): TokenUsage => {
  const usage = objectIn(message, 'usage');
  return {
    inputTokens: asCount(usage.input_tokens),
    outputTokens: asCount(usage.output_tokens),
    cacheReadTokens: asCount(usage.cache_read_input_tokens),
    cacheWriteTokens: asCount(usage.cache_creation_input_tokens),
  };
};

/** A reply is charged for from its first event on; pings come while the model thinks unseen. */
const fromEvent = (event: Loose): FromEvent => {
  if (event.type === 'message_start') return { usage: readStart(objectIn(event, 'message')) };
  return event.type === 'ping' ? { isAlive: true } : {};
};

const thinking = { anthropic: { thinking: { type: 'adaptive', display: 'summarized' } } } as const;

export const anthropicModel = (options: AnthropicOptions): Model => {
  const url = versionedUrl(options.baseUrl ?? DEFAULT_BASE_URL, 'v1');
  const wire: Wire = {
    provider: { name: 'Anthropic', keyVariable: 'ANTHROPIC_API_KEY', host: new URL(url).host },
    open: async () => {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      return createAnthropic({ apiKey: options.apiKey, baseURL: url, fetch: fetchOf(options) })(options.name);
    },
    dialect: { modelId: `anthropic/${options.name}`, marksCache: true, keepsCut: false },
    options: options.thinking === undefined ? {} : { providerOptions: thinking },
    stopReason: ({ raw }) => (raw === undefined ? null : (stopReasons[raw] ?? 'other')),
    fromEvent,
    passOver: passOverNews,
  };
  return wireModel(wire, options);
};
