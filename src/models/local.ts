import type { ModelFacts } from '../needs.js';
import { UNKNOWN } from './catalogue.js';
import type { LeanFetch } from './http.js';
import { asText, isObject, type Loose, objectIn } from './loose.js';

/**
 * What a server says of its own models, asked once before the first call.
 *
 * 1. A server that says nothing of a model, or not soon, leaves it unknown; only one that is not there is a problem.
 * 2. Ollama cuts prompts at its own context length without a word: the length it runs the model with is the window,
 *    never the length that the model could have.
 */

const PATIENCE_MS = 3_000;

export type Asked =
  | { readonly kind: 'ok'; readonly facts: ModelFacts }
  /** Nobody answers at that address. */
  | { readonly kind: 'nobody'; readonly why: string };

/** The server has no such model, but those. */
type NoModel = { readonly kind: 'noModel'; readonly others: readonly string[] };

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

const listIn = (value: unknown): readonly Loose[] => (Array.isArray(value) ? value.filter(isObject) : []);

const positive = (value: unknown): number | null => {
  const count = typeof value === 'string' ? Number(value) : value;
  return typeof count === 'number' && Number.isFinite(count) && count > 0 ? count : null;
};

const dollars = (value: unknown): number | null => {
  const perToken = typeof value === 'string' ? Number(value) : Number.NaN;
  // Rounded, since a price per token is no exact number.
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

/** OpenRouter says it of each model; llama.cpp in a second list beside, in Ollama's words. Others do not say it. */
const imagesIn = (model: Loose, listed: Loose | undefined): Pick<ModelFacts, 'images'> => {
  const modalities = objectIn(model, 'architecture').input_modalities;
  const capabilities = listed?.capabilities;
  if (Array.isArray(modalities)) return { images: modalities.includes('image') ? 'yes' : 'no' };
  if (Array.isArray(capabilities)) return { images: capabilities.includes('multimodal') ? 'yes' : 'no' };
  return {};
};

const factsFrom = (model: Loose, listed: Loose | undefined, source: string): ModelFacts => {
  const images = imagesIn(model, listed);
  const window =
    positive(model.max_model_len) ??
    positive(model.loaded_context_length) ??
    positive(objectIn(model, 'meta').n_ctx) ??
    positive(model.context_length);
  if (window === null) return { ...UNKNOWN, ...images };
  const output = positive(objectIn(model, 'top_provider').max_completion_tokens) ?? UNKNOWN.outputTokensMax;
  return {
    ...UNKNOWN,
    ...images,
    windowTokens: window,
    outputTokensMax: Math.min(output, Math.floor(window / 2)),
    prices: pricesIn(model),
    source,
  };
};

/** Asks a server that speaks Chat Completions; `baseUrl` with the version at its end. */
export const askCompatible = async (
  fetch: LeanFetch,
  baseUrl: string,
  name: string,
  key: string | undefined,
): Promise<Asked> => {
  const heard = await hear(fetch, `${baseUrl}/models`, undefined, key);
  if ('why' in heard)
    return heard.isGone ? { kind: 'nobody', why: heard.why } : { kind: 'ok', facts: UNKNOWN };
  const model = listIn(heard.json.data).find(({ id }) => id === name);
  if (model === undefined) return { kind: 'ok', facts: UNKNOWN };
  const listed = listIn(heard.json.models).find((entry) => nameOf(entry) === name);
  return { kind: 'ok', facts: factsFrom(model, listed, `${baseUrl}/models, asked at the start`) };
};

/** What can be assumed of a model that is not loaded and for which no length is set: Ollama decides by its memory. */
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

/** Asks an Ollama server; `host` without a version. */
export const askOllama = async (fetch: LeanFetch, host: string, name: string): Promise<Asked | NoModel> => {
  const heard = await hear(fetch, `${host}/api/show`, { model: name });
  if ('why' in heard) return { kind: 'nobody', why: heard.why };
  if (heard.status === 404) {
    const tags = await hear(fetch, `${host}/api/tags`);
    return { kind: 'noModel', others: 'json' in tags ? listIn(tags.json.models).map(nameOf) : [] };
  }
  const running = await hear(fetch, `${host}/api/ps`);
  const loaded =
    'json' in running ? listIn(running.json.models).find((model) => isNamed(model, name)) : undefined;
  const isElsewhere = asText(heard.json.remote_host) !== null;
  const [windowTokens, isSaid] = ollamaWindow(heard.json, loaded, isElsewhere);
  const { capabilities } = heard.json;
  const facts: ModelFacts = {
    windowTokens,
    outputTokensMax: Math.min(UNKNOWN.outputTokensMax, Math.floor(windowTokens / 2)),
    thinking: Array.isArray(capabilities) && capabilities.includes('thinking') ? 'yes' : 'no',
    tools: Array.isArray(capabilities) && !capabilities.includes('tools') ? 'no' : 'yes',
    images: Array.isArray(capabilities) && capabilities.includes('vision') ? 'yes' : 'no',
    // One's own machine charges nothing; what Ollama runs elsewhere is paid for by a plan, of which it says nothing.
    prices: isElsewhere ? null : { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    source: isSaid ? `${host}/api, asked at the start` : null,
  };
  return { kind: 'ok', facts };
};
