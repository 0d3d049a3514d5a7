import type { JSONObject } from '@ai-sdk/provider';
import type { StopReason } from '../../agent/event.js';
import type { Model, ModelRequest } from '../../ports/model.js';
import { asCount, isObject, type Loose, objectIn, withoutCached } from '../untyped-json.js';
import {
  type AdapterOptions,
  errorSourceOf,
  type FromEvent,
  fetchOf,
  malformedCall,
  versionedUrl,
  type Wire,
} from './provider-adapter.js';
import { wireModel } from './sdk-model.js';

/** Google's generative language API. */

const stopReasons: Readonly<Record<string, StopReason>> = {
  STOP: 'end',
  MAX_TOKENS: 'maxTokens',
  CONTINUATION: 'maxTokens',
  SAFETY: 'contentFilter',
  RECITATION: 'contentFilter',
  BLOCKLIST: 'contentFilter',
  PROHIBITED_CONTENT: 'contentFilter',
  SPII: 'contentFilter',
  IMAGE_SAFETY: 'contentFilter',
};

/** Reasons for a call that the provider itself could not read: a retry may succeed. */
const MALFORMED: ReadonlySet<string> = new Set(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL']);

const stopReasonOf = (raw: string | undefined, unified: string): StopReason | Error | null => {
  if (raw === undefined) return null;
  if (MALFORMED.has(raw)) return malformedCall(raw);
  return unified === 'content-filter' ? 'contentFilter' : (stopReasons[raw] ?? 'other');
};

/** Every event names the tokens so far. */
const fromEvent = (event: Loose): FromEvent => {
  const usage = objectIn(event, 'usageMetadata');
  if (usage.promptTokenCount === undefined) return {};
  const cacheReadTokens = asCount(usage.cachedContentTokenCount);
  return {
    usage: {
      inputTokens: withoutCached(asCount(usage.promptTokenCount), cacheReadTokens),
      outputTokens: asCount(usage.candidatesTokenCount) + asCount(usage.thoughtsTokenCount),
      cacheReadTokens,
      cacheWriteTokens: 0,
    },
  };
};

type Level = NonNullable<ModelRequest['effort']>;

/** Thinking tokens of the second generation, which has no levels; as Google itself translates them. */
const BUDGETS: Readonly<Record<Level, number>> = { low: 1_024, medium: 8_192, high: 24_576 };

const thinkingConfig = (
  { name, facts, summaries = 'on' }: AdapterOptions,
  effort: ModelRequest['effort'],
): JSONObject => ({
  ...(facts.thinking === 'yes' && summaries === 'on' ? { includeThoughts: true } : {}),
  ...(effort === undefined
    ? {}
    : /^gemini-2\./.test(name)
      ? { thinkingBudget: BUDGETS[effort] }
      : { thinkingLevel: effort }),
});

/**
 * Declares tools by their JSON Schema unchanged. The package would translate it to an older form, which has no `oneOf`,
 * no numbers in an `enum` and no lists of anything.
 */
const withSchemas = (body: string, { tools }: ModelRequest): string => {
  if (tools.length === 0) return body;
  const json: unknown = JSON.parse(body);
  const functionDeclarations = tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    parametersJsonSchema: inputSchema,
  }));
  return JSON.stringify({ ...(isObject(json) ? json : {}), tools: [{ functionDeclarations }] });
};

export const googleModel = (options: AdapterOptions): Model => {
  const url = versionedUrl(options.baseUrl, 'v1beta');
  const wire: Wire = {
    provider: errorSourceOf(options, url),
    open: async () => {
      const { createGoogleGenerativeAI } = await import('@ai-sdk/google');
      const { apiKey = '', name } = options;
      return createGoogleGenerativeAI({ apiKey, baseURL: url, fetch: fetchOf(options) })(name);
    },
    // Calls come whole, each with a signature that must go back, also after a cut reply.
    dialect: { modelId: options.modelId, marksCache: false, keepsCut: true, refusesGif: true },
    options: ({ effort }) => {
      const config = thinkingConfig(options, effort);
      return Object.keys(config).length === 0
        ? {}
        : { providerOptions: { google: { thinkingConfig: config } } };
    },
    editBody: withSchemas,
    stopReason: ({ raw, unified }) => stopReasonOf(raw, unified),
    fromEvent,
  };
  return wireModel(wire, options);
};
