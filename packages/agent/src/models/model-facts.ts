/**
 * Facts about a model (window, prices), from the server that runs it. They are read once, before
 * the first call.
 *
 * 1. `askModelList`: a Chat Completions server. One that says nothing about the model, or not soon,
 *    leaves it to the catalogue, or unknown; only a missing server is a problem.
 * 2. `askOllama`: silence and a missing model are problems, too, since only Ollama knows the
 *    window. It cuts prompts at its context length without a word: the length it runs the model
 *    with is the window, never the length that the model could have.
 */

import type { LeanFetch } from '../platform/http.js';
import { asText, type Loose, listIn, objectIn } from '../platform/untrusted-input.js';
import type { ModelFacts } from '../ports/model.js';
import { type CacheTtl, listedFacts, UNKNOWN } from './catalogue.js';
import { askServer } from './list-models.js';

/** What is needed to find the facts. */
export type FactsQuestion = {
  readonly modelId: string;
  /** Name of the model at its server. */
  readonly name: string;
  readonly url: string;
  readonly fetch: LeanFetch;
  readonly apiKey?: string;
  /** How long the provider is to keep caches, if one can choose. */
  readonly cacheTtl?: CacheTtl;
};

type FoundFacts = {
  readonly kind: 'ok';
  readonly facts: ModelFacts;
  /** Address for calls of the model. */
  readonly baseUrl: string;
};

export type NoFacts =
  | { readonly kind: 'noServer'; readonly url: string; readonly why: string }
  /** The server has no such model, but others. */
  | { readonly kind: 'noModel'; readonly url: string; readonly others: readonly string[] };

export type FactsAnswer = FoundFacts | NoFacts;

/** A number above 0, or null. */
const positive = (value: unknown): number | null => {
  const count = typeof value === 'string' ? Number(value) : value;
  return typeof count === 'number' && Number.isFinite(count) && count > 0 ? count : null;
};

/** Dollars for a million tokens, from dollars for one. */
const dollars = (value: unknown): number | null => {
  const perToken = typeof value === 'string' ? Number(value) : Number.NaN;
  // Rounded, since a price per token is a long fraction.
  return Number.isFinite(perToken) && perToken >= 0 ? Math.round(perToken * 1e12) / 1e6 : null;
};

/** OpenRouter names prices in its list, in dollars per token. */
const pricesIn = (entry: Loose): ModelFacts['prices'] => {
  const pricing = objectIn(entry, 'pricing');
  const input = dollars(pricing.prompt);
  const output = dollars(pricing.completion);
  if (input === null || output === null) return null;
  const cacheRead = dollars(pricing.input_cache_read) ?? input;
  return { input, output, cacheRead, cacheWrite: dollars(pricing.input_cache_write) ?? input };
};

/** The name of a model in a list in Ollama's form. */
const ollamaName = ({ name, model }: Loose): string => asText(name) ?? asText(model) ?? '';

/**
 * OpenRouter tells it with each model, llama.cpp in a second list in Ollama's form, other servers
 * not at all.
 */
const imagesIn = (entry: Loose, ollamaEntry: Loose | undefined): Pick<ModelFacts, 'images'> => {
  const modalities = objectIn(entry, 'architecture').input_modalities;
  const capabilities = ollamaEntry?.capabilities;
  if (Array.isArray(modalities)) return { images: modalities.includes('image') ? 'yes' : 'no' };
  if (Array.isArray(capabilities))
    return { images: capabilities.includes('multimodal') ? 'yes' : 'no' };
  return {};
};

/** What the entry of a list says, with `catalogued` for what it does not say. */
const factsFrom = (
  entry: Loose,
  ollamaEntry: Loose | undefined,
  source: string,
  catalogued: ModelFacts,
): ModelFacts => {
  const images = imagesIn(entry, ollamaEntry);
  const possible =
    positive(entry.max_model_len) ?? // vLLM
    positive(entry.loaded_context_length) ?? // LM Studio
    positive(objectIn(entry, 'meta').n_ctx) ?? // llama.cpp
    positive(entry.context_length); // OpenRouter
  // OpenRouter: a fee for each request is no price of tokens
  const hasFee = (dollars(objectIn(entry, 'pricing').request) ?? 0) > 0;
  const prices = hasFee ? null : (pricesIn(entry) ?? catalogued.prices);
  if (possible === null) return { ...catalogued, ...images, prices };
  // OpenRouter: the serving provider may give less than the window of the model
  const served = objectIn(entry, 'top_provider');
  const window = Math.min(possible, positive(served.context_length) ?? possible);
  const output = positive(served.max_completion_tokens) ?? catalogued.outputTokensMax;
  // each token of a prompt above the catalogue's window may cost more
  const isCatalogued = catalogued.source !== null;
  const windowTokens = isCatalogued ? Math.min(window, catalogued.windowTokens) : window;
  return {
    ...catalogued,
    ...images,
    windowTokens,
    outputTokensMax: Math.min(output, Math.floor(windowTokens / 2)),
    prices,
    source: isCatalogued ? `${source}; ${catalogued.source}` : source,
  };
};

