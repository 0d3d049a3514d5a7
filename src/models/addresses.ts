import type { Environment } from '../net/proxy.js';

/**
 * Where providers are and which variable holds their key.
 *
 * A key goes only to the server that it is for: the key of OpenAI is never sent to one that merely speaks like it.
 */

export type Hosted = 'anthropic' | 'openai' | 'google';

type Place = {
  /** The first that is set counts. */
  readonly keys: readonly [string, ...string[]];
  readonly urlVariable: string;
  /** Where one gets a key. */
  readonly keysFrom: string;
};

export const hosted: Readonly<Record<Hosted, Place>> = {
  anthropic: {
    keys: ['ANTHROPIC_API_KEY'],
    urlVariable: 'ANTHROPIC_BASE_URL',
    keysFrom: 'https://platform.claude.com',
  },
  openai: {
    keys: ['OPENAI_API_KEY'],
    urlVariable: 'OPENAI_BASE_URL',
    keysFrom: 'https://platform.openai.com',
  },
  google: {
    keys: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'],
    urlVariable: 'GOOGLE_GEMINI_BASE_URL',
    keysFrom: 'https://aistudio.google.com',
  },
};

export const keyIn = (environment: Environment, names: readonly string[]): string | null => {
  for (const name of names) {
    const key = environment[name]?.trim() ?? '';
    if (key !== '') return key;
  }
  return null;
};

type BadUrl = { readonly kind: 'badUrl'; readonly message: string };
type Found<T> = ({ readonly kind: 'ok' } & T) | BadUrl;

const checkUrl = (text: string, source: string): Found<{ readonly url: string }> => {
  const isWeb = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (isWeb) return { kind: 'ok', url: text.replace(/\/+$/, '') };
  return { kind: 'badUrl', message: `${source} is no http or https URL: ${text}` };
};

const readUrl = (
  environment: Environment,
  variable: string,
  given: string | undefined,
): Found<{ readonly url: string | null }> => {
  if (given) return checkUrl(given, '--base-url');
  const text = environment[variable] || null;
  return text === null ? { kind: 'ok', url: null } : checkUrl(text, variable);
};

/** Null: the provider's own. */
export const addressOf = (
  provider: Hosted,
  environment: Environment,
  given: string | undefined,
): Found<{ readonly url: string | null }> => readUrl(environment, hosted[provider].urlVariable, given);

const OLLAMA_PORT = '11434';

/** As Ollama itself reads it: a scheme, a host or a port may be left out, and a server that listens everywhere is here. */
const readOllamaHost = (text: string): string => {
  const full = /^https?:\/\//.test(text)
    ? text
    : `http://${text.startsWith(':') ? `127.0.0.1${text}` : text}`;
  if (!URL.canParse(full)) return full;
  const url = new URL(full);
  const isPlain = url.protocol === 'http:' && !/:\d+(\/|$)/.test(full.slice('http://'.length));
  if (isPlain) url.port = OLLAMA_PORT;
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  return url.href;
};

/** Without a version. */
export const ollamaHost = (
  environment: Environment,
  given: string | undefined,
): Found<{ readonly url: string }> => {
  if (given) {
    const checked = checkUrl(given, '--base-url');
    return checked.kind === 'ok' ? { kind: 'ok', url: checked.url.replace(/\/v1$/, '') } : checked;
  }
  return checkUrl(readOllamaHost(environment.OLLAMA_HOST || '127.0.0.1'), 'OLLAMA_HOST');
};

/** Known servers that speak Chat Completions, by their host. */
const KNOWN: Readonly<Record<string, readonly [name: string, keyVariable: string]>> = {
  'openrouter.ai': ['OpenRouter', 'OPENROUTER_API_KEY'],
};

/** Where a server is that speaks Chat Completions; null if nobody says. */
export const serverAt = (
  environment: Environment,
  given: string | undefined,
): Found<{ readonly url: string | null; readonly providerName: string; readonly keyVariable: string }> => {
  const read = readUrl(environment, 'OPENAI_COMPATIBLE_BASE_URL', given);
  if (read.kind === 'badUrl') return read;
  const host = read.url === null ? '' : new URL(read.url).hostname;
  const [providerName, keyVariable] = KNOWN[host] ?? ['the server', 'OPENAI_COMPATIBLE_API_KEY'];
  return { kind: 'ok', url: read.url, providerName, keyVariable };
};
