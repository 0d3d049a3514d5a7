/**
 * OpenAI's Responses API. The provider stores nothing (`store: false`): a model's thoughts come encrypted and go back
 * with the conversation, to the same model only.
 */

import type { Model } from '../ports/model.js';
import type { EditEvent } from './http.js';
import { asText, isObject, type Loose, objectIn } from './untyped-json.js';
import {
  type AdapterOptions,
  errorSourceOf,
  type FromEvent,
  fetchOf,
  unifiedStopReason,
  type Wire,
  wireModel,
} from './wire-model.js';

const SIGNS_OF_LIFE: ReadonlySet<unknown> = new Set(['keepalive', 'response.in_progress', 'response.queued']);

const fromEvent = (event: Loose): FromEvent => {
  const refusal = event.type === 'response.refusal.delta' ? asText(event.delta) : null;
  if (refusal !== null) return { refusal };
  // Servers other than OpenAI's stream the thoughts themselves.
  const thought = event.type === 'response.reasoning_text.delta' ? asText(event.delta) : null;
  if (thought !== null) return { thought };
  return SIGNS_OF_LIFE.has(event.type) ? { isAlive: true } : {};
};

/**
 * Gives all events of an item the id of its first one. GitHub Copilot names an item anew in each event, and the package
 * finds it by its id; its place (`output_index`) stays the same.
 */
const nameItems = (): EditEvent => {
  const ids = new Map<unknown, string>();
  return (event) => {
    const { output_index: place, item, item_id: named } = event;
    if (place === undefined) return event;
    const own = isObject(item) ? asText(item.id) : asText(named);
    if (event.type === 'response.output_item.added' && own !== null) ids.set(place, own);
    const id = ids.get(place);
    if (id === undefined || own === null || own === id) return event;
    return isObject(item) ? { ...event, item: { ...item, id } } : { ...event, item_id: id };
  };
};

/** Accounts that were refused summaries, by server and key: this process asks them no more. */
const withoutSummaries = new Set<string>();

/** OpenAI refuses `reasoning.summary` to organisations that are not verified. */
const isSummaryRefused = (thrown: unknown): boolean => {
  const error = objectIn(objectIn(thrown, 'data'), 'error');
  return objectIn({ thrown }, 'thrown').statusCode === 400 && error.param === 'reasoning.summary';
};

export const openAiModel = (options: AdapterOptions): Model => {
  const { baseUrl: url, apiKey = '', name } = options;
  const thinks = options.facts.thinking === 'yes';
  const account = `${url} ${apiKey}`;
  const wantsSummary = (): boolean => thinks && options.summaries !== 'off' && !withoutSummaries.has(account);
  const wire: Wire = {
    provider: errorSourceOf(options, url),
    open: async () => {
      const { createOpenAI } = await import('@ai-sdk/openai');
      return createOpenAI({ apiKey, baseURL: url, fetch: fetchOf(options) }).responses(name);
    },
    dialect: {
      modelId: options.modelId,
      marksCache: false,
      keepsCut: false,
      strictTools: false,
      takesDefinitions: true,
    },
    options: ({ effort }) => ({
      providerOptions: {
        openai: {
          store: false,
          ...(wantsSummary() ? { reasoningSummary: 'auto' } : {}),
          ...(effort === undefined ? {} : { reasoningEffort: effort }),
        },
      },
    }),
    learn(thrown) {
      if (!wantsSummary() || !isSummaryRefused(thrown)) return false;
      withoutSummaries.add(account);
      return true;
    },
    // This wire has no reason for a whole reply's end; the package takes it from the event.
    stopReason: unifiedStopReason,
    fromEvent,
    editEvents: nameItems,
  };
  return wireModel(wire, options);
};