/** Looks for the model in the list of a Chat Completions server. */
export const askModelList = async (question: FactsQuestion): Promise<FactsAnswer> => {
  const { fetch, url, name, apiKey, modelId } = question;
  const answer = await askServer(fetch, `${url}/models`, {
    ...(apiKey === undefined ? {} : { headers: { authorization: `Bearer ${apiKey}` } }),
  });
  const catalogued = listedFacts(modelId) ?? UNKNOWN;
  const unlisted: FoundFacts = { kind: 'ok', facts: catalogued, baseUrl: url };
  if ('why' in answer) return answer.isGone ? { kind: 'noServer', url, why: answer.why } : unlisted;
  const entry = listIn(answer.json.data).find(({ id }) => id === name);
  if (entry === undefined) return unlisted;
  const ollamaEntry = listIn(answer.json.models).find((one) => ollamaName(one) === name);
  const source = `${url}/models, asked at the start`;
  return { ...unlisted, facts: factsFrom(entry, ollamaEntry, source, catalogued) };
};

/** Window of a model that is not loaded and sets no length: Ollama decides by its memory. */
const ASSUMED_WINDOW = 32_768;

/** The window, and whether the server says so. `isElsewhere`: the model runs in Ollama's cloud. */
const ollamaWindow = (
  shown: Loose,
  loaded: Loose | undefined,
  isElsewhere: boolean,
): { readonly windowTokens: number; readonly isReported: boolean } => {
  const info = objectIn(shown, 'model_info');
  const key = Object.keys(info).find((name) => name.endsWith('.context_length')) ?? '';
  const most = positive(info[key]) ?? ASSUMED_WINDOW;
  const set = positive(/^num_ctx\s+(\d+)/m.exec(asText(shown.parameters) ?? '')?.[1]);
  const running = positive(loaded?.context_length);
  const reported = running ?? set ?? (isElsewhere ? most : null);
  return {
    windowTokens: Math.min(reported ?? ASSUMED_WINDOW, most),
    isReported: reported !== null,
  };
};

const isNamed = (model: Loose, name: string): boolean =>
  [name, `${name}:latest`].includes(ollamaName(model));

const ollamaFacts = (shown: Loose, loaded: Loose | undefined, host: string): ModelFacts => {
  const isElsewhere = asText(shown.remote_host) !== null;
  const { windowTokens, isReported } = ollamaWindow(shown, loaded, isElsewhere);
  const capabilities = Array.isArray(shown.capabilities) ? shown.capabilities : null;
  const thinks = capabilities?.includes('thinking') === true;
  return {
    windowTokens,
    outputTokensMax: Math.min(UNKNOWN.outputTokensMax, Math.floor(windowTokens / 2)),
    thinking: thinks ? 'yes' : 'no',
    effort: thinks ? 'levels' : 'none',
    tools: capabilities?.includes('tools') === false ? 'no' : 'yes',
    images: capabilities?.includes('vision') === true ? 'yes' : 'no',
    // The user's machine charges nothing. Ollama's cloud is paid for by a plan, whose price it does
    // not say.
    prices: isElsewhere ? null : { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    source: isReported ? `${host}/api, asked at the start` : null,
  };
};

/** Asks Ollama for the model, and with which window it runs. */
export const askOllama = async ({ fetch, url, name }: FactsQuestion): Promise<FactsAnswer> => {
  const host = url.replace(/\/v1$/, '');
  const answer = await askServer(fetch, `${host}/api/show`, { body: { model: name } });
  if ('why' in answer) return { kind: 'noServer', url: host, why: answer.why };
  if (answer.status === 404) {
    const tags = await askServer(fetch, `${host}/api/tags`);
    const others = 'json' in tags ? listIn(tags.json.models).map(ollamaName) : [];
    return { kind: 'noModel', url: host, others };
  }
  const running = await askServer(fetch, `${host}/api/ps`);
  const loaded =
    'json' in running
      ? listIn(running.json.models).find((model) => isNamed(model, name))
      : undefined;
  return { kind: 'ok', facts: ollamaFacts(answer.json, loaded, host), baseUrl: `${host}/v1` };
};
