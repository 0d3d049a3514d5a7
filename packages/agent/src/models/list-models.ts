/** What model servers tell of themselves: `listModels`, the models that a key can reach. */

import type { ProcessEnvironment } from '../platform/environment.js';
import { createFetch, type LeanFetch } from '../platform/http.js';
import { asText, isObject, type Loose, listIn } from '../platform/untrusted-input.js';
import {
  findEndpoint,
  keyIn,
  keyNames,
  type OwnProvider,
  type Provider,
  type WireName,
} from './provider-table.js';

/** `why`: what went wrong, for the user. */
export type ListedModels =
  | { readonly kind: 'ok'; readonly names: readonly string[] }
  /** `isRefused`: the server wants a key, or another one. */
  | { readonly kind: 'failed'; readonly why: string; readonly isRefused: boolean };

/** How a wire lists its models: path and headers of the request, and where the names stand. */
type Listing = {
  readonly path: string;
  headers(key: string): Readonly<Record<string, string>>;
  names(json: Readonly<Record<string, unknown>>): readonly (string | null)[];
};

const byId: Listing['names'] = ({ data }) => listIn(data).map(({ id }) => asText(id));
const bearer: Listing['headers'] = (key) => ({ authorization: `Bearer ${key}` });

const listings: Readonly<Record<WireName, Listing>> = {
  'Anthropic Messages': {
    path: '/v1/models?limit=1000',
    headers: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
    names: byId,
  },
  'OpenAI Responses': { path: '/models', headers: bearer, names: byId },
  'Chat Completions': { path: '/models', headers: bearer, names: byId },
  'Google Gemini API': {
    path: '/v1beta/models?pageSize=1000',
    headers: (key) => ({ 'x-goog-api-key': key }),
    names: ({ models }) =>
      listIn(models)
        .filter(({ supportedGenerationMethods: can }) =>
          Array.isArray(can) ? can.includes('generateContent') : true,
        )
        .map(({ name }) => asText(name)?.replace(/^models\//, '') ?? null),
  },
};

const failed = (why: string): ListedModels => ({ kind: 'failed', why, isRefused: false });

const ANSWER_MS = 10_000;

/** Asks the provider's server for its models. Without a key it is asked without one. */
export const listModels = async (
  provider: Provider | OwnProvider,
  environment: ProcessEnvironment,
  deadlineMs = ANSWER_MS,
): Promise<ListedModels> => {
  const endpoint = findEndpoint(provider, environment, undefined);
  if (endpoint.kind === 'badUrl') return failed(endpoint.message);
  if (endpoint.url === null)
    return failed(`Set ${provider.urlVariable} to the address of the server.`);
  const { path, headers, names } = listings[provider.wire];
  const address =
    provider.factsFrom === 'ollama' ? `${endpoint.url.replace(/\/v1$/, '')}/v1` : endpoint.url;
  const base = /^\/v1(beta)?\//.test(path) ? address.replace(/\/v1(beta)?$/, '') : address;
  const key = provider.key === 'unused' ? null : keyIn(environment, keyNames(provider));
  const fetch = createFetch(environment, 'headers' in provider ? provider.headers : {});
  const answer = await askServer(fetch, `${base}${path}`, {
    headers: key === null ? {} : headers(key),
    deadlineMs,
  });
  if ('why' in answer)
    return failed(`${provider.title} does not answer at ${base} (${answer.why}).`);
  const { status, json } = answer;
  // Google and xAI answer 400 to a key that they don't know
  if (status === 401 || status === 403 || (status === 400 && key !== null))
    return {
      kind: 'failed',
      isRefused: true,
      why:
        key === null
          ? `${provider.title} wants a key: set ${provider.keyVariables[0]}.`
          : `${provider.title} refuses the key (${status}).`,
    };
  const listed = names(json).filter((name) => name !== null);
  if (status === 200 && listed.length > 0) return { kind: 'ok', names: listed.toSorted() };
  return failed(`${base}${path} lists no models (status ${status}).`);
};

/** `isGone`: nothing answers at the address. */
type ServerAnswer =
  | { readonly status: number; readonly json: Loose }
  | { readonly why: string; readonly isGone: boolean };

const GONE = /^(ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN)$/;

type Asked = {
  /** Sent as JSON. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly deadlineMs?: number;
};

/** How long a server may take to tell its facts. */
const FACTS_MS = 3_000;

/** Asks a model server about itself. Never rejects. */
export const askServer = async (
  fetch: LeanFetch,
  url: string,
  { body, headers = {}, deadlineMs = FACTS_MS }: Asked = {},
): Promise<ServerAnswer> => {
  try {
    const answer = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(deadlineMs),
    });
    // what refuses a key need not be JSON
    if (answer.status === 401 || answer.status === 403) return { status: answer.status, json: {} };
    const json: unknown = await answer.json();
    return { status: answer.status, json: isObject(json) ? json : {} };
  } catch (error) {
    const code = isObject(error) ? asText(error.code) : null;
    const why = error instanceof Error ? error.message : String(error);
    return { why: code ?? why, isGone: code !== null && GONE.test(code) };
  }
};
