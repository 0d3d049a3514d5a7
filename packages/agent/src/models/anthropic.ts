/** Anthropic's Messages API. */

import type { JSONObject, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import type { StopReason } from '../machine/event.js';
import type { Model, ModelRequest, TokenUsage } from '../ports/model.js';
import { asCount, type Loose, objectIn } from './untyped-json.js';
import {
  type AdapterOptions,
  errorSourceOf,
  type FromEvent,
  fetchOf,
  versionedUrl,
  type Wire,
  windowFull,
  wireModel,
} from './wire-model.js';

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

/**
 * Skips unknown parts of the stream. Anthropic adds events, blocks and deltas, and asks clients to ignore those that
 * they don't know. The SDK instead reports an error for each, right after the raw event, and continues.
 *
 * 1. Only parts that no reply here is made of are skipped. A broken part that we do read makes the reply malformed.
 * 2. An unknown block is skipped with everything that belongs to it.
 */

type Event = { readonly [key: string]: unknown };
const isObject = (value: unknown): value is Event => typeof value === 'object' && value !== null;

const KNOWN_EVENTS: ReadonlySet<string> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'ping',
  'error',
]);
const KNOWN_BLOCKS: ReadonlySet<string> = new Set(['text', 'thinking', 'redacted_thinking', 'tool_use']);
const KNOWN_DELTAS: ReadonlySet<string> = new Set([
  'text_delta',
  'thinking_delta',
  'signature_delta',
  'input_json_delta',
]);

const isOther = (value: unknown, known: ReadonlySet<string>): boolean =>
  isObject(value) && typeof value.type === 'string' && !known.has(value.type);

const isUnknown = (event: Event): boolean => {
  if (event.type === 'content_block_start') return isOther(event.content_block, KNOWN_BLOCKS);
  if (event.type === 'content_block_delta') return isOther(event.delta, KNOWN_DELTAS);
  return isOther(event, KNOWN_EVENTS);
};

/** Returns a function that takes the parts of one stream in order, and is true for those to skip. */
const skipUnknownEvents = (): ((part: LanguageModelV3StreamPart) => boolean) => {
  let event: Event = {};
  const newBlocks = new Set<unknown>();
  return (part) => {
    if (part.type === 'raw') {
      event = isObject(part.rawValue) ? part.rawValue : {};
      return false;
    }
    if (part.type !== 'error') return newBlocks.has(event.index);
    if (!isUnknown(event)) return false;
    if (event.type === 'content_block_start' && event.index !== undefined) newBlocks.add(event.index);
    return true;
  };
};
