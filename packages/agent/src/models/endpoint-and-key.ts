import type { ProcessEnvironment } from '../platform/base/process-environment-type.js';
import { type Provider, serversWithOwnKey } from './provider-table.js';

/**
 * The address and the key of a provider.
 *
 * A key goes only to the server that it is for: OpenAI's key is never sent to a server that merely speaks its API.
 */

export const keyIn = (environment: ProcessEnvironment, names: readonly string[]): string | null => {
  for (const name of names) {
    const key = environment[name]?.trim() ?? '';
    if (key !== '') return key;
  }
  return null;
};

type Endpoint = {
  readonly kind: 'ok';
  /** Without a slash at its end; null if nobody says where the server is. */
  readonly url: string | null;
  /** The provider's name in messages; `OpenRouter` for a server at that host. */
  readonly title: string;
  readonly keyVariables: readonly [string, ...string[]];
};

type BadUrl = { readonly kind: 'badUrl'; readonly message: string };

const checkUrl = (text: string, source: string): { readonly kind: 'ok'; readonly url: string } | BadUrl => {
  const isWeb = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (isWeb) return { kind: 'ok', url: text.replace(/\/+$/, '') };
  return { kind: 'badUrl', message: `${source} is no http or https URL: ${text}` };
};

/** Reads a host as Ollama does: a server that listens everywhere is on this machine. */
const completeHost = (text: string, { hostname, port }: URL): string => {
  const full = /^https?:\/\//.test(text)
    ? text
    : `http://${text.startsWith(':') ? `${hostname}${text}` : text}`;
  if (!URL.canParse(full)) return full;
  const url = new URL(full);
  const isPlain = url.protocol === 'http:' && !/:\d+(\/|$)/.test(full.slice('http://'.length));
  if (isPlain) url.port = port;
  if (url.hostname === '0.0.0.0') url.hostname = hostname;
  return url.href;
};

const addressIn = (
  environment: ProcessEnvironment,
  { urlVariable, urlForm, address }: Provider,
): string | null => {
  const text = environment[urlVariable] || address;
  return urlForm === 'host' && text && address ? completeHost(text, new URL(address)) : text;
};

/** Finds where a provider is reached, and which variables hold its key there. `given` wins over the environment. */
export const endpointOf = (
  provider: Provider,
  environment: ProcessEnvironment,
  given: string | undefined,
): Endpoint | BadUrl => {
  const { title, keyVariables, urlVariable, address } = provider;
  const own: Endpoint = { kind: 'ok', url: null, title, keyVariables };
  const text = given || addressIn(environment, provider);
  if (!text) return own;
  const checked = checkUrl(text, given ? '--base-url' : urlVariable);
  if (checked.kind === 'badUrl') return checked;
  const host = new URL(checked.url).hostname;
  const known =
    address === null && Object.hasOwn(serversWithOwnKey, host) ? serversWithOwnKey[host] : undefined;
  if (known === undefined) return { ...own, url: checked.url };
  return { ...own, url: checked.url, title: known.title, keyVariables: [known.keyVariable] };
};
