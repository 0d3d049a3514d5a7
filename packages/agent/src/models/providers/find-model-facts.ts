import type { ModelFacts } from '../../ports/model.js';
import { factsOf, UNKNOWN } from '../catalogue.js';
import type { LeanFetch } from '../http/node-fetch.js';
import type { Provider } from '../provider-table.js';
import { asText, isObject, type Loose, listIn, objectIn } from '../untyped-json.js';

/**
 * Facts about a model, found once before its first call: in the catalogue, or from the server that runs it.
 *
 * 1. A server that says nothing about a model, or not soon, leaves it unknown; only a missing server is a problem.
 * 2. Ollama cuts prompts at its own context length without a word: the length it runs the model with is the window,
 *    never the length that the model could have.
 */

const PATIENCE_MS = 3_000;

type Question = {
  readonly modelId: string;
  /** Name of the model at its server. */
  readonly name: string;
  readonly url: string;
  readonly fetch: LeanFetch;
  readonly apiKey?: string;
};

type FoundFacts = {
  readonly kind: 'ok';
  readonly facts: ModelFacts;
  /** Address for calls of the model. */
  readonly baseUrl: string;
};

export type Unanswered =
  | { readonly kind: 'noServer'; readonly url: string; readonly why: string }
  /** The server has no such model, but others. */
  | { readonly kind: 'noModel'; readonly url: string; readonly others: readonly string[] };

type FactsAnswer = FoundFacts | Unanswered;

type Heard =
  | { readonly status: number; readonly json: Loose }
  | { readonly why: string; readonly isGone: boolean };

const GONE = /^(ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN)$/;

const hear = async (fetch: LeanFetch, url: string, body?: object, key?: string): Promise<Heard> => {
  try {
    const answer = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const json: unknown = await answer.json();
    return { status: answer.status, json: isObject(json) ? json : {} };
  } catch (error) {
    const code = isObject(error) ? asText(error.code) : null;
    const why = error instanceof Error ? error.message : String(error);
    return { why: code ?? why, isGone: code !== null && GONE.test(code) };
  }
};

const positive = (value: unknown): number | null => {
  const count = typeof value === 'string' ? Number(value) : value;
  return typeof count === 'number' && Number.isFinite(count) && count > 0 ? count : null;
};

const dollars = (value: unknown): number | null => {
  const perToken = typeof value === 'string' ? Number(value) : Number.NaN;
  // Rounded, since a price per token is a long fraction.
  return Number.isFinite(perToken) && perToken >= 0 ? Math.round(perToken * 1e12) / 1e6 : null;
};

/** OpenRouter names prices in its list, in dollars per token. */
const pricesIn = (model: Loose): ModelFacts['prices'] => {
  const listed = objectIn(model, 'pricing');
  const [input, output] = [dollars(listed.prompt), dollars(listed.completion)];
  if (input === null || output === null) return null;
  const cacheRead = dollars(listed.input_cache_read) ?? input;
  return { input, output, cacheRead, cacheWrite: dollars(listed.input_cache_write) ?? input };
};

const nameOf = ({ name, model }: Loose): string => asText(name) ?? asText(model) ?? '';

/** OpenRouter tells it with each model, llama.cpp in a second list in Ollama's form, other servers not at all. */
const imagesIn = (model: Loose, listed: Loose | undefined): Pick<ModelFacts, 'images'> => {
  const modalities = objectIn(model, 'architecture').input_modalities;
  const capabilities = listed?.capabilities;
  if (Array.isArray(modalities)) return { images: modalities.includes('image') ? 'yes' : 'no' };
  if (Array.isArray(capabilities)) return { images: capabilities.includes('multimodal') ? 'yes' : 'no' };
  return {};
};

const factsFrom = (model: Loose, listed: Loose | undefined, source: string): ModelFacts => {
  const images = imagesIn(model, listed);
  const served = objectIn(model, 'top_provider');
  const possible =
    positive(model.max_model_len) ??
    positive(model.loaded_context_length) ??
    positive(objectIn(model, 'meta').n_ctx) ??
    positive(model.context_length);
  if (possible === null) return { ...UNKNOWN, ...images };
  // OpenRouter: the serving provider may give less than the model's own window.
  const window = Math.min(possible, positive(served.context_length) ?? possible);
  const output = positive(served.max_completion_tokens) ?? UNKNOWN.outputTokensMax;
  return {
    ...UNKNOWN,
    ...images,
    windowTokens: window,
    outputTokensMax: Math.min(output, Math.floor(window / 2)),
    prices: pricesIn(model),
    source,
  };
};

