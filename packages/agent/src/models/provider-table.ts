/**
 * The table of model providers, the only place that names them. Models, settings, flags,
 * completion, doctor, the manual page, docs/set-up/models.md and the redaction of secrets read it.
 *
 * A new provider is a row here and its models in `packages/agent/src/models/catalogue.ts`. Only if
 * it speaks another wire, it also needs an adapter and its line in
 * `packages/agent/src/models/choose-model.ts`. A provider that is reached through a package of the
 * AI SDK is a row of `packageProviders`.
 */

import type { ProcessEnvironment } from '../platform/environment.js';
import type { ModelFacts } from '../ports/model.js';

/** A row of the table. */
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
   * Model names that mean this provider without its name, such as `claude-…`; null: none.
   */
  readonly modelNames: RegExp | null;
  /** `required`: no call without a key. `optional`: sent if one is set. `unused`: never sent. */
  readonly key: 'required' | 'optional' | 'unused';
  /** Variables that may hold its key; the first that is set counts. */
  readonly keyVariables: readonly [string, ...string[]];
  /**
   * Variables of other programs that may hold its key, too. They count if the user names the
   * provider, and do not choose the default model.
   */
  readonly sharedVariables?: readonly string[];
  /** Page where users get keys; null: none. */
  readonly keysFrom: string | null;
  /** Variable with an address that replaces `address`. */
  readonly urlVariable: string;
  /**
   * `host`: scheme, host and port may be missing, and come from `address`: OLLAMA_HOST=`:8080`.
   * `resource`: the path of the API may be missing, as in the address that Azure shows.
   */
  readonly urlForm: 'url' | 'host' | 'resource';
  /**
   * Its own address, with the version if the wire needs it; null if servers have different ones.
   */
  readonly address: string | null;
  /**
   * The source of the windows and prices of its models: our catalogue, the server's list of models,
   * or Ollama's own API.
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
   * Advice if the server does not report its context size; null: none is needed.
   */
  readonly contextAdvice: string | null;
};

/**
 * A provider in the cloud that speaks Chat Completions and lists its models. catalogue.ts adds
 * facts that the list lacks.
 */
const hosted = <
  const Facts extends Pick<
    Row,
    | 'title'
    | 'documentation'
    | 'defaultModel'
    | 'keyVariables'
    | 'keysFrom'
    | 'urlVariable'
    | 'address'
  >,
>(
  facts: Facts,
) =>
  ({
    wire: 'Chat Completions',
    modelNames: null,
    key: 'required',
    urlForm: 'url',
    factsFrom: 'modelList',
    ownServer: null,
    ...facts,
  }) as const;

/** A server that users start on their machine, at its usual port. */
const local = <
  const Facts extends Pick<
    Row,
    'title' | 'documentation' | 'keyVariables' | 'urlVariable' | 'address'
  >,
>(
  facts: Facts,
  howToStart: string,
) =>
  ({
    wire: 'Chat Completions',
    modelNames: null,
    key: 'optional',
    keysFrom: null,
    urlForm: 'url',
    factsFrom: 'modelList',
    defaultModel: 'qwen3-coder',
    ownServer: { noun: `${facts.title} server`, howToStart, fetchModel: null, contextAdvice: null },
    ...facts,
  }) as const;

