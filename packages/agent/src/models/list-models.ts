/** Which models a key can reach: the lists of providers, as their servers give them. */

import type { ProcessEnvironment } from '../platform/environment.js';
import { createFetch } from '../platform/http.js';
import { asText, isObject, listIn } from '../platform/untrusted-input.js';
import { findEndpoint, keyIn, keyNames, type Provider, type WireName } from './provider-table.js';

/** `why`: what went wrong, for the user. */
export type ListedModels =
  | { readonly kind: 'ok'; readonly names: readonly string[] }
  /** `status`: of the server's answer; null if none came. */
  | { readonly kind: 'failed'; readonly why: string; readonly status: number | null };

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

const failed = (why: string, status: number | null = null): ListedModels => ({
  kind: 'failed',
  why,
  status,
});

const ANSWER_MS = 10_000;

/** Asks the provider's server for its models. Without a key it is asked without one. */
export const listModels = async (
  provider: Provider,
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
  try {
    const answer = await createFetch(environment)(`${base}${path}`, {
      method: 'GET',
      headers: key === null ? {} : headers(key),
      signal: AbortSignal.timeout(deadlineMs),
    });
    if (answer.status === 401 || answer.status === 403)
      return failed(
        key === null
          ? `${provider.title} wants a key: set ${provider.keyVariables[0]}.`
          : `${provider.title} refuses the key (${answer.status}).`,
        answer.status,
      );
    const json: unknown = await answer.json();
    const listed = isObject(json) ? names(json).filter((name) => name !== null) : [];
    if (answer.status === 200 && listed.length > 0) return { kind: 'ok', names: listed.toSorted() };
    return failed(`${base}${path} lists no models (status ${answer.status}).`, answer.status);
  } catch (error) {
    const code = isObject(error) ? asText(error.code) : null;
    const why = code ?? (error instanceof Error ? error.message : String(error));
    return failed(`${provider.title} does not answer at ${base} (${why}).`);
  }
};
