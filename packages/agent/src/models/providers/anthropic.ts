import type { JSONObject } from '@ai-sdk/provider';
import type { StopReason } from '../../machine/event.js';
import type { Model, ModelRequest, TokenUsage } from '../../ports/model.js';
import { asCount, type Loose, objectIn } from '../untyped-json.js';
import { skipUnknownEvents } from './anthropic-unknown-events.js';
import {
  type AdapterOptions,
  errorSourceOf,
  type FromEvent,
  fetchOf,
  versionedUrl,
  type Wire,
  windowFull,
} from './provider-adapter.js';
import { wireModel } from './sdk-model.js';

/** Anthropic's Messages API. */

const stopReasons: Readonly<Record<string, StopReason>> = {
  end_turn: 'end',
  stop_sequence: 'end',
  tool_use: 'toolUse',
  max_tokens: 'maxTokens',
  refusal: 'refusal',
};

const stopReasonOf = (raw: string | undefined): StopReason | Error | null => {
  if (raw === 'model_context_window_exceeded') return windowFull();
  return raw === undefined ? null : (stopReasons[raw] ?? 'other');
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

/** A reply costs from its first event on. Pings come while the model thinks unseen. */
const fromEvent = (event: Loose): FromEvent => {
  if (event.type === 'message_start') return { usage: readStart(objectIn(event, 'message')) };
  return event.type === 'ping' ? { isAlive: true } : {};
};

const display = { type: 'adaptive', display: 'summarized' } as const;
type Level = NonNullable<ModelRequest['effort']>;

/** Thinking tokens for models that take a number instead of a level; all are below such a model's output limit. */
const BUDGETS: Readonly<Record<Level, number>> = { low: 4_000, medium: 10_000, high: 20_000 };

/** An effort makes models think that would not think by themselves. */
const thinkingFor = (
  { thinksByItself = false, facts, summaries = 'on' }: AdapterOptions,
  effort: ModelRequest['effort'],
): JSONObject => {
  const adaptive = summaries === 'on' ? display : { type: 'adaptive' };
  if (effort === undefined) return thinksByItself && summaries === 'on' ? { thinking: display } : {};
  if (facts.effort === 'budget') {
    return {
      thinking: { type: 'enabled', budgetTokens: Math.min(BUDGETS[effort], facts.outputTokensMax >> 1) },
    };
  }
  return { thinking: adaptive, effort };
};

export const anthropicModel = (options: AdapterOptions): Model => {
  const url = versionedUrl(options.baseUrl, 'v1');
  const wire: Wire = {
    provider: errorSourceOf(options, url),
    open: async () => {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      const { apiKey = '', name } = options;
      return createAnthropic({ apiKey, baseURL: url, fetch: fetchOf(options) })(name);
    },
    dialect: { modelId: options.modelId, marksCache: true, keepsCut: false, takesDefinitions: true },
    options: ({ effort }) => {
      const thinking = thinkingFor(options, effort);
      // The package builds its schema of options only where there are any: 8 ms of the first request.
      return Object.keys(thinking).length === 0 ? {} : { providerOptions: { anthropic: thinking } };
    },
    stopReason: ({ raw }) => stopReasonOf(raw),
    fromEvent,
    passOver: skipUnknownEvents,
  };
  return wireModel(wire, options);
};