/**
 * Rows by the word before the slash of a model id. If several keys are set, the first row chooses
 * the default model.
 */
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
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    keysFrom: 'https://aistudio.google.com',
    urlVariable: 'GOOGLE_GEMINI_BASE_URL',
    urlForm: 'url',
    address: 'https://generativelanguage.googleapis.com',
    factsFrom: 'catalogue',
    ownServer: null,
  },
  // Addresses, variables and models: the page of each row, and models.dev as of 2026-07-02.
  openrouter: hosted({
    title: 'OpenRouter',
    documentation: 'https://openrouter.ai/docs/api-reference/overview',
    defaultModel: 'openrouter/auto',
    keyVariables: ['OPENROUTER_API_KEY'],
    keysFrom: 'https://openrouter.ai/keys',
    urlVariable: 'OPENROUTER_BASE_URL',
    address: 'https://openrouter.ai/api/v1',
  }),
  xai: hosted({
    title: 'xAI',
    documentation: 'https://docs.x.ai/docs/api-reference',
    defaultModel: 'grok-4.3',
    keyVariables: ['XAI_API_KEY'],
    keysFrom: 'https://console.x.ai',
    urlVariable: 'XAI_BASE_URL',
    address: 'https://api.x.ai/v1',
  }),
  mistral: hosted({
    title: 'Mistral',
    documentation: 'https://docs.mistral.ai/api',
    defaultModel: 'mistral-large-latest',
    keyVariables: ['MISTRAL_API_KEY'],
    keysFrom: 'https://console.mistral.ai',
    urlVariable: 'MISTRAL_BASE_URL',
    address: 'https://api.mistral.ai/v1',
  }),
  deepseek: hosted({
    title: 'DeepSeek',
    documentation: 'https://api-docs.deepseek.com',
    defaultModel: 'deepseek-v4-pro',
    keyVariables: ['DEEPSEEK_API_KEY'],
    keysFrom: 'https://platform.deepseek.com',
    urlVariable: 'DEEPSEEK_BASE_URL',
    address: 'https://api.deepseek.com',
  }),
  groq: hosted({
    title: 'Groq',
    documentation: 'https://console.groq.com/docs/openai',
    defaultModel: 'openai/gpt-oss-120b',
    keyVariables: ['GROQ_API_KEY'],
    keysFrom: 'https://console.groq.com/keys',
    urlVariable: 'GROQ_BASE_URL',
    address: 'https://api.groq.com/openai/v1',
  }),
  together: hosted({
    title: 'Together AI',
    documentation: 'https://docs.together.ai/reference/chat-completions',
    defaultModel: 'zai-org/GLM-5.2',
    keyVariables: ['TOGETHER_API_KEY'],
    keysFrom: 'https://api.together.ai/settings/api-keys',
    urlVariable: 'TOGETHER_BASE_URL',
    address: 'https://api.together.ai/v1',
  }),
  fireworks: hosted({
    title: 'Fireworks AI',
    documentation: 'https://docs.fireworks.ai/api-reference/post-chatcompletions',
    defaultModel: 'accounts/fireworks/models/glm-5p2',
    keyVariables: ['FIREWORKS_API_KEY'],
    keysFrom: 'https://app.fireworks.ai',
    urlVariable: 'FIREWORKS_BASE_URL',
    address: 'https://api.fireworks.ai/inference/v1',
  }),
  cerebras: hosted({
    title: 'Cerebras',
    documentation: 'https://inference-docs.cerebras.ai/api-reference/chat-completions',
    defaultModel: 'gpt-oss-120b',
    keyVariables: ['CEREBRAS_API_KEY'],
    keysFrom: 'https://cloud.cerebras.ai',
    urlVariable: 'CEREBRAS_BASE_URL',
    address: 'https://api.cerebras.ai/v1',
  }),
  moonshot: hosted({
    title: 'Moonshot AI',
    documentation: 'https://platform.moonshot.ai/docs/api/chat',
    defaultModel: 'kimi-k2.7-code',
    keyVariables: ['MOONSHOT_API_KEY'],
    keysFrom: 'https://platform.moonshot.ai',
    urlVariable: 'MOONSHOT_BASE_URL',
    address: 'https://api.moonshot.ai/v1',
  }),
  zai: hosted({
    title: 'Z.ai',
    documentation: 'https://docs.z.ai/api-reference/introduction',
    defaultModel: 'glm-5.2',
    keyVariables: ['ZAI_API_KEY', 'ZHIPU_API_KEY'],
    keysFrom: 'https://z.ai/manage-apikey/apikey-list',
    urlVariable: 'ZAI_BASE_URL',
    address: 'https://api.z.ai/api/paas/v4',
  }),
  qwen: hosted({
    title: 'Qwen',
    documentation:
      'https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope',
    defaultModel: 'qwen3.7-plus',
    keyVariables: ['DASHSCOPE_API_KEY'],
    keysFrom: 'https://modelstudio.console.alibabacloud.com',
    urlVariable: 'DASHSCOPE_BASE_URL',
    address: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
  }),
  nvidia: hosted({
    title: 'NVIDIA',
    documentation: 'https://docs.api.nvidia.com/nim/reference/llm-apis',
    defaultModel: 'moonshotai/kimi-k2.6',
    keyVariables: ['NVIDIA_API_KEY'],
    keysFrom: 'https://build.nvidia.com',
    urlVariable: 'NVIDIA_BASE_URL',
    address: 'https://integrate.api.nvidia.com/v1',
  }),
  huggingface: hosted({
    title: 'Hugging Face',
    documentation: 'https://huggingface.co/docs/inference-providers',
    defaultModel: 'zai-org/GLM-5.2',
    keyVariables: ['HUGGINGFACE_API_KEY'],
    sharedVariables: ['HF_TOKEN'],
    keysFrom: 'https://huggingface.co/settings/tokens',
    urlVariable: 'HUGGINGFACE_BASE_URL',
    address: 'https://router.huggingface.co/v1',
  }),
  github: hosted({
    title: 'GitHub Models',
    documentation: 'https://docs.github.com/en/rest/models/inference',
    defaultModel: 'openai/gpt-4.1',
    keyVariables: ['GITHUB_MODELS_TOKEN'],
    sharedVariables: ['GITHUB_TOKEN'],
    keysFrom: 'https://github.com/settings/tokens',
    urlVariable: 'GITHUB_MODELS_BASE_URL',
    address: 'https://models.github.ai/inference',
  }),
  azure: {
    ...hosted({
      title: 'Azure OpenAI',
      documentation: 'https://learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle',
      defaultModel: 'DEPLOYMENT',
      keyVariables: ['AZURE_OPENAI_API_KEY'],
      keysFrom: 'https://ai.azure.com',
      urlVariable: 'AZURE_OPENAI_ENDPOINT',
      address: null,
    }),
    urlForm: 'resource',
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
  lmstudio: local(
    {
      title: 'LM Studio',
      documentation: 'https://lmstudio.ai/docs/developer/openai-compat',
      keyVariables: ['LMSTUDIO_API_KEY'],
      urlVariable: 'LMSTUDIO_BASE_URL',
      address: 'http://127.0.0.1:1234/v1',
    },
    'Start it with "lms server start"',
  ),
  llamacpp: local(
    {
      title: 'llama.cpp',
      documentation: 'https://github.com/ggml-org/llama.cpp/tree/master/tools/server',
      keyVariables: ['LLAMACPP_API_KEY'],
      urlVariable: 'LLAMACPP_BASE_URL',
      address: 'http://127.0.0.1:8080/v1',
    },
    'Start it with "llama-server -m FILE --jinja"',
  ),
  vllm: local(
    {
      title: 'vLLM',
      documentation: 'https://docs.vllm.ai/en/latest/serving/openai_compatible_server',
      keyVariables: ['VLLM_API_KEY'],
      urlVariable: 'VLLM_BASE_URL',
      address: 'http://127.0.0.1:8000/v1',
    },
    'Start it with "vllm serve NAME --enable-auto-tool-choice"',
  ),
} as const satisfies Readonly<Record<string, Row>>;

