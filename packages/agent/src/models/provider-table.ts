/**
 * The table of model providers. Models, settings, flags, completion, doctor, the manual page,
 * docs/set-up/models.md and the filter of secrets read it; nothing else knows a provider by name.
 *
 * A new provider is a row here and its models in `packages/agent/src/models/catalogue.ts`. Only if
 * it speaks a wire of its own, it also needs an adapter and its line in
 * `packages/agent/src/models/choose-model.ts`.
 */

import type { ProcessEnvironment } from '../platform/environment.js';

/** What is known of a provider. */
type Row = {
  /** Its name in messages. */
  readonly title: string;
  /**
   * The API it speaks: names an adapter in `packages/agent/src/models/choose-model.ts`. Several
   * providers may speak the same.
   */
  readonly wire: string;
  /** Page that documents the API. */
  readonly documentation: string;
  /** The model that examples name. */
  readonly defaultModel: string;
  /**
   * Names that mean this provider when the user leaves it out, such as `claude-…`; null if there
   * are none.
   */
  readonly modelNames: RegExp | null;
  /** `required`: no call without a key. `optional`: sent if one is set. `unused`: never sent. */
  readonly key: 'required' | 'optional' | 'unused';
  /** Variables that may hold its key; the first that is set counts. */
  readonly keyVariables: readonly [string, ...string[]];
  /** Page that gives out keys; null if none does. */
  readonly keysFrom: string | null;
  /** Variable with the address, in place of `address`. */
  readonly urlVariable: string;
  /** `host`: scheme, host and port may be left out, and come from `address`. */
  readonly urlForm: 'url' | 'host';
  /**
   * Its own address, with the version where the wire wants it there; null if every server has
   * another one.
   */
  readonly address: string | null;
  /**
   * Who knows the windows and prices of its models: our catalogue, the server's list of models, or
   * Ollama's own API.
   */
  readonly factsFrom: 'catalogue' | 'modelList' | 'ollama';
  /** Advice about a server that users start themselves; null if the provider runs it. */
  readonly ownServer: OwnServer | null;
};

type OwnServer = {
  /** As in "No Ollama server answers". */
  readonly noun: string;
  readonly howToStart: string;
  /** Command that fetches a model, without the model's name; null if there is none. */
  readonly fetchModel: string | null;
  /**
   * What to do if the server does not say how much context it gives; null: nothing is lost by it.
   */
  readonly contextAdvice: string | null;
};

/** Rows by the word before the slash of a model id. */
const rows = {
  anthropic: {
    title: 'Anthropic',
    wire: 'Anthropic Messages',
    documentation: 'https://platform.claude.com/docs/en/api/messages',
    defaultModel: 'claude-sonnet-5-5',
    modelNames: /^claude-/,
    key: 'required',
    keyVariables: ['ANTHROPIC_API_KEY'],
    keysFrom: 'https://platform.claude.com',
    urlVariable: 'ANTHROPIC_BASE_URL',
    urlForm: 'url',
    address: 'https://api.anthropic.com',
    factsFrom: 'catalogue',
    ownServer: null,
  },
  openai: {
    title: 'OpenAI',
    wire: 'OpenAI Responses',
    documentation: 'https://platform.openai.com/docs/api-reference/responses',
    defaultModel: 'gpt-6.2-sol',
    modelNames: /^(gpt-|o\d)/,
    key: 'required',
    keyVariables: ['OPENAI_API_KEY'],
    keysFrom: 'https://platform.openai.com',
    urlVariable: 'OPENAI_BASE_URL',
    urlForm: 'url',
    address: 'https://api.openai.com/v1',
    factsFrom: 'catalogue',
    ownServer: null,
  },
  google: {
    title: 'Google',
    wire: 'Google Gemini API',
    documentation: 'https://ai.google.dev/api',
    defaultModel: 'gemini-3.8-flash',
    modelNames: /^gemini-/,
    key: 'required',
    keyVariables: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'],
    keysFrom: 'https://aistudio.google.com',
    urlVariable: 'GOOGLE_GEMINI_BASE_URL',
    urlForm: 'url',
    address: 'https://generativelanguage.googleapis.com',
    factsFrom: 'catalogue',
    ownServer: null,
  },
  'openai-compatible': {
    title: 'the server',
    wire: 'Chat Completions',
    documentation: 'https://platform.openai.com/docs/api-reference/chat',
    defaultModel: 'qwen3-coder',
    modelNames: null,
    key: 'optional',
    keyVariables: ['OPENAI_COMPATIBLE_API_KEY'],
    keysFrom: null,
    urlVariable: 'OPENAI_COMPATIBLE_BASE_URL',
    urlForm: 'url',
    address: null,
    factsFrom: 'modelList',
    ownServer: { noun: 'server', howToStart: 'Start it', fetchModel: null, contextAdvice: null },
  },
  ollama: {
    title: 'Ollama',
    wire: 'Chat Completions',
    documentation: 'https://docs.ollama.com/api',
    defaultModel: 'qwen3',
    modelNames: null,
    key: 'unused',
    keyVariables: ['OLLAMA_API_KEY'],
    keysFrom: null,
    urlVariable: 'OLLAMA_HOST',
    urlForm: 'host',
    address: 'http://127.0.0.1:11434',
    factsFrom: 'ollama',
    ownServer: {
      noun: 'Ollama server',
      howToStart: 'Start it with "ollama serve"',
      fetchModel: 'ollama pull',
      contextAdvice:
        'It cuts longer prompts without a word: start it with OLLAMA_CONTEXT_LENGTH=64000.',
    },
  },
} as const satisfies Readonly<Record<string, Row>>;

