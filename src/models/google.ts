import type { StopReason } from '../agent/event.js';
import type { Model } from '../needs.js';
import { asCount, type Loose, objectIn } from './loose.js';
import { type FromEvent, fetchOf, malformedCall, versionedUrl, type Wire, type WireOptions } from './wire.js';
import { wireModel } from './wire-model.js';

/** Google's generative language API. */

export type GoogleOptions = WireOptions & {
  readonly apiKey: string;
  /** With or without the version at its end; default the provider's own. */
  readonly baseUrl?: string;
};

const DEFAULT_BASE_URL = 'https://generativelanguage.googleapis.com';

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

/** The model wrote a call that the provider itself could not read: another try may go well. */
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
      inputTokens: asCount(usage.promptTokenCount) - cacheReadTokens,
      outputTokens: asCount(usage.candidatesTokenCount) + asCount(usage.thoughtsTokenCount),
      cacheReadTokens,
      cacheWriteTokens: 0,
    },
  };
};

const thoughts = { google: { thinkingConfig: { includeThoughts: true } } };

export const googleModel = (options: GoogleOptions): Model => {
  const url = versionedUrl(options.baseUrl ?? DEFAULT_BASE_URL, 'v1beta');
  const wire: Wire = {
    provider: { name: 'Google', keyVariable: 'GOOGLE_GENERATIVE_AI_API_KEY', host: new URL(url).host },
    open: async () => {
      const { createGoogleGenerativeAI } = await import('@ai-sdk/google');
      const { apiKey, name } = options;
      return createGoogleGenerativeAI({ apiKey, baseURL: url, fetch: fetchOf(options) })(name);
    },
    // Calls come whole, each with a signature without which it would be refused: those of a cut reply, too.
    dialect: { modelId: `google/${options.name}`, marksCache: false, keepsCut: true, refusesGif: true },
    options: options.facts.thinking === 'yes' ? { providerOptions: thoughts } : {},
    stopReason: ({ raw, unified }) => stopReasonOf(raw, unified),
    fromEvent,
  };
  return wireModel(wire, options);
};