type Rows = typeof rows;

export type WireName = Rows[keyof Rows]['wire'];

/** Providers whose models stand in the catalogue. */
export type CataloguedProvider = {
  [N in keyof Rows]: Rows[N]['factsFrom'] extends 'catalogue' ? N : never;
}[keyof Rows];

export type Provider = Omit<Row, 'wire'> & { readonly name: string; readonly wire: WireName };

/** A provider that the user defines in the settings. */
export type OwnProvider = Provider & {
  /** Sent with each request. */
  readonly headers: Readonly<Record<string, string>>;
  /** The variable or setting with its key, for messages. */
  readonly keyFrom: string;
  /** Facts about its models from the settings, by name. */
  readonly models: Readonly<Record<string, ModelFacts>>;
};

export const providers: readonly Provider[] = Object.entries(rows).map(([name, row]) => ({
  name,
  ...row,
}));

export const findProvider = (name: string): Provider | undefined =>
  providers.find((provider) => provider.name === name);

/** The provider of a model id; undefined for scripts and unknown names. */
export const providerOfModel = (modelId: string): Provider | undefined =>
  findProvider(modelId.split('/')[0] ?? '');

/** The id of its default model. */
export const exampleId = ({ name, defaultModel }: Provider): string => `${name}/${defaultModel}`;

/** The provider of the default model without any key. */
export const defaultProvider: Provider = { name: 'anthropic', ...rows.anthropic };

/** The provider that messages offer to users without a key. */
export const keylessProvider: Provider = { name: 'ollama', ...rows.ollama };

/** The default model without any key. */
export const DEFAULT_MODEL = exampleId(defaultProvider);

/** The default model, and the variable whose key chose it; null if no key is set. */
export type UsualModel = { readonly id: string; readonly variable: string | null };

/**
 * The default model: that of the first provider of the table whose key is set. Variables that are
 * shared with other programs do not count, nor do providers without an address of their own.
 */
export const usualModel = (environment: ProcessEnvironment): UsualModel => {
  for (const provider of providers) {
    if (provider.key !== 'required' || provider.address === null) continue;
    const variable = provider.keyVariables.find((name) => keyIn(environment, [name]) !== null);
    if (variable !== undefined) return { id: exampleId(provider), variable };
  }
  return { id: DEFAULT_MODEL, variable: null };
};

/** The variables that may hold a provider's key, those that other programs share last. */
export const keyNames = ({
  keyVariables,
  sharedVariables = [],
}: Pick<Provider, 'keyVariables' | 'sharedVariables'>): readonly [string, ...string[]] => [
  ...keyVariables,
  ...sharedVariables,
];

/** A provider that is reached through a package of the AI SDK, which the user installs. */
export type PackageProvider = {
  readonly name: string;
  readonly title: string;
  /** The package at npm. */
  readonly npm: string;
  /** Where its models are created: an export of the package, and the function that makes them. */
  entry(model: string): readonly [subpath: string, create: string];
  /** Variables: of each list one must be set. */
  readonly variables: readonly (readonly [string, ...string[]])[];
  readonly documentation: string;
};