/** Looks for the model in the list of a Chat Completions server. */
const askModelList = async ({ fetch, url, name, apiKey }: Question): Promise<FactsAnswer> => {
  const heard = await hear(fetch, `${url}/models`, undefined, apiKey);
  const unknown: FoundFacts = { kind: 'ok', facts: UNKNOWN, baseUrl: url };
  if ('why' in heard) return heard.isGone ? { kind: 'noServer', url, why: heard.why } : unknown;
  const model = listIn(heard.json.data).find(({ id }) => id === name);
  if (model === undefined) return unknown;
  const listed = listIn(heard.json.models).find((entry) => nameOf(entry) === name);
  return { ...unknown, facts: factsFrom(model, listed, `${url}/models, asked at the start`) };
};

/** Window of a model that is not loaded and sets no length: Ollama decides by its memory. */
const ASSUMED_WINDOW = 32_768;

const ollamaWindow = (shown: Loose, loaded: Loose | undefined, isElsewhere: boolean): [number, boolean] => {
  const info = objectIn(shown, 'model_info');
  const key = Object.keys(info).find((name) => name.endsWith('.context_length')) ?? '';
  const most = positive(info[key]) ?? ASSUMED_WINDOW;
  const set = positive(/^num_ctx\s+(\d+)/m.exec(asText(shown.parameters) ?? '')?.[1]);
  const running = positive(loaded?.context_length);
  const known = running ?? set ?? (isElsewhere ? most : null);
  return known === null ? [Math.min(most, ASSUMED_WINDOW), false] : [Math.min(known, most), true];
};

const isNamed = (model: Loose, name: string): boolean => [name, `${name}:latest`].includes(nameOf(model));

const ollamaFacts = (shown: Loose, loaded: Loose | undefined, host: string): ModelFacts => {
  const isElsewhere = asText(shown.remote_host) !== null;
  const [windowTokens, isSaid] = ollamaWindow(shown, loaded, isElsewhere);
  const capabilities = Array.isArray(shown.capabilities) ? shown.capabilities : null;
  const thinks = capabilities?.includes('thinking') === true;
  return {
    windowTokens,
    outputTokensMax: Math.min(UNKNOWN.outputTokensMax, Math.floor(windowTokens / 2)),
    thinking: thinks ? 'yes' : 'no',
    effort: thinks ? 'levels' : 'none',
    tools: capabilities?.includes('tools') === false ? 'no' : 'yes',
    images: capabilities?.includes('vision') === true ? 'yes' : 'no',
    // One's own machine charges nothing. Ollama's cloud is paid for by a plan, whose price it does not say.
    prices: isElsewhere ? null : { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    source: isSaid ? `${host}/api, asked at the start` : null,
  };
};

const askOllama = async ({ fetch, url, name }: Question): Promise<FactsAnswer> => {
  const host = url.replace(/\/v1$/, '');
  const heard = await hear(fetch, `${host}/api/show`, { model: name });
  if ('why' in heard) return { kind: 'noServer', url: host, why: heard.why };
  if (heard.status === 404) {
    const tags = await hear(fetch, `${host}/api/tags`);
    const others = 'json' in tags ? listIn(tags.json.models).map(nameOf) : [];
    return { kind: 'noModel', url: host, others };
  }
  const running = await hear(fetch, `${host}/api/ps`);
  const loaded =
    'json' in running ? listIn(running.json.models).find((model) => isNamed(model, name)) : undefined;
  return { kind: 'ok', facts: ollamaFacts(heard.json, loaded, host), baseUrl: `${host}/v1` };
};

/** Each way to find the facts that the table of providers names. */
export const findFacts: Readonly<
  Record<Provider['factsFrom'], (question: Question) => FactsAnswer | Promise<FactsAnswer>>
> = {
  catalogue: ({ modelId, url }) => ({ kind: 'ok', facts: factsOf(modelId), baseUrl: url }),
  modelList: askModelList,
  ollama: askOllama,
};