type Rows = typeof rows;

export type WireName = Rows[keyof Rows]['wire'];

/** Providers whose models stand in the catalogue. */
export type CataloguedProvider = {
  [N in keyof Rows]: Rows[N]['factsFrom'] extends 'catalogue' ? N : never;
}[keyof Rows];

export type Provider = Omit<Row, 'wire'> & { readonly name: string; readonly wire: WireName };

export const providers: readonly Provider[] = Object.entries(rows).map(([name, row]) => ({
  name,
  ...row,
}));

export const findProvider = (name: string): Provider | undefined =>
  providers.find((provider) => provider.name === name);

/** The provider of a model id; undefined for scripts and for names that mean nothing. */
export const providerOfModel = (modelId: string): Provider | undefined =>
  findProvider(modelId.split('/')[0] ?? '');

const exampleId = ({ name, defaultModel }: Provider): string => `${name}/${defaultModel}`;

/** The provider that is used where none is named. */
export const defaultProvider: Provider = { name: 'anthropic', ...rows.anthropic };

/** The provider that messages offer to users without a key. */
export const keylessProvider: Provider = { name: 'ollama', ...rows.ollama };

/** The model that is used where none is named. */
export const DEFAULT_MODEL = exampleId(defaultProvider);

/** A model id for examples in messages about a provider. */
export const exampleModel = (providerName: string): string => {
  const provider = findProvider(providerName);
  return provider === undefined ? DEFAULT_MODEL : exampleId(provider);
};

/** How models are named, for messages and completion; scripts are no provider. */
export const modelForms: readonly string[] = [
  ...providers.map(({ name }) => `${name}/NAME`),
  'scripted/FILE',
];

/**
 * Chat Completions servers that are reached as `openai-compatible` and have a key of their own, by
 * host.
 */
export const serversWithOwnKey: Readonly<
  Record<string, { readonly title: string; readonly keyVariable: string }>
> = {
  'openrouter.ai': { title: 'OpenRouter', keyVariable: 'OPENROUTER_API_KEY' },
};

/** Every variable that holds the key of a provider. */
export const keyVariables: readonly string[] = [
  ...providers.flatMap((provider) => provider.keyVariables),
  ...Object.values(serversWithOwnKey).map(({ keyVariable }) => keyVariable),
];

/**
 * The first of these variables that is set. A key goes only to the server that it is for: OpenAI's
 * key is never sent to a server that merely speaks its API (`findEndpoint`).
 */
export const keyIn = (environment: ProcessEnvironment, names: readonly string[]): string | null => {
  for (const name of names) {
    const key = environment[name]?.trim() ?? '';
    if (key !== '') return key;
  }
  return null;
};

/** Where a provider is reached. */
type Endpoint = {
  readonly kind: 'ok';
  /** Without a slash at its end; null if nobody says where the server is. */
  readonly url: string | null;
  /** The provider's name in messages; `OpenRouter` for a server at that host. */
  readonly title: string;
  readonly keyVariables: readonly [string, ...string[]];
};

type BadUrl = { readonly kind: 'badUrl'; readonly message: string };

/** Ends of addresses that name one call of an API, as its documentation shows them. */
const CALL_PATH = /\/+(chat\/completions|completions|responses|messages|models)$/;

/** `source`: the flag or variable that the text comes from. */
const checkUrl = (
  text: string,
  source: string,
): { readonly kind: 'ok'; readonly url: string } | BadUrl => {
  const isWeb = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (isWeb) return { kind: 'ok', url: text.replace(/\/+$/, '').replace(CALL_PATH, '') };
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

/** The address that the environment names, or else the provider's. */
const addressIn = (
  environment: ProcessEnvironment,
  { urlVariable, urlForm, address }: Provider,
): string | null => {
  const text = environment[urlVariable] || address;
  return urlForm === 'host' && text && address ? completeHost(text, new URL(address)) : text;
};

/**
 * Finds where a provider is reached, and which variables hold its key there. `baseUrl` wins over
 * the environment.
 */
export const findEndpoint = (
  provider: Provider,
  environment: ProcessEnvironment,
  baseUrl: string | undefined,
): Endpoint | BadUrl => {
  const { title, keyVariables, urlVariable, address } = provider;
  const endpoint: Endpoint = { kind: 'ok', url: null, title, keyVariables };
  const text = baseUrl || addressIn(environment, provider);
  if (!text) return endpoint;
  const checked = checkUrl(text, baseUrl ? '--base-url' : urlVariable);
  if (checked.kind === 'badUrl') return checked;
  const host = new URL(checked.url).hostname;
  const known =
    address === null && Object.hasOwn(serversWithOwnKey, host)
      ? serversWithOwnKey[host]
      : undefined;
  if (known === undefined) return { ...endpoint, url: checked.url };
  return { ...endpoint, url: checked.url, title: known.title, keyVariables: [known.keyVariable] };
};