export const packageProviders: readonly PackageProvider[] = [
  {
    name: 'bedrock',
    title: 'Amazon Bedrock',
    npm: '@ai-sdk/amazon-bedrock',
    entry: () => ['.', 'createAmazonBedrock'],
    variables: [['AWS_REGION'], ['AWS_BEARER_TOKEN_BEDROCK', 'AWS_ACCESS_KEY_ID']],
    documentation: 'https://ai-sdk.dev/providers/ai-sdk-providers/amazon-bedrock',
  },
  {
    name: 'vertex',
    title: 'Google Vertex AI',
    npm: '@ai-sdk/google-vertex',
    entry: (model) =>
      model.startsWith('claude-')
        ? ['./anthropic', 'createVertexAnthropic']
        : ['.', 'createVertex'],
    variables: [
      ['GOOGLE_VERTEX_PROJECT', 'GOOGLE_VERTEX_API_KEY'],
      ['GOOGLE_VERTEX_LOCATION', 'GOOGLE_VERTEX_API_KEY'],
    ],
    documentation: 'https://ai-sdk.dev/providers/ai-sdk-providers/google-vertex',
  },
];

/** A model id for examples in messages about a provider. */
export const exampleModel = (providerName: string): string => {
  const provider = findProvider(providerName);
  return provider === undefined ? DEFAULT_MODEL : exampleId(provider);
};

/** The forms of model ids, for messages and completion. */
export const modelForms: readonly string[] = [
  ...[...providers, ...packageProviders].map(({ name }) => `${name}/NAME`),
  'scripted/FILE',
];

/**
 * Chat Completions servers that are reached as `openai-compatible` and have another key, by
 * host.
 */
export const serversWithOwnKey: Readonly<
  Record<string, { readonly title: string; readonly keyVariable: string }>
> = {
  'openrouter.ai': { title: 'OpenRouter', keyVariable: 'OPENROUTER_API_KEY' },
};

/** Every variable that only holds the key of a provider. */
export const keyVariables: readonly string[] = [
  ...new Set([
    ...providers.flatMap((provider) => provider.keyVariables),
    ...Object.values(serversWithOwnKey).map(({ keyVariable }) => keyVariable),
  ]),
];

/**
 * The key in the first of these variables that is set; null: none. It goes to the address of its
 * provider, which the user may change. Servers of `openai-compatible` never get OpenAI's key.
 */
export const keyIn = (environment: ProcessEnvironment, names: readonly string[]): string | null => {
  for (const name of names) {
    const key = environment[name]?.trim() ?? '';
    if (key !== '') return key;
  }
  return null;
};

/** The address of a provider, and the variables with its key. */
type Endpoint = {
  readonly kind: 'ok';
  /** Without a slash at its end; null: unknown. */
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

/** The path of Azure's API, which the address of a resource leaves out. */
const RESOURCE_PATH = '/openai/v1';

/** The address of a resource of Azure, with the path of its API. */
const completeResource = (text: string): string => {
  if (!URL.canParse(text)) return text;
  const { origin, pathname } = new URL(text);
  return /^\/(openai\/?)?$/.test(pathname) ? `${origin}${RESOURCE_PATH}` : text;
};

/** Reads a host as Ollama does: `0.0.0.0`, where a server listens, means this machine. */
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

/** The address in the environment, or else the provider's. */
const addressIn = (
  environment: ProcessEnvironment,
  { urlVariable, urlForm, address }: Provider,
): string | null => {
  const text = environment[urlVariable] || address;
  return urlForm === 'host' && text && address ? completeHost(text, new URL(address)) : text;
};

/**
 * Finds the address of a provider, and the variables with its key there. `baseUrl` wins over the
 * environment.
 */
export const findEndpoint = (
  provider: Provider,
  environment: ProcessEnvironment,
  baseUrl: string | undefined,
): Endpoint | BadUrl => {
  const { title, urlVariable, address } = provider;
  const endpoint: Endpoint = { kind: 'ok', url: null, title, keyVariables: keyNames(provider) };
  const written = baseUrl || addressIn(environment, provider);
  if (!written) return endpoint;
  const text = provider.urlForm === 'resource' ? completeResource(written) : written;
  const checked = checkUrl(text, baseUrl ? '--base-url' : urlVariable);
  if (checked.kind === 'badUrl') return checked;
  const host = new URL(checked.url).hostname;
  const server =
    address === null && Object.hasOwn(serversWithOwnKey, host)
      ? serversWithOwnKey[host]
      : undefined;
  if (server === undefined) return { ...endpoint, url: checked.url };
  return { ...endpoint, url: checked.url, title: server.title, keyVariables: [server.keyVariable] };
};
