/** Google's generative language API. */

import type { JSONObject } from '@ai-sdk/provider';
import type { StopReason } from '../machine/event.js';
import type { Model, ModelRequest } from '../ports/model.js';
import { withoutDefinitions } from './tool-schema.js';
import { asCount, isObject, type Loose, listIn, objectIn, withoutCached } from './untyped-json.js';
import {
  type AdapterOptions,
  errorSourceOf,
  type FromEvent,
  fetchOf,
  malformedReply,
  versionedUrl,
  type Wire,
  wireModel,
} from './wire-model.js';

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

/** Reasons for a reply that the provider itself could not read: a retry may succeed. */
const MALFORMED: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
  'UNEXPECTED_TOOL_CALL',
]);

const stopReasonOf = (raw: string | undefined, unified: string): StopReason | Error | null => {
  if (raw === undefined) return null;
  if (MALFORMED.has(raw)) return malformedReply(raw);
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

/** The fields of an object that pass the test. */
const pick = (value: unknown, isRead: (key: string, field: unknown) => boolean): Loose =>
  Object.fromEntries(
    Object.entries(isObject(value) ? value : {}).filter(([key, field]) => isRead(key, field)),
  );

const EVENT_FIELDS: ReadonlySet<string> = new Set(['error', 'responseId']);
const CANDIDATE_FIELDS: ReadonlySet<string> = new Set(['finishReason', 'finishMessage', 'continuationToken']);
const PART_FIELDS: ReadonlySet<string> = new Set(['functionCall', 'text', 'thought', 'thoughtSignature']);

const readCandidate = (candidate: Loose): Loose => ({
  ...pick(candidate, (key) => CANDIDATE_FIELDS.has(key)),
  content: {
    parts: listIn(objectIn(candidate, 'content').parts).map((part) =>
      pick(part, (key) => PART_FIELDS.has(key)),
    ),
  },
});

/**
 * The fields that are read. The package refuses a whole event for one field in a form that it does not know: grounding,
 * token details and the provider's own tools come from Vertex AI with fields missing.
 */
const readEvent = (event: Loose): Loose => ({
  ...pick(event, (key) => EVENT_FIELDS.has(key)),
  candidates: listIn(event.candidates).map(readCandidate),
  ...(isObject(event.usageMetadata)
    ? { usageMetadata: pick(event.usageMetadata, (_, field) => typeof field === 'number') }
    : {}),
  ...(isObject(event.promptFeedback)
    ? { promptFeedback: pick(event.promptFeedback, (key) => key === 'blockReason') }
    : {}),
});

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
 * Declares tools by their JSON Schema. The package would translate it to an older form, which has no `oneOf`, no numbers in an
 * `enum` and no lists of anything. Definitions are inlined: a reference may have no neighbours there.
 */
const withSchemas = (body: string, { tools }: ModelRequest): string => {
  if (tools.length === 0) return body;
  const json: unknown = JSON.parse(body);
  const functionDeclarations = tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    parametersJsonSchema: withoutDefinitions(inputSchema),
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
    editEvents: () => readEvent,
  };
  return wireModel(wire, options);
};
